// Powers by fixed windows of 4 bits (Knuth, The Art of Computer Programming 2, 4.6.3: the 2^k-ary method).
//
// One thread computes one power: 14 products for the table, then 4 squarings and a product for each window below the
// top one. Each thread begins at its own exponent's highest non-zero window.
#pragma once

#include "limb/limb.cuh"

namespace power {

constexpr int WINDOW_BITS = 4;
constexpr int ENTRIES = 1 << WINDOW_BITS;
constexpr int WINDOWS_PER_WORD = 32 / WINDOW_BITS;

// Words of shared memory that a block's tables take.
template <int LIMBS, int THREADS>
constexpr int TABLE_WORDS = ENTRIES * LIMBS * THREADS;

// This thread's table of powers 0..15 in the block's shared memory, laid out [entry][limb][thread]: the threads of a
// warp read one limb of different entries from different banks. No other thread touches it, so nothing synchronises.
template <int LIMBS, int THREADS>
struct Table {
    uint32_t* words;

    __device__ __forceinline__ void put(int entry, const uint32_t* value) const {
        UNROLL
        for (int i = 0; i < LIMBS; ++i) words[(entry * LIMBS + i) * THREADS + threadIdx.x] = value[i];
    }

    __device__ __forceinline__ void get(uint32_t* value, int entry) const {
        UNROLL
        for (int i = 0; i < LIMBS; ++i) value[i] = words[(entry * LIMBS + i) * THREADS + threadIdx.x];
    }
};

// The window at bit 4 w of an exponent.
__device__ __forceinline__ int window(const uint32_t* exponent, int w) {
    return int(exponent[w / WINDOWS_PER_WORD] >> (w % WINDOWS_PER_WORD * WINDOW_BITS)) & (ENTRIES - 1);
}

// Number of windows up to the highest that is not zero; 0 for the exponent 0.
template <int WORDS>
__device__ __forceinline__ int windows(const uint32_t* exponent) {
    int count = 0;
#pragma unroll 1
    for (int i = 0; i < WORDS; ++i) {
        const uint32_t word = exponent[i];
        if (word != 0) count = i * WINDOWS_PER_WORD + (32 - __clz(int(word)) + WINDOW_BITS - 1) / WINDOW_BITS;
    }
    return count;
}

// r = base ^ exponent in the ring; exponent: WORDS limbs in memory, a plain integer; x^0 = one for every x.
// Ring: LIMBS, one(r), multiply(r, a, b), square(r, a), closed on its canonical elements.
template <class Ring, int THREADS, int WORDS>
__device__ __forceinline__ void raise(uint32_t* r, const Ring& ring, const uint32_t* base, const uint32_t* exponent,
                                      Table<Ring::LIMBS, THREADS> table) {
    constexpr int N = Ring::LIMBS;
    uint32_t value[N];
    ring.one(value);
    table.put(0, value);
    limb::copy<N>(value, base);
    table.put(1, value);
#pragma unroll 1
    for (int entry = 2; entry < ENTRIES; ++entry) {
        ring.multiply(value, value, base);
        table.put(entry, value);
    }
    int w = windows<WORDS>(exponent) - 1;
    table.get(value, w < 0 ? 0 : window(exponent, w));
#pragma unroll 1
    while (--w >= 0) {
        uint32_t factor[N];
#pragma unroll 1
        for (int i = 0; i < WINDOW_BITS; ++i) ring.square(value, value);
        table.get(factor, window(exponent, w));
        ring.multiply(value, value, factor);
    }
    limb::copy<N>(r, value);
}

}  // namespace power
