// rows32.cuh on CUDA: the rows of limb/ptx.cuh.
#pragma once

#include "limb/limb.cuh"

namespace rows32 {

__device__ __forceinline__ void row_multiply(uint32_t* acc, const uint32_t* v, uint32_t w) {
    limb::row_multiply<4>(acc, v, w);
}

__device__ __forceinline__ void row(uint32_t* acc, const uint32_t* v, uint32_t w, uint32_t& top) {
    uint32_t none = 0;
    limb::row<4>(acc, v, w, top, none);
}

__device__ __forceinline__ void row_last(uint32_t* acc, const uint32_t* v, uint32_t w) {
    uint32_t top = 0;
    row(acc, v, w, top);
    VERIFY(top == 0);
}

}  // namespace rows32
