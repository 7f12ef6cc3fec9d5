// Elements in device memory: rows of WORDS 32-bit limbs (8 or 12), 16-byte aligned, moved 16 bytes at a time.
#pragma once

#include "base/platform.cuh"

namespace element {

// The element that this thread owns in a one-element-a-thread launch.
__device__ __forceinline__ uint64_t own_index() { return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; }

// 16 bytes of memory. ONCE: they are not needed again soon, and leave the cache to others.
template <bool ONCE>
__device__ __forceinline__ uint4 load_quad(const uint4* at) {
    if constexpr (ONCE) return __ldcs(at);
    return *at;
}
template <bool ONCE>
__device__ __forceinline__ void store_quad(uint4* at, const uint4& part) {
    if constexpr (ONCE) {
        __stcs(at, part);
    } else {
        *at = part;
    }
}

template <int WORDS, bool ONCE = false>
__device__ __forceinline__ void load(uint32_t* limbs, const uint32_t* array, uint64_t index) {
    static_assert(WORDS % 4 == 0, "16 bytes at a time");
    const uint4* const at = reinterpret_cast<const uint4*>(array + index * WORDS);
    UNROLL
    for (int i = 0; i < WORDS / 4; ++i) {
        const uint4 part = load_quad<ONCE>(at + i);
        limbs[4 * i] = part.x;
        limbs[4 * i + 1] = part.y;
        limbs[4 * i + 2] = part.z;
        limbs[4 * i + 3] = part.w;
    }
}

// Stores N limbs and zeros above them.
template <int WORDS, int N, bool ONCE = false>
__device__ __forceinline__ void store(uint32_t* array, uint64_t index, const uint32_t* limbs) {
    static_assert(WORDS % 4 == 0 && N <= WORDS, "16 bytes at a time");
    uint32_t padded[WORDS];
    UNROLL
    for (int i = 0; i < WORDS; ++i) padded[i] = i < N ? limbs[i < N ? i : 0] : 0;
    uint4* const at = reinterpret_cast<uint4*>(array + index * WORDS);
    UNROLL
    for (int i = 0; i < WORDS / 4; ++i) {
        store_quad<ONCE>(at + i, make_uint4(padded[4 * i], padded[4 * i + 1], padded[4 * i + 2], padded[4 * i + 3]));
    }
}

// Has the element brought to the multiprocessor's cache, by sectors of 32 bytes, without waiting for it.
template <int WORDS>
__device__ __forceinline__ void prefetch(const uint32_t* array, uint64_t index) {
#ifdef __CUDACC_RTC__
    UNROLL
    for (int i = 0; i < WORDS; i += 8) {
        asm volatile("prefetch.global.L1 [%0];" ::"l"(__cvta_generic_to_global(array + index * WORDS + i)));
    }
#endif
}

}  // namespace element
