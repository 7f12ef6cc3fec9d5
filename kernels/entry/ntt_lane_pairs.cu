// ntt: one pass of BITS bits of small transforms (algo/ntt_lane_pairs.cuh) over the field FIELD, two elements a thread: `total`
// elements, fewer than 2^31. out may not be in. A block has at least 2^(BITS - 1) threads.
#include "algo/ntt_lane_pairs.cuh"
#include "base/grid_order.cuh"
#include "unit.cuh"

// THREADS, RESIDENT: of a block, and blocks that a multiprocessor holds at once.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) ntt_lane_pairs_pass(const ntt_lanes_args args) {
    DYNAMIC_SHARED(uint4, memory);
    const lanes::Ends<FIELD, ntt_lanes_args> ends{args};
    const uint32_t number = blockIdx.x * blockDim.x + threadIdx.x, below = number & ((1u << (BITS - 1)) - 1);
    const uint32_t i = lanes::element_of<BITS>(2 * (number - below) + below, args.span), j = i ^ 1u << (BITS - 1) << args.span;
    lanes::PairPass<FIELD, BITS, AHEAD, LAST_PASS> pass;
    pass.begin(args.table, number, i & ((1u << args.span) - 1), args.span);
    grid_order::wait_for_previous();  // constants are older than the transform's first pass
    grid_order::let_next_begin();
    uint32_t x0[lanes::WORDS] = {}, x1[lanes::WORDS] = {};
    const bool inside = 2 * number < args.total;
    if (inside) {
        ends.load(x0, i, true);
        ends.load(x1, j, true);
        if (ends.has(lanes::BEFORE)) {
            ends.multiply_before(x0, i);
            ends.multiply_before(x1, j);
        }
    }
    pass.run(x0, x1, memory);
    if (inside) {
        const uint32_t first = lanes::element_of<BITS>(2 * number, args.span);
        ends.store(x0, first);
        ends.store(x1, first ^ 1u << args.span);
    }
}
