// Sums of runs of points by curve/xyzz_pairs.cuh: each pair of lanes takes RUNS runs, one after the other. A run's first entry
// and its end are the first two words of its row in `runs`, no run is empty, and a pair's lie side by side. A sum comes out as
// it lies in memory, in Montgomery form. TOGETHER: all lanes of a warp stay together, as long as its longest pair takes.
#include "curve/xyzz_pairs.cuh"
#include "unit.cuh"

namespace {

using C = GROUP;

constexpr uint32_t SIGN = 0x80000000u;

// Point number `entry` without its bit 31, which is for the opposite.
__device__ __forceinline__ void take(xyzz_pairs::Affine<C>& point, const pair_check_args& args, uint32_t at) {
    const uint32_t entry = args.entries[4 * at];
    load(point, args.points, entry & ~SIGN);
    negate_if(point, (entry & SIGN) != 0);
}

__device__ __forceinline__ void store_run(const pair_check_args& args, xyzz_pairs::Point<C>& sum, uint64_t run) {
    if (is_infinity(sum, xyzz_pairs::own_pair())) set_infinity(sum);
    store(args.out, run, sum);
}

// Begins a run: its first point, and where the others are.
__device__ __forceinline__ void begin_run(const pair_check_args& args, xyzz_pairs::Point<C>& sum, uint64_t run, uint32_t& at,
                                          uint32_t& end) {
    at = args.runs[4 * run];
    end = args.runs[4 * run + 1];
    xyzz_pairs::Affine<C> first;
    take(first, args, at++);
    set_affine(sum, first);
}

// Whether the pair's warp goes on, or the pair where each goes its own way.
__device__ __forceinline__ bool goes_on(bool there) {
    if constexpr (TOGETHER) return __any_sync(xyzz_pairs::ALL_LANES, there);
    return there;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) pair_check(const pair_check_args args) {
    const unsigned lanes = TOGETHER ? xyzz_pairs::ALL_LANES : xyzz_pairs::own_pair();
    uint64_t run = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 2 * RUNS;
    const uint64_t last = min(args.n, run + RUNS);
    bool there = run < last;
    uint32_t at = 0, end = 0;
    xyzz_pairs::Point<C> sum;
    xyzz_pairs::Affine<C> point;
    set_infinity(sum);
    take(point, args, 0);
    if (there) begin_run(args, sum, run, at, end);
    for (;;) {
        while (there && at == end) {
            store_run(args, sum, run);
            there = ++run < last;
            if (there) begin_run(args, sum, run, at, end);
        }
        if (!goes_on(there)) break;
        // A pair that is done adds on, to a sum that nobody reads.
        if (there) take(point, args, at++);
        add_affine_unchecked(sum, point, lanes);
    }
}
