// The additions of a multi-scalar multiplication into buckets, which are nearly all of its work (algo/bucket_sums.cuh).
#include "algo/bucket_sums.cuh"
#include "base/grid_order.cuh"
#include "unit.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) msm_accumulate(const msm_accumulate_args args) {
    grid_order::take_turn();
    const uint64_t slice = element::own_index();
    if (slice >= args.slices) return;
    bucket_sums::accumulate_slice<bucket_sums::ModeOf<GROUP, CONSTANT_WORK>>(args, uint32_t(slice));
}
