// Points in homogeneous coordinates, x = X / Z, y = Y / Z, infinity (0 : 1 : 0), by complete formulas: one sequence of
// operations for all operands, equal, opposite or infinity, as long as the curve has no point of order 2.
//
// Source: J. Renes, C. Costello, L. Batina, "Complete addition formulas for prime order elliptic curves", 2016, algorithms
// 7, 8 and 9 (a = 0). m3b is a product by 3 b. Where the paper adds two products, they are reduced together.
#pragma once

#include "base/own_memory.cuh"
#include "curve/affine.cuh"

namespace projective {

using curve::Affine;

template <class C>
struct Point {
    uint32_t x[C::LIMBS], y[C::LIMBS], z[C::LIMBS];
};

template <class C>
__device__ __forceinline__ bool is_infinity(const Point<C>& p) {
    return curve::FieldOf<C>::is_zero(p.z);
}

template <class C>
__device__ __forceinline__ void set_infinity(Point<C>& p) {
    using F = curve::FieldOf<C>;
    F::zero(p.x);
    F::one(p.y);
    F::zero(p.z);
}

// r = K a, by doublings and additions from K's top bit down.
template <class F, int K>
__device__ __forceinline__ void multiply_small(uint32_t* r, const uint32_t* a) {
    if constexpr (K == 1) {
        limb::copy<F::LIMBS>(r, a);
    } else {
        multiply_small<F, K / 2>(r, a);
        F::twice(r, r);
        if constexpr (K % 2 == 1) F::add(r, r, a);
    }
}

// r = 3 b a. No aliases.
template <class C>
__device__ __forceinline__ void multiply_b3(uint32_t* r, const uint32_t* a) {
    using F = curve::FieldOf<C>;
    if constexpr (C::B3_TIMES == 0) {
        uint32_t b3[C::LIMBS];
        curve::set_b3<C>(b3);
        F::multiply(r, a, b3);
    } else if constexpr (C::DEGREE == 2) {
        uint32_t turned[C::LIMBS];
        F::multiply_one_plus_u(turned, a);
        multiply_small<F, C::B3_TIMES>(r, turned);
    } else {
        multiply_small<F, C::B3_TIMES>(r, a);
    }
}

// What algorithms 7 and 8 end with. xx = X1 X2, yy = Y1 Y2, zz3b = 3 b Z1 Z2, xy = X1 Y2 + X2 Y1, yz and xz likewise:
//   X3 = xy (yy - zz3b) - yz (3 b xz),  Y3 = (yy - zz3b)(yy + zz3b) + 3 xx (3 b xz),  Z3 = yz (yy + zz3b) + 3 xx xy
template <class C>
__device__ __forceinline__ void finish_sum(Point<C>& p, uint32_t* xx, uint32_t* yy, const uint32_t* zz3b, const uint32_t* xy,
                                           const uint32_t* yz, const uint32_t* xz) {
    using F = curve::FieldOf<C>;
    uint32_t sum[C::LIMBS], xz3b[C::LIMBS];
    multiply_b3<C>(xz3b, xz);
    F::twice(sum, xx);
    F::add(xx, sum, xx);
    F::add(sum, yy, zz3b);
    F::subtract(yy, yy, zz3b);
    F::difference_of_products(p.x, xy, yy, yz, xz3b);
    F::negate(xx, xx);
    F::difference_of_products(p.y, yy, sum, xx, xz3b);
    F::difference_of_products(p.z, yz, sum, xx, xy);
}

// p += q. Algorithm 7: 12M + 2 m3b.
template <class C>
__device__ __noinline__ void add(Point<C>& given, const Point<C>& added) {
    using F = curve::FieldOf<C>;
    COUNT_POINT_OPERATION();
    Point<C>& p = own_memory::of(given);
    const Point<C>& q = own_memory::of(added);
    uint32_t xx[C::LIMBS], yy[C::LIMBS], zz[C::LIMBS], xy[C::LIMBS], yz[C::LIMBS], xz[C::LIMBS], t[C::LIMBS];
    F::multiply(xx, p.x, q.x);
    F::multiply(yy, p.y, q.y);
    F::multiply(zz, p.z, q.z);
    F::add(xy, p.x, p.y);
    F::add(t, q.x, q.y);
    F::multiply(xy, xy, t);
    F::subtract(xy, xy, xx);
    F::subtract(xy, xy, yy);
    F::add(yz, p.y, p.z);
    F::add(t, q.y, q.z);
    F::multiply(yz, yz, t);
    F::subtract(yz, yz, yy);
    F::subtract(yz, yz, zz);
    F::add(xz, p.x, p.z);
    F::add(t, q.x, q.z);
    F::multiply(xz, xz, t);
    F::subtract(xz, xz, xx);
    F::subtract(xz, xz, zz);
    multiply_b3<C>(t, zz);
    finish_sum(p, xx, yy, t, xy, yz, xz);
}

// p += q, q not infinity. Algorithm 8: 11M + 2 m3b.
template <class C>
__device__ REPEATED void add_affine(Point<C>& p, const Affine<C>& q) {
    using F = curve::FieldOf<C>;
    COUNT_POINT_OPERATION();
    uint32_t xx[C::LIMBS], yy[C::LIMBS], xy[C::LIMBS], yz[C::LIMBS], xz[C::LIMBS], t[C::LIMBS];
    F::multiply(xx, p.x, q.x);
    F::multiply(yy, p.y, q.y);
    F::add(xy, p.x, p.y);
    F::add(t, q.x, q.y);
    F::multiply(xy, xy, t);
    F::subtract(xy, xy, xx);
    F::subtract(xy, xy, yy);
    F::multiply(yz, q.y, p.z);
    F::add(yz, yz, p.y);
    F::multiply(xz, q.x, p.z);
    F::add(xz, xz, p.x);
    multiply_b3<C>(t, p.z);
    finish_sum(p, xx, yy, t, xy, yz, xz);
}

// p = 2 p. Algorithm 9: 6M + 2S + 1 m3b.
template <class C>
__device__ __noinline__ void twice(Point<C>& given) {
    using F = curve::FieldOf<C>;
    COUNT_POINT_OPERATION();
    Point<C>& p = own_memory::of(given);
    uint32_t yy[C::LIMBS], yy8[C::LIMBS], zz3b[C::LIMBS], sum[C::LIMBS], t[C::LIMBS];
    F::square(yy, p.y);
    multiply_small<F, 8>(yy8, yy);
    F::square(t, p.z);
    multiply_b3<C>(zz3b, t);
    F::add(sum, yy, zz3b);
    multiply_small<F, 3>(t, zz3b);
    F::subtract(yy, yy, t);
    F::multiply(t, p.x, p.y);
    F::multiply(p.x, yy, t);
    F::twice(p.x, p.x);
    F::multiply(t, p.y, p.z);
    F::multiply(p.z, t, yy8);
    F::negate(zz3b, zz3b);
    F::difference_of_products(p.y, yy, sum, zz3b, yy8);
}

// The affine form of any p: infinity's is zeros. Variable time.
template <class C>
__device__ __forceinline__ void to_affine(Affine<C>& q, const Point<C>& p) {
    using F = curve::FieldOf<C>;
    if (is_infinity(p)) {
        curve::set_infinity(q);
        return;
    }
    uint32_t i[C::LIMBS];
    F::inverse(i, p.z);
    F::multiply(q.x, p.x, i);
    F::multiply(q.y, p.y, i);
}

}  // namespace projective
