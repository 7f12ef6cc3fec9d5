// Points in XYZZ coordinates (xyzz.cuh) over the quadratic extension, each over a pair of neighbouring lanes: the even lane
// holds the parts c0 of all coordinates, the odd one the parts c1. For much work: an addition takes half the registers of one
// on a thread, which has them spill, and 54 N^2 products of limbs by both lanes instead of 46 N^2.
//
// Functions on points are executed by both lanes of a pair. `lanes` is a mask of the lanes that arrive, whole pairs, the same
// for all of them. With ALL_LANES every lane of the warp has to arrive, for as long as its longest pair takes; a mask that is
// no constant, own_pair(), lets each go its own way, but has machine code wait for the mask's lanes before every shuffle.
//
// With u^2 = -1 a product is a b = a0 b + a1 (u b), u b = (-b1, b0): a lane's part of it is a sum of two products with one
// reduction (field/prime_sums.cuh), of both parts of a and its own parts of b and u b.
#pragma once

#include "base/element.cuh"
#include "curve/xyzz.cuh"
#include "field/prime_sums.cuh"

namespace xyzz_pairs {

constexpr unsigned ALL_LANES = 0xffffffffu;

// One lane's part of a point.
template <class C>
struct Point {
    static constexpr int N = C::Base::N;
    uint32_t x[N], y[N], zz[N], zzz[N];
};

// One lane's part of a point in affine coordinates.
template <class C>
struct Affine {
    static constexpr int N = C::Base::N;
    uint32_t x[N], y[N];
};

// Which part this thread has: its lane's parity.
__device__ __forceinline__ uint32_t part() { return threadIdx.x % 2; }

// The mask of this thread's pair alone, for code that the pairs of a warp execute on ways of their own.
__device__ __forceinline__ unsigned own_pair() { return 3u << (threadIdx.x % 32 & ~1u); }

// Elements of the extension over a pair. An element is a `uint32_t[N]`, a lane's part, in the range of field/prime.cuh; of its
// `other` a lane has the other part.
template <class C>
struct Field {
    static_assert(C::DEGREE == 2, "the quadratic extension");
    using B = prime::Field<typename C::Base>;
    using Sums = prime::Sums<typename C::Base>;
    static constexpr int N = B::LIMBS;

    static __device__ __forceinline__ void one(uint32_t* r) {
        uint32_t nothing[N];
        B::zero(nothing);
        B::one(r);
        limb::select<N>(r, part() == 0, r, nothing);
    }

    static __device__ __forceinline__ void exchange(uint32_t* other, const uint32_t* a, unsigned lanes) {
        UNROLL
        for (int i = 0; i < N; ++i) other[i] = __shfl_xor_sync(lanes, a[i], 1);
    }

    // The same for what has been exchanged before. ptxas does not see that, and so does not keep N registers from one to the
    // other.
    static __device__ __forceinline__ void exchange_again(uint32_t* other, const uint32_t* a, unsigned lanes) {
        const int neighbour = int(threadIdx.x % 32 ^ 1);
        UNROLL
        for (int i = 0; i < N; ++i) other[i] = __shfl_sync(lanes, a[i], neighbour);
    }

    // c = (a0, a1), 2N limbs.
    static __device__ __forceinline__ void both(uint32_t* c, const uint32_t* a, const uint32_t* other) {
        limb::select<N>(c, part() == 0, a, other);
        limb::select<N>(c + N, part() == 0, other, a);
    }

    // c = (a, u a), 2N limbs, factors of prime::Sums.
    static __device__ __forceinline__ void with_u(uint32_t* c, const uint32_t* a, const uint32_t* other) {
        uint32_t negated[N];
        Sums::opposite(negated, other);
        limb::copy<N>(c, a);
        limb::select<N>(c + N, part() == 0, negated, other);
    }

    // r = a b for both parts of a and b with u b.
    static __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        Sums::template sum_of_products<2>(r, a, b);
    }

    // r = a^2: (a0 + a1)(a0 - a1) in the even lane, (a0 + a0) a1 in the odd one, whose other part is a0.
    static __device__ __forceinline__ void square(uint32_t* r, const uint32_t* a, const uint32_t* other) {
        uint32_t sum[N], difference[N];
        limb::select<N>(sum, part() == 0, a, other);
        B::add(sum, sum, other);
        B::subtract(difference, a, other);
        limb::select<N>(difference, part() == 0, difference, a);
        B::multiply(r, sum, difference);
    }
};

// --- points in device memory, where both parts of a coordinate lie side by side ---

template <int N>
__device__ __forceinline__ void load_row(uint32_t* limbs, const uint32_t* array, uint64_t row) {
    if constexpr (N % 4 == 0) {
        element::load<N>(limbs, array, row);
    } else {
        UNROLL
        for (int i = 0; i < N; ++i) limbs[i] = array[row * N + i];
    }
}

template <int N>
__device__ __forceinline__ void store_row(uint32_t* array, uint64_t row, const uint32_t* limbs) {
    if constexpr (N % 4 == 0) {
        element::store<N, N>(array, row, limbs);
    } else {
        UNROLL
        for (int i = 0; i < N; ++i) array[row * N + i] = limbs[i];
    }
}

// Of an array of curve::Affine<C>.
template <class C>
__device__ __forceinline__ void load(Affine<C>& p, const uint32_t* array, uint64_t index) {
    const uint64_t row = 4 * index + part();
    load_row<C::Base::N>(p.x, array, row);
    load_row<C::Base::N>(p.y, array, row + 2);
}

