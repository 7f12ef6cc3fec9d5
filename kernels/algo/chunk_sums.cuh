// The additions of one chunk of a bucket (bucket_chunks.cuh), by one thread.
//
// M: Variable of bucket_sums.cuh. Its sums are by formulas without special cases; one test at the end finds that there was
// one, and the chunk is summed again.
#pragma once

#include "algo/bucket_chunks.cuh"
#include "algo/bucket_sums.cuh"

namespace chunk_sums {

// Chunk number `number`, if there is one. args: points, entries, chunks, totals (entries, chunks), buckets, spills and
// spill_buckets; goes_on: buckets hold sums already, to which those of the chunks are added.
template <class M, class Args>
__device__ __forceinline__ void accumulate(const Args& args, uint32_t number) {
    if (number >= args.totals[1]) return;
    const bucket_chunks::Chunk chunk = bucket_chunks::load(args.chunks, number);
    const uint32_t end = chunk.first + chunk.size;
    bucket_sums::Points<typename M::Group> points(args.points, args.entries, chunk.first, end);
    curve::Affine<typename M::Group> point;
    typename M::Sum sum;
    const bool goes_on = args.goes_on && chunk.spill == bucket_chunks::OWN;
    uint32_t at = chunk.first;
    if (goes_on) bucket_sums::load(sum, args.buckets, chunk.bucket);
    if (!goes_on || is_infinity(sum)) {
        points.take(point, at++);
        M::begin(sum, point);
    }
#pragma unroll 1
    for (; at < end; ++at) {
        points.take(point, at);
        M::add(sum, point);
    }
    if (M::is_doubtful(sum)) {
        typename M::Sum again;  // sum itself stays in registers
        set_infinity(again);
        if (goes_on) bucket_sums::load(again, args.buckets, chunk.bucket);
        bucket_sums::add_again<M>(again, args.points, args.entries, chunk.first, end);
        sum = again;
    }
    if (chunk.spill == bucket_chunks::OWN) {
        bucket_sums::store(args.buckets, chunk.bucket, sum);
    } else {
        bucket_sums::store(args.spills, chunk.spill, sum);
        args.spill_buckets[chunk.spill] = chunk.bucket;
    }
}

}  // namespace chunk_sums
