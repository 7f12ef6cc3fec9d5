// Points in Jacobian coordinates: x = X / Z^2, y = Y / Z^3; Z = 0 is infinity. Their doubling is the cheapest, so that runs
// of doublings are done here and sums in XYZZ coordinates.
#pragma once

#include "base/own_memory.cuh"
#include "curve/xyzz.cuh"

namespace jacobian {

template <class C>
struct Point {
    uint32_t x[C::LIMBS], y[C::LIMBS], z[C::LIMBS];
};

// From XYZZ, with Z = ZZ: X / ZZ = X ZZ / Z^2, Y / ZZZ = Y ZZZ / Z^3. 2M. Infinity stays infinity.
template <class C>
__device__ __forceinline__ void set_xyzz(Point<C>& p, const xyzz::Point<C>& q) {
    using F = curve::FieldOf<C>;
    F::multiply(p.x, q.x, q.zz);
    F::multiply(p.y, q.y, q.zzz);
    limb::copy<C::LIMBS>(p.z, q.zz);
}

// To XYZZ: ZZ = Z^2, ZZZ = Z^3. 1M + 1S.
template <class C>
__device__ __forceinline__ void to_xyzz(xyzz::Point<C>& q, const Point<C>& p) {
    using F = curve::FieldOf<C>;
    limb::copy<C::LIMBS>(q.x, p.x);
    limb::copy<C::LIMBS>(q.y, p.y);
    F::square(q.zz, p.z);
    F::multiply(q.zzz, q.zz, p.z);
}

// p = 2 p, any p. dbl-2009-l: 2M + 5S.
template <class C>
__device__ __noinline__ void twice(Point<C>& given) {
    using F = curve::FieldOf<C>;
    COUNT_POINT_OPERATION();
    Point<C>& p = own_memory::of(given);
    uint32_t a[C::LIMBS], b[C::LIMBS], c[C::LIMBS], d[C::LIMBS], e[C::LIMBS];
    F::multiply(p.z, p.y, p.z);
    F::twice(p.z, p.z);
    F::square(a, p.x);
    F::square(b, p.y);
    F::square(c, b);
    F::add(d, p.x, b);
    F::square(d, d);
    F::subtract(d, d, a);
    F::subtract(d, d, c);
    F::twice(d, d);
    F::twice(e, a);
    F::add(e, e, a);
    F::square(p.x, e);
    F::subtract(p.x, p.x, d);
    F::subtract(p.x, p.x, d);
    F::subtract(d, d, p.x);
    F::multiply(p.y, e, d);
    F::twice(c, c);
    F::twice(c, c);
    F::twice(c, c);
    F::subtract(p.y, p.y, c);
}

}  // namespace jacobian
