// The additions of a multi-scalar multiplication into buckets, a chunk of a bucket a thread, or with PAIRS a pair of lanes
// (algo/chunk_sums.cuh).
#include "algo/chunk_sums.cuh"
#include "base/grid_order.cuh"
#include "unit.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) msm_add_chunks(const msm_add_chunks_args args) {
    grid_order::take_turn();
    if constexpr (PAIRS) {
        chunk_sums::accumulate_by_pairs<GROUP>(args, uint32_t(element::own_index() / 2));
    } else {
        chunk_sums::accumulate<bucket_sums::Variable<GROUP>>(args, uint32_t(element::own_index()));
    }
}
