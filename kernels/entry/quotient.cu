// quotient: the last pass of the third array's transform (algo/ntt.cuh); what it stores is first second - value. All else
// that the op does is ntt's kernel. out may be in.
#include "algo/ntt.cuh"
#include "unit.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) quotient_pass(const quotient_pass_args args) {
    DYNAMIC_SHARED(uint4, tile);
    ntt::pass<FIELD, LOG_E, false, true>(args, tile);
}
