// Sums of runs of points by curve/xyzz_pairs.cuh, a run for each pair of lanes: its first entry and its end are the first two
// words of the pair's row in `runs`. The sum comes out as it lies in memory, in Montgomery form. CONVERGED: all lanes of a
// warp stay together, as long as its longest run takes.
#include "curve/xyzz_pairs.cuh"
#include "unit.cuh"

namespace {

using C = GROUP;
using Sum = xyzz_pairs::Point<C>;
using Affine = xyzz_pairs::Affine<C>;

constexpr uint32_t SIGN = 0x80000000u;

// Point number `entry` without its bit 31, which is for the opposite.
__device__ __forceinline__ void take(Affine& point, const uint32_t* points, uint32_t entry) {
    load(point, points, entry & ~SIGN);
    negate_if(point, (entry & SIGN) != 0);
}

__device__ __forceinline__ void sum_apart(Sum& sum, const pair_check_args& args, uint32_t begin, uint32_t end) {
    Affine point;
    take(point, args.points, args.entries[4 * begin]);
    set_affine(sum, point);
    for (uint32_t at = begin + 1; at < end; ++at) {
        take(point, args.points, args.entries[4 * at]);
        add_affine_unchecked(sum, point, xyzz_pairs::own_pair());
    }
}

__device__ __forceinline__ void sum_together(Sum& sum, const pair_check_args& args, uint32_t begin, uint32_t end) {
    Affine point;
    take(point, args.points, args.entries[4 * begin]);
    set_affine(sum, point);
    for (uint32_t at = begin + 1; __any_sync(xyzz_pairs::ALL_LANES, at < end); ++at) {
        take(point, args.points, args.entries[4 * min(at, end - 1)]);
        Sum next = sum;
        add_affine_unchecked(next, point, xyzz_pairs::ALL_LANES);
        select(sum, at < end, next, sum);
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) pair_check(const pair_check_args args) {
    const uint64_t pair = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 2;
    // Pairs beyond the last run take part with it.
    const uint64_t own = min(pair, args.n - 1);
    const uint32_t begin = args.runs[4 * own], end = args.runs[4 * own + 1];
    Sum sum;
    if constexpr (CONVERGED) {
        sum_together(sum, args, begin, end);
    } else {
        sum_apart(sum, args, begin, end);
    }
    constexpr unsigned ALL = xyzz_pairs::ALL_LANES;
    if (is_infinity(sum, ALL)) set_infinity(sum);
    if (pair < args.n) store(args.out, own, sum);
}
