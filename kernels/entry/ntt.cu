// ntt: a pass of a transform (algo/ntt.cuh), a block a tile. PARAMS' field, LOG_RADIX bits of a step at the most; THREADS
// and RESIDENT bound the registers. out may be x where a block stores where it has loaded.
#include "algo/ntt.cuh"
#include "unit.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) ntt_pass(const ntt_pass_args args) {
    DYNAMIC_SHARED(uint32_t, shared);
    using Residue = transform::Residue<PARAMS>;
    ntt::Pass<Residue, LOG_RADIX, THREADS, ntt_pass_args>(args, shared).run();
}
