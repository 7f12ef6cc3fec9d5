// Montgomery arithmetic modulo an odd m (Montgomery 1985; the row-wise form with two accumulators is in
// limb/ptx_product.cuh).
//
// Notation: W = 2^32, R = W^N, N even (an odd number of limbs is padded to an even one). The Montgomery form of a is
// a R mod m. n0 = -m^-1 mod W, R2 = R^2 mod m. Every function is executed by one thread; r may alias operands.
#pragma once

#include "limb/limb.cuh"

namespace mont {

// [r] = [a][b] / R mod m, canonical, for [a][b] < R m: one factor below m is enough, the other may be any N limbs.
// FULL: m may have its top bit set. FULL = false allows [a] + m <= R only.
template <int N, bool FULL = true>
__device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b, const uint32_t* m,
                                         uint32_t n0) {
    VERIFY(limb::less<N>(a, m) || limb::less<N>(b, m));
    uint32_t value[N];
    const uint32_t carry = limb::montgomery_product<N, FULL>(value, a, b, m, n0);
    limb::subtract_once<N>(value, carry, m);
    VERIFY(limb::less<N>(value, m));
    limb::copy<N>(r, value);
}

// [r] = [a]^2 / R mod m, canonical, for [a] < m: N (N + 1) / 2 products and a reduction instead of N N and a reduction.
template <int N>
__device__ __forceinline__ void square(uint32_t* r, const uint32_t* a, const uint32_t* m, uint32_t n0) {
    VERIFY(limb::less<N>(a, m));
    uint32_t t[2 * N], value[N];
    limb::wide_square<N>(t, a);
    const uint32_t carry = limb::montgomery_reduce<N>(value, t, m, n0);
    limb::subtract_once<N>(value, carry, m);
    VERIFY(limb::less<N>(value, m));
    limb::copy<N>(r, value);
}

// [r] = [a][b] / R mod m in [0, 2m), for [a], [b] in [0, 2m) and m < R / 4: (2m 2m + R m) / R < 2m.
template <int N>
__device__ __forceinline__ void multiply_lazy(uint32_t* r, const uint32_t* a, const uint32_t* b, const uint32_t* m,
                                              uint32_t n0) {
    VERIFY(m[N - 1] >> 30 == 0);
    uint32_t value[N];
    limb::montgomery_product<N, false>(value, a, b, m, n0);
    limb::copy<N>(r, value);
}

// [0, 2m) -> [0, m), for m < R / 2.
template <int N>
__device__ __forceinline__ void canonical(uint32_t* r, const uint32_t* m) {
    limb::subtract_once<N>(r, 0, m);
}

// Montgomery form of any a of N limbs, canonical (a R2 < R m).
template <int N>
__device__ __forceinline__ void enter(uint32_t* r, const uint32_t* a, const uint32_t* r2, const uint32_t* m,
                                      uint32_t n0) {
    multiply<N>(r, a, r2, m, n0);
}

// Plain form of a, canonical: [r] = [a] / R mod m for any a of N limbs. (a + k m) / R < 1 + m, and it is m only for
// a = 0 mod m with a > 0, hence the subtraction.
template <int N>
__device__ __forceinline__ void leave(uint32_t* r, const uint32_t* a, const uint32_t* m, uint32_t n0) {
    uint32_t t[2 * N] = {};
    limb::copy<N>(t, a);
    limb::montgomery_reduce<N>(r, t, m, n0);
    limb::subtract_once<N>(r, 0, m);
}

// [r] = [a] + [b] mod m, canonical, for [a], [b] < m.
template <int N>
__device__ __forceinline__ void add(uint32_t* r, const uint32_t* a, const uint32_t* b, const uint32_t* m) {
    const uint32_t carry = limb::add<N>(r, a, b);
    limb::subtract_once<N>(r, carry, m);
}

