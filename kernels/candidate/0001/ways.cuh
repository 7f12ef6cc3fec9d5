// Seven ways to [r] = [a][b] mod p for the secp256k1 prime, canonical, for any a, b of 256 bits. One thread each.
//
// The columns of a product are filled row by row: row i is [a] b[i], at word i. The ways differ in the width of a limb,
// and in where a row is made:
//   in place    the products with a[0], a[2].. are added to the result, then those with a[1], a[3]..
//   then added  the row is made in a temporary in the same two steps, then added to the result
// Before row i the result is below W^(N + i), after it below W^(N + i + 1): its word N + i is 0 until then and takes the
// row's last word, and nothing leaves it.
#pragma once

#include "candidate/0001/fold977.cuh"
#include "candidate/0001/limb64.cuh"
#include "candidate/0001/rows32.cuh"
#include "field/barrett.cuh"
#include "field/fold.cuh"
#include "limb/limb.cuh"

namespace ways {

enum Way { EVEN_ODD_32, ROW_32, EVEN_ODD_64, ROW_64, SPLIT, GENERAL, SHIPPED };

constexpr int N = 8;

// --- rows: [acc] += [v] w, acc one limb longer than v ----------------------------------------------------------------

struct EvenOdd32 {
    using Limb = uint32_t;
    static constexpr int LIMBS = N;

    static __device__ __forceinline__ void first(Limb* acc, const Limb* v, Limb w) {
        rows32::row_multiply(acc, v, w);
        acc[8] = 0;
        rows32::row_last(acc + 1, v + 1, w);
    }

    static __device__ __forceinline__ void add(Limb* acc, const Limb* v, Limb w) {
        rows32::row(acc, v, w, acc[8]);
        rows32::row_last(acc + 1, v + 1, w);
    }
};

struct Row32 : EvenOdd32 {
    static __device__ __forceinline__ void add(Limb* acc, const Limb* v, Limb w) {
        Limb row[9];
        first(row, v, w);
        limb::add<9>(acc, acc, row);
    }
};

struct EvenOdd64 {
    using Limb = uint64_t;
    static constexpr int LIMBS = N / 2;

    static __device__ __forceinline__ void first(Limb* acc, const Limb* v, Limb w) {
        limb64::row_multiply(acc, v, w);
        acc[4] = 0;
        limb64::row_last(acc + 1, v + 1, w);
    }

    static __device__ __forceinline__ void add(Limb* acc, const Limb* v, Limb w) {
        limb64::row(acc, v, w, acc[4]);
        limb64::row_last(acc + 1, v + 1, w);
    }
};

struct Row64 : EvenOdd64 {
    static __device__ __forceinline__ void add(Limb* acc, const Limb* v, Limb w) {
        Limb row[5];
        first(row, v, w);
        limb64::add<5>(acc, row);
    }
};

// [t] = [a][b]; t: twice as many limbs.
template <class Row>
__device__ __forceinline__ void product(typename Row::Limb* t, const typename Row::Limb* a, const typename Row::Limb* b) {
    constexpr int L = Row::LIMBS;
    Row::first(t, a, b[0]);
    UNROLL
    for (int i = 1; i < L; ++i) {
        t[L + i] = 0;
        Row::add(t + i, a, b[i]);
    }
}

template <class Row>
__device__ __forceinline__ void multiply32(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    uint32_t t[2 * N];
    product<Row>(t, a, b);
    fold977::reduce(r, t);
}

// The fold is a row of its own: t1 c on top of t0.
template <class Row>
__device__ __forceinline__ void multiply64(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    constexpr int L = Row::LIMBS;
    uint64_t x[L], y[L], t[2 * L], u[L + 1];
    limb64::from_limbs(x, a);
    limb64::from_limbs(y, b);
    product<Row>(t, x, y);
    UNROLL
    for (int i = 0; i < L; ++i) u[i] = t[i];
    u[L] = 0;
    Row::add(u, t + L, fold977::COMPLEMENT);
    fold977::finish64(t, u);
    limb64::to_limbs(r, t);
}

// Two accumulators for the product, two for the fold.
__device__ __forceinline__ void multiply_split(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    uint32_t t[2 * N];
    limb::wide_product<N>(t, a, b);
    fold977::reduce(r, t);
}

// As for any modulus of 256 bits. One factor has to be reduced for it, then t = a b < 2^256 p.
template <class Constants>
__device__ __forceinline__ void multiply_general(uint32_t* r, const uint32_t* a, const uint32_t* b, const Constants& p) {
    uint32_t reduced[N], t[2 * N];
    limb::copy<N>(reduced, b);
    limb::subtract_once<N>(reduced, 0, p.modulus);
    limb::wide_product<N>(t, a, reduced);
    barrett::reduce<N>(r, t, p.modulus, p.negated, p.reciprocal, 0);
}

// [r] = [a][b] mod p. constants: the kernel's parameters, of which each way reads what it needs.
template <int WAY, class Constants>
__device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b, const Constants& constants) {
    static_assert(EVEN_ODD_32 <= WAY && WAY <= SHIPPED, "a way");
    if constexpr (WAY == EVEN_ODD_32) multiply32<EvenOdd32>(r, a, b);
    if constexpr (WAY == ROW_32) multiply32<Row32>(r, a, b);
    if constexpr (WAY == EVEN_ODD_64) multiply64<EvenOdd64>(r, a, b);
    if constexpr (WAY == ROW_64) multiply64<Row64>(r, a, b);
    if constexpr (WAY == SPLIT) multiply_split(r, a, b);
    if constexpr (WAY == GENERAL) multiply_general(r, a, b, constants);
    if constexpr (WAY == SHIPPED) fold::multiply(r, a, b, constants.complement);
}

}  // namespace ways
