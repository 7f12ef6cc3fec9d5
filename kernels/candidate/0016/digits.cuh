// Signed digits of scalars: s = sum of d_w 2^(c w) with -(2^(c-1) - 1) <= d_w <= 2^(c-1).
//
// All digits of a scalar come from one addition: with H = 2^(c-1) - 1 and O = sum over the windows of H 2^(c w), the bits of
// window w of s + O are d_w + H. The windows hold one bit more than the order: then s < 2^(c W - 1) and O < 2^(c W - 1),
// so that the sum has no bit above them, and no carry is lost whatever c is. Halves (halves.cuh) may be negative: their
// windows are as many as keep s + O within them for either sign.
#pragma once

#include "field/mont.cuh"

namespace digits {

constexpr int SCALAR_WORDS = 8;
constexpr int WORDS = SCALAR_WORDS + 2;  // of s + O: up to 257 + c bits

// r = s mod m for any s; m odd, of up to 8 limbs; r2, n0: field/mont.cuh's for R = 2^256.
__device__ __forceinline__ void reduce(uint32_t* r, const uint32_t* s, const uint32_t* m, const uint32_t* r2, uint32_t n0) {
    limb::copy<SCALAR_WORDS>(r, s);
    if (!limb::less<SCALAR_WORDS>(s, m)) {
        mont::enter<SCALAR_WORDS>(r, r, r2, m, n0);
        mont::leave<SCALAR_WORDS>(r, r, m, n0);
    }
}

// sum = s + offset, s of N limbs, which are in two's complement where it is SIGNED. offset: O, of WORDS limbs.
template <int N, bool SIGNED>
__device__ __forceinline__ void add_offset(uint32_t* sum, const uint32_t* s, const uint32_t* offset) {
    uint32_t extended[WORDS];
    limb::set_word<WORDS>(extended, 0);
    if (SIGNED && s[N - 1] >> 31) {
        UNROLL
        for (int i = 0; i < WORDS; ++i) extended[i] = 0xFFFFFFFFu;
    }
    limb::copy<N>(extended, s);
    limb::add<WORDS>(sum, extended, offset);
}

// The c bits of a window from bit `at` on, 1 <= c < 32, at < 32 WORDS. Loops over all words, so that they stay registers.
__device__ __forceinline__ uint32_t window(const uint32_t* sum, uint32_t at, uint32_t c) {
    uint32_t low = 0, high = 0;
    UNROLL
    for (int i = 0; i < WORDS; ++i) {
        low = i == int(at / 32) ? sum[i] : low;
        high = i == int(at / 32) + 1 ? sum[i] : high;
    }
    return __funnelshift_r(low, high, at % 32) & ((1u << c) - 1);
}

}  // namespace digits
