// Elements that change threads: across a bit of the thread's number, within a warp by shuffles, within a block through shared
// memory.
#pragma once

#include "base/platform.cuh"

namespace exchange {

// Shared memory: an element is N / 4 planes of 16 bytes, a plane one row of the block.
template <int N>
__device__ __forceinline__ void get(uint32_t* x, const uint4* memory, uint32_t at) {
    UNROLL
    for (int p = 0; p < N / 4; ++p) {
        const uint4 part = memory[p * blockDim.x + at];
        x[4 * p] = part.x;
        x[4 * p + 1] = part.y;
        x[4 * p + 2] = part.z;
        x[4 * p + 3] = part.w;
    }
}

template <int N>
__device__ __forceinline__ void put(uint4* memory, const uint32_t* x, uint32_t at) {
    UNROLL
    for (int p = 0; p < N / 4; ++p) {
        memory[p * blockDim.x + at] = make_uint4(x[4 * p], x[4 * p + 1], x[4 * p + 2], x[4 * p + 3]);
    }
}

// r = x of the thread whose number differs in bit BIT; all threads of the block. Each bit from 5 on has shared memory of its
// own, so that a barrier between the store and the load is all that it takes.
template <int N, int BIT>
__device__ __forceinline__ void across(uint32_t* r, const uint32_t* x, uint4* memory) {
    if constexpr (BIT < 5) {
        UNROLL
        for (int i = 0; i < N; ++i) r[i] = __shfl_xor_sync(0xFFFFFFFFu, x[i], 1 << BIT);
    } else {
        uint4* const own = memory + (BIT - 5) * (N / 4) * blockDim.x;
        put<N>(own, x, threadIdx.x);
        __syncthreads();
        get<N>(r, own, threadIdx.x ^ (1u << BIT));
    }
}

}  // namespace exchange
