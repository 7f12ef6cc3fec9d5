// Products modulo m = 2^256 - c with 1 <= c < 2^64 (the secp256k1 prime: c = 2^32 + 977), by folding the upper half:
// 2^256 = c (mod m).
#pragma once

#include "limb/limb.cuh"

namespace fold {

constexpr int N = 8;

// [r] = [t] mod m, canonical, for any t of 16 limbs. c: two limbs.
//
//   t = t1 B + t0                     B = 2^256, t0, t1 < B
//   u = t0 + t1 c                     <= B - 1 + (B - 1)(2^64 - 1) < 2^64 B: u = u1 B + u0 with u1 < 2^64
//   w = u0 + u1 c                     u1 c < 2^128: w = w1 B + w0, and w1 = 1 only if w0 < 2^128
//   w - w1 m = w0 + w1 c < 2^128 + 2^64 where w1 = 1: below m, and nothing leaves 256 bits
//   w0 < B < 2 m where w1 = 0: m is subtracted, that is c added modulo B, exactly if w0 + c >= B
__device__ __forceinline__ void reduce(uint32_t* r, const uint32_t* t, const uint32_t* c) {
    uint32_t upper[N + 2] = {}, u[N + 2] = {}, product[N] = {}, addend[N] = {c[0], c[1]}, w[N], sum[N];
    limb::copy<N>(u, t);
    limb::copy<N>(upper, t + N);
    limb::low_multiply_add<N + 2, 2>(u, c, upper);
    limb::wide_product<2>(product, u + N, c);
    const uint32_t w1 = limb::add<N>(w, u, product);
    const uint32_t over = limb::add<N>(sum, w, addend);
    limb::select<N>(r, (w1 | over) != 0, sum, w);
}

// [r] = [a][b] mod m, canonical, for any a, b of 8 limbs.
__device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b, const uint32_t* c) {
    uint32_t t[2 * N];
    limb::wide_product<N>(t, a, b);
    reduce(r, t, c);
}

}  // namespace fold
