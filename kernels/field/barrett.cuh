// Products and remainders modulo any m >= 1 given at run time, by a precomputed reciprocal (Barrett 1986; the quotient
// estimate is that of Moeller and Granlund 2011, "Improved division by invariant integers", over many limbs).
//
// Notation: W = 2^32, B = W^N. m has N limbs, its top limb is not 0. s = leading zeros of the top limb (0..31),
// M = m 2^s, so that B / 2 <= M < B. v = floor((B^2 - 1) / M), the reciprocal is v - B, N limbs. All of it is derived
// in Python (ops/constants.py) and handed over in the kernel's parameter struct.
//
// The estimate. Let 0 <= t < m B, T = t 2^s = x B + y with 0 <= y < B; T < M B gives x < M < B. With
//     q' = x + floor((x (v - B) + y1 (W + v1) W^(N-2)) / B - e),  y1, v1 the top limbs of y, v - B, 0 <= e < N / W,
// what is left out of T v / B^2 = x + (x (v - B) + y + y (v - B) / B) / B is
//     (y - y1 W^(N-1)) / B < 1 / W,
//     (y - y1 W^(N-1)) (v - B) / B^2 < 1 / W,
//     y1 W^(N-1) (v - B - v1 W^(N-1)) / B^2 < 1 / W,
// and e, so that T v / B^2 - q' < 1 + (N + 3) / W before and after the floor. Since v M > B^2 - M - 1,
//     0 <= T / M - T v / B^2 = T (B^2 - v M) / (M B^2) <= T / B^2.
// With Q = floor(t / m) = floor(T / M) and d = T / B^2 + (N + 3) / W, x plus the number under the floor is above
// T / M - d, so
//     0 <= Q - q' <= ceil(d).
//   - both factors below m and s >= 1: T / B^2 < m M / B^2 < 1/2, so d < 1 and Q - q' <= 1: r = t - q' m < 2 m < B.
//   - any t < m B: T / B^2 < 1, so d < 2 and Q - q' <= 2: r = t - q' m < 3 m < 4 B, one more limb.
// q' <= Q < B, so that q' has N limbs. r is formed modulo B (or B W) as t + q' (-m).
#pragma once

#include "limb/limb.cuh"

namespace barrett {

// x of N limbs and the word y1 of the estimate, from t of 2N limbs.
template <int N>
__device__ __forceinline__ uint32_t normalised_top(uint32_t* x, const uint32_t* t, uint32_t s) {
    limb::shift_left<N>(x, t + N, t[N - 1], s);
    return __funnelshift_l(N >= 2 ? t[N >= 2 ? N - 2 : 0] : 0, t[N - 1], s);
}

// [r] = [t] mod m, canonical. t: 2N limbs, [t] <= (m - 1)^2. s >= 1 (m does not fill its top limb). negated = B - m.
template <int N>
__device__ __forceinline__ void reduce_product(uint32_t* r, const uint32_t* t, const uint32_t* m,
                                               const uint32_t* negated, const uint32_t* reciprocal, uint32_t s) {
    VERIFY(s >= 1 && s < 32 && m[N - 1] >> (31 - s) == 1);
    uint32_t x[N], q[N], rest[N];
    const uint32_t y1 = normalised_top<N>(x, t, s);
    limb::estimate_quotient<N>(q, x, reciprocal, y1);
    limb::copy<N>(rest, t);
    limb::low_multiply_add<N, N>(rest, q, negated);
    limb::subtract_once<N>(rest, 0, m);
    VERIFY(limb::less<N>(rest, m));
    limb::copy<N>(r, rest);
}

// [r] = [t] mod m, canonical, for any t of 2N limbs with [t] < m B. negated: N + 1 limbs, B W - m. s >= 0.
// The second subtraction is about never needed where t is a product of reduced factors.
template <int N>
__device__ __forceinline__ void reduce(uint32_t* r, const uint32_t* t, const uint32_t* m, const uint32_t* negated,
                                       const uint32_t* reciprocal, uint32_t s) {
    VERIFY(s < 32 && m[N - 1] >> (31 - s) == 1 && limb::less<N>(t + N, m));
    uint32_t x[N], q[N], rest[N + 1], difference[N + 1], modulus[N + 1];
    const uint32_t y1 = normalised_top<N>(x, t, s);
    limb::estimate_quotient<N>(q, x, reciprocal, y1);
    limb::copy<N + 1>(rest, t);
    limb::low_multiply_add<N + 1, N>(rest, q, negated);
    limb::copy<N>(modulus, m);
    modulus[N] = 0;
    limb::select<N + 1>(rest, limb::subtract<N + 1>(difference, rest, modulus), rest, difference);
    if (rest[N] != 0 || rest[N - 1] >= m[N - 1]) limb::subtract_once<N>(rest, rest[N], m);
    VERIFY(limb::less<N>(rest, m));
    limb::copy<N>(r, rest);
}

// [r] = [a][b] mod m, canonical, for [a], [b] < m. FULL: m fills its top limb (s = 0), and negated has N + 1 limbs.
template <int N, bool FULL>
__device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b, const uint32_t* m,
                                         const uint32_t* negated, const uint32_t* reciprocal, uint32_t s) {
    uint32_t t[2 * N];
    limb::wide_product<N>(t, a, b);
    if constexpr (FULL) {
        reduce<N>(r, t, m, negated, reciprocal, 0);
    } else {
        reduce_product<N>(r, t, m, negated, reciprocal, s);
    }
}

