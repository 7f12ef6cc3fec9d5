// Additions into buckets by pairs of affine points, level by level (candidate/0011/pair_sums.cuh), and the list of what is left
// of each bucket for the additions by chunks (algo/chunk_sums.cuh).
#include "candidate/0011/pair_sums.cuh"
#include "unit.cuh"

namespace {

using At = pair_sums::Rows<GROUP>;
using Totals = coordinates::Totals<coordinates::Element<GROUP>, THREADS / 32>;

// Places that a thread looks at.
constexpr uint32_t SHARE = 8;

// Calls found(place) for each of a thread's places at which there is a point, and ended(bucket) after a bucket's last.
template <class Args, class Found, class Ended>
__device__ __forceinline__ void for_points_left(const Args& args, const Found& found, const Ended& ended) {
    const uint32_t places = levels::places(args.starts, args.buckets, args.level);
    const uint64_t first = element::own_index() * SHARE;
    if (first >= places) return;
    levels::Walk walk(args.starts, args.buckets, args.level, uint32_t(first));
    uint32_t bucket = walk.bucket;
    for (uint32_t at = uint32_t(first); at < min(first + SHARE, uint64_t(places)); ++at) {
        if (walk.count(at) == 0) continue;
        if (walk.bucket != bucket) ended(bucket);
        bucket = walk.bucket;
        const uint32_t* const x = args.points + (uint64_t(at) * 2 * GROUP::DEGREE) * At::N;
        if (!At::is_infinite(x)) found(at);
    }
    ended(bucket);
}

}  // namespace

// Level 1, of the sort's entries.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) msm_pair_entries(const msm_pair_entries_args args) {
    __shared__ Totals totals;
    pair_sums::add_level<GROUP, THREADS / 32>(args, pair_sums::Entries{args.points, args.entries}, totals);
}

// A later one.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) msm_pair_sums(const msm_pair_sums_args args) {
    __shared__ Totals totals;
    pair_sums::add_level<GROUP, THREADS / 32>(args, pair_sums::Sums{args.points}, totals);
}

// counts[bucket] += its points that are not infinity, totals[0] += all of them.
extern "C" __global__ void __launch_bounds__(THREADS) msm_count_left(const msm_count_left_args args) {
    uint32_t count = 0, all = 0;
    for_points_left(
        args, [&](uint32_t) { ++count; },
        [&](uint32_t bucket) {
            if (count != 0) atomicAdd(&args.counts[bucket], count);
            all += count;
            count = 0;
        });
#pragma unroll 1
    for (int distance = 16; distance > 0; distance /= 2) all += __shfl_xor_sync(coordinates::ALL_LANES, all, distance);
    if (threadIdx.x % 32 == 0 && all != 0) atomicAdd(&args.totals[0], all);
}

// left[..]: the places of each bucket's points, from cursors[bucket] on.
extern "C" __global__ void __launch_bounds__(THREADS) msm_list_left(const msm_list_left_args args) {
    uint32_t found[SHARE], count = 0;
    for_points_left(
        args,
        [&](uint32_t place) {
            UNROLL
            for (uint32_t i = 0; i < SHARE; ++i) {
                if (i == count) found[i] = place;
            }
            ++count;
        },
        [&](uint32_t bucket) {
            if (count == 0) return;
            const uint32_t at = atomicAdd(&args.cursors[bucket], count);
            UNROLL
            for (uint32_t i = 0; i < SHARE; ++i) {
                if (i < count) args.left[at + i] = found[i];
            }
            count = 0;
        });
}
