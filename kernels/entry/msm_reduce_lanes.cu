// What msm_reduce.cu does, with points over groups of lanes (algo/bucket_lanes.cuh): the shorter chains of a GPU.
//
// Blocks are whole warps, all of which take part to the end: what lies beyond the last item is not stored.
#include "algo/bucket_lanes.cuh"
#include "base/grid_order.cuh"
#include "unit.cuh"

namespace {

static_assert(THREADS % 64 == 0, "warps by twos: one for each half of a pair (bucket_lanes::chunk)");

using Mode = bucket_sums::ModeOf<GROUP, CONSTANT_WORK>;
using Lanes = xyzz_lanes::Lanes<GROUP>;

// Blocks of 128 threads whose registers a multiprocessor has without spills. Not left to the compiler, which takes three of
// twelve limbs on some architectures, and spills.
constexpr int RESIDENT = Lanes::N > 8 ? 2 : Lanes::PARTS == 1 ? 4 : 3;

}  // namespace

extern "C" __global__ void __launch_bounds__(THREADS) msm_merge(const msm_merge_args args) {
    grid_order::take_turn();
    bucket_lanes::merge<bucket_lanes::ByRows<Mode, msm_merge_args>>(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) msm_merge_trees(const msm_merge_trees_args args) {
    grid_order::take_turn();
    bucket_lanes::merge<bucket_lanes::ByTrees<Mode, msm_merge_trees_args>>(args);
}

extern "C" __global__ void __launch_bounds__(THREADS) msm_segments(const msm_segments_args args) {
    grid_order::take_turn();
    bucket_lanes::first_stage<Mode>(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) msm_segments_next(const msm_segments_next_args args) {
    grid_order::take_turn();
    DYNAMIC_SHARED(uint32_t, memory);
    bucket_lanes::chunk<Mode>(args, memory);
}

// One vector a warp, whose groups all do the same. kept: the sum over the pieces so far, which begins with the first and is
// written out with the last.
extern "C" __global__ void __launch_bounds__(32, 1) msm_fold(const msm_fold_args args) {
    grid_order::take_turn();
    const uint32_t vector = blockIdx.x;
    xyzz_lanes::Point<GROUP> sum;
    bucket_lanes::fold<Mode>(sum, args, vector);
    if (threadIdx.x < Lanes::COUNT) bucket_lanes::store(args.kept, vector, sum);
    if (!args.is_last) return;
    to_affine(sum);
    // The lanes of X and Y are in the order of the point on the wire.
    if (threadIdx.x >= 2 * Lanes::PARTS) return;
    uint32_t part[Lanes::N], plain[WORDS];
    Lanes::B::leave(part, sum.limb);
    UNROLL
    for (int k = 0; k < WORDS; ++k) plain[k] = k < Lanes::N ? part[k < Lanes::N ? k : 0] : 0;
    element::store<WORDS, WORDS>(args.out, uint64_t(vector) * 2 * Lanes::PARTS + threadIdx.x, plain);
}
