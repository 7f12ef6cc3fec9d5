// The tables that algo/ntt.cuh reads: twiddles of one level, and the powers they are made of.
#pragma once

#include "algo/ntt.cuh"
#include "base/element.cuh"

namespace ntt {

template <class M, int I = 0>
__device__ __forceinline__ void set_one(uint32_t* r) {
    constexpr uint32_t limb = M::R[I];
    r[I] = limb;
    if constexpr (I + 1 < M::N) set_one<M, I + 1>(r);
}

// r = base^exponent, base and r in Montgomery form; exponent < 2^bits.
template <class M>
__device__ __forceinline__ void power(uint32_t* r, const uint32_t* base, uint64_t exponent, int bits) {
    set_one<M>(r);
    for (int bit = bits - 1; bit >= 0; --bit) {
        mont::Field<M>::square(r, r);
        if (exponent >> bit & 1) mont::Field<M>::multiply(r, r, base);
    }
}

// Words of a power in device memory.
template <class M>
constexpr int POWER_WORDS = (M::N + 3) / 4 * 4;

// r = base^exponent from two runs of powers: base^i for i < 2^split, then base^(i 2^split). Montgomery form.
template <class M>
__device__ __forceinline__ void power_from(uint32_t* r, const uint32_t* powers, uint32_t split, uint64_t exponent) {
    uint32_t low[POWER_WORDS<M>], high[POWER_WORDS<M>];
    element::load<POWER_WORDS<M>>(low, powers, exponent & ((uint64_t(1) << split) - 1));
    element::load<POWER_WORDS<M>>(high, powers, (uint64_t(1) << split) + (exponent >> split));
    mont::Field<M>::multiply(r, low, high);
}

// The factor of digit d for the element with t of b bits to come and the column part x:
//     omega^(d i n / N_l) shift^(before i + after d) scale,   i = t 2^log_span + i',  N_l = 2^(rho + b + log_span)
// where i' is x, or the reverse of x (MIRRORED). shifted, scaled: whether the second and the third factor are there.
template <class M, class Args>
__device__ __forceinline__ void factor(uint32_t* v, const Args& args, uint32_t d, uint32_t t, uint64_t x) {
    const uint64_t rest = args.mirrored ? reversed(uint32_t(x), args.log_span) : x;
    const uint64_t i = (uint64_t(t) << args.log_span) + rest;
    power_from<M>(v, args.omegas, args.split, d * i << (args.log_n - args.rho - args.b - args.log_span));
    if (args.shifted) {
        uint32_t shift[M::N];
        power_from<M>(shift, args.shifts, args.split, args.before * i + args.after * d);
        mont::Field<M>::multiply(v, v, shift);
    }
    if (args.scaled) mont::Field<M>::multiply(v, v, args.scale);
}

// Entry number `index` of a level's table, in the order (x / G, d, t, x mod G).
template <class M, class Args>
__device__ __forceinline__ void store_factor(const Args& args, uint64_t index) {
    using Form = typename lazy::Residue<M>::Twiddle;
    const uint32_t r = 1u << args.rho, inner = args.b + args.log_group, factors = args.scaled ? r : r - 1;
    const uint64_t lane = index & ((uint64_t(1) << inner) - 1), outer = index >> inner;
    const uint32_t d = uint32_t(outer % factors) + r - factors;
    const uint64_t x = (outer / factors << args.log_group) | (lane & ((1u << args.log_group) - 1));
    uint32_t v[M::N], w[Form::WORDS];
    factor<M>(v, args, d, uint32_t(lane >> args.log_group), x);
    Form::prepare(w, v);
    uint4* const to = reinterpret_cast<uint4*>(args.out) + (outer * (Form::WORDS / 4) << inner) + lane;
    UNROLL
    for (int q = 0; q < Form::WORDS / 4; ++q)
        to[uint64_t(q) << inner] = make_uint4(w[4 * q], w[4 * q + 1], w[4 * q + 2], w[4 * q + 3]);
}

}  // namespace ntt
