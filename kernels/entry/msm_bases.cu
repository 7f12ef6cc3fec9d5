// Multiples of points that stay on the device: level l holds 2^(width l) P for each point of level 0.
#include "base/element.cuh"
#include "curve/jacobian.cuh"
#include "unit.cuh"

namespace {

using F = curve::FieldOf<GROUP>;

}  // namespace

// points: level by level, n of each; level 0 is there. No point is infinity, nor is a multiple: no order is even.
extern "C" __global__ void __launch_bounds__(128) msm_multiples(const msm_multiples_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    curve::Affine<GROUP> point;
    element::load<2 * F::LIMBS>(point.x, args.points, index);
    for (uint32_t level = 1; level < args.levels; ++level) {
        xyzz::Point<GROUP> sum;
        jacobian::Point<GROUP> multiple;
        set_affine(sum, point);
        jacobian::set_xyzz(multiple, sum);
        for (uint32_t i = 0; i < args.width; ++i) twice(multiple);
        jacobian::to_xyzz(sum, multiple);
        to_affine(point, sum);
        element::store<2 * F::LIMBS, 2 * F::LIMBS>(args.points, level * args.n + index, point.x);
    }
}
