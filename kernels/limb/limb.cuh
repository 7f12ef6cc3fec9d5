// Arithmetic on arrays of 32-bit limbs, little-endian: the one interface of two implementations.
//
//   limb/ptx.cuh        CUDA: PTX carry chains, one asm block each          + limb/ptx_product.cuh
//   limb/portable.cuh   any C++ compiler: 64-bit words, unsigned __int128   + limb/portable_product.cuh
//
// Every function is executed by one thread. N counts limbs (1..12 unless said otherwise; sums and differences of up to 24). Results may
// alias operands exactly (r == a), never overlap them otherwise, unless a function forbids it. Notation: W = 2^32, and
// [x] is the integer that an array stands for.
//
//   add<N>(r, a, b) -> c              [r] + c W^N = [a] + [b],          c in {0, 1}
//   subtract<N>(r, a, b) -> c         [r] = [a] - [b] + c W^N,          c = ([a] < [b])
//   multiply_accumulate<N>(r, a, w) -> c
//                                     [r] + c W^N = [r] + [a] w,        c one word: the row of a product. r != a
//
//   shift_left<N>(r, a, below, s)     [r] = floor(([a] W + below) 2^s / W) mod W^N,     0 <= s < 32
//   shift_right<N>(r, a, s)           [r] = floor([a] / 2^s),                           0 <= s < 32
//
//   wide_product<N>(t, a, b)          [t] = [a][b],                     t has 2N limbs and aliases nothing
//   wide_square<N>(t, a)              [t] = [a]^2,                      likewise
//   low_multiply_add<K, Q>(r, q, v)   [r] = [r] + [q][v] mod W^K,       q has Q <= K limbs, v and r have K; no aliases
//   monic_multiply_add<N>(r, a, v, w) [r] = [a] + [v] (W + w),          r has N + 2 limbs, N even; no aliases
//   estimate_quotient<N>(q, x, y, lo)
//                                     [q] = [x] + floor(([x][y] + lo (W + y') W^(N-2)) / W^N - e), y' y's top limb,
//                                     0 <= e < N / W; the caller guarantees that [q] stays below W^N. No aliases
//   montgomery_product<N, FULL>(r, a, b, m, n0) -> c
//                                     [r] + c W^N = ([a][b] + k [m]) / W^N for the k in 0..W^N-1 that makes it exact.
//                                     N even, m odd, n0 = -m^-1 mod W. [a][b] < W^N [m] gives a result below 2 [m], and
//                                     FULL = false (c = 0, and cheaper) is allowed where [a] + [m] <= W^N
//   montgomery_reduce<N>(r, t, m, n0) -> c
//                                     the same for [t], 2N limbs, in place of [a][b]; r may be either half of t
//
// What follows is common to both.
#pragma once

#include "base/platform.cuh"

#ifdef __CUDACC_RTC__
#include "limb/ptx.cuh"
#include "limb/ptx_product.cuh"
#else
#include "limb/portable.cuh"
#include "limb/portable_product.cuh"
#endif

namespace limb {

template <int N>
__device__ __forceinline__ void copy(uint32_t* r, const uint32_t* a) {
    UNROLL
    for (int i = 0; i < N; ++i) r[i] = a[i];
}

// [r] = word
template <int N>
__device__ __forceinline__ void set_word(uint32_t* r, uint32_t word) {
    UNROLL
    for (int i = 0; i < N; ++i) r[i] = i == 0 ? word : 0;
}

// r = condition ? a : b, without a branch.
template <int N>
__device__ __forceinline__ void select(uint32_t* r, bool condition, const uint32_t* a, const uint32_t* b) {
    UNROLL
    for (int i = 0; i < N; ++i) r[i] = condition ? a[i] : b[i];
}

template <int N>
__device__ __forceinline__ bool is_zero(const uint32_t* a) {
    uint32_t any = 0;
    UNROLL
    for (int i = 0; i < N; ++i) any |= a[i];
    return any == 0;
}

template <int N>
__device__ __forceinline__ bool equal(const uint32_t* a, const uint32_t* b) {
    uint32_t any = 0;
    UNROLL
    for (int i = 0; i < N; ++i) any |= a[i] ^ b[i];
    return any == 0;
}

// [a] < [b]
template <int N>
__device__ __forceinline__ bool less(const uint32_t* a, const uint32_t* b) {
    uint32_t unused[N];
    return subtract<N>(unused, a, b) != 0;
}

// r = [t] >= [m] ? [t] - [m] : [t], where t = carry W^N + [r] < 2 [m]: the last step of most reductions.
template <int N>
__device__ __forceinline__ void subtract_once(uint32_t* r, uint32_t carry, const uint32_t* m) {
    uint32_t difference[N];
    const uint32_t borrow = subtract<N>(difference, r, m);
    select<N>(r, carry >= borrow, difference, r);
}

// a = condition ? a : 0, without a branch.
template <int N>
__device__ __forceinline__ void mask(uint32_t* a, bool condition) {
    const uint32_t all = 0u - uint32_t(condition);
    UNROLL
    for (int i = 0; i < N; ++i) a[i] &= all;
}

// [r] = [a] 2^s mod W^N, 0 <= s < 32 N: whole words by stages of selects, so that no index depends on s.
template <int N>
__device__ __forceinline__ void barrel_left(uint32_t* r, const uint32_t* a, uint32_t s) {
    copy<N>(r, a);
    UNROLL
    for (int step = 1; step < N; step *= 2) {
        const bool taken = (s / 32 & step) != 0;
        UNROLL
        for (int i = N - 1; i >= 0; --i) r[i] = taken ? (i >= step ? r[i - step] : 0) : r[i];
    }
    shift_left<N>(r, r, 0, s % 32);
}

// [r] = floor([a] / 2^s), 0 <= s < 32 N
template <int N>
__device__ __forceinline__ void barrel_right(uint32_t* r, const uint32_t* a, uint32_t s) {
    copy<N>(r, a);
    UNROLL
    for (int step = 1; step < N; step *= 2) {
        const bool taken = (s / 32 & step) != 0;
        UNROLL
        for (int i = 0; i < N; ++i) r[i] = taken ? (i + step < N ? r[i + step] : 0) : r[i];
    }
    shift_right<N>(r, r, s % 32);
}

}  // namespace limb
