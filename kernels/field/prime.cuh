// The prime field of a curve's coordinates, in Montgomery form, for code that is written once for it and for its extension
// (ext/fp2.cuh): both have the same functions.
//
// Notation: m the modulus, W = 2^32, R = W^N. An element is a `uint32_t[LIMBS]`; every function takes and leaves elements
//
//   in [0, 2m)   where m < R / 4 (LAZY): a product then needs no last subtraction
//   in [0, m)    otherwise
//
// so that 0 has two forms in the first case. Results may alias operands exactly. A wide number has 2 LIMBS limbs and stands
// between a product and its reduction; it is below the bound that its function states.
#pragma once

#include "field/inverse.cuh"
#include "field/mont.cuh"

namespace prime {

// P: the field's constants (ops/params/render.py).
template <class P>
struct Field {
    static constexpr int LIMBS = P::N, DEGREE = 1;
    static constexpr bool LAZY = P::BITS <= 32 * P::N - 2;
    static constexpr bool THREE_SPARE_BITS = P::BITS <= 32 * P::N - 3;
    static constexpr bool FULL = P::BITS == 32 * P::N;

    static __device__ __forceinline__ bool within(const uint32_t* a) {
        uint32_t limit[LIMBS];
        range(limit);
        return limb::less<LIMBS>(a, limit);
    }

    // --- constants ---

    static __device__ __forceinline__ void zero(uint32_t* r) { limb::set_word<LIMBS>(r, 0); }

    template <int I = 0>
    static __device__ __forceinline__ void one(uint32_t* r) {
        constexpr uint32_t limb = P::R[I];
        r[I] = limb;
        if constexpr (I + 1 < LIMBS) one<I + 1>(r);
    }

    static __device__ __forceinline__ void modulus(uint32_t* r) { mont::Field<P>::modulus(r); }

    // The bound of all elements: 2m, or m.
    template <int I = 0>
    static __device__ __forceinline__ void range(uint32_t* r) {
        constexpr uint32_t below = I > 0 ? P::MODULUS[I > 0 ? I - 1 : 0] >> 31 : 0;
        constexpr uint32_t limb = LAZY ? P::MODULUS[I] << 1 | below : P::MODULUS[I];
        r[I] = limb;
        if constexpr (I + 1 < LIMBS) range<I + 1>(r);
    }

    // --- sums ---

    static __device__ __forceinline__ void add(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        VERIFY(within(a) && within(b));
        uint32_t limit[LIMBS], sum[LIMBS];
        range(limit);
        const uint32_t carry = limb::add<LIMBS>(sum, a, b);
        limb::subtract_once<LIMBS>(sum, carry, limit);
        limb::copy<LIMBS>(r, sum);
    }

    static __device__ __forceinline__ void subtract(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        VERIFY(within(a) && within(b));
        uint32_t limit[LIMBS];
        range(limit);
        mont::subtract<LIMBS>(r, a, b, limit);
    }

    static __device__ __forceinline__ void twice(uint32_t* r, const uint32_t* a) { add(r, a, a); }

    static __device__ __forceinline__ void negate(uint32_t* r, const uint32_t* a) {
        uint32_t nothing[LIMBS];
        zero(nothing);
        subtract(r, nothing, a);
    }

    // --- products ---

    static __device__ REPEATED void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        VERIFY(within(a) && within(b));
        uint32_t m[LIMBS], product[LIMBS];
        modulus(m);
        const uint32_t carry = limb::montgomery_product<LIMBS, FULL>(product, a, b, m, P::N0INV);
        finish(r, product, carry);
    }

    static __device__ REPEATED void square(uint32_t* r, const uint32_t* a) {
        VERIFY(within(a));
        uint32_t t[2 * LIMBS];
        limb::wide_square<LIMBS>(t, a);
        reduce(r, t);
    }

    // r = a b - c d with one reduction.
    static __device__ REPEATED void difference_of_products(uint32_t* r, const uint32_t* a, const uint32_t* b,
                                                           const uint32_t* c, const uint32_t* d) {
        VERIFY(within(a) && within(b) && within(c) && within(d));
        uint32_t t[2 * LIMBS], s[2 * LIMBS];
        limb::wide_product<LIMBS>(t, a, b);
        limb::wide_product<LIMBS>(s, c, d);
        wide_subtract<1>(t, t, s);
        reduce(r, t);
    }

    // --- wide numbers ---

