// rows32.cuh for any C++ compiler.
#pragma once

#include "base/platform.cuh"

namespace rows32 {

__forceinline__ void row(uint32_t* acc, const uint32_t* v, uint32_t w, uint32_t& top) {
    uint64_t carry = 0;
    UNROLL
    for (int k = 0; k < 8; ++k) {
        // An odd word takes what the product below it left; nothing begins there.
        const uint64_t sum = (k % 2 == 0 ? uint64_t(v[k]) * w : 0) + acc[k] + carry;
        acc[k] = uint32_t(sum);
        carry = sum >> 32;
    }
    top += uint32_t(carry);
}

__forceinline__ void row_multiply(uint32_t* acc, const uint32_t* v, uint32_t w) {
    uint32_t top = 0;
    UNROLL
    for (int k = 0; k < 8; ++k) acc[k] = 0;
    row(acc, v, w, top);
}

__forceinline__ void row_last(uint32_t* acc, const uint32_t* v, uint32_t w) {
    uint32_t top = 0;
    row(acc, v, w, top);
    VERIFY(top == 0);
}

}  // namespace rows32
