// Additions into buckets by one thread a bucket, in the order of the buckets' numbers: nothing is cut, and nothing is left to
// merge; the largest bucket decides how long it takes.
#include "algo/bucket_sums.cuh"
#include "unit.cuh"

using Mode = bucket_sums::Variable<GROUP>;

// args: points, entries, starts (of each bucket's entries, and the end of all), buckets, n (buckets).
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) msm_add_buckets(const msm_add_buckets_args args) {
    const uint64_t bucket = element::own_index();
    if (bucket >= args.n) return;
    const uint32_t begin = args.starts[bucket], end = args.starts[bucket + 1];
    if (begin == end) return;
    bucket_sums::Points<curve::Affine<GROUP>> points(args.points, args.entries, begin, end);
    curve::Affine<GROUP> point;
    Mode::Sum sum;
    points.take(point, begin);
    Mode::begin(sum, point);
#pragma unroll 1
    for (uint32_t at = begin + 1; at < end; ++at) {
        points.take(point, at);
        Mode::add(sum, point);
    }
    if (Mode::is_doubtful(sum)) {
        Mode::Sum again;  // sum itself stays in registers
        set_infinity(again);
        for (uint32_t at = begin; at < end; ++at) {
            bucket_sums::load_entry(point, args.points, args.entries[at]);
            add_affine(again, point);
        }
        sum = again;
    }
    bucket_sums::store(args.buckets, bucket, sum);
}
