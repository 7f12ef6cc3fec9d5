// The additions of one chunk of a bucket (bucket_chunks.cuh), by one thread, or in the extension field by a pair of lanes.
//
// Sums are by formulas without special cases; one test at the end finds that there was one, and the chunk is summed again.
//
// args: points, entries, chunks, totals (entries, chunks), buckets, spills and spill_buckets; goes_on: buckets hold sums
// already, to which those of the chunks are added.
#pragma once

#include "algo/bucket_chunks.cuh"
#include "algo/bucket_sums.cuh"
#include "curve/xyzz_pairs.cuh"

namespace bucket_sums {

template <class C>
struct Prefetch<xyzz_pairs::Affine<C>> {
    static __device__ __forceinline__ void point(const uint32_t* points, uint32_t index) {
        xyzz_pairs::prefetch<C>(points, index);
    }
};

}  // namespace bucket_sums

namespace chunk_sums {

using bucket_chunks::Chunk;
using bucket_sums::load;
using bucket_sums::store;

__device__ __forceinline__ bool is_own(const Chunk& chunk) { return chunk.spill == bucket_chunks::OWN; }

// Whether the bucket's sum so far comes before the chunk's.
template <class Args>
__device__ __forceinline__ bool goes_on(const Args& args, const Chunk& chunk) {
    return args.goes_on && is_own(chunk);
}

// sum, of a whole thread or a lane's part, to where the chunk's belongs.
template <class P, class Args>
__device__ __forceinline__ void store_sum(const Args& args, const Chunk& chunk, const P& sum) {
    if (is_own(chunk)) {
        store(args.buckets, chunk.bucket, sum);
    } else {
        store(args.spills, chunk.spill, sum);
        args.spill_buckets[chunk.spill] = chunk.bucket;
    }
}

// The same as sum, by complete additions.
template <class M, class Args>
__device__ __forceinline__ void sum_again(typename M::Sum& sum, const Args& args, const Chunk& chunk) {
    set_infinity(sum);
    if (goes_on(args, chunk)) load(sum, args.buckets, chunk.bucket);
    bucket_sums::add_again<M>(sum, args.points, args.entries, chunk.first, chunk.first + chunk.size);
}

// Chunk number `number`, if there is one.
template <class M, class Args>
__device__ __forceinline__ void accumulate(const Args& args, uint32_t number) {
    if (number >= args.totals[1]) return;
    const Chunk chunk = bucket_chunks::load(args.chunks, number);
    const uint32_t end = chunk.first + chunk.size;
    curve::Affine<typename M::Group> point;
    bucket_sums::Points<curve::Affine<typename M::Group>> points(args.points, args.entries, chunk.first, end);
    typename M::Sum sum;
    uint32_t at = chunk.first;
    bool begins = true;
    if (goes_on(args, chunk)) {
        load(sum, args.buckets, chunk.bucket);
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
        store_sum(args, chunk, sum);
        return;
    }
    typename M::Sum again;  // sum itself stays in registers
    sum_again<M>(again, args, chunk);
    store_sum(args, chunk, again);
}

// The same by the two lanes of a pair, each with its part of the sum. All lanes of a warp stay together as long as its longest
// chunk takes: a pair that is done adds on to a sum that nobody reads, and one for which there is no chunk does what the last
// one takes. What is doubtful is for the even lane alone.
template <class C, class Args>
__device__ __forceinline__ void accumulate_by_pairs(const Args& args, uint32_t number) {
    using M = bucket_sums::Variable<C>;
    const uint32_t all = args.totals[1], lanes = xyzz_pairs::ALL_LANES;
    if (number / 16 * 16 >= all) return;
    const Chunk chunk = bucket_chunks::load(args.chunks, min(number, all - 1));
    const uint32_t end = chunk.first + chunk.size;
    xyzz_pairs::Affine<C> point;
    bucket_sums::Points<xyzz_pairs::Affine<C>> points(args.points, args.entries, chunk.first, end);
    xyzz_pairs::Point<C> sum;
    uint32_t at = chunk.first;
    bool begins = true, doubtful = false;
    if (goes_on(args, chunk)) {
        load(sum, args.buckets, chunk.bucket);
        begins = is_infinity(sum, xyzz_pairs::own_pair());
    }
    if (begins) {
        points.take(point, at++);
        set_affine(sum, point);
    }
#pragma unroll 1
    for (;;) {
        if (at == end && number < all) {
            doubtful = is_infinity(sum, xyzz_pairs::own_pair());
            if (!doubtful) store_sum(args, chunk, sum);
        }
        if (!__any_sync(lanes, at < end)) break;
        points.take(point, at++);
        add_affine_unchecked(sum, point, lanes);
    }
    if (!doubtful || xyzz_pairs::part() != 0) return;
    typename M::Sum again;
    sum_again<M>(again, args, chunk);
    store_sum(args, chunk, again);
}

}  // namespace chunk_sums
