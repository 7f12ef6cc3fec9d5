// quotient: the last pass of the third array's transform (algo/ntt.cuh); what it stores is first second - value. All else
// that the op does is ntt's kernel. out may be x if this is the only pass.
#include "algo/ntt.cuh"
#include "unit.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) quotient_pass(const quotient_pass_args args) {
    DYNAMIC_SHARED(uint32_t, shared);
    using Residue = transform::Residue<PARAMS>;
    ntt::Pass<Residue, LOG_RADIX, THREADS, quotient_pass_args, true>(args, shared).run();
}
