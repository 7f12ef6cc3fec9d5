// Reduction modulo the secp256k1 prime p = 2^256 - c, c = 2^32 + 977, by folding the upper half: 2^256 = c (mod p).
// Once in 32-bit limbs, once in 64-bit limbs. Canonical results for any t < 2^512.
//
//   t = t1 2^256 + t0
//   u = t0 + t1 c        <= (2^256 - 1)(1 + c): u = u1 2^256 + u0 with u1 <= c
//   w = u0 + u1 c        u1 c <= c^2 < 2^67: w = w1 2^256 + w0, and w1 = 1 only if w0 < 2^67
//   w1 = 1:              w - p = w0 + c < p: the result. It is the NEW w0 that c is added to, the one after the second
//                        fold's own carry chain; c on top of u0 would lose u1 c.
//   w1 = 0:              w0 < 2^256 < 2 p: p is subtracted, that is c added modulo 2^256, exactly if w0 + c >= 2^256
#pragma once

#include "candidate/0001/limb64.cuh"
#include "candidate/0001/rows32.cuh"
#include "limb/limb.cuh"

namespace fold977 {

constexpr uint32_t LOW = 977;
constexpr uint64_t COMPLEMENT = (uint64_t(1) << 32) + LOW;

// [r] = [w] or [w] + c, as above. w: 8 limbs, w1: 0 or 1.
__device__ __forceinline__ void finish(uint32_t* r, const uint32_t* w, uint32_t w1) {
    const uint32_t c[8] = {LOW, 1};
    uint32_t sum[8];
    const uint32_t over = limb::add<8>(sum, w, c);
    limb::select<8>(r, (w1 | over) != 0, sum, w);
}

// [r] = [t] mod p, t: 16 limbs.
//
// t1 c = 977 t1 + t1 2^32. Two accumulators as in limb/ptx_product.cuh, [even] + 2^32 [odd]: even takes the products of
// t1's even limbs on top of t0, odd those of the odd limbs on top of t1, which stands there at the right place. Each
// grows by less than 978 2^224, so that its carry word is 0 or 1.
__device__ __forceinline__ void reduce(uint32_t* r, const uint32_t* t) {
    const uint32_t* const upper = t + 8;
    uint32_t even[10] = {}, odd[9] = {}, u[10], w[8];
    limb::copy<8>(even, t);
    limb::copy<8>(odd, upper);
    rows32::row(even, upper, LOW, even[8]);
    rows32::row(odd, upper + 1, LOW, odd[8]);
    u[0] = even[0];
    limb::add<9>(u + 1, even + 1, odd);
    VERIFY(u[9] <= 1);
    // u1 = u[8] + u[9] 2^32, below 2^33 + 977: u1 c = 977 u[8] + (u[8] + 977 u[9]) 2^32 + u[9] 2^64.
    uint32_t product[8] = {u[8] * LOW, __umulhi(u[8], LOW) + u[9] * LOW, u[9]};
    const uint32_t shifted[2] = {u[8], 0};
    limb::add<2>(product + 1, product + 1, shifted);
    finish(r, w, limb::add<8>(w, u, product));
}

// The same in 64-bit limbs. u: 5 limbs, the folded [u] above; u[4] = u1 <= c.
__device__ __forceinline__ void finish64(uint64_t* r, uint64_t* u) {
    VERIFY(u[4] <= COMPLEMENT);
    const uint64_t w1 = limb64::add_two(u, u[4] * COMPLEMENT, limb64::high_product(u[4], COMPLEMENT));
    uint64_t sum[4];
    UNROLL
    for (int i = 0; i < 4; ++i) sum[i] = u[i];
    const bool taken = (limb64::add_two(sum, COMPLEMENT, 0) | w1) != 0;
    UNROLL
    for (int i = 0; i < 4; ++i) r[i] = taken ? sum[i] : u[i];
}

}  // namespace fold977
