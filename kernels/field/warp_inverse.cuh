// Modular inversion on one warp, for the latency of a single inversion: limbs over lanes, several halvings a table lookup.
// Explained and bounded in runnable Python in ops/reference/warp_inverse.py; the functions below have the same names there.
//
// Sources: D. J. Bernstein, B.-Y. Yang, "Fast constant-time gcd computation and modular inversion", 2019, sections 9 and
// 10 (transition matrices, jumps by the low bits alone). D. Stehle, P. Zimmermann, "A binary recursive gcd algorithm",
// 2004 (a division from the low end needs no record of the sizes). Lagrange-Gauss reduction of plane lattices.
//
// Where divsteps carry a delta from step to step, a jump here depends on -g/f mod 2^STEPS alone: its rows are a short
// basis of the pairs (a, b) with a f + b g = 0 mod 2^STEPS. So there is one table instead of one for each delta, at 3 % more
// halvings than divsteps with their delta need on average. The price is a long worst case (section 4 there).
//
// Invariants, for an odd modulus m and any x of 256 bits:
//   f is odd,  d x = 2^24 f (mod m),  e x = 2^24 g (mod m),  gcd(f, g) = gcd(m, x).
// The factor 2^24 leaves with the last reduction, which brings d from |d| < 2^24 m into (-m, m).
//
// A warp alone waits for its own results, so the order of a batch is that of the shortest chain (section 7 there):
//   - The next jump needs limb 0 of f and g alone, which every lane computes: it begins before the long numbers are updated.
//   - Every lane knows limb 0 of d and e from the batch before, so that the multiple of m does not wait for a shuffle.
//   - An end is looked for every TURN batches, behind the jump that follows, and the branch does not hold that jump up.
//   - An entry's offset in bytes comes out of the ratio's multiplications, without a shift behind them.
#pragma once

#include "base/platform.cuh"
#include "field/divsteps.cuh"
#include "field/signed30.cuh"

#ifdef __CUDACC_RTC__
#include "field/warp_inverse_ptx.cuh"
#else
#include "field/warp_inverse_portable.cuh"
#endif

