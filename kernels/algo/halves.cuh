// Two short scalars for one, by a curve's endomorphism: k = first + second * eigenvalue mod the order
// (ops/params/endomorphism.py has the formulas and their bounds).
//
// args has the constants: quotients c and d (QUOTIENT_WORDS limbs), `shift` limbs by which they are scaled, and the basis
// c0, c1, d0, d1, signed (WORDS limbs in two's complement).
#pragma once

#include "limb/limb.cuh"

namespace halves {

constexpr int WORDS = 6, QUOTIENT_WORDS = 8;

// r = round(k q / 2^(32 shift)), below 2^(32 WORDS).
__device__ __forceinline__ void coordinate(uint32_t* r, const uint32_t* k, const uint32_t* q, uint32_t shift) {
    uint32_t product[2 * QUOTIENT_WORDS], rounding[WORDS] = {};
    limb::wide_product<QUOTIENT_WORDS>(product, k, q);
    limb::set_word<WORDS>(r, 0);
    UNROLL
    for (int i = 0; i < 2 * QUOTIENT_WORDS; ++i) {
        if (i + 1 == int(shift)) rounding[0] = product[i] >> 31;
        UNROLL
        for (int j = 0; j < WORDS; ++j) r[j] = i == int(shift) + j ? product[i] : r[j];
    }
    limb::add<WORDS>(r, r, rounding);
}

// r -= c v mod 2^(32 WORDS).
__device__ __forceinline__ void subtract_product(uint32_t* r, const uint32_t* c, const uint32_t* v) {
    uint32_t product[2 * WORDS];
    limb::wide_product<WORDS>(product, c, v);
    limb::subtract<WORDS>(r, r, product);
}

// first, second: signed, of WORDS limbs in two's complement. k: 8 limbs, below the order.
template <class Args>
__device__ __forceinline__ void split(uint32_t* first, uint32_t* second, const uint32_t* k, const Args& args) {
    uint32_t c[WORDS], d[WORDS];
    coordinate(c, k, args.quotient_c, args.shift);
    coordinate(d, k, args.quotient_d, args.shift);
    limb::copy<WORDS>(first, k);
    limb::set_word<WORDS>(second, 0);
    subtract_product(first, c, args.c0);
    subtract_product(first, d, args.d0);
    subtract_product(second, c, args.c1);
    subtract_product(second, d, args.d1);
}

}  // namespace halves