// As multiply, for a = b.
template <int N, bool FULL>
__device__ __forceinline__ void square(uint32_t* r, const uint32_t* a, const uint32_t* m, const uint32_t* negated,
                                       const uint32_t* reciprocal, uint32_t s) {
    uint32_t t[2 * N];
    limb::wide_square<N>(t, a);
    if constexpr (FULL) {
        reduce<N>(r, t, m, negated, reciprocal, 0);
    } else {
        reduce_product<N>(r, t, m, negated, reciprocal, s);
    }
}

// [r] = [a] mod m for any a of E >= N limbs: E / N reductions (rounded up), from the top down. negated: N + 1 limbs.
template <int N, int E, int AT = (E - 1) / N>
__device__ __forceinline__ void reduce_element(uint32_t* r, const uint32_t* a, const uint32_t* m,
                                               const uint32_t* negated, const uint32_t* reciprocal, uint32_t s) {
    uint32_t t[2 * N];
    UNROLL
    for (int i = 0; i < N; ++i) t[i] = AT * N + i < E ? a[AT * N + i < E ? AT * N + i : 0] : 0;
    UNROLL
    for (int i = 0; i < N; ++i) t[N + i] = AT == (E - 1) / N ? 0 : r[i];
    reduce<N>(r, t, m, negated, reciprocal, s);
    if constexpr (AT > 0) reduce_element<N, E, AT - 1>(r, a, m, negated, reciprocal, s);
}

// --- one reducer for every modulus of up to N limbs ------------------------------------------------------------------
//
// M = m 2^s with 0 <= s < 32 N leading zeros in all; t mod m = ((t 2^s) mod M) / 2^s.

// [r] = [t] mod m for t of 2N limbs with [t] < m B. normalised = M (N limbs), reciprocal = floor((B^2 - 1) / M) - B.
template <int N>
__device__ __forceinline__ void reduce_any(uint32_t* r, const uint32_t* t, const uint32_t* normalised,
                                           const uint32_t* reciprocal, uint32_t s) {
    VERIFY(s < 32 * N && normalised[N - 1] >> 31 == 1);
    uint32_t shifted[2 * N], negated[N + 1], zero[N + 1] = {}, rest[N];
    limb::barrel_left<2 * N>(shifted, t, s);
    negated[N] = -limb::subtract<N>(negated, zero, normalised);
    reduce<N>(rest, shifted, normalised, negated, reciprocal, 0);
    limb::barrel_right<N>(r, rest, s);
}

// [r] = [a] mod m for any a of N limbs.
template <int N>
__device__ __forceinline__ void reduce_element_any(uint32_t* r, const uint32_t* a, const uint32_t* normalised,
                                                   const uint32_t* reciprocal, uint32_t s) {
    uint32_t t[2 * N] = {};
    limb::copy<N>(t, a);
    reduce_any<N>(r, t, normalised, reciprocal, s);
}

}  // namespace barrett
