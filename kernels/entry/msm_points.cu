// Points of the wire: checked, and brought into Montgomery form.
//
// A bad point lowers args.bad to its index << 2 | Reason, so that the lowest index wins, and counts as infinity from then on.
#include "base/element.cuh"
#include "base/grid_order.cuh"
#include "curve/xyzz.cuh"
#include "unit.cuh"

namespace {

using F = curve::FieldOf<GROUP>;
using Base = prime::Field<GROUP::Base>;

enum Reason : uint32_t { NOT_BELOW_P = 0, NOT_ON_CURVE = 1, NOT_IN_SUBGROUP = 2 };

constexpr int COORDINATE = GROUP::DEGREE * WORDS;  // limbs of a plain coordinate

__device__ __forceinline__ void report(uint32_t* bad, uint64_t index, Reason reason) {
    atomicMin(reinterpret_cast<unsigned long long*>(bad), static_cast<unsigned long long>(index << 2 | reason));
}

__device__ __forceinline__ void enter(uint32_t* r, const uint32_t* plain) {
    for (int i = 0; i < GROUP::DEGREE; ++i) Base::enter(r + i * Base::LIMBS, plain + i * WORDS);
}

// r P = infinity, by double-and-add from the order's top bit.
__device__ __forceinline__ bool is_in_subgroup(const curve::Affine<GROUP>& point, const uint32_t* order) {
    xyzz::Point<GROUP> sum;
    set_affine(sum, point);
    for (int bit = GROUP::ORDER_BITS - 1; bit-- > 0;) {
        twice(sum);
        if (order[bit / 32] >> (bit % 32) & 1) add_affine(sum, point);
    }
    return is_infinity(sum);
}

}  // namespace

// infinite[i]: whether point i is infinity; the generator stands in its place, so that no addition meets infinity. offset:
// the first point's index in the request. images: where the points' images by the endomorphism begin, in points; 0, nowhere.
extern "C" __global__ void __launch_bounds__(128) msm_points(const msm_points_args args) {
    grid_order::take_turn();
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t plain[2 * COORDINATE];
    element::load<2 * COORDINATE>(plain, args.wire, index);
    bool infinite = limb::is_zero<2 * COORDINATE>(plain);
    curve::Affine<GROUP> point;
    if (!F::is_canonical<COORDINATE>(plain) || !F::is_canonical<COORDINATE>(plain + COORDINATE)) {
        report(args.bad, args.offset + index, NOT_BELOW_P);
        infinite = true;
    } else if (!infinite) {
        enter(point.x, plain);
        enter(point.y, plain + COORDINATE);
        if (!curve::is_on_curve(point)) {
            report(args.bad, args.offset + index, NOT_ON_CURVE);
            infinite = true;
        }
    }
    if (infinite) {
        curve::set_generator_x<GROUP>(point.x);
        curve::set_generator_y<GROUP>(point.y);
    }
    element::store<2 * F::LIMBS, 2 * F::LIMBS>(args.points, index, point.x);
    args.infinite[index] = infinite;
    if constexpr (GROUP::ENDOMORPHISM) {
        if (args.images == 0) return;
        uint32_t beta[F::LIMBS];
        curve::set_beta<GROUP>(beta);
        F::multiply(point.x, point.x, beta);
        element::store<2 * F::LIMBS, 2 * F::LIMBS>(args.points, args.images + index, point.x);
    }
}

extern "C" __global__ void __launch_bounds__(128) msm_subgroup(const msm_subgroup_args args) {
    grid_order::take_turn();
    const uint64_t index = element::own_index();
    if (index >= args.n || args.infinite[index]) return;
    curve::Affine<GROUP> point;
    element::load<2 * F::LIMBS>(point.x, args.points, index);
    if (!is_in_subgroup(point, args.order)) report(args.bad, args.offset + index, NOT_IN_SUBGROUP);
}
