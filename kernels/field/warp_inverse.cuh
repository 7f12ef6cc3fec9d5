// Modular inversion on one warp, for the latency of a single inversion: limbs over lanes, several halvings a table lookup.
// Explained and bounded in runnable Python in ops/reference/warp_inverse.py; the functions below have the same names there.
//
// Sources: D. J. Bernstein, B.-Y. Yang, "Fast constant-time gcd computation and modular inversion", 2019, sections 9 and
// 10 (transition matrices, jumps by the low bits alone). D. Stehle, P. Zimmermann, "A binary recursive gcd algorithm",
// 2004 (a division from the low end needs no record of the sizes). Lagrange-Gauss reduction of plane lattices.
//
// Where divsteps carry a delta from step to step, a jump here depends on -g/f mod 2^STEPS alone: its rows are a short
// basis of the pairs (a, b) with a f + b g = 0 mod 2^STEPS. So there is one table instead of one for each delta, at 3 % more
// halvings than divsteps with their delta need on average. The price is a long worst case (ops/reference/warp_inverse.py, section 4).
//
// Invariants, for an odd modulus m and any x of 256 bits, K = STEPS LOOKUPS:
//   f is odd,  d x = 2^K f (mod m),  e x = 2^K g (mod m),  gcd(f, g) = gcd(m, x).
// The factor 2^K leaves with the last reduction, which brings d from |d| < 2^K m into (-m, m).
#pragma once

#include "base/platform.cuh"
#include "field/divsteps.cuh"
#include "field/signed30.cuh"

