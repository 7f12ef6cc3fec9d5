// ntt: one pass of BITS bits of small transforms (algo/ntt_lanes.cuh) over the field FIELD, one element a thread: `total` of
// them, fewer than 2^31. out may not be in. A block has at least 2^BITS threads.
#include "algo/ntt_lanes.cuh"
#include "base/grid_order.cuh"
#include "unit.cuh"

// THREADS, RESIDENT: of a block, and blocks that a multiprocessor holds at once.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) ntt_lanes_pass(const ntt_lanes_args args) {
    DYNAMIC_SHARED(uint4, memory);
    const lanes::Ends<FIELD, ntt_lanes_args> ends{args};
    const uint32_t number = blockIdx.x * blockDim.x + threadIdx.x, i = lanes::element_of<BITS>(number, args.span);
    lanes::Pass<FIELD, BITS, AHEAD, PLAIN_END> pass;
    pass.begin(args.table, number, i & ((1u << args.span) - 1), args.span);
    grid_order::wait_for_previous();  // constants are older than the transform's first pass
    grid_order::let_next_begin();
    uint32_t x[lanes::WORDS] = {}, across[lanes::WORDS] = {};
    const bool inside = number < args.total;
    if (inside) ends.load_both<pass.TWO>(x, across, i, 1u << (BITS - 1) << args.span);
    pass.run(x, across, memory);
    if (inside) ends.store(x, i);
}
