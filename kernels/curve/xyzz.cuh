// Points in XYZZ coordinates: x = X / ZZ, y = Y / ZZZ, ZZ^3 = ZZZ^2; ZZ = 0 is infinity.
//
// The unchecked functions are the bare formulas. Of them add_affine_unchecked and add_unchecked need neither operand at
// infinity; where the two points have the same x (they are equal or opposite) they leave ZZ = 0, whatever the sum is. ZZ is
// only ever multiplied, so that a chain of such additions ends in ZZ = 0 if one of them had that case, and one test at its
// end finds it (or a sum that is infinity indeed).
#pragma once

#include "base/own_memory.cuh"
#include "curve/affine.cuh"

namespace xyzz {

using curve::Affine;

template <class C>
struct Point {
    uint32_t x[C::LIMBS], y[C::LIMBS], zz[C::LIMBS], zzz[C::LIMBS];
};

template <class C>
__device__ __forceinline__ bool is_infinity(const Point<C>& p) {
    using F = curve::FieldOf<C>;
    return F::is_zero(p.zz);
}

template <class C>
__device__ __forceinline__ void set_infinity(Point<C>& p) {
    using F = curve::FieldOf<C>;
    F::zero(p.x);
    F::zero(p.y);
    F::zero(p.zz);
    F::zero(p.zzz);
}

// p = q, any q.
template <class C>
__device__ __forceinline__ void set_affine(Point<C>& p, const Affine<C>& q) {
    using F = curve::FieldOf<C>;
    if (curve::is_infinity(q)) {
        set_infinity(p);
        return;
    }
    limb::copy<C::LIMBS>(p.x, q.x);
    limb::copy<C::LIMBS>(p.y, q.y);
    F::one(p.zz);
    F::one(p.zzz);
}

// X3 = R^2 - PPP - 2 Q, Y3 = R (Q - X3) - Y1 PPP: what both additions end with. y1 is Y1 or S1.
template <class C>
__device__ __forceinline__ void finish_sum(Point<C>& sum, const uint32_t* r, const uint32_t* ppp, const uint32_t* q,
                                           const uint32_t* y1) {
    using F = curve::FieldOf<C>;
    uint32_t x3[C::LIMBS], difference[C::LIMBS];
    F::square(x3, r);
    F::subtract(x3, x3, ppp);
    F::subtract(x3, x3, q);
    F::subtract(x3, x3, q);
    F::subtract(difference, q, x3);
    F::difference_of_products(sum.y, r, difference, y1, ppp);
    limb::copy<C::LIMBS>(sum.x, x3);
}

// p += q. madd-2008-s: 8M + 2S.
template <class C>
__device__ __forceinline__ void add_affine_unchecked(Point<C>& p, const Affine<C>& q) {
    using F = curve::FieldOf<C>;
    COUNT_POINT_OPERATION();
    uint32_t u[C::LIMBS], s[C::LIMBS], pp[C::LIMBS], ppp[C::LIMBS], product[C::LIMBS];
    F::multiply(u, q.x, p.zz);
    F::multiply(s, q.y, p.zzz);
    F::subtract(u, u, p.x);
    F::subtract(s, s, p.y);
    F::square(pp, u);
    F::multiply(ppp, u, pp);
    F::multiply(product, p.x, pp);
    F::multiply(p.zz, p.zz, pp);
    F::multiply(p.zzz, p.zzz, ppp);
    finish_sum(p, s, ppp, product, p.y);
}

// p += q. add-2008-s: 12M + 2S. Infinity in either leaves ZZ = 0.
template <class C>
__device__ __forceinline__ void add_unchecked(Point<C>& p, const Point<C>& q) {
    using F = curve::FieldOf<C>;
    COUNT_POINT_OPERATION();
    uint32_t u1[C::LIMBS], s1[C::LIMBS], u2[C::LIMBS], s2[C::LIMBS], pp[C::LIMBS];
    F::multiply(u1, p.x, q.zz);
    F::multiply(s1, p.y, q.zzz);
    F::multiply(u2, q.x, p.zz);
    F::multiply(s2, q.y, p.zzz);
    F::subtract(u2, u2, u1);
    F::subtract(s2, s2, s1);
    F::square(pp, u2);
    F::multiply(u2, u2, pp);  // PPP
    F::multiply(u1, u1, pp);  // Q
    F::multiply(p.zz, p.zz, q.zz);
    F::multiply(p.zz, p.zz, pp);
    F::multiply(p.zzz, p.zzz, q.zzz);
    F::multiply(p.zzz, p.zzz, u2);
    finish_sum(p, s2, u2, u1, s1);
}

// p = 2 p, any p (no point has order 2). dbl-2008-s-1: 6M + 3S.
template <class C>
__device__ __noinline__ void twice(Point<C>& given) {
    using F = curve::FieldOf<C>;
    COUNT_POINT_OPERATION();
    Point<C>& p = own_memory::of(given);
    uint32_t u[C::LIMBS], v[C::LIMBS], w[C::LIMBS], s[C::LIMBS], m[C::LIMBS], x3[C::LIMBS];
    F::twice(u, p.y);
    F::square(v, u);
    F::multiply(w, u, v);
    F::multiply(s, p.x, v);
    F::square(u, p.x);
    F::twice(m, u);
    F::add(m, m, u);
    F::square(x3, m);
    F::subtract(x3, x3, s);
    F::subtract(x3, x3, s);
    F::subtract(s, s, x3);
    F::difference_of_products(p.y, m, s, w, p.y);
    F::multiply(p.zz, v, p.zz);
    F::multiply(p.zzz, w, p.zzz);
    limb::copy<C::LIMBS>(p.x, x3);
}

// p += q, any p and q. Lanes that double do so after all have met again (base/own_memory.cuh).
template <class C>
__device__ __noinline__ void add_affine(Point<C>& given, const Affine<C>& added) {
    using F = curve::FieldOf<C>;
    Point<C>& p = own_memory::of(given);
    const Affine<C>& q = own_memory::of(added);
    bool is_equal = false;
    if (is_infinity(p)) {
        set_affine(p, q);
    } else if (!curve::is_infinity(q)) {
        Point<C> sum = p;
        add_affine_unchecked(sum, q);
        if (is_infinity(sum)) {
            // The same x: q or -q.
            uint32_t s[C::LIMBS];
            F::multiply(s, q.y, p.zzz);
            F::subtract(s, s, p.y);
            is_equal = F::is_zero(s);
            if (!is_equal) set_infinity(p);
        } else {
            p = sum;
        }
    }
    if (own_memory::hidden(is_equal)) twice(p);
}

// p += q, any p and q; as add_affine.
template <class C>
__device__ __noinline__ void add(Point<C>& given, const Point<C>& added) {
    using F = curve::FieldOf<C>;
    Point<C>& p = own_memory::of(given);
    const Point<C>& q = own_memory::of(added);
    bool is_equal = false;
    if (is_infinity(p)) {
        p = q;
    } else if (!is_infinity(q)) {
        Point<C> sum = p;
        add_unchecked(sum, q);
        if (is_infinity(sum)) {
            uint32_t s1[C::LIMBS], s2[C::LIMBS];
            F::multiply(s1, p.y, q.zzz);
            F::multiply(s2, q.y, p.zzz);
            F::subtract(s1, s1, s2);
            is_equal = F::is_zero(s1);
            if (!is_equal) set_infinity(p);
        } else {
            p = sum;
        }
    }
    if (own_memory::hidden(is_equal)) twice(p);
}

// The affine form of any p: infinity's is zeros. Variable time. With i = 1 / ZZZ: 1 / ZZ = (ZZ i)^2, as ZZ^3 = ZZZ^2.
template <class C>
__device__ __forceinline__ void to_affine(Affine<C>& q, const Point<C>& p) {
    using F = curve::FieldOf<C>;
    if (is_infinity(p)) {
        curve::set_infinity(q);
        return;
    }
    uint32_t i[C::LIMBS], square[C::LIMBS];
    F::inverse(i, p.zzz);
    F::multiply(q.y, p.y, i);
    F::multiply(i, i, p.zz);
    F::square(square, i);
    F::multiply(q.x, p.x, square);
}

}  // namespace xyzz
