// Inversions for algo/batch_inverse.cuh: of a block's total, and of one element a thread.
#pragma once

#include "base/async_copy.cuh"
#include "field/inverse.cuh"
#include "field/warp_inverse.cuh"

namespace total_inverse {

// One thread inverts the total by the function that inverts single elements. Single: a bool of (words), by one thread.
template <int N, class Single>
struct ByThread {
    Single inverse;

    __device__ __forceinline__ void prepare() const {}
    __device__ __forceinline__ void arrive() const {}
    __device__ __forceinline__ bool total(uint32_t* words) const {
        if (threadIdx.x != 0) return false;
        uint32_t own[N];
        limb::copy<N>(own, words);
        const bool exists = single(own);
        limb::copy<N>(words, own);
        return exists;
    }
    __device__ __forceinline__ bool single(uint32_t (&words)[N]) const { return inverse(words); }
};

// The first warp inverts the total together (field/warp_inverse.cuh), m odd, of 8 limbs: less than half of one thread's time
// (plan 0004). Its table comes from `source` in device memory while the block multiplies. memory: the block's shared memory,
// WORDS of 16 bytes, aligned to 128. prepare and arrive are called by all threads, with a __syncthreads() between arrive and
// total, which makes table and modulus visible to the warp.
template <class Table, class Single>
struct ByWarp {
    static constexpr int N = 8;
    static constexpr int TABLE_WORDS = Table::BYTES / 16, WORDS = TABLE_WORDS + N * 4 / 16;
    Single inverse;
    const uint32_t* modulus;
    uint32_t n0inv;
    const uint4* source;
    uint4* memory;

    __device__ __forceinline__ void prepare() const {
#pragma unroll 1
        for (int i = threadIdx.x; i < TABLE_WORDS; i += blockDim.x) async_copy::begin(memory + i, source + i);
        if (threadIdx.x == 0) limb::copy<N>(shared_modulus(), modulus);
    }
    __device__ __forceinline__ void arrive() const { async_copy::wait(); }
    __device__ __forceinline__ bool total(uint32_t* words) const {
        return safegcd::warp_inverse<Table>(words, shared_modulus(), n0inv, memory);
    }
    __device__ __forceinline__ bool single(uint32_t (&words)[N]) const { return inverse(words); }
    __device__ __forceinline__ uint32_t* shared_modulus() const { return reinterpret_cast<uint32_t*>(memory + TABLE_WORDS); }
};

// words^-1 mod m, m odd: the parameters of safegcd::OddModulus. N30: its limbs.
template <int N, int N30>
struct Odd {
    const uint32_t* modulus30;
    uint32_t negated_inverse4;

    __device__ __forceinline__ bool operator()(uint32_t (&words)[N]) const {
        safegcd::OddModulus<N30> m;
        UNROLL
        for (int i = 0; i < N30; ++i) m.limb[i] = static_cast<int32_t>(modulus30[i]);
        m.negated_inverse4 = negated_inverse4;
        safegcd::Signed30<N30> x = safegcd::to_signed30<N30>(words);
        const bool exists = safegcd::inverse_var(x, m);
        safegcd::from_signed30(words, x);
        return exists;
    }
};

// words^-1 mod m, m even.
template <int N, int N30>
struct Even {
    const uint32_t* modulus;

    __device__ __forceinline__ bool operator()(uint32_t (&words)[N]) const {
        uint32_t m[N];
        limb::copy<N>(m, modulus);
        return safegcd::inverse_even_var(words, m, safegcd::to_signed30<N30>(m));
    }
};

}  // namespace total_inverse