namespace safegcd {

constexpr int LIMB24_BITS = 24;  // bits of a limb, and halvings of a batch
constexpr int32_t LIMB24_MASK = (1 << LIMB24_BITS) - 1;
constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARP_LIMBS = 16;       // lanes 0..15 hold f and g, lanes 16..31 hold d and e
constexpr int NORMALISE_EVERY = 64;  // batches after which the limbs are carried: (1.5 * 64 + 2) 2^24 < 2^31
constexpr int TURN = 2;              // batches between two looks for the end

static_assert(NORMALISE_EVERY % TURN == 0, "limbs are carried between turns");
// 256 bits, the factor 2^24 and a sign fit 16 limbs; a word of the result lies in two of them.
static_assert(256 + LIMB24_BITS < LIMB24_BITS * WARP_LIMBS && 2 * LIMB24_BITS - 16 >= 32, "see limb_of and word_of");

// STEPS: halvings a lookup. Entries of four coefficients of 16 bits: 2 KB for 8, 32 KB for 12.
template <int STEPS_>
struct WarpTable {
    static constexpr int STEPS = STEPS_, LOOKUPS = LIMB24_BITS / STEPS;
    static constexpr int ENTRY_BYTES = 8, BYTES = ENTRY_BYTES << STEPS;
    static_assert(STEPS * LOOKUPS == LIMB24_BITS, "a batch is a number of lookups");
    static_assert(STEPS <= 12, "entry_offset is right modulo 2^12");
};

// A lane's limbs: first: of f (or d), second: of g (or e), both at weight 2^(24 (lane mod 16)). They are signed and not
// normalised: below 2^24 + 2^7 after carry_once, and a batch adds less than 1.5 2^24.
struct WarpLimbs {
    int32_t first, second;
};

// --- jumps ---

// ENTRY_BYTES (-g/f mod 2^STEPS), for odd f; scaled_f = ENTRY_BYTES f mod BYTES. With s = f^2 and t = 1 - s, which 8 divides:
// 1/s = (1 + t)(1 + t^2) mod 2^12, and
//   -g/f = -g f / s = ((s - 2) g f) (s (s - 2) + 2) (mod 2^12):
// three multiplications deep.
template <class Table>
__device__ __forceinline__ uint32_t entry_offset(uint32_t f, uint32_t scaled_f, uint32_t g) {
    constexpr uint32_t SIZE = Table::ENTRY_BYTES;
    VERIFY((f & 1) && ((f * SIZE - scaled_f) & (Table::BYTES - 1)) == 0);
    const uint32_t less = square_less_two(f), product = f * g, scaled_square = scaled_f * f;
    const uint32_t ratio = (less * product) * (scaled_square * less + 2 * SIZE);
    const uint32_t offset = ratio & (Table::BYTES - SIZE);
    VERIFY(((offset / SIZE * f + g) & ((1u << Table::STEPS) - 1)) == 0);
    return offset;
}

// Row-major 2x2 matrix of an entry: (f, g) = (u f + v g, q f + r g) / 2^STEPS. |u| + |v|, |q| + |r| <= 2^STEPS.
__device__ __forceinline__ Transition lookup(const void* table, uint32_t offset) {
    const uint2 entry = *reinterpret_cast<const uint2*>(static_cast<const char*>(table) + offset);
    return {static_cast<int16_t>(entry.x), static_cast<int32_t>(entry.x) >> 16, static_cast<int16_t>(entry.y),
            static_cast<int32_t>(entry.y) >> 16};
}

// LOOKUPS jumps from the low 24 bits of f and g as one matrix, |u| + |v|, |q| + |r| <= 2^24. f odd.
template <class Table>
__device__ __forceinline__ Transition jump(const void* table, uint32_t f, uint32_t g) {
    constexpr int SCALE = 3;
    static_assert(1 << SCALE == Table::ENTRY_BYTES, "shifts instead of multiplications");
    Transition t = lookup(table, entry_offset<Table>(f, f << SCALE, g));
    Transition all = t;
    UNROLL
    for (int i = 1; i < Table::LOOKUPS; ++i) {
        const uint32_t next_f = t.u * f + t.v * g, next_g = t.q * f + t.r * g;
        VERIFY(((next_f | next_g) & ((1u << Table::STEPS) - 1)) == 0);
        f = next_f >> Table::STEPS;
        g = next_g >> Table::STEPS;
        t = lookup(table, entry_offset<Table>(f, next_f >> (Table::STEPS - SCALE), g));
        all = {t.u * all.u + t.v * all.q, t.u * all.v + t.v * all.r, t.q * all.u + t.r * all.q, t.q * all.v + t.r * all.r};
    }
    return all;
}

// --- long numbers over the lanes ---

// What every lane knows: limbs 0 and 1 of f and g, and limb 0 of d and e, as lanes 0, 1 and 16 hold them.
struct LowLimbs {
    int32_t f0, g0, f1, g1, d0, e0;
};

// This lane's part in the arithmetic. limb: lane mod 16. modulus: m's limb in lanes 16..31, 0 in lanes 0..15.
// negated_inverse: -m^-1 mod 2^24, shifted to the top of its word.
struct WarpLane {
    int32_t limb, modulus;
    uint32_t negated_inverse;
};

// The sum of a 64-bit part in each lane (weight 2^(24 limb)) and of a multiple of m that makes it divisible, over 2^24: new
// limb i = high part of i + low part of i + 1. Limb 0's low part is 0 by then, so that limb 15 may take it for the missing
// limb 16. lowest: in every lane, the low word of the part at weight 1 of the number in lanes 16..31.
__device__ __forceinline__ int32_t divide(int64_t part, uint32_t lowest, const WarpLane& lane) {
    VERIFY(__shfl_sync(ALL_LANES, static_cast<uint32_t>(part), 16) == lowest);
    const int32_t multiple = static_cast<int32_t>(lowest * lane.negated_inverse) >> (32 - LIMB24_BITS);
    part = multiply_add(part, multiple, lane.modulus);
    const int32_t low = static_cast<int32_t>(part) & LIMB24_MASK;
    VERIFY(lane.limb != 0 || low == 0);
    const int64_t high = part >> LIMB24_BITS;
    VERIFY(high + LIMB24_MASK < int64_t(1) << 31 && high >= -(int64_t(1) << 31));
    return static_cast<int32_t>(high) + __shfl_sync(ALL_LANES, low, lane.limb + 1, WARP_LIMBS);
}

// low: d0 and e0 of the numbers in a.
__device__ __forceinline__ WarpLimbs update(
    const WarpLimbs& a, const LowLimbs& low, const Transition& t, const WarpLane& lane) {
    const int64_t first = multiply_add(multiply_add(0, t.u, a.first), t.v, a.second);
    const int64_t second = multiply_add(multiply_add(0, t.q, a.first), t.r, a.second);
    const uint32_t lowest_first = static_cast<uint32_t>(t.u) * low.d0 + static_cast<uint32_t>(t.v) * low.e0;
    const uint32_t lowest_second = static_cast<uint32_t>(t.q) * low.d0 + static_cast<uint32_t>(t.r) * low.e0;
    return {divide(first, lowest_first, lane), divide(second, lowest_second, lane)};
}

// Limb 0 of f and g after a batch: lane 0's sum, in every lane and without a shuffle.
__device__ __forceinline__ void update_lowest(LowLimbs& low, const Transition& t) {
    const int64_t f = multiply_add(multiply_add(0, t.u, low.f0), t.v, low.g0);
    const int64_t g = multiply_add(multiply_add(0, t.q, low.f0), t.r, low.g0);
    VERIFY(((f | g) & LIMB24_MASK) == 0);
    const uint32_t above_f = static_cast<uint32_t>(t.u) * low.f1 + static_cast<uint32_t>(t.v) * low.g1;
    const uint32_t above_g = static_cast<uint32_t>(t.q) * low.f1 + static_cast<uint32_t>(t.r) * low.g1;
    low.f0 = static_cast<int32_t>(f >> LIMB24_BITS) + static_cast<int32_t>(above_f & LIMB24_MASK);
    low.g0 = static_cast<int32_t>(g >> LIMB24_BITS) + static_cast<int32_t>(above_g & LIMB24_MASK);
}

// All but f0 and g0, which are those of a already.
__device__ __forceinline__ void fetch_low(LowLimbs& low, const WarpLimbs& a) {
    low.f1 = __shfl_sync(ALL_LANES, a.first, 1);
    low.g1 = __shfl_sync(ALL_LANES, a.second, 1);
    VERIFY(__shfl_sync(ALL_LANES, a.first, 0) == low.f0 && __shfl_sync(ALL_LANES, a.second, 0) == low.g0);
    low.d0 = __shfl_sync(ALL_LANES, a.first, 16);
    low.e0 = __shfl_sync(ALL_LANES, a.second, 16);
}

// The same value with every high part carried one limb up. Limbs 0..14 leave in [-2^7, 2^24 + 2^7).
__device__ __forceinline__ int32_t carry_once(int32_t limb, const WarpLane& lane) {
    const bool top = lane.limb == WARP_LIMBS - 1;
    const int32_t high = top ? 0 : limb >> LIMB24_BITS;
    const int32_t below = __shfl_sync(ALL_LANES, high, lane.limb - 1, WARP_LIMBS);
    return (top ? limb : limb & LIMB24_MASK) + below;
}

// Limbs 0..14 in [0, 2^24), limb 15 = 0 or -1 by the sign, for |value| < 2^(24 * 15). Both halves of the warp alike.
//
// After carry_once a representation of 0 is added (2^24 at limb 0, 2^24 - 1 at 1..14, -1 at the top), so that the next
// carry leaves limbs in [0, 2^24 + 1] with carries of 0 or 1, which the sum of two lane masks resolves at once.
__device__ __forceinline__ int32_t resolve(int32_t limb, const WarpLane& lane) {
    const bool top = lane.limb == WARP_LIMBS - 1;
    limb = carry_once(limb, lane) + (top ? -1 : lane.limb == 0 ? LIMB24_MASK + 1 : LIMB24_MASK);
    VERIFY(top || limb >= 0);
    limb = carry_once(limb, lane);
    VERIFY(top || (limb >= 0 && limb <= LIMB24_MASK + 2));
    const uint32_t generate = __ballot_sync(ALL_LANES, !top && limb > LIMB24_MASK);
    const uint32_t propagate = __ballot_sync(ALL_LANES, !top && limb == LIMB24_MASK);
    const uint32_t carries = ((generate | propagate) + generate) ^ propagate;
    limb += carries >> (threadIdx.x % 32) & 1;
    limb = top ? limb : limb & LIMB24_MASK;
    VERIFY(!top || limb == 0 || limb == -1);
    return limb;
}

// --- the ends of a run ---

// The limb at bit 24 limb of eight 32-bit words.
__device__ __forceinline__ int32_t limb_of(const uint32_t* words, int32_t limb) {
    const int32_t bit = LIMB24_BITS * limb, at = bit / 32, shift = bit % 32;
    const uint32_t low = at < 8 ? words[at & 7] : 0, high = at < 7 ? words[(at + 1) & 7] : 0;
    return static_cast<int32_t>(__funnelshift_r(low, high, shift)) & LIMB24_MASK;
}

// Word lane (lanes 0..7) of the number in lanes 16..31, whose limbs are resolved.
__device__ __forceinline__ uint32_t word_of(int32_t limb) {
    const int32_t bit = 32 * static_cast<int32_t>(threadIdx.x % 8), at = bit / LIMB24_BITS, shift = bit % LIMB24_BITS;
    uint32_t word = static_cast<uint32_t>(__shfl_sync(ALL_LANES, limb, 16 + at)) >> shift;
    word |= static_cast<uint32_t>(__shfl_sync(ALL_LANES, limb, 17 + at)) << (LIMB24_BITS - shift);
    return word;
}

// If f = sign: word = (word of d sign / 2^24 mod m, canonical) and true; else false. f = sign mod 2^24. d0: limb 0 of d.
//
// f and d go through the same instructions. (sign f - 1) / 2^24 is exact, and 0 just when f = sign.
// (sign d + k m) / 2^24 has k in [-2^23, 2^23): it lies in (-m, m) for m >= 3 and |d| <= 2^24 + 2^16 m.
__device__ __forceinline__ bool finish(uint32_t& word, const WarpLimbs& a, int32_t d0, int32_t sign, const WarpLane& lane) {
    const bool of_f = threadIdx.x % 32 < 16;
    const int64_t part = multiply_add(of_f && lane.limb == 0 ? -1 : 0, sign, a.first);
    const int32_t limb = divide(part, static_cast<uint32_t>(sign) * d0, lane);
    // Independent of each other: the canonical form is the one of the two that is not negative.
    const int32_t plain = resolve(limb, lane);
    const int32_t raised = resolve(limb + lane.modulus, lane);
    const uint32_t negative = __ballot_sync(ALL_LANES, plain < 0), nonzero = __ballot_sync(ALL_LANES, plain != 0);
    word = word_of(negative >> 31 ? raised : plain);
    return (nonzero & 0xffff) == 0;
}

// f = +-1 or g = 0, modulo 2^24. Most runs find the first such f or g to be an end; where it is none, they go on.
__device__ __forceinline__ bool may_have_ended(const LowLimbs& low) {
    return ((low.f0 + 1) & LIMB24_MASK & ~2) == 0 || (low.g0 & LIMB24_MASK) == 0;
}

// --- inversion ---

// words = x^-1 mod m in [0, m) and true, or false where gcd(x, m) != 1 (words are then unspecified). m = 1: 0 and true.
//
// Called by all 32 lanes of one warp, converged, with the same arguments; the answer is valid in all lanes, words after a
// __syncwarp(). words: any x of 8 words, in shared or global memory, visible to the warp (no padding needed).
// modulus: m, odd, 8 words, likewise. negated_inverse: -m^-1 mod 2^32. table: make_table() of ops/reference/warp_inverse.py
// for Table::STEPS in shared memory, aligned to ENTRY_BYTES (128 for speed), visible to the warp. Variable time.
template <class Table>
__device__ __forceinline__ bool warp_inverse(
    uint32_t* words, const uint32_t* modulus, uint32_t negated_inverse, const void* table) {
    VERIFY(modulus[0] * negated_inverse + 1 == 0);
    const int32_t index = static_cast<int32_t>(threadIdx.x % 32);
    const bool of_f = index < 16;
    WarpLane lane = {index % WARP_LIMBS, limb_of(modulus, index % WARP_LIMBS), negated_inverse << (32 - LIMB24_BITS)};
    WarpLimbs a = {of_f ? lane.modulus : 0, of_f ? limb_of(words, lane.limb) : lane.limb == 1 ? 1 : 0};
    LowLimbs low = {static_cast<int32_t>(modulus[0]) & LIMB24_MASK, static_cast<int32_t>(words[0]) & LIMB24_MASK, 0, 0, 0, 0};
    lane.modulus = of_f ? 0 : lane.modulus;
    // Every lane has read the words by now: at the end lanes 0..7 write over them. (Their values depend on these reads, but a
    // shuffle orders no memory.)
    __syncwarp(ALL_LANES);
    fetch_low(low, a);
    Transition t = jump<Table>(table, low.f0, low.g0);
    bool ended = may_have_ended(low);
    int32_t left = NORMALISE_EVERY;
    // Every lane takes the same branches: they depend on low, ballots and left alone.
    for (;;) {
        while (!ended && left != 0) {
            UNROLL
            for (int i = 0; i < TURN; ++i) {
                update_lowest(low, t);
                const Transition done = t;
                t = jump<Table>(table, low.f0, low.g0);
                a = update(a, low, done, lane);
                fetch_low(low, a);
            }
            ended = may_have_ended(low);
            left -= TURN;
        }
        if (ended) {
            const int32_t residue = low.f0 & LIMB24_MASK;
            uint32_t word;
            if ((residue == 1 || residue == LIMB24_MASK) && finish(word, a, low.d0, residue == 1 ? 1 : -1, lane)) {
                if (index < 8) words[index] = word;
                return true;
            }
            if ((__ballot_sync(ALL_LANES, resolve(a.second, lane) != 0) & 0xffff) == 0) return false;
            ended = false;  // until the next turn
        }
        if (left == 0) {
            // f and g keep their residues modulo 2^24, all that the jump at hand was made from.
            a = {carry_once(a.first, lane), carry_once(a.second, lane)};
            low.f0 = __shfl_sync(ALL_LANES, a.first, 0);
            low.g0 = __shfl_sync(ALL_LANES, a.second, 0);
            fetch_low(low, a);
            left = NORMALISE_EVERY;
        }
    }
}

}  // namespace safegcd
