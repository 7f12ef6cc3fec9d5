// ntt's tables: powers of a base, and the factors of one level (algo/ntt_table.cuh). One element a thread, no cooperation.
#include "algo/ntt_table.cuh"
#include "unit.cuh"

// out[i] = base^i for i < 2^split, then base^((i - 2^split) 2^split), n of them; base in Montgomery form, results too.
// bits: of the largest exponent.
extern "C" __global__ void __launch_bounds__(128) ntt_powers(const ntt_powers_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    const uint64_t half = uint64_t(1) << args.split;
    uint32_t v[FIELD::N];
    ntt::power<FIELD>(v, args.base, index < half ? index : index - half << args.split, args.bits);
    element::store<ntt::POWER_WORDS<FIELD>, FIELD::N>(args.out, index, v);
}

// Entry i of one level's table, i < n.
extern "C" __global__ void __launch_bounds__(128) ntt_table(const ntt_table_args args) {
    const uint64_t index = element::own_index();
    if (index < args.n) ntt::store_factor<FIELD>(args, index);
}
