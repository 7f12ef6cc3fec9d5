// ntt_table: twiddles of start base^e, e = 0..n-1, in the form that PARAMS' transforms take them. A thread makes CHUNK of
// them, a power of 2: the first from base^(2^i), which args.powers holds in Montgomery form as args.start is.
#include "field/transform.cuh"
#include "unit.cuh"

extern "C" __global__ void __launch_bounds__(256) ntt_table(const ntt_table_args args) {
    using Residue = transform::Residue<PARAMS>;
    using Field = mont::Field<PARAMS>;
    constexpr int N = Residue::N;
    const Residue residue{args.modulus, args.n0inv};
    const uint64_t first = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) * CHUNK;
    if (first >= args.n) return;
    uint32_t value[N];
    limb::copy<N>(value, args.start);
#pragma unroll 1
    for (uint32_t i = 0; first >> i != 0; ++i) {
        if (first >> i & 1) Field::multiply(value, value, args.powers + i * N);
    }
#pragma unroll 1
    for (uint64_t e = first; e < first + CHUNK && e < args.n; ++e) {
        uint32_t twiddle[Residue::TWIDDLE];
        residue.twiddle(twiddle, value);
        UNROLL
        for (int i = 0; i < Residue::TWIDDLE; ++i) args.table[e * Residue::TWIDDLE + i] = twiddle[i];
        Field::multiply(value, value, args.powers);
    }
}
