// Sums of two products by constants, a u + b v mod m with one reduction: the arithmetic of algo/ntt_lanes.cuh.
//
// Notation as in field/constant_product.cuh: N limbs (even), R = W^N, E = W^(N-1), and constants as Split<M, 2> stores them.
// Every function is executed by one thread. A field takes one of two forms:
//
//             condition         element     bracket        sum of P / 2 products, before its reduction
//   ROOMY     5 m + 2 E <= R    < 2 m + E   < 5 m + E      < (P + 1) m, no more than R
//   else      2 m + 256 E <= R  < m         < 2 m          < (P + 1) m, with a word above
//
// m is at least 2^16 E in both, so that E counts for little.
#pragma once

#include "field/constant_product.cuh"
#include "limb/dot.cuh"

namespace dot {

template <class M>
struct Residue {
    static constexpr int N = M::N;
    static constexpr bool ROOMY = constant_product::fits(M::MODULUS, 5, 2);
    static_assert(ROOMY || constant_product::fits(M::MODULUS, 2, 256), "a spare bit");
    static_assert(N % 2 == 0 && M::MODULUS[N - 1] >= 1u << 16, "top limbs tell enough");

    // Words of the constants of a sum of P / 2 products.
    template <int P>
    static constexpr int WORDS = P * N;

    static __device__ __forceinline__ bool is_element(const uint32_t* x) {
        return ROOMY ? constant_product::within<M, 2, 1>(x) : constant_product::within<M, 1, 0>(x);
    }

    // [s] = [x] + [r], or [r] - [x] + c m where mask is ~0 (else 0), c = 3 (ROOMY) or 1. Elements -> a bracket. What is made
    // of x does not wait for r.
    static __device__ __forceinline__ void bracket(uint32_t* s, const uint32_t* x, const uint32_t* r, uint32_t mask) {
        VERIFY(is_element(x) && is_element(r));
        uint32_t k[N], signed_x[N];
        constant_product::set_multiple<M, ROOMY ? 3 : 1>(k);
        UNROLL
        for (int i = 0; i < N; ++i) {
            k[i] = (k[i] + (i == 0)) & mask;  // c m + 1: LOW says that no carry leaves the limb
            signed_x[i] = x[i] ^ mask;
        }
        limb::add<N>(signed_x, signed_x, k);
        limb::add<N>(s, signed_x, r);
    }

    // r = a u + b v: an element. x = (u, v), any; w = (a, b). P = 2: r = a u.
    template <int P>
    static __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* x, const uint32_t* w) {
        uint32_t m[N];
        constant_product::set_multiple<M, 1>(m);
        const uint32_t top = limb::dot_product<N, P, !ROOMY>(r, x, w, m, M::N0INV);
        if constexpr (ROOMY) {
            reduce<P == 4>(r, r[N - 1], thresholds(0));
        } else {
            reduce<P == 4>(r, __funnelshift_r(r[N - 1], top, 2), thresholds(2));  // below 2.5 R
            subtract_twice(r);
        }
        VERIFY(is_element(r));
    }

    // r = x + y, or y - x where mask is ~0 (else 0): elements, any of which may be another. A bracket, reduced.
    static __device__ __forceinline__ void add_signed(uint32_t* r, const uint32_t* x, const uint32_t* y, uint32_t mask) {
        bracket(r, x, y, mask);
        if constexpr (ROOMY) {
            reduce<true>(r, r[N - 1], thresholds(0));
        } else {
            subtract_modulus(r);
        }
        VERIFY(is_element(r));
    }

    // An element -> [0, m).
    static __device__ __forceinline__ void canonical(uint32_t* r) {
        if constexpr (ROOMY) subtract_twice(r);
        VERIFY((constant_product::within<M, 1, 0>(r)));
    }

  private:
    // Below c m -> below (c - 1) m, c > 1.
    static __device__ __forceinline__ void subtract_modulus(uint32_t* r) {
        uint32_t m[N];
        constant_product::set_multiple<M, 1>(m);
        limb::subtract_once<N>(r, 0, m);
    }

    // Below 2 m + 4 E -> [0, m).
    static __device__ __forceinline__ void subtract_twice(uint32_t* r) {
        subtract_modulus(r);
        subtract_modulus(r);
    }

    static_assert(constant_product::multiple(M::MODULUS, ROOMY ? 3 : 1).limb[0] != ~0u, "LOW");

    // What 2 m and 4 m have from bit 32 (N - 1) + shift on, of shift + 32 bits.
    struct Thresholds {
        uint32_t two, four;
    };
    static __device__ constexpr uint32_t threshold(uint32_t c, int shift) {
        uint64_t carry = 0;
        for (int i = 0; i < N; ++i) carry = (carry >> 32) + uint64_t(M::MODULUS[i]) * c;
        return uint32_t(carry >> shift);
    }
    static __device__ constexpr Thresholds thresholds(int shift) { return {threshold(2, shift), threshold(4, shift)}; }

    // Below 5 m + E (FIVE; else below 3 m) -> below 2 m + 2^shift E, with `high` the value's bits as in Thresholds: 2 m or 4 m less.
    //
    // high above c m's is more than c m; else the value is below c m + 2^shift E. So less than m + E, or less than 4 m + 2^shift E
    // - 2 m, or less than 2 m + 2^shift E are left. Words above R cancel out. Masks, because compilers make branches of
    // selections and of predicated chains here.
    template <bool FIVE>
    static __device__ __forceinline__ void reduce(uint32_t* r, uint32_t high, Thresholds at) {
        uint32_t two[N], four[N];
        constant_product::set_multiple<M, 2>(two);
        constant_product::set_multiple<M, 4>(four);
        const uint32_t above_two = limb::mask_above(high, at.two);
        const uint32_t above_four = FIVE ? limb::mask_above(high, at.four) : 0;
        UNROLL
        for (int i = 0; i < N; ++i) two[i] = (two[i] & above_two) ^ ((two[i] ^ four[i]) & above_four);
        limb::subtract<N>(r, r, two);
    }
};

}  // namespace dot
