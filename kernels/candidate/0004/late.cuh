// The inversion of field/warp_inverse.cuh with less in a row between one batch and the next: the same table, batches, limbs
// and bounds, hence the same explanation (ops/reference/warp_inverse.py), in another order.
//
//   - Every lane knows limb 0 of d and e from the batch before, so that the multiple of m does not wait for a shuffle.
//   - The next jump needs limb 0 of f and g alone: it begins before the long numbers are updated.
//   - An end is looked for every TURN batches, behind the jump that follows, and the branch does not hold that jump up. An
//     end is not missed by that: g = 0 lasts, and so does f then. One jump is made in vain.
//   - An entry's offset in bytes comes out of the ratio's multiplications, without a shift behind them.
#pragma once

#include "field/warp_inverse.cuh"

#ifdef __CUDACC_RTC__
#include "candidate/0004/late_ptx.cuh"
#else
#include "candidate/0004/late_portable.cuh"
#endif

namespace late {

using safegcd::ALL_LANES;
using safegcd::multiply_add;
using safegcd::Transition;
using safegcd::WARP_LIMBS;
using safegcd::WarpLane;
using safegcd::WarpLimbs;

constexpr int TURN = 2;  // batches between two looks for the end

// --- jumps ---

// ENTRY_BYTES (-g/f mod 2^STEPS), for odd f; scaled_f = ENTRY_BYTES f mod 2^32. As safegcd::negated_ratio, with s = f^2:
//   -g/f = ((s - 2) g f) (s (s - 2) + 2) (mod 2^12).
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

template <class Table>
__device__ __forceinline__ Transition lookup(const void* table, uint32_t offset) {
    return safegcd::lookup<Table>(static_cast<const char*>(table) + offset, 0);
}

// safegcd::jump.
template <class Table>
__device__ __forceinline__ Transition jump(const void* table, uint32_t f, uint32_t g) {
    constexpr int SCALE = Table::ENTRY_BYTES == 16 ? 4 : 3;
    Transition t = lookup<Table>(table, entry_offset<Table>(f, f << SCALE, g));
    Transition all = t;
    UNROLL
    for (int i = 1; i < Table::LOOKUPS; ++i) {
        const uint32_t next_f = t.u * f + t.v * g, next_g = t.q * f + t.r * g;
        VERIFY(((next_f | next_g) & ((1u << Table::STEPS) - 1)) == 0);
        f = next_f >> Table::STEPS;
        g = next_g >> Table::STEPS;
        t = lookup<Table>(table, entry_offset<Table>(f, next_f >> (Table::STEPS - SCALE), g));
        all = {t.u * all.u + t.v * all.q, t.u * all.v + t.v * all.r, t.q * all.u + t.r * all.q, t.q * all.v + t.r * all.r};
    }
    return all;
}

// --- long numbers over the lanes ---

// What every lane knows: limbs 0 and 1 of f and g, and limb 0 of d and e, as lanes 0, 1 and 16 hold them.
struct LowLimbs : safegcd::LowLimbs {
    int32_t d0, e0;
};

// All of them but f0 and g0, which safegcd::update_lowest has made already.
__device__ __forceinline__ void fetch_low(LowLimbs& low, const WarpLimbs& a) {
    safegcd::fetch_above(low, a);
    low.d0 = __shfl_sync(ALL_LANES, a.first, 16);
    low.e0 = __shfl_sync(ALL_LANES, a.second, 16);
}

// safegcd::divide. lowest: the low word of the part at weight 1 of d (or e), in every lane.
template <class Table>
__device__ __forceinline__ int32_t divide(int64_t part, uint32_t lowest, const WarpLane& lane) {
    VERIFY(__shfl_sync(ALL_LANES, static_cast<uint32_t>(part), 16) == lowest);
    const int32_t multiple = static_cast<int32_t>(lowest * lane.negated_inverse) >> (32 - Table::BATCH);
    part = multiply_add(part, multiple, lane.modulus);
    const int32_t low = static_cast<int32_t>(part) & Table::MASK;
    VERIFY(lane.limb != 0 || low == 0);
    const int64_t high = part >> Table::BATCH;
    VERIFY(high + Table::MASK < int64_t(1) << 31 && high >= -(int64_t(1) << 31));
    return static_cast<int32_t>(high) + __shfl_sync(ALL_LANES, low, lane.limb + 1, WARP_LIMBS);
}

// low: of before the batch, but for f0 and g0, which have no part in it.
template <class Table>
__device__ __forceinline__ WarpLimbs update(
    const WarpLimbs& a, const LowLimbs& low, const Transition& t, const WarpLane& lane) {
    const int64_t first = multiply_add(multiply_add(0, t.u, a.first), t.v, a.second);
    const int64_t second = multiply_add(multiply_add(0, t.q, a.first), t.r, a.second);
    const uint32_t lowest_first = static_cast<uint32_t>(t.u) * low.d0 + static_cast<uint32_t>(t.v) * low.e0;
    const uint32_t lowest_second = static_cast<uint32_t>(t.q) * low.d0 + static_cast<uint32_t>(t.r) * low.e0;
    return {divide<Table>(first, lowest_first, lane), divide<Table>(second, lowest_second, lane)};
}

// --- inversion ---

// f = +-1 or g = 0, modulo 2^BATCH.
template <class Table>
__device__ __forceinline__ bool may_have_ended(const LowLimbs& low) {
    return ((low.f0 + 1) & Table::MASK & ~2) == 0 || (low.g0 & Table::MASK) == 0;
}

// The contract of safegcd::warp_inverse.
template <class Table>
__device__ __forceinline__ bool warp_inverse(
    uint32_t* words, const uint32_t* modulus, uint32_t negated_inverse, const void* table) {
    static_assert(Table::NORMALISE_EVERY % TURN == 0, "limbs are carried between turns");
    VERIFY(modulus[0] * negated_inverse + 1 == 0);
    const int32_t index = static_cast<int32_t>(threadIdx.x % 32);
    const bool of_f = index < 16;
    WarpLane lane = {index % WARP_LIMBS, safegcd::limb_of<Table>(modulus, index % WARP_LIMBS),
                     negated_inverse << (32 - Table::BATCH)};
    WarpLimbs a = {of_f ? lane.modulus : 0, of_f ? safegcd::limb_of<Table>(words, lane.limb) : lane.limb == 1 ? 1 : 0};
    const int32_t f0 = static_cast<int32_t>(modulus[0]) & Table::MASK, g0 = static_cast<int32_t>(words[0]) & Table::MASK;
    LowLimbs low = {{f0, g0, 0, 0}, 0, 0};
    lane.modulus = of_f ? 0 : lane.modulus;
    __syncwarp(ALL_LANES);  // every lane has read the words; lanes 0..7 write over them at the end
    fetch_low(low, a);
    Transition t = jump<Table>(table, low.f0, low.g0);
    bool ended = may_have_ended<Table>(low);
    int32_t left = Table::NORMALISE_EVERY;
    for (;;) {
        while (!ended && left != 0) {
            UNROLL
            for (int i = 0; i < TURN; ++i) {
                safegcd::update_lowest<Table>(low, t);
                const Transition done = t;
                t = jump<Table>(table, low.f0, low.g0);
                a = update<Table>(a, low, done, lane);
                fetch_low(low, a);
            }
            ended = may_have_ended<Table>(low);
            left -= TURN;
        }
        if (ended) {
            const int32_t residue = low.f0 & Table::MASK;
            uint32_t word;
            if ((residue == 1 || residue == Table::MASK) && safegcd::finish<Table>(word, a, residue == 1 ? 1 : -1, lane)) {
                if (index < 8) words[index] = word;
                return true;
            }
            if ((__ballot_sync(ALL_LANES, safegcd::resolve<Table>(a.second, lane) != 0) & 0xffff) == 0) return false;
            ended = false;  // until the next turn
        }
        if (left == 0) {
            // The low limbs keep their value modulo 2^BATCH, all that the jump at hand was made from.
            a = {safegcd::carry_once<Table>(a.first, lane), safegcd::carry_once<Table>(a.second, lane)};
            low.f0 = __shfl_sync(ALL_LANES, a.first, 0);
            low.g0 = __shfl_sync(ALL_LANES, a.second, 0);
            fetch_low(low, a);
            left = Table::NORMALISE_EVERY;
        }
    }
}

}  // namespace late
