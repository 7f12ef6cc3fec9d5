// A batch of 30 half-delta divsteps as one 2x2 matrix, from the low bits of f and g alone.
//
// Definition (Bernstein, Yang 2019, "Fast constant-time gcd computation and modular inversion", section 8; here delta
// starts at 1/2 instead of 1), for odd f:
//
//   divstep(delta, f, g) = (1 - delta, g, (g - f)/2)            if delta > 0 and g is odd ("swap")
//                          (1 + delta, f, (g + (g mod 2) f)/2)  otherwise
//
// The kernels keep y = -2 delta, an odd integer: y starts at -1, a swap needs y < 0, and with sign = -1 in a swap and 1
// otherwise both cases are y = sign * y - 2 and, for odd g, g = (g + sign * f)/2.
// ops/reference/safegcd.py runs the same in Python and gives the reasons.
#pragma once

#include "base/platform.cuh"
#include "field/signed30.cuh"

namespace safegcd {

// divstep(y, f, g, f_row, g_row), of safegcd_ptx.cuh or its twin: one divstep. f odd; f and g valid mod 2^k, k >= 1, and then mod
// 2^(k-1). Rows: g_row = g_row + sign * f_row where g is odd, f_row = the old g_row in a swap. The step halves g but not
// its row: the caller doubles f_row before the next step instead, so that rows stay integers.

constexpr int DIVSTEPS = 30;          // divsteps a batch
constexpr int PACKED_DIVSTEPS = 15;   // divsteps after which a row still fits one word
constexpr int32_t INITIAL_Y = -1;     // delta = 1/2

static_assert(DIVSTEPS == 2 * PACKED_DIVSTEPS, "divsteps30 runs two packed halves");

// 2^k times what k divsteps do: (f, g) afterwards = (u f + v g, q f + r g) / 2^k.
// |u| + |v| <= 2^k, |q| + |r| <= 2^k, |u r - v q| = 2^k.
struct Transition {
    int32_t u, v, q, r;
};

// A row's coefficients a, b of f and g as one word a + 2^16 b mod 2^32: a divstep is linear in the rows, so that both
// coefficients go through one instruction. Unpacking is exact for a and b in [-2^15, 2^15).
__device__ __forceinline__ int32_t packed_low(uint32_t row) { return static_cast<int16_t>(row); }
__device__ __forceinline__ int32_t packed_high(uint32_t row) { return static_cast<int32_t>(row + 0x8000u) >> 16; }

// PACKED_DIVSTEPS divsteps. f odd; f and g valid mod 2^k, k >= 15, and then mod 2^(k-15).
//
// The rows fit: before the last step both have |a| + |b| <= 2^14, hence f's row too after it (its last doubling is left
// to the unpacking), and g's row has |q| + |r| <= 2^15 with an odd r (it starts as 1, and f's row is even from the second
// step on), so that neither is 2^15.
__device__ __forceinline__ Transition packed_divsteps(int32_t& y, uint32_t& f, uint32_t& g) {
    uint32_t f_row = 1, g_row = 1u << 16;
    divstep(y, f, g, f_row, g_row);
#pragma unroll
    for (int i = 1; i < PACKED_DIVSTEPS; ++i) {
        f_row <<= 1;
        divstep(y, f, g, f_row, g_row);
    }
    return {2 * packed_low(f_row), 2 * packed_high(f_row), packed_low(g_row), packed_high(g_row)};
}

// DIVSTEPS divsteps. f, g: residues mod 2^30 (higher bits are ignored), f odd.
__device__ __forceinline__ Transition divsteps30(int32_t& y, uint32_t f, uint32_t g) {
    VERIFY(f & 1);
    VERIFY(y & 1);
    const Transition a = packed_divsteps(y, f, g);
    const Transition b = packed_divsteps(y, f, g);
    const Transition t = {b.u * a.u + b.v * a.q, b.u * a.v + b.v * a.r, b.q * a.u + b.r * a.q, b.q * a.v + b.r * a.r};
    VERIFY(static_cast<int64_t>(t.u) * t.r - static_cast<int64_t>(t.v) * t.q == 1 << DIVSTEPS ||
           static_cast<int64_t>(t.u) * t.r - static_cast<int64_t>(t.v) * t.q == -(1 << DIVSTEPS));
    return t;
}

}  // namespace safegcd