    // [t] = [a] - [b] + (0 or MULTIPLE m R), not negative: for [a] < MULTIPLE m R and [b] <= MULTIPLE m R, and below that.
    template <int MULTIPLE>
    static __device__ __forceinline__ void wide_subtract(uint32_t* t, const uint32_t* a, const uint32_t* b) {
        static_assert(MULTIPLE == 1 || (MULTIPLE == 2 && LAZY), "2 m R has to be below R^2");
        uint32_t added[LIMBS], raised[LIMBS];
        if constexpr (MULTIPLE == 1) {
            modulus(added);
        } else {
            range(added);
        }
        const uint32_t borrow = limb::subtract<2 * LIMBS>(t, a, b);
        limb::add<LIMBS>(raised, t + LIMBS, added);
        limb::select<LIMBS>(t + LIMBS, borrow != 0, raised, t + LIMBS);
    }

    // r = [t] / R mod m for [t] < m R: below ([t] + R m) / R < 2m.
    static __device__ REPEATED void reduce(uint32_t* r, const uint32_t* t) {
        uint32_t m[LIMBS], value[LIMBS];
        modulus(m);
        const uint32_t carry = limb::montgomery_reduce<LIMBS>(value, t, m, P::N0INV);
        finish(r, value, carry);
    }

    // The same for [t] < 2 m R: below 3m, which is below R.
    static __device__ REPEATED void reduce_sum(uint32_t* r, const uint32_t* t) {
        static_assert(LAZY, "3m has to be below R");
        uint32_t m[LIMBS], limit[LIMBS], value[LIMBS];
        modulus(m);
        range(limit);
        limb::montgomery_reduce<LIMBS>(value, t, m, P::N0INV);
        limb::subtract_once<LIMBS>(value, 0, limit);
        VERIFY(within(value));
        limb::copy<LIMBS>(r, value);
    }

    // --- comparisons ---

    static __device__ __forceinline__ bool is_zero(const uint32_t* a) {
        VERIFY(within(a));
        bool zero = limb::is_zero<LIMBS>(a);
        if constexpr (LAZY) {
            uint32_t m[LIMBS];
            modulus(m);
            zero |= limb::equal<LIMBS>(a, m);
        }
        return zero;
    }

    // --- plain integers ---

    // Whether the plain integer a of WORDS >= LIMBS limbs is below m.
    template <int WORDS>
    static __device__ __forceinline__ bool is_canonical(const uint32_t* a) {
        uint32_t m[LIMBS], above = 0;
        modulus(m);
        UNROLL
        for (int i = LIMBS; i < WORDS; ++i) above |= a[i];
        return above == 0 && limb::less<LIMBS>(a, m);
    }

    // Plain, below m -> element.
    static __device__ __forceinline__ void enter(uint32_t* r, const uint32_t* a) { mont::Field<P>::enter(r, a); }

    // Element -> plain, below m.
    static __device__ __forceinline__ void leave(uint32_t* r, const uint32_t* a) { mont::Field<P>::leave(r, a); }

    // r = 1 / a, for a != 0. Variable time. (a R)^-1 is entered twice: R^-1 a^-1 R^2 = a^-1 R.
    static __device__ REPEATED void inverse(uint32_t* r, const uint32_t* a) {
        constexpr int WORDS = LIMBS <= 8 ? 8 : 12, COUNT = WORDS == 8 ? 9 : 13;
        static_assert(LIMBS <= 12, "safegcd::Batches");
        VERIFY(!is_zero(a));
        uint32_t x[WORDS] = {}, m[WORDS] = {};
        limb::copy<LIMBS>(x, a);
        modulus(m);
        const safegcd::Signed30<COUNT> limbs = safegcd::to_signed30<COUNT>(m);
        safegcd::OddModulus<COUNT> odd;
        UNROLL
        for (int i = 0; i < COUNT; ++i) odd.limb[i] = limbs.limb[i];
        odd.negated_inverse4 = safegcd::negated_inverse32(m[0]) * 4;
        safegcd::Signed30<COUNT> inverted = safegcd::to_signed30<COUNT>(x);
        safegcd::inverse_var(inverted, odd);
        safegcd::from_signed30(x, inverted);
        mont::Field<P>::enter(x, x);
        mont::Field<P>::enter(r, x);
    }

  private:
    // A value below 2m, of which `carry` R is missing -> element.
    static __device__ __forceinline__ void finish(uint32_t* r, uint32_t* value, uint32_t carry) {
        if constexpr (!LAZY) {
            uint32_t m[LIMBS];
            modulus(m);
            limb::subtract_once<LIMBS>(value, carry, m);
        }
        VERIFY(within(value));
        limb::copy<LIMBS>(r, value);
    }
};

}  // namespace prime
