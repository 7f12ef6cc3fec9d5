// The quadratic extension of a prime field by u^2 = -1: c0 + c1 u, c0 first. The functions and their ranges are those of
// field/prime.cuh, whose wide numbers make a product three wide products and two reductions.
#pragma once

#include "field/prime.cuh"

namespace fp2 {

// B: prime::Field of a modulus m < R / 4 with m = 3 mod 4.
template <class B>
struct Field {
    static_assert(B::LAZY, "wide sums take the two spare bits");
    static constexpr int N = B::LIMBS, LIMBS = 2 * N, DEGREE = 2;

    static __device__ __forceinline__ bool within(const uint32_t* a) { return B::within(a) && B::within(a + N); }

    // --- constants ---

    static __device__ __forceinline__ void zero(uint32_t* r) { limb::set_word<LIMBS>(r, 0); }

    static __device__ __forceinline__ void one(uint32_t* r) {
        B::one(r);
        B::zero(r + N);
    }

    // --- sums ---

    static __device__ __forceinline__ void add(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        B::add(r, a, b);
        B::add(r + N, a + N, b + N);
    }

    static __device__ __forceinline__ void subtract(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        B::subtract(r, a, b);
        B::subtract(r + N, a + N, b + N);
    }

    static __device__ __forceinline__ void twice(uint32_t* r, const uint32_t* a) { add(r, a, a); }

    static __device__ __forceinline__ void negate(uint32_t* r, const uint32_t* a) {
        B::negate(r, a);
        B::negate(r + N, a + N);
    }

    // r = a (1 + u)
    static __device__ __forceinline__ void multiply_one_plus_u(uint32_t* r, const uint32_t* a) {
        uint32_t sum[N];
        B::add(sum, a, a + N);
        B::subtract(r, a, a + N);
        limb::copy<N>(r + N, sum);
    }

    // --- products ---

    static __device__ REPEATED void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        uint32_t first[2 * N], second[2 * N], cross[2 * N];
        parts(first, second, cross, a, b);
        B::template wide_subtract<1>(first, first, second);
        B::reduce(r, first);
        reduce_sum(r + N, cross);
    }

    // (a0 + a1 u)^2 = (a0 + a1)(a0 - a1) + 2 a0 a1 u
    static __device__ REPEATED void square(uint32_t* r, const uint32_t* a) {
        uint32_t sum[N], difference[N], product[N];
        B::add(sum, a, a + N);
        B::subtract(difference, a, a + N);
        B::multiply(product, a, a + N);
        B::multiply(r, sum, difference);
        B::twice(r + N, product);
    }

    // r = a b - c d with one reduction for each part.
    static __device__ REPEATED void difference_of_products(uint32_t* r, const uint32_t* a, const uint32_t* b,
                                                           const uint32_t* c, const uint32_t* d) {
        uint32_t first[2 * N], second[2 * N], cross[2 * N], subtrahend_first[2 * N], subtrahend_second[2 * N],
            subtrahend_cross[2 * N];
        parts(first, second, cross, a, b);
        parts(subtrahend_first, subtrahend_second, subtrahend_cross, c, d);
        limb::add<2 * N>(first, first, subtrahend_second);
        limb::add<2 * N>(second, second, subtrahend_first);
        B::template wide_subtract<SUM>(first, first, second);
        reduce_sum(r, first);
        B::template wide_subtract<SUM>(cross, cross, subtrahend_cross);
        reduce_sum(r + N, cross);
    }

    // --- comparisons ---

    static __device__ __forceinline__ bool is_zero(const uint32_t* a) { return B::is_zero(a) & B::is_zero(a + N); }

    // --- plain integers: c0 and c1, WORDS / 2 limbs each ---

    template <int WORDS>
    static __device__ __forceinline__ bool is_canonical(const uint32_t* a) {
        return B::template is_canonical<WORDS / 2>(a) & B::template is_canonical<WORDS / 2>(a + WORDS / 2);
    }

    static __device__ __forceinline__ void enter(uint32_t* r, const uint32_t* a) {
        B::enter(r, a);
        B::enter(r + N, a + N);
    }

    static __device__ __forceinline__ void leave(uint32_t* r, const uint32_t* a) {
        B::leave(r, a);
        B::leave(r + N, a + N);
    }

    // r = 1 / a = (a0 - a1 u) / (a0^2 + a1^2), for a != 0. Variable time.
    static __device__ REPEATED void inverse(uint32_t* r, const uint32_t* a) {
        uint32_t norm[N], square[N];
        B::square(norm, a);
        B::square(square, a + N);
        B::add(norm, norm, square);
        B::inverse(norm, norm);
        B::multiply(r, a, norm);
        B::negate(norm, norm);
        B::multiply(r + N, a + N, norm);
    }

  private:
    // Sums of two products are below 8 m^2, which is below SUM m R.
    static constexpr int SUM = B::THREE_SPARE_BITS ? 1 : 2;

    // first = a0 b0 and second = a1 b1, below 4 m^2; cross = a0 b1 + a1 b0 = (a0 + a1)(b0 + b1) - first - second, below
    // 8 m^2 (Karatsuba; the sums are below 4 m).
    static __device__ __forceinline__ void parts(uint32_t* first, uint32_t* second, uint32_t* cross, const uint32_t* a,
                                                 const uint32_t* b) {
        VERIFY(within(a) && within(b));
        uint32_t left[N], right[N];
        limb::wide_product<N>(first, a, b);
        limb::wide_product<N>(second, a + N, b + N);
        limb::add<N>(left, a, a + N);
        limb::add<N>(right, b, b + N);
        limb::wide_product<N>(cross, left, right);
        limb::subtract<2 * N>(cross, cross, first);
        limb::subtract<2 * N>(cross, cross, second);
    }

    static __device__ __forceinline__ void reduce_sum(uint32_t* r, const uint32_t* t) {
        if constexpr (SUM == 1) {
            B::reduce(r, t);
        } else {
            B::reduce_sum(r, t);
        }
    }
};

}  // namespace fp2
