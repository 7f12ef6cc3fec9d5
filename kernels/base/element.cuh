// Elements in device memory: rows of WORDS 32-bit limbs (8 or 12), 16-byte aligned, moved 16 bytes at a time.
#pragma once

#include "base/platform.cuh"

namespace element {

// The element that this thread owns in a one-element-a-thread launch.
__device__ __forceinline__ uint64_t own_index() { return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; }

template <int WORDS>
__device__ __forceinline__ void load(uint32_t* limbs, const uint32_t* array, uint64_t index) {
    static_assert(WORDS % 4 == 0, "16 bytes at a time");
    const uint4* const at = reinterpret_cast<const uint4*>(array + index * WORDS);
    UNROLL
    for (int i = 0; i < WORDS / 4; ++i) {
        const uint4 part = at[i];
        limbs[4 * i] = part.x;
        limbs[4 * i + 1] = part.y;
        limbs[4 * i + 2] = part.z;
        limbs[4 * i + 3] = part.w;
    }
}

// Stores N limbs and zeros above them.
template <int WORDS, int N>
__device__ __forceinline__ void store(uint32_t* array, uint64_t index, const uint32_t* limbs) {
    static_assert(WORDS % 4 == 0 && N <= WORDS, "16 bytes at a time");
    uint32_t padded[WORDS];
    UNROLL
    for (int i = 0; i < WORDS; ++i) padded[i] = i < N ? limbs[i < N ? i : 0] : 0;
    uint4* const at = reinterpret_cast<uint4*>(array + index * WORDS);
    UNROLL
    for (int i = 0; i < WORDS / 4; ++i) {
        at[i] = make_uint4(padded[4 * i], padded[4 * i + 1], padded[4 * i + 2], padded[4 * i + 3]);
    }
}

}  // namespace element
