// Scans over the threads of a block of one to eight whole warps: inclusive, exclusive, and all but the own element.
//
// A Monoid is a small struct with
//   static constexpr int LIMBS                   32-bit words of an element
//   void one(uint32_t* r) const                  the neutral element
//   void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b) const
//                                                associative and, for others(), commutative; r may be a or b
// An element is an array of LIMBS words that a thread holds: a residue, or a point as the sum of its coordinates' words.
//
// Every function is called by all threads of the block together (the warp's: by all lanes together) and its results are
// valid in all of them. WARPS = 1, 2, 4 or 8 is the block's number of warps, `totals` shared memory of theirs alone. A
// scan leaves `totals` being read: the block synchronises before it is written again.
//
// Depth: 5 products in a warp and log2 WARPS across, the last product that joins both (Kogge and Stone 1973; others() is
// the exchange of a butterfly). A level's products do not depend on each other, and loops stay loops: a block runs its
// scan once, and then fetching instructions costs more than counting levels.
#pragma once

#include "limb/limb.cuh"

namespace scan {

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

// One element of each warp of a block.
template <int LIMBS, int WARPS>
struct Totals {
    static_assert(WARPS == 1 || WARPS == 2 || WARPS == 4 || WARPS == 8, "a block of 32 to 256 threads");
    uint32_t words[WARPS][LIMBS];
};

__device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x % WARP); }
__device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x / WARP); }

// --- in a warp, or in each segment of WIDTH lanes of it ---------------------------------------------------------------

// r = the product of the segment's elements up to the own one.
template <int WIDTH, class Monoid>
__device__ __forceinline__ void warp_inclusive(const Monoid& monoid, uint32_t* r) {
    constexpr int N = Monoid::LIMBS;
#pragma unroll 1
    for (int distance = 1; distance < WIDTH; distance *= 2) {
        uint32_t before[N], product[N];
        UNROLL
        for (int i = 0; i < N; ++i) before[i] = __shfl_up_sync(ALL_LANES, r[i], static_cast<unsigned>(distance), WIDTH);
        monoid.multiply(product, before, r);
        limb::select<N>(r, lane() % WIDTH >= distance, product, r);
    }
}

// r = the product of the segment's elements before the own one, from the inclusive scan.
template <int WIDTH, class Monoid>
__device__ __forceinline__ void shift_up(const Monoid& monoid, uint32_t* r) {
    constexpr int N = Monoid::LIMBS;
    uint32_t one[N], before[N];
    monoid.one(one);
    UNROLL
    for (int i = 0; i < N; ++i) before[i] = __shfl_up_sync(ALL_LANES, r[i], 1u, WIDTH);
    limb::select<N>(r, lane() % WIDTH == 0, one, before);
}

// r = the product of all elements of the segment but the own one; total = that of all.
//
// Before the level of distance d = 2^k a lane's pair (total, r) is that of its 2^k lanes that agree with it above bit k;
// the partner's are the others of the 2^(k+1).
template <int WIDTH, class Monoid>
__device__ __forceinline__ void warp_others(const Monoid& monoid, uint32_t* r, uint32_t* total) {
    constexpr int N = Monoid::LIMBS;
    limb::copy<N>(total, r);
    monoid.one(r);
#pragma unroll 1
    for (int distance = 1; distance < WIDTH; distance *= 2) {
        uint32_t partner[N];
        UNROLL
        for (int i = 0; i < N; ++i) partner[i] = __shfl_xor_sync(ALL_LANES, total[i], distance, WIDTH);
        monoid.multiply(r, r, partner);
        monoid.multiply(total, total, partner);
    }
}

// The element that lane `source` of the segment holds.
template <int WIDTH, int N>
__device__ __forceinline__ void fetch(uint32_t* r, const uint32_t* a, int source) {
    UNROLL
    for (int i = 0; i < N; ++i) r[i] = __shfl_sync(ALL_LANES, a[i], source, WIDTH);
}

// --- in a block -------------------------------------------------------------------------------------------------------

// Every lane of each warp gets the warp's total of the warp number lane mod WARPS. own: the total of the caller's warp,
// which lane `holder` holds.
template <int N, int WARPS>
__device__ __forceinline__ void exchange(uint32_t* r, const uint32_t* own, int holder, Totals<N, WARPS>& totals) {
    if (lane() == holder) limb::copy<N>(totals.words[warp()], own);
    __syncthreads();
    limb::copy<N>(r, totals.words[lane() % WARPS]);
}

// r = the product of the block's elements up to the own one (inclusive) or before it, in the threads' order; total = that
// of all.
template <bool INCLUSIVE, int WARPS, class Monoid>
__device__ __forceinline__ void prefixes(const Monoid& monoid, uint32_t* r, uint32_t* total,
                                         Totals<Monoid::LIMBS, WARPS>& totals) {
    constexpr int N = Monoid::LIMBS;
    VERIFY(blockDim.x == WARPS * WARP);
    uint32_t across[N];
    warp_inclusive<WARP>(monoid, r);
    if constexpr (WARPS == 1) {
        fetch<WARP, N>(total, r, WARP - 1);
        if constexpr (!INCLUSIVE) shift_up<WARP>(monoid, r);
    } else {
        exchange<N, WARPS>(across, r, WARP - 1, totals);
        warp_inclusive<WARPS>(monoid, across);
        fetch<WARPS, N>(total, across, WARPS - 1);
        shift_up<WARPS>(monoid, across);
        fetch<WARPS, N>(across, across, warp());
        if constexpr (!INCLUSIVE) shift_up<WARP>(monoid, r);
        monoid.multiply(r, across, r);
    }
}

template <int WARPS, class Monoid>
__device__ __forceinline__ void inclusive(const Monoid& monoid, uint32_t* r, uint32_t* total,
                                          Totals<Monoid::LIMBS, WARPS>& totals) {
    prefixes<true, WARPS>(monoid, r, total, totals);
}

template <int WARPS, class Monoid>
__device__ __forceinline__ void exclusive(const Monoid& monoid, uint32_t* r, uint32_t* total,
                                          Totals<Monoid::LIMBS, WARPS>& totals) {
    prefixes<false, WARPS>(monoid, r, total, totals);
}

// r = the product of all the block's elements but the own one: exclusive prefix times exclusive suffix, for the price of
// one scan. total = that of all.
template <int WARPS, class Monoid>
__device__ __forceinline__ void others(const Monoid& monoid, uint32_t* r, uint32_t* total,
                                       Totals<Monoid::LIMBS, WARPS>& totals) {
    constexpr int N = Monoid::LIMBS;
    VERIFY(blockDim.x == WARPS * WARP);
    warp_others<WARP>(monoid, r, total);
    if constexpr (WARPS > 1) {
        uint32_t across[N];
        exchange<N, WARPS>(across, total, 0, totals);
        warp_others<WARPS>(monoid, across, total);
        fetch<WARPS, N>(across, across, warp());
        monoid.multiply(r, r, across);
    }
}

}  // namespace scan
