// Products modulo m = 2^256 - c, 1 <= c < 2^64, by folding the upper half: 2^256 = c (mod m). W = 2^32, B = 2^256.
//
// Complement<MONIC> is c, from two limbs in the kernel's parameters. MONIC: c = W + low with low < 2^31, as in the
// secp256k1 prime (low = 977); a product by such a c is one row and a shift (plan 0001).
//
//   low(), high()                    the limbs of c
//   fold(u, t)                       [u] = t0 + t1 c, where [t] = t1 B + t0 of 16 limbs; u: 10 limbs, no aliases
//   multiply(r, x)                   [r] = [x] c for x of two limbs, MONIC: [x] <= c; r: 4 limbs, no aliases
#pragma once

#include "limb/limb.cuh"

namespace fold {

constexpr int N = 8;

template <bool MONIC>
struct Complement;

template <>
struct Complement<false> {
    const uint32_t* c;

    __device__ __forceinline__ uint32_t low() const { return c[0]; }
    __device__ __forceinline__ uint32_t high() const { return c[1]; }
    __device__ __forceinline__ void fold(uint32_t* u, const uint32_t* t) const {
        uint32_t upper[N + 2] = {};
        limb::copy<N>(upper, t + N);
        limb::copy<N>(u, t);
        u[N] = u[N + 1] = 0;
        limb::low_multiply_add<N + 2, 2>(u, c, upper);
    }
    __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* x) const { limb::wide_product<2>(r, x, c); }
};

template <>
struct Complement<true> {
    const uint32_t* c;

    __device__ __forceinline__ uint32_t low() const { return c[0]; }
    __device__ __forceinline__ uint32_t high() const { return 1; }
    __device__ __forceinline__ void fold(uint32_t* u, const uint32_t* t) const {
        limb::monic_multiply_add<N>(u, t, t + N, low());
    }
    // x = x0 + x1 W with x1 <= 1:  x c = x0 low + (x0 + x1 low) W + x1 W^2. Where x1 = 1, x0 <= low, so that
    // floor(x0 low / W) + low <= low^2 / W + low < 2^30 + 2^31 is one word.
    __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* x) const {
        VERIFY(x[1] == 0 || (x[1] == 1 && x[0] <= low()));
        const uint32_t shifted[2] = {x[0], 0};
        r[0] = x[0] * low();
        r[1] = __umulhi(x[0], low()) + x[1] * low();
        r[2] = x[1];
        r[3] = 0;
        limb::add<2>(r + 1, r + 1, shifted);
    }
};

// [r] = [t] mod m, canonical, for any t of 16 limbs.
//
//   t = t1 B + t0                     t0, t1 < B
//   u = t0 + t1 c                     <= (B - 1)(1 + c): u = u1 B + u0 with u1 <= c
//   w = u0 + u1 c                     u1 c < 2^128: w = w1 B + w0, and w1 = 1 only if w0 < 2^128
//   w - w1 m = w0 + w1 c < 2^128 + 2^64 where w1 = 1: below m, and nothing leaves 256 bits. It is the new w0 that c is
//                                     added to: u0 + c would lose u1 c
//   w0 < B < 2 m where w1 = 0: m is subtracted, that is c added modulo B, exactly if w0 + c >= B
template <bool MONIC>
__device__ __forceinline__ void reduce(uint32_t* r, const uint32_t* t, const Complement<MONIC>& c) {
    uint32_t u[N + 2], product[N] = {}, addend[N] = {c.low(), c.high()}, w[N], sum[N];
    c.fold(u, t);
    VERIFY(!limb::less<2>(addend, u + N));
    c.multiply(product, u + N);
    const uint32_t w1 = limb::add<N>(w, u, product);
    const uint32_t over = limb::add<N>(sum, w, addend);
    limb::select<N>(r, (w1 | over) != 0, sum, w);
}

// [r] = [a][b] mod m, canonical, for any a, b of 8 limbs.
template <bool MONIC>
__device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b, const Complement<MONIC>& c) {
    uint32_t t[2 * N];
    limb::wide_product<N>(t, a, b);
    reduce(r, t, c);
}

}  // namespace fold
