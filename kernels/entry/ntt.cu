// ntt: one pass of transforms (algo/ntt.cuh) over the field FIELD, 2^LOG_E elements a thread. A block of 2^(log_tile -
// LOG_E) threads, at most THREADS, takes a tile. out may be in, unless the pass stores TRANSPOSED or REVERSED_ROWS.
#include "algo/ntt.cuh"
#include "unit.cuh"

// THREADS, RESIDENT: of a block, and blocks that a multiprocessor holds at once.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) ntt_pass(const ntt_pass_args args) {
    DYNAMIC_SHARED(uint4, tile);
    ntt::pass<FIELD, LOG_E, COSET, false>(args, tile);
}
