// Every function of curve/ on one case a thread, or a group of lanes: affine points P and Q as rows of plain coordinates (zeros: infinity), and
// factors that make their other coordinates; the sum comes out affine. The order of the cases is that of OPERATIONS in
// test_curve.py; a unit has those of one FORM.
#include "base/element.cuh"
#include "curve/doubling_lanes.cuh"
#include "curve/jacobian.cuh"
#include "curve/projective.cuh"
#include "unit.cuh"

namespace {

using C = GROUP;
using F = curve::FieldOf<C>;
using Affine = curve::Affine<C>;
constexpr int WORDS = ROW / 2;

__device__ __forceinline__ void enter(uint32_t* r, const uint32_t* plain) {
    constexpr int N = F::LIMBS / F::DEGREE;
    for (int i = 0; i < F::DEGREE; ++i) prime::Field<C::Base>::enter(r + i * N, plain + i * (WORDS / F::DEGREE));
}

__device__ __forceinline__ void load(Affine& p, const uint32_t* rows, uint64_t index) {
    uint32_t plain[ROW];
    element::load<ROW>(plain, rows, index);
    enter(p.x, plain);
    enter(p.y, plain + WORDS);
}

__device__ __forceinline__ void store(uint32_t* rows, uint64_t index, Affine& p) {
    constexpr int N = F::LIMBS / F::DEGREE;
    uint32_t plain[ROW] = {};
    for (int i = 0; i < F::DEGREE; ++i) {
        prime::Field<C::Base>::leave(plain + i * (WORDS / F::DEGREE), p.x + i * N);
        prime::Field<C::Base>::leave(plain + WORDS + i * (WORDS / F::DEGREE), p.y + i * N);
    }
    element::store<ROW, ROW>(rows, index, plain);
}

// (x f^2, y f^3, f^2, f^3), and infinity as it comes out of sums: with any x and y. A parameter, not the function's value:
// beside calls NVRTC 13.0 has put such a value where an operand still was.
__device__ __forceinline__ void scaled(xyzz::Point<C>& r, const Affine& p, const uint32_t* f) {
    F::square(r.zz, f);
    F::multiply(r.zzz, r.zz, f);
    F::multiply(r.x, p.x, r.zz);
    F::multiply(r.y, p.y, r.zzz);
    if (curve::is_infinity(p)) {
        limb::copy<F::LIMBS>(r.x, f);
        limb::copy<F::LIMBS>(r.y, f);
        F::zero(r.zz);
        F::zero(r.zzz);
    }
}

// (x f, y f, f), and infinity as (0, f, 0).
__device__ __forceinline__ void homogeneous(projective::Point<C>& r, const Affine& p, const uint32_t* f) {
    F::multiply(r.x, p.x, f);
    F::multiply(r.y, p.y, f);
    limb::copy<F::LIMBS>(r.z, f);
    if (curve::is_infinity(p)) {
        limb::copy<F::LIMBS>(r.y, f);
        F::zero(r.z);
    }
}

__device__ __forceinline__ void xyzz_case(uint32_t operation, Affine& out, const Affine& p, const Affine& q,
                                          const uint32_t* f, const uint32_t* g) {
    xyzz::Point<C> a, b;
    scaled(a, p, f);
    scaled(b, q, g);
    jacobian::Point<C> j;
    switch (operation) {
        case 0: xyzz::add(a, b); break;
        case 1: xyzz::add_affine(a, q); break;
        case 2: xyzz::twice(a); break;
        case 5:
            jacobian::set_xyzz(j, a);
            jacobian::twice(j);
            jacobian::to_xyzz(a, j);
            break;
        case 6:
            xyzz::set_affine(a, q);
            break;
    }
    xyzz::to_affine(out, a);
}

__device__ __forceinline__ void unchecked_case(uint32_t operation, Affine& out, const Affine& p, const Affine& q,
                                               const uint32_t* f, const uint32_t* g) {
    xyzz::Point<C> a, b;
    scaled(a, p, f);
    scaled(b, q, g);
    switch (operation) {
        case 0: xyzz::add_unchecked(a, b); break;
        case 1: xyzz::add_affine_unchecked(a, q); break;
    }
    xyzz::to_affine(out, a);
}

__device__ __forceinline__ void projective_case(uint32_t operation, Affine& out, const Affine& p, const Affine& q,
                                                const uint32_t* f, const uint32_t* g) {
    projective::Point<C> a, b;
    homogeneous(a, p, f);
    homogeneous(b, q, g);
    switch (operation) {
        case 0: projective::add(a, b); break;
        case 1: projective::add_affine(a, q); break;
        case 2: projective::twice(a); break;
    }
    projective::to_affine(out, a);
}

// --- over lanes ---

using Lanes = xyzz_lanes::Lanes<C>;
using Share = xyzz_lanes::Point<C>;

// This lane's share of a point that each lane of the group has; a share beyond the point is of no matter.
template <class P>
__device__ __forceinline__ void take(Share& share, const P& p) {
    const uint32_t at = Lanes::lane() * Lanes::N;
    for (uint32_t i = 0; i < Lanes::N; ++i) {
        share.limb[i] = at + i < sizeof(P) / 4 ? reinterpret_cast<const uint32_t*>(&p)[at + i] : 0;
    }
}

// Out: the plain parts of x and y by the lanes that hold them.
__device__ __forceinline__ void store_share(uint32_t* rows, uint64_t index, const Share& share) {
    constexpr uint32_t PART = WORDS / F::DEGREE;
    if (Lanes::lane() >= 2 * Lanes::PARTS) return;
    uint32_t plain[PART] = {};
    prime::Field<C::Base>::leave(plain, share.limb);
    for (uint32_t i = 0; i < PART; ++i) rows[index * ROW + Lanes::lane() * PART + i] = plain[i];
}

__device__ __forceinline__ void lanes_case(uint32_t operation, Share& out, const Affine& p, const Affine& q, const uint32_t* f,
                                           const uint32_t* g) {
    xyzz::Point<C> a, b;
    projective::Point<C> c;
    Share other;
    scaled(a, p, f);
    scaled(b, q, g);
    homogeneous(c, p, f);
    take(out, a);
    take(other, b);
    switch (operation) {
        case 0: xyzz_lanes::add<false>(out, other); break;
        case 1: xyzz_lanes::add<true>(out, other); break;
        case 2: xyzz_lanes::twice(out); break;
        case 3:
            take(out, c);
            from_projective(out);
            break;
        case 4:
            to_projective(out);
            from_projective(out);
            break;
    }
    to_affine(out);
}

// 2^count P, by both groups of a pair.
__device__ __forceinline__ void doublings_case(uint32_t count, Share& out, const Affine& p, const uint32_t* f) {
    xyzz::Point<C> a;
    scaled(a, p, f);
    take(out, a);
    twice_often(out, count);
    to_affine(out);
}

__device__ __forceinline__ void affine_case(uint32_t operation, Affine& out, const Affine& p) {
    out = p;
    switch (operation) {
        case 0:
            curve::set_infinity(out);
            if (curve::is_on_curve(p)) F::one(out.x);
            break;
        case 1: curve::negate_if(out, true); break;
        case 2: curve::negate_if(out, false); break;
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) curve_check(const curve_check_args args) {
    constexpr uint32_t LANES = FORM == 4 ? Lanes::COUNT : FORM == 5 ? 2 * Lanes::COUNT : 1;
    const uint64_t own = element::own_index() / LANES;
    if (LANES == 1 && own >= args.n) return;
    // Groups beyond the last case take part with it.
    const uint64_t index = own < args.n ? own : args.n - 1;
    Affine p, q, out;
    uint32_t plain[ROW], f[F::LIMBS], g[F::LIMBS];
    load(p, args.p, index);
    load(q, args.q, index);
    element::load<ROW>(plain, args.factors, index);
    enter(f, plain);
    enter(g, plain + WORDS);
    Share share;
    if constexpr (FORM == 4) lanes_case(args.operation, share, p, q, f, g);
    if constexpr (FORM == 5) doublings_case(args.operation, share, p, f);
    if constexpr (LANES > 1) {
        if (own < args.n) store_share(args.out, own, share);
        return;
    }
    if constexpr (FORM == 0) xyzz_case(args.operation, out, p, q, f, g);
    if constexpr (FORM == 1) projective_case(args.operation, out, p, q, f, g);
    if constexpr (FORM == 2) affine_case(args.operation, out, p);
    if constexpr (FORM == 3) unchecked_case(args.operation, out, p, q, f, g);
    store(args.out, index, out);
}
