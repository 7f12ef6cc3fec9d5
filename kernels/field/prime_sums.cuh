// Sums of products in the prime field of a curve's coordinates with one reduction, its rows between those of the products: no
// number is wider than an element by more than a word.
//
// Notation, elements and ranges of field/prime.cuh, for fields whose elements are in [0, 2m).
#pragma once

#include "field/prime.cuh"
#include "limb/dot.cuh"

namespace prime {

// M: the field's constants.
template <class M>
struct Sums {
    using F = Field<M>;
    static constexpr int N = F::LIMBS;
    static_assert(F::LAZY, "elements in [0, 2m)");

    // r = 2m - a, of an element a: a factor of what follows, but 2m itself for 0.
    static __device__ __forceinline__ void opposite(uint32_t* r, const uint32_t* a) {
        VERIFY(F::within(a));
        uint32_t limit[N];
        F::range(limit);
        limb::subtract<N>(r, limit, a);
    }

    // r = a_0 b_0 + .. + a_(P-1) b_(P-1): an element. a, b: P factors each, one after the other, of at most 2m.
    //
    // The reduction's value stays below the b_k and m together, (2 P + 1) m, and ends below (4 P m^2 + R m) / R < TIMES m.
    template <int P>
    static __device__ REPEATED void sum_of_products(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        constexpr bool WIDE = (2 * P + 1) * TOP > WORD;
        constexpr uint64_t TIMES = (4 * P * TOP) / WORD + 2;
        static_assert(TIMES * TOP <= WORD, "the end is below R");
        uint32_t m[N], limit[N], value[N];
        UNROLL
        for (int k = 0; k < P; ++k) VERIFY(is_factor(a + k * N) && is_factor(b + k * N));
        F::modulus(m);
        F::range(limit);
        limb::dot_product<N, P, WIDE, N>(value, a, b, m, M::N0INV);
        UNROLL
        for (uint64_t times = TIMES; times > 2; times -= 2) limb::subtract_once<N>(value, 0, limit);
        VERIFY(F::within(value));
        limb::copy<N>(r, value);
    }

  private:
    // m < TOP W^(N-1), R = WORD W^(N-1).
    static constexpr uint64_t TOP = uint64_t(M::MODULUS[N - 1]) + 1, WORD = uint64_t(1) << 32;

    static __device__ __forceinline__ bool is_factor(const uint32_t* a) {
        uint32_t limit[N];
        F::range(limit);
        return !limb::less<N>(limit, a);
    }
};

}  // namespace prime