// [r] = [a] - [b] mod m, canonical, for [a], [b] < m.
template <int N>
__device__ __forceinline__ void subtract(uint32_t* r, const uint32_t* a, const uint32_t* b, const uint32_t* m) {
    uint32_t difference[N], raised[N];
    const uint32_t borrow = limb::subtract<N>(difference, a, b);
    limb::add<N>(raised, difference, m);
    limb::select<N>(r, borrow != 0, raised, difference);
}

// Montgomery form of any a of E >= N limbs: with a = sum of a_k R^k, a_k of N limbs, Horner's rule from the top.
// Entering a form is a product by R, which is Horner's step as well.
template <int N, int E, int AT = (E - 1) / N>
__device__ __forceinline__ void enter_element(uint32_t* r, const uint32_t* a, const uint32_t* r2, const uint32_t* m,
                                              uint32_t n0) {
    uint32_t part[N];
    UNROLL
    for (int i = 0; i < N; ++i) part[i] = AT * N + i < E ? a[AT * N + i < E ? AT * N + i : 0] : 0;
    enter<N>(part, part, r2, m, n0);
    if constexpr (AT == (E - 1) / N) {
        limb::copy<N>(r, part);
    } else {
        enter<N>(r, r, r2, m, n0);
        add<N>(r, r, part, m);
    }
    if constexpr (AT > 0) enter_element<N, E, AT - 1>(r, a, r2, m, n0);
}

// --- a modulus known at compile time ---------------------------------------------------------------------------------

// P: a field's constants as ops/params/render.py writes them (N, BITS, MODULUS, N0INV, R, R2). An element is a
// `uint32_t[LIMBS]` in Montgomery form, canonical unless a function says [0, 2m).
template <class P>
struct Field {
    static_assert(P::N % 2 == 0, "an odd number of limbs is padded to an even one");
    static constexpr int LIMBS = P::N;
    static constexpr bool FULL = P::BITS == 32 * P::N;      // the top bit of m is set
    static constexpr bool LAZY = P::BITS <= 32 * P::N - 2;  // [0, 2m) fits

    template <int I = 0>
    static __device__ __forceinline__ void modulus(uint32_t* m) {
        constexpr uint32_t limb = P::MODULUS[I];
        m[I] = limb;
        if constexpr (I + 1 < LIMBS) modulus<I + 1>(m);
    }

    template <int I = 0>
    static __device__ __forceinline__ void r2(uint32_t* r) {
        constexpr uint32_t limb = P::R2[I];
        r[I] = limb;
        if constexpr (I + 1 < LIMBS) r2<I + 1>(r);
    }

    static __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        uint32_t m[LIMBS];
        modulus(m);
        mont::multiply<LIMBS, FULL>(r, a, b, m, P::N0INV);
    }

    static __device__ __forceinline__ void square(uint32_t* r, const uint32_t* a) {
        uint32_t m[LIMBS];
        modulus(m);
        mont::square<LIMBS>(r, a, m, P::N0INV);
    }

    // [0, 2m) in and out.
    static __device__ __forceinline__ void multiply_lazy(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        static_assert(LAZY, "2m has to leave a bit free");
        uint32_t m[LIMBS];
        modulus(m);
        mont::multiply_lazy<LIMBS>(r, a, b, m, P::N0INV);
    }

    static __device__ __forceinline__ void add(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        uint32_t m[LIMBS];
        modulus(m);
        mont::add<LIMBS>(r, a, b, m);
    }

    static __device__ __forceinline__ void subtract(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        uint32_t m[LIMBS];
        modulus(m);
        mont::subtract<LIMBS>(r, a, b, m);
    }

    static __device__ __forceinline__ void enter(uint32_t* r, const uint32_t* a) {
        uint32_t m[LIMBS], square_of_r[LIMBS];
        modulus(m);
        r2(square_of_r);
        mont::enter<LIMBS>(r, a, square_of_r, m, P::N0INV);
    }

    static __device__ __forceinline__ void leave(uint32_t* r, const uint32_t* a) {
        uint32_t m[LIMBS];
        modulus(m);
        mont::leave<LIMBS>(r, a, m, P::N0INV);
    }
};

}  // namespace mont
