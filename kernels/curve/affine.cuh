// Affine points of y^2 = x^3 + b, and the field of a group's coordinates.
//
// In all of curve/: C is a group's constants (ops/params/render.py), F = curve::FieldOf<C> the field of its coordinates, and
// a product or squaring in F is 1M or 1S of a stated cost. Every function is executed by one thread. Costs and names of
// formulas are those of the EFD (https://hyperelliptic.org/EFD/g1p/auto-shortw.html), a = 0.
#pragma once

#include "ext/fp2.cuh"

namespace curve {

template <class C, int DEGREE>
struct FieldFor;
template <class C>
struct FieldFor<C, 1> {
    using type = prime::Field<typename C::Base>;
};
template <class C>
struct FieldFor<C, 2> {
    using type = fp2::Field<prime::Field<typename C::Base>>;
};

template <class C>
using FieldOf = typename FieldFor<C, C::DEGREE>::type;

// The coordinates of a point that is not infinity, or zeros for infinity: (0, 0) is on no curve, b is not 0.
template <class C>
struct Affine {
    uint32_t x[C::LIMBS], y[C::LIMBS];
};

template <class C>
__device__ __forceinline__ bool is_infinity(const Affine<C>& p) {
    return limb::is_zero<C::LIMBS>(p.x) & limb::is_zero<C::LIMBS>(p.y);
}

template <class C>
__device__ __forceinline__ void set_infinity(Affine<C>& p) {
    using F = FieldOf<C>;
    F::zero(p.x);
    F::zero(p.y);
}

// p = negative ? -p : p, for any p.
template <class C>
__device__ __forceinline__ void negate_if(Affine<C>& p, bool negative) {
    using F = FieldOf<C>;
    uint32_t negated[C::LIMBS];
    F::negate(negated, p.y);
    limb::select<C::LIMBS>(p.y, negative, negated, p.y);
}

// Writes one of C's constants, limb by limb, so that each is an immediate.
#define CURVE_CONSTANT(name, CONSTANT)                           \
    template <class C, int I = 0>                                \
    __device__ __forceinline__ void name(uint32_t* r) {          \
        constexpr uint32_t limb = C::CONSTANT[I];                \
        r[I] = limb;                                             \
        if constexpr (I + 1 < C::LIMBS) name<C, I + 1>(r);       \
    }

CURVE_CONSTANT(set_b, B)
CURVE_CONSTANT(set_b3, B3)
CURVE_CONSTANT(set_generator_x, GENERATOR_X)
CURVE_CONSTANT(set_generator_y, GENERATOR_Y)
CURVE_CONSTANT(set_beta, BETA)

#undef CURVE_CONSTANT

// y^2 = x^3 + b; false for infinity's zeros.
template <class C>
__device__ __forceinline__ bool is_on_curve(const Affine<C>& p) {
    using F = FieldOf<C>;
    uint32_t left[C::LIMBS], right[C::LIMBS], b[C::LIMBS];
    F::square(left, p.y);
    F::square(right, p.x);
    F::multiply(right, right, p.x);
    set_b<C>(b);
    F::add(right, right, b);
    F::subtract(left, left, right);
    return F::is_zero(left);
}

}  // namespace curve
