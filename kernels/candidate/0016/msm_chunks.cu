// The additions of a chunk of a bucket by a thread, with the next point on its way to the cache alone.
#include "algo/chunk_sums.cuh"
#include "base/grid_order.cuh"
#include "unit.cuh"

namespace {

using M = bucket_sums::Variable<GROUP>;

__device__ __forceinline__ void accumulate(const msm_add_chunks_args& args, uint32_t number) {
    if (number >= args.totals[1]) return;
    const bucket_chunks::Chunk chunk = bucket_chunks::load(args.chunks, number);
    const uint32_t end = chunk.first + chunk.size;
    curve::Affine<GROUP> point;
    bucket_sums::FetchedPoints<curve::Affine<GROUP>> points(args.points, args.entries, chunk.first, end);
    M::Sum sum;
    uint32_t at = chunk.first;
    bool begins = true;
    if (chunk_sums::goes_on(args, chunk)) {
        bucket_sums::load(sum, args.buckets, chunk.bucket);
        begins = is_infinity(sum);
    }
    if (begins) {
        points.take(point, at++);
        M::begin(sum, point);
    }
#pragma unroll 1
    for (; at < end; ++at) {
        points.take(point, at);
        M::add(sum, point);
    }
    if (!M::is_doubtful(sum)) {
        chunk_sums::store_sum(args, chunk, sum);
        return;
    }
    M::Sum again;
    chunk_sums::sum_again<M>(again, args, chunk);
    chunk_sums::store_sum(args, chunk, again);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) msm_add_chunks(const msm_add_chunks_args args) {
    grid_order::take_turn();
    accumulate(args, uint32_t(element::own_index()));
}
