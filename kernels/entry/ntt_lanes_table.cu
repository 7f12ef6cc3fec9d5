// ntt's tables for small transforms: the constants of one level of algo/ntt_lanes.cuh, or of the factors before a transform.
// One constant a thread, no cooperation.
#include "algo/ntt_lanes.cuh"
#include "algo/ntt_table.cuh"
#include "unit.cuh"

// The constant number `which` of the level's entry: with the entry's digits q, of which l1 and l0 are the first rho, the digit
// d = l1 + 2 l0, and i = (the other digits of q) 2^span + (the entry's column part),
//
//     omega^(d i n / N_l) w_4^(d if which is not l0) shift^(before entry + after d) scale,    N_l = 2^(digits + span)
//
// rho = 0 is the table of factors before the transform: d = 0.
__device__ __forceinline__ void set_constant(uint32_t* v, const ntt_lanes_table_args& args, uint32_t entry, uint32_t which) {
    const uint32_t q = entry & ((1u << args.digits) - 1), below = args.digits - args.rho;
    const uint32_t lead = q >> below, rest = q & ((1u << below) - 1);
    const uint32_t l0 = lead & 1, d = args.rho == 2 ? lead >> 1 | l0 << 1 : lead;
    const uint32_t i = rest << args.span | entry >> args.digits;
    uint32_t exponent = args.rho ? d * i << (args.log_n - args.digits - args.span) : 0;
    if (args.rho == 2 && which != l0) exponent += d << (args.log_n - 2);
    ntt::power_from<FIELD>(v, args.omegas, args.split, exponent & ((1u << args.log_n) - 1));
    if (args.before || args.after) {
        uint32_t shift[FIELD::N];
        ntt::power_from<FIELD>(shift, args.shifts, args.split, args.before * entry + args.after * d);
        mont::Field<FIELD>::multiply(v, v, shift);
    }
    if (args.scaled) mont::Field<FIELD>::multiply(v, v, args.scale);
}

// Constant number `index` of 2^log_entries entries of 2^log_constants each, in the layout of lanes::fetch_entry.
extern "C" __global__ void __launch_bounds__(128) ntt_lanes_table(const ntt_lanes_table_args args) {
    using Form = constant_product::Split<FIELD, 2>;
    constexpr int QUARTERS = Form::WORDS / 4;
    const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >> args.log_constants >> args.log_entries != 0) return;
    const uint32_t entry = index >> args.log_constants, which = index & ((1u << args.log_constants) - 1);
    uint32_t v[FIELD::N], w[Form::WORDS];
    set_constant(v, args, entry, which);
    Form::prepare(w, v);
    const uint32_t chunk = args.digits < lanes::CHUNK ? args.digits : lanes::CHUNK;
    uint4* const to = reinterpret_cast<uint4*>(args.out) + ((entry >> chunk << args.log_constants | which) * QUARTERS << chunk) +
                      (entry & ((1u << chunk) - 1));
    UNROLL
    for (int k = 0; k < QUARTERS; ++k) to[k << chunk] = make_uint4(w[4 * k], w[4 * k + 1], w[4 * k + 2], w[4 * k + 3]);
}