// Has such a point brought to the multiprocessor's cache (base/element.cuh), by each lane one coordinate.
template <class C>
__device__ __forceinline__ void prefetch(const uint32_t* array, uint64_t index) {
    element::prefetch<C::LIMBS>(array, 2 * index + part());
}

// Of an array of xyzz::Point<C>.
template <class C>
__device__ __forceinline__ void load(Point<C>& p, const uint32_t* array, uint64_t index) {
    const uint64_t row = 8 * index + part();
    load_row<C::Base::N>(p.x, array, row);
    load_row<C::Base::N>(p.y, array, row + 2);
    load_row<C::Base::N>(p.zz, array, row + 4);
    load_row<C::Base::N>(p.zzz, array, row + 6);
}

template <class C>
__device__ __forceinline__ void store(uint32_t* array, uint64_t index, const Point<C>& p) {
    const uint64_t row = 8 * index + part();
    store_row<C::Base::N>(array, row, p.x);
    store_row<C::Base::N>(array, row + 2, p.y);
    store_row<C::Base::N>(array, row + 4, p.zz);
    store_row<C::Base::N>(array, row + 6, p.zzz);
}

// --- points ---

template <class C>
__device__ __forceinline__ bool is_infinity(const Point<C>& p, unsigned lanes) {
    const unsigned zero = __ballot_sync(lanes, Field<C>::B::is_zero(p.zz));
    return (zero & own_pair()) == own_pair();
}

template <class C>
__device__ __forceinline__ void set_infinity(Point<C>& p) {
    using B = typename Field<C>::B;
    B::zero(p.x);
    B::zero(p.y);
    B::zero(p.zz);
    B::zero(p.zzz);
}

// p = q, which is not infinity.
template <class C>
__device__ __forceinline__ void set_affine(Point<C>& p, const Affine<C>& q) {
    constexpr int N = C::Base::N;
    limb::copy<N>(p.x, q.x);
    limb::copy<N>(p.y, q.y);
    Field<C>::one(p.zz);
    Field<C>::one(p.zzz);
}

template <class C>
__device__ __forceinline__ void select(Point<C>& r, bool condition, const Point<C>& a, const Point<C>& b) {
    constexpr int N = C::Base::N;
    limb::select<N>(r.x, condition, a.x, b.x);
    limb::select<N>(r.y, condition, a.y, b.y);
    limb::select<N>(r.zz, condition, a.zz, b.zz);
    limb::select<N>(r.zzz, condition, a.zzz, b.zzz);
}

// p = negative ? -p : p.
template <class C>
__device__ __forceinline__ void negate_if(Affine<C>& p, bool negative) {
    constexpr int N = C::Base::N;
    uint32_t negated[N];
    Field<C>::B::negate(negated, p.y);
    limb::select<N>(p.y, negative, negated, p.y);
}

// p += q, as xyzz::add_affine_unchecked. madd-2008-s: 8M + 2S, of which Y3 = R (Q - X3) - Y1 PPP is one sum of four products:
// 6 (2 + 1) + 2 (1 + 1) + (4 + 1) = 27 times N^2 products of limbs in each lane.
template <class C>
__device__ __forceinline__ void add_affine_unchecked(Point<C>& p, const Affine<C>& q, unsigned lanes) {
    using F = Field<C>;
    using B = typename F::B;
    constexpr int N = F::N;
    if (part() == 0) COUNT_POINT_OPERATION();
    uint32_t other[N], u[N], s[N], pp[N], ppp[N], product[N], a[4 * N], b[4 * N];

    // U2 - X1 = P and S2 - Y1 = R, in u and s.
    F::exchange(other, q.x, lanes);
    F::both(a, q.x, other);
    F::exchange(other, p.zz, lanes);
    F::with_u(b, p.zz, other);
    F::multiply(u, a, b);
    B::subtract(u, u, p.x);
    F::exchange(other, q.y, lanes);
    F::both(a, q.y, other);
    F::exchange(other, p.zzz, lanes);
    F::with_u(b, p.zzz, other);
    F::multiply(s, a, b);
    B::subtract(s, s, p.y);

    // What PP multiplies: P, X1, ZZ1.
    uint32_t other_u[N];
    F::exchange(other_u, u, lanes);
    F::square(pp, u, other_u);
    F::exchange(other, pp, lanes);
    F::both(a, pp, other);
    F::with_u(b, u, other_u);
    F::multiply(ppp, a, b);
    F::exchange(other, p.x, lanes);
    F::with_u(b, p.x, other);
    F::multiply(product, a, b);
    F::exchange_again(other, p.zz, lanes);
    F::with_u(b, p.zz, other);
    F::multiply(p.zz, a, b);

    // X3 = R^2 - PPP - 2 Q, and of Y3 the factors R and Q - X3.
    F::exchange(other, s, lanes);
    F::square(p.x, s, other);
    F::both(a, s, other);
    B::subtract(p.x, p.x, ppp);
    B::subtract(p.x, p.x, product);
    B::subtract(p.x, p.x, product);
    B::subtract(product, product, p.x);
    F::exchange(other, product, lanes);
    F::with_u(b, product, other);

    // What PPP multiplies: ZZZ1 and -Y1.
    F::exchange(other, ppp, lanes);
    F::both(a + 2 * N, ppp, other);
    F::exchange_again(other, p.zzz, lanes);
    F::with_u(b + 2 * N, p.zzz, other);
    F::multiply(p.zzz, a + 2 * N, b + 2 * N);
    B::negate(p.y, p.y);
    F::exchange(other, p.y, lanes);
    F::with_u(b + 2 * N, p.y, other);
    F::Sums::template sum_of_products<4>(p.y, a, b);
}

}  // namespace xyzz_pairs
