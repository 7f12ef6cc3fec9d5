// Elements of a group's field of coordinates over as many neighbouring lanes as they have parts: a thread's in the prime field,
// a pair's in the extension (curve/xyzz_pairs.cuh). An element is a `uint32_t[N]`, a lane's part, in the range of
// field/prime.cuh; sums are those of the prime field, part by part.
//
// A product takes its factors as a Left and a Right, what a lane needs of both parts, so that a factor of several products is
// exchanged once. Every function is executed by all lanes of a warp.
#pragma once

#include "curve/xyzz_pairs.cuh"

namespace coordinates {

constexpr unsigned ALL_LANES = xyzz_pairs::ALL_LANES;

template <class C, int DEGREE = C::DEGREE>
struct Element;

template <class C>
struct Element<C, 1> {
    using B = prime::Field<typename C::Base>;
    static constexpr int N = B::LIMBS, LANES = 1;

    struct Left {
        uint32_t limbs[N];
    };
    using Right = Left;

    static __device__ __forceinline__ uint32_t part() { return 0; }

    // Whether all lanes of the element say so.
    static __device__ __forceinline__ bool every(bool condition) { return condition; }

    static __device__ __forceinline__ void one(uint32_t* r) { B::one(r); }
    static __device__ __forceinline__ void left(Left& l, const uint32_t* a) { limb::copy<N>(l.limbs, a); }
    static __device__ __forceinline__ void right(Right& r, const uint32_t* a) { limb::copy<N>(r.limbs, a); }
    static __device__ __forceinline__ void multiply(uint32_t* r, const Left& a, const Right& b) {
        B::multiply(r, a.limbs, b.limbs);
    }
    static __device__ __forceinline__ void square(uint32_t* r, const Left& a) { B::square(r, a.limbs); }

    // r = 1 / a of the block's first element, a != 0; of others it is not valid.
    static __device__ __forceinline__ void inverse_of_first(uint32_t* r, const uint32_t* a) {
        if (threadIdx.x == 0) B::inverse(r, a);
    }
};

template <class C>
struct Element<C, 2> {
    using F = xyzz_pairs::Field<C>;
    using B = typename F::B;
    static constexpr int N = B::LIMBS, LANES = 2;

    struct Left {
        uint32_t limbs[2 * N];
    };
    struct Right {
        uint32_t limbs[2 * N];
    };

    static __device__ __forceinline__ uint32_t part() { return xyzz_pairs::part(); }

    static __device__ __forceinline__ bool every(bool condition) {
        const unsigned own = xyzz_pairs::own_pair();
        return (__ballot_sync(ALL_LANES, condition) & own) == own;
    }

    static __device__ __forceinline__ void one(uint32_t* r) { F::one(r); }

    static __device__ __forceinline__ void left(Left& l, const uint32_t* a) {
        uint32_t other[N];
        F::exchange(other, a, ALL_LANES);
        F::both(l.limbs, a, other);
    }

    static __device__ __forceinline__ void right(Right& r, const uint32_t* a) {
        uint32_t other[N];
        F::exchange(other, a, ALL_LANES);
        F::with_u(r.limbs, a, other);
    }

    static __device__ __forceinline__ void multiply(uint32_t* r, const Left& a, const Right& b) {
        F::multiply(r, a.limbs, b.limbs);
    }

    static __device__ __forceinline__ void square(uint32_t* r, const Left& a) {
        uint32_t own[N], other[N];
        limb::select<N>(own, part() == 0, a.limbs, a.limbs + N);
        limb::select<N>(other, part() == 0, a.limbs + N, a.limbs);
        F::square(r, own, other);
    }

    // (a0 - a1 u) / (a0^2 + a1^2): both lanes have the same norm, and go the same way through its inversion.
    static __device__ __forceinline__ void inverse_of_first(uint32_t* r, const uint32_t* a) {
        uint32_t norm[N], other[N];
        B::square(norm, a);
        F::exchange(other, norm, ALL_LANES);
        B::add(norm, norm, other);
        if (threadIdx.x >= LANES) return;
        B::inverse(norm, norm);
        B::negate(other, norm);
        limb::select<N>(norm, part() == 0, norm, other);
        B::multiply(r, a, norm);
    }
};

// r = a b
template <class E>
__device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    typename E::Left left;
    typename E::Right right;
    E::left(left, a);
    E::right(right, b);
    E::multiply(r, left, right);
}

// --- an inverse for every element of a block ---

// r = the product of all elements but the own one of each WIDTH lanes; total = that of all. As scan::warp_others.
template <class E, int WIDTH>
__device__ __forceinline__ void others(uint32_t* r, uint32_t* total, const uint32_t* own) {
    constexpr int N = E::N;
    limb::copy<N>(total, own);
    E::one(r);
#pragma unroll 1
    for (int distance = E::LANES; distance < WIDTH; distance *= 2) {
        uint32_t partner[N];
        typename E::Left left;
        typename E::Right right;
        UNROLL
        for (int i = 0; i < N; ++i) partner[i] = __shfl_xor_sync(ALL_LANES, total[i], distance);
        E::right(right, partner);
        E::left(left, r);
        E::multiply(r, left, right);
        E::left(left, total);
        E::multiply(total, left, right);
    }
}

// An element of each warp, in shared memory.
template <class E, int WARPS>
struct Totals {
    uint32_t parts[WARPS][E::LANES][E::N];
};

// p = 1 / p for each element of the block, none of which is 0: the warps' products are the first warp's elements, and that of
// the block is the one which is inverted. Executed by all threads of the block, WARPS whole warps.
template <class E, int WARPS>
__device__ __forceinline__ void invert(uint32_t* p, Totals<E, WARPS>& totals) {
    constexpr int N = E::N;
    constexpr uint32_t WARP = 32;
    static_assert(WARPS * E::LANES <= int(WARP) && (WARPS & (WARPS - 1)) == 0, "the warps' products are within one warp");
    const uint32_t warp = threadIdx.x / WARP, group = threadIdx.x % WARP / E::LANES;
    uint32_t rest[N], total[N];
    others<E, int(WARP)>(rest, total, p);
    if (group == 0) limb::copy<N>(totals.parts[warp][E::part()], total);
    __syncthreads();
    if (warp == 0) {
        uint32_t own[N], all[N], inverse[N] = {};
        limb::copy<N>(own, totals.parts[group % WARPS][E::part()]);
        others<E, WARPS * E::LANES>(total, all, own);
        E::inverse_of_first(inverse, all);
        UNROLL
        for (int i = 0; i < N; ++i) inverse[i] = __shfl_sync(ALL_LANES, inverse[i], int(E::part()));
        multiply<E>(total, total, inverse);
        __syncwarp();
        if (group < WARPS) limb::copy<N>(totals.parts[group][E::part()], total);
    }
    __syncthreads();
    limb::copy<N>(total, totals.parts[warp][E::part()]);
    multiply<E>(p, rest, total);
}

}  // namespace coordinates