namespace safegcd {

// STEPS: halvings a lookup. LOOKUPS: lookups a batch. ENTRY_BYTES: 8 (coefficients of 16 bits) or 16 (of 32 bits).
// NORMALISE_EVERY: batches after which the limbs are carried; (1.5 * 64 + 2) 2^24 < 2^31 (tests take fewer).
template <int STEPS_, int LOOKUPS_, int ENTRY_BYTES_, int NORMALISE_EVERY_ = 64>
struct WarpTable {
    static constexpr int STEPS = STEPS_, LOOKUPS = LOOKUPS_, ENTRY_BYTES = ENTRY_BYTES_;
    static constexpr int NORMALISE_EVERY = NORMALISE_EVERY_;
    static constexpr int BATCH = STEPS * LOOKUPS;
    static constexpr int BYTES = ENTRY_BYTES << STEPS;
    static constexpr int32_t MASK = (1 << BATCH) - 1;
    static_assert(STEPS <= 12, "negated_ratio is right modulo 2^12");
    static_assert(ENTRY_BYTES == 8 || ENTRY_BYTES == 16, "see WarpEntry");
    // 256 bits, the factor 2^BATCH and a sign fit 16 limbs; a word of the result lies in three limbs.
    static_assert(BATCH >= 18 && BATCH <= 24, "limbs of BATCH bits grow for 64 batches within 32 bits");
};

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARP_LIMBS = 16;  // lanes 0..15 hold f and g, lanes 16..31 hold d and e

// A lane's limbs: first: of f (or d), second: of g (or e), both at weight 2^(BATCH (lane mod 16)). They are signed and not
// normalised: below 2^BATCH + 2^(31 - BATCH) after carry_once, and a batch adds less than 1.5 2^BATCH.
struct WarpLimbs {
    int32_t first, second;
};

// --- jumps ---

// Row-major 2x2 matrix of the entry `index`: (f, g) = (u f + v g, q f + r g) / 2^STEPS. |u| + |v|, |q| + |r| <= 2^STEPS.
template <class Table>
__device__ __forceinline__ Transition lookup(const void* table, uint32_t index) {
    if constexpr (Table::ENTRY_BYTES == 16) {
        const uint4 entry = static_cast<const uint4*>(table)[index];
        return {static_cast<int32_t>(entry.x), static_cast<int32_t>(entry.y), static_cast<int32_t>(entry.z), static_cast<int32_t>(entry.w)};
    } else {
        const uint2 entry = static_cast<const uint2*>(table)[index];
        return {static_cast<int16_t>(entry.x), static_cast<int32_t>(entry.x) >> 16, static_cast<int16_t>(entry.y),
                static_cast<int32_t>(entry.y) >> 16};
    }
}

// -g/f mod 2^12 in the low bits, for odd f. With s = f^2 and t = 1 - s, which 8 divides: 1/s = (1 + t)(1 + t^2) mod 2^12, and
//   -g/f = -g f / s = ((s - 2) g f) (s (s - 2) + 2) (mod 2^12):
// three multiplications deep.
__device__ __forceinline__ uint32_t negated_ratio(uint32_t f, uint32_t g) {
    VERIFY(f & 1);
    const uint32_t square = f * f, less = f * f - 2, product = f * g;
    const uint32_t ratio = (less * product) * (square * less + 2);
    VERIFY(((ratio * f + g) & 0xfff) == 0);
    return ratio;
}

// LOOKUPS jumps from the low BATCH bits of f and g as one matrix, |u| + |v|, |q| + |r| <= 2^BATCH. f odd.
template <class Table>
__device__ __forceinline__ Transition jump(const void* table, uint32_t f, uint32_t g) {
    constexpr uint32_t INDEX_MASK = (1u << Table::STEPS) - 1;
    Transition t = lookup<Table>(table, negated_ratio(f, g) & INDEX_MASK);
    Transition all = t;
    UNROLL
    for (int i = 1; i < Table::LOOKUPS; ++i) {
        const uint32_t next_f = t.u * f + t.v * g, next_g = t.q * f + t.r * g;
        VERIFY(((next_f | next_g) & INDEX_MASK) == 0);
        f = next_f >> Table::STEPS;
        g = next_g >> Table::STEPS;
        t = lookup<Table>(table, negated_ratio(f, g) & INDEX_MASK);
        all = {t.u * all.u + t.v * all.q, t.u * all.v + t.v * all.r, t.q * all.u + t.r * all.q, t.q * all.v + t.r * all.r};
    }
    return all;
}

// --- long numbers over the lanes ---

// What every lane knows of f and g: their limbs 0 and 1, as lanes 0 and 1 hold them.
struct LowLimbs {
    int32_t f0, g0, f1, g1;
};

// This lane's part in the arithmetic. limb: lane mod 16. modulus: m's limb in lanes 16..31, 0 in lanes 0..15.
// negated_inverse: -m^-1 mod 2^BATCH, shifted to the top of its word.
struct WarpLane {
    int32_t limb, modulus;
    uint32_t negated_inverse;
};

// The sum of a 64-bit part in each lane (weight 2^(BATCH limb)) and of a multiple of m that makes it divisible, over
// 2^BATCH: new limb i = high part of i + low part of i + 1. Limb 0's low part is 0 by then, so that limb 15 may take it
// for the missing limb 16. low_of_m: the low word of the part at weight 1 (0 for f and g).
template <class Table>
__device__ __forceinline__ int32_t divide(int64_t part, const WarpLane& lane) {
    const uint32_t lowest = __shfl_sync(ALL_LANES, static_cast<uint32_t>(part), 16);
    const int32_t multiple = static_cast<int32_t>(lowest * lane.negated_inverse) >> (32 - Table::BATCH);
    part = multiply_add(part, multiple, lane.modulus);
    const int32_t low = static_cast<int32_t>(part) & Table::MASK;
    VERIFY(lane.limb != 0 || low == 0);
    const int64_t high = part >> Table::BATCH;
    const int32_t sum = static_cast<int32_t>(high) + __shfl_sync(ALL_LANES, low, lane.limb + 1, WARP_LIMBS);
    VERIFY(high + Table::MASK < int64_t(1) << 31 && high >= -(int64_t(1) << 31));
    return sum;
}

template <class Table>
__device__ __forceinline__ WarpLimbs update(const WarpLimbs& a, const Transition& t, const WarpLane& lane) {
    const int64_t first = multiply_add(multiply_add(0, t.u, a.first), t.v, a.second);
    const int64_t second = multiply_add(multiply_add(0, t.q, a.first), t.r, a.second);
    return {divide<Table>(first, lane), divide<Table>(second, lane)};
}

// Limb 0 of f and g after a batch: lane 0's sum, in every lane and without a shuffle.
template <class Table>
__device__ __forceinline__ void update_lowest(LowLimbs& low, const Transition& t) {
    const int64_t f = multiply_add(multiply_add(0, t.u, low.f0), t.v, low.g0);
    const int64_t g = multiply_add(multiply_add(0, t.q, low.f0), t.r, low.g0);
    VERIFY(((f | g) & Table::MASK) == 0);
    const uint32_t above_f = static_cast<uint32_t>(t.u) * low.f1 + static_cast<uint32_t>(t.v) * low.g1;
    const uint32_t above_g = static_cast<uint32_t>(t.q) * low.f1 + static_cast<uint32_t>(t.r) * low.g1;
    low.f0 = static_cast<int32_t>(f >> Table::BATCH) + static_cast<int32_t>(above_f & Table::MASK);
    low.g0 = static_cast<int32_t>(g >> Table::BATCH) + static_cast<int32_t>(above_g & Table::MASK);
}

__device__ __forceinline__ void fetch_above(LowLimbs& low, const WarpLimbs& a) {
    low.f1 = __shfl_sync(ALL_LANES, a.first, 1);
    low.g1 = __shfl_sync(ALL_LANES, a.second, 1);
    VERIFY(__shfl_sync(ALL_LANES, a.first, 0) == low.f0 && __shfl_sync(ALL_LANES, a.second, 0) == low.g0);
}

// The same value with every high part carried one limb up. Limbs 0..14 leave in [-2^(31 - BATCH), 2^BATCH + 2^(31 - BATCH)).
template <class Table>
__device__ __forceinline__ int32_t carry_once(int32_t limb, const WarpLane& lane) {
    const bool top = lane.limb == WARP_LIMBS - 1;
    const int32_t high = top ? 0 : limb >> Table::BATCH;
    const int32_t below = __shfl_sync(ALL_LANES, high, lane.limb - 1, WARP_LIMBS);
    return (top ? limb : limb & Table::MASK) + below;
}

// Limbs 0..14 in [0, 2^BATCH), limb 15 = 0 or -1 by the sign, for |value| < 2^(15 BATCH). Both halves of the warp alike.
//
// After carry_once a representation of 0 is added (2^BATCH at limb 0, 2^BATCH - 1 at 1..14, -1 at the top), so that the
// next carry leaves limbs in [0, 2^BATCH + 1] with carries of 0 or 1, which the sum of two lane masks resolves at once.
template <class Table>
__device__ __forceinline__ int32_t resolve(int32_t limb, const WarpLane& lane) {
    const bool top = lane.limb == WARP_LIMBS - 1;
    limb = carry_once<Table>(limb, lane) + (top ? -1 : lane.limb == 0 ? Table::MASK + 1 : Table::MASK);
    VERIFY(top || limb >= 0);
    limb = carry_once<Table>(limb, lane);
    VERIFY(top || (limb >= 0 && limb <= Table::MASK + 2));
    const uint32_t generate = __ballot_sync(ALL_LANES, !top && limb > Table::MASK);
    const uint32_t propagate = __ballot_sync(ALL_LANES, !top && limb == Table::MASK);
    const uint32_t carries = ((generate | propagate) + generate) ^ propagate;
    limb += carries >> (threadIdx.x % 32) & 1;
    limb = top ? limb : limb & Table::MASK;
    VERIFY(!top || limb == 0 || limb == -1);
    return limb;
}

// --- the ends of a run ---

// The limb at bit BATCH limb of eight 32-bit words.
template <class Table>
__device__ __forceinline__ int32_t limb_of(const uint32_t* words, int32_t limb) {
    const int32_t bit = Table::BATCH * limb, at = bit / 32, shift = bit % 32;
    const uint32_t low = at < 8 ? words[at & 7] : 0, high = at < 7 ? words[(at + 1) & 7] : 0;
    return static_cast<int32_t>(__funnelshift_r(low, high, shift)) & Table::MASK;
}

// Word lane (lanes 0..7) of the number in lanes 16..31, whose limbs are resolved.
template <class Table>
__device__ __forceinline__ uint32_t word_of(int32_t limb) {
    const int32_t bit = 32 * static_cast<int32_t>(threadIdx.x % 8), at = bit / Table::BATCH, shift = bit % Table::BATCH;
    uint32_t word = static_cast<uint32_t>(__shfl_sync(ALL_LANES, limb, 16 + at)) >> shift;
    word |= static_cast<uint32_t>(__shfl_sync(ALL_LANES, limb, 17 + at)) << (Table::BATCH - shift);
    // A shift by 32 gives 0 in neither language: the third limb is shifted in two parts.
    if constexpr (Table::BATCH < 24)
        word |= (static_cast<uint32_t>(__shfl_sync(ALL_LANES, limb, 18 + at)) << (Table::BATCH - shift)) << Table::BATCH;
    return word;
}

// If f = sign: word = (word of d sign / 2^BATCH mod m, canonical) and true; else false. f = sign mod 2^BATCH.
//
// f and d go through the same instructions. (sign f - 1) / 2^BATCH is exact, and 0 just when f = sign.
// (sign d + k m) / 2^BATCH has k in [-2^(BATCH-1), 2^(BATCH-1)): it lies in (-m, m) for m >= 3 and |d| <= 2^BATCH + 2^16 m.
template <class Table>
__device__ __forceinline__ bool finish(uint32_t& word, const WarpLimbs& a, int32_t sign, const WarpLane& lane) {
    const bool of_f = threadIdx.x % 32 < 16;
    const int64_t part = multiply_add(of_f && lane.limb == 0 ? -1 : 0, sign, a.first);
    const int32_t limb = divide<Table>(part, lane);
    // Independent of each other: the canonical form is the one of the two that is not negative.
    const int32_t plain = resolve<Table>(limb, lane);
    const int32_t raised = resolve<Table>(limb + lane.modulus, lane);
    const uint32_t negative = __ballot_sync(ALL_LANES, plain < 0), nonzero = __ballot_sync(ALL_LANES, plain != 0);
    word = word_of<Table>(negative >> 31 ? raised : plain);
    return (nonzero & 0xffff) == 0;
}

// --- inversion ---

// words = x^-1 mod m in [0, m) and true, or false where gcd(x, m) != 1 (words are then unspecified). m = 1: 0 and true.
//
// Called by all 32 lanes of one warp, converged, with the same arguments; the answer is valid in all lanes, words after a
// __syncwarp(). words: any x of 8 words, in shared or global memory, visible to the warp (no padding needed).
// modulus: m, odd, 8 words, likewise. negated_inverse: -m^-1 mod 2^32. table: make_table() of ops/reference/warp_inverse.py in shared
// memory, aligned to ENTRY_BYTES (128 for speed). Variable time.
template <class Table>
__device__ __forceinline__ bool warp_inverse(uint32_t* words, const uint32_t* modulus, uint32_t negated_inverse, const void* table) {
    VERIFY(modulus[0] * negated_inverse + 1 == 0);
    const int32_t index = static_cast<int32_t>(threadIdx.x % 32);
    const bool of_f = index < 16;
    WarpLane lane = {index % WARP_LIMBS, limb_of<Table>(modulus, index % WARP_LIMBS), negated_inverse << (32 - Table::BATCH)};
    WarpLimbs a = {of_f ? lane.modulus : 0, of_f ? limb_of<Table>(words, lane.limb) : lane.limb == 1 ? 1 : 0};
    LowLimbs low = {static_cast<int32_t>(modulus[0]) & Table::MASK, static_cast<int32_t>(words[0]) & Table::MASK, 0, 0};
    lane.modulus = of_f ? 0 : lane.modulus;
    // Every lane has read the words by now: at the end lanes 0..7 write over them. (Their values depend on these reads, but a
    // shuffle orders no memory.)
    __syncwarp(ALL_LANES);
    fetch_above(low, a);
    for (int32_t batch = 1;; ++batch) {
        // f = +-1 or g = 0, modulo 2^BATCH. Most runs come here once; where the exact answer is no, the run goes on.
        if (((low.f0 + 1) & Table::MASK & ~2) == 0 || (low.g0 & Table::MASK) == 0) {
            uint32_t word;
            const int32_t residue = low.f0 & Table::MASK;
            if ((residue == 1 || residue == Table::MASK) && finish<Table>(word, a, residue == 1 ? 1 : -1, lane)) {
                // m = 1 has f = 1 and d = 0 at once.
                if (index < 8) words[index] = word;
                return true;
            }
            if ((__ballot_sync(ALL_LANES, resolve<Table>(a.second, lane) != 0) & 0xffff) == 0) return false;
        }
        const Transition t = jump<Table>(table, low.f0, low.g0);
        update_lowest<Table>(low, t);
        a = update<Table>(a, t, lane);
        if (batch % Table::NORMALISE_EVERY == 0) {
            a = {carry_once<Table>(a.first, lane), carry_once<Table>(a.second, lane)};
            low.f0 = __shfl_sync(ALL_LANES, a.first, 0);
            low.g0 = __shfl_sync(ALL_LANES, a.second, 0);
        }
        fetch_above(low, a);
    }
}

}  // namespace safegcd
