// What follows the additions into buckets: spills, the reduction of each row, the fold over windows, and the affine result.
#include "algo/bucket_reduction.cuh"
#include "base/grid_order.cuh"
#include "unit.cuh"

namespace {

using Mode = bucket_sums::ModeOf<GROUP, CONSTANT_WORK>;
using Sum = Mode::Sum;
using Base = prime::Field<GROUP::Base>;

constexpr int PART = Base::LIMBS, PARTS = GROUP::DEGREE;

// Element -> plain parts of WORDS limbs each.
__device__ __forceinline__ void leave(uint32_t* plain, const uint32_t* a) {
    for (int i = 0; i < PARTS; ++i) {
        uint32_t part[PART];
        Base::leave(part, a + i * PART);
        UNROLL
        for (int k = 0; k < WORDS; ++k) plain[i * WORDS + k] = k < PART ? part[k < PART ? k : 0] : 0;
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(THREADS) msm_merge(const msm_merge_args args) {
    grid_order::take_turn();
    const uint64_t slice = element::own_index();
    if (slice * args.length >= args.count) return;
    if constexpr (Mode::CONSTANT) {
        bucket_sums::merge_slice_constant<Mode>(args, uint32_t(slice));
    } else {
        bucket_sums::merge_slice<Mode>(args, uint32_t(slice));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) msm_segments(const msm_segments_args args) {
    grid_order::take_turn();
    const uint64_t index = element::own_index();
    if (index < args.n) bucket_reduction::first_stage<Mode>(args, uint32_t(index));
}

extern "C" __global__ void __launch_bounds__(THREADS) msm_segments_next(const msm_segments_next_args args) {
    grid_order::take_turn();
    const uint64_t index = element::own_index();
    if (index < args.n) bucket_reduction::next_stage<Mode>(args, uint32_t(index));
}

// One vector a thread. kept: the sum over the pieces so far, which begins with the first and is written out with the last.
extern "C" __global__ void __launch_bounds__(THREADS) msm_fold(const msm_fold_args args) {
    grid_order::take_turn();
    const uint64_t vector = element::own_index();
    if (vector >= args.vectors) return;
    Sum sum, kept;
    bucket_reduction::fold<Mode>(sum, args, uint32_t(vector));
    if (!args.is_first) {
        bucket_sums::load(kept, args.kept, vector);
        add(sum, kept);
    }
    bucket_sums::store(args.kept, vector, sum);
    if (!args.is_last) return;
    curve::Affine<GROUP> affine;
    uint32_t plain[2 * PARTS * WORDS];
    to_affine(affine, sum);
    leave(plain, affine.x);
    leave(plain + PARTS * WORDS, affine.y);
    element::store<2 * PARTS * WORDS, 2 * PARTS * WORDS>(args.out, vector, plain);
}
