// ntt and quotient: one pass of transforms whose shape is compiled in (algo/ntt_compiled.cuh), over the field FIELD. out may be
// in, unless the pass stores TRANSPOSED or REVERSED_ROWS.
#include "algo/ntt_compiled.cuh"
#include "unit.cuh"

// BITS, LOG_TILE, FLAGS: the shape. THREADS: of a block. RESIDENT: blocks that a multiprocessor holds at once.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) ntt_compiled_pass(const ntt_compiled_args args) {
    DYNAMIC_SHARED(uint4, tile);
    ntt::compiled_pass<FIELD, ntt::CompiledShape<BITS, LOG_TILE, FLAGS>>(args, tile);
}
