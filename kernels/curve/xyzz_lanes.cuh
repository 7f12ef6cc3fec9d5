// Points in XYZZ coordinates (xyzz.cuh) over a group of lanes: each lane holds one of X, Y, ZZ, ZZZ, in the extension field
// one of its two parts, so that an addition is four products deep and a doubling three. For short work: the latency of one
// operation is a quarter of that on one thread, the work of all lanes together a third more.
//
// A group is Lanes<C>::COUNT neighbours; lane i of it holds the i-th share of the point as it lies in memory. Every function
// is executed by whole warps, all lanes of which arrive: what differs between groups is selected, not branched on. A share
// is an element of the prime field, in its range (field/prime.cuh), also where nothing is made of it.
//
// The product is written once in each function, in a loop over the levels: the code of one is up to 10 KB, and copies would
// cost the instruction cache and the compiler more than the loop costs.
#pragma once

#include "curve/xyzz.cuh"

namespace xyzz_lanes {

constexpr unsigned ALL_LANES = 0xffffffffu;

// Numbers of the coordinates.
enum Role : uint32_t { X = 0, Y = 1, ZZ = 2, ZZZ = 3 };

// One lane's share of a point.
template <class C>
struct Point {
    uint32_t limb[C::Base::N];
};

template <class C>
struct Lanes {
    using B = prime::Field<typename C::Base>;
    static constexpr int N = B::LIMBS, PARTS = C::DEGREE, COUNT = 4 * PARTS, GROUPS = 32 / COUNT;
    static_assert(32 % COUNT == 0, "groups do not cross warps");

    // This thread's group in its warp, its lane in the group, the coordinate and the part of it that the lane holds.
    static __device__ __forceinline__ uint32_t group() { return threadIdx.x % 32 / COUNT; }
    static __device__ __forceinline__ uint32_t lane() { return threadIdx.x % COUNT; }
    static __device__ __forceinline__ uint32_t role() { return lane() / PARTS; }
    static __device__ __forceinline__ uint32_t part() { return lane() % PARTS; }

    // r = x of the same part of another coordinate. r may be x.
    static __device__ __forceinline__ void from(uint32_t* r, const uint32_t* x, uint32_t role) {
        const int source = int(role * PARTS + part());
        UNROLL
        for (int i = 0; i < N; ++i) r[i] = __shfl_sync(ALL_LANES, x[i], source, COUNT);
    }

    // r = x of the other part of the same coordinate.
    static __device__ __forceinline__ void from_other_part(uint32_t* r, const uint32_t* x) {
        UNROLL
        for (int i = 0; i < N; ++i) r[i] = __shfl_xor_sync(ALL_LANES, x[i], 1);
    }

    // Whether every lane of the group in [first, first + count) says so.
    static __device__ __forceinline__ bool all(bool condition, uint32_t first, uint32_t count) {
        const uint32_t group = __ballot_sync(ALL_LANES, condition) >> (threadIdx.x % 32 - lane());
        const uint32_t asked = ((1u << count) - 1) << first;
        return (group & asked) == asked;
    }

    // r = 1 in each coordinate.
    static __device__ __forceinline__ void one(uint32_t* r) {
        uint32_t nothing[N];
        B::zero(nothing);
        B::one(r);
        limb::select<N>(r, part() == 0, r, nothing);
    }

    // r = a b in each coordinate. In the extension, with a', b' of the other part, a lane has two products and one reduction:
    //   part 0: a b - a' b',  part 1: a b' - (-a') b
    static __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        if constexpr (PARTS == 1) {
            B::multiply(r, a, b);
        } else {
            uint32_t other_a[N], other_b[N], negated[N];
            const bool second = part() == 1;
            from_other_part(other_a, a);
            from_other_part(other_b, b);
            B::negate(negated, other_a);
            limb::select<N>(other_a, second, negated, other_a);
            limb::select<N>(negated, second, other_b, b);
            limb::select<N>(other_b, second, b, other_b);
            B::difference_of_products(r, a, negated, other_a, other_b);
        }
    }

    // r = 1 / a in each coordinate; no a is 0. (a0 + a1 u)^-1 = (a0 - a1 u) / (a0^2 + a1^2). Variable time.
    static __device__ __forceinline__ void inverse(uint32_t* r, const uint32_t* a) {
        if constexpr (PARTS == 1) {
            B::inverse(r, a);
        } else {
            uint32_t norm[N], other[N];
            B::multiply(norm, a, a);
            from_other_part(other, norm);
            B::add(norm, norm, other);
            B::inverse(norm, norm);
            B::negate(other, norm);
            limb::select<N>(norm, part() == 1, other, norm);
            B::multiply(r, a, norm);
        }
    }
};

template <class C>
__device__ __forceinline__ bool is_infinity(const Point<C>& p) {
    using L = Lanes<C>;
    return L::all(L::B::is_zero(p.limb), ZZ * L::PARTS, L::PARTS);
}

template <class C>
__device__ __forceinline__ void set_infinity(Point<C>& p) {
    Lanes<C>::B::zero(p.limb);
}

template <class C>
__device__ __forceinline__ void select(Point<C>& r, bool condition, const Point<C>& a, const Point<C>& b) {
    limb::select<Lanes<C>::N>(r.limb, condition, a.limb, b.limb);
}

// r = p of the group before this one in the warp; of the first group, its own.
template <class C>
__device__ __forceinline__ void from_group_before(Point<C>& r, const Point<C>& p) {
    UNROLL
    for (int i = 0; i < Lanes<C>::N; ++i) r.limb[i] = __shfl_up_sync(ALL_LANES, p.limb[i], Lanes<C>::COUNT);
}

// r = p of the group that comes so many (1 to GROUPS - 1) after this one in the warp; of the last groups, their own.
template <class C>
__device__ __forceinline__ void from_group_after(Point<C>& r, const Point<C>& p, uint32_t distance) {
    const uint32_t lanes = distance * Lanes<C>::COUNT;
    UNROLL
    for (int i = 0; i < Lanes<C>::N; ++i) r.limb[i] = __shfl_down_sync(ALL_LANES, p.limb[i], lanes);
}

// p = 2 p, any p (no point has order 2). dbl-2008-s-1: U = 2 Y and
//            X         Y        ZZ        ZZZ
//   level 0  X^2       V = U^2
//   level 1  S = X V   W = U V  V ZZ      M^2, M = 3 X^2
//   level 2  M (S-X3)  W Y                W ZZZ        X3 = M^2 - 2 S
template <class C>
__device__ __forceinline__ void twice(Point<C>& p) {
    using L = Lanes<C>;
    using B = typename L::B;
    constexpr int N = L::N;
    const uint32_t role = L::role();
    COUNT_POINT_OPERATION();
    uint32_t left[N], right[N], product[N], other[N], m[N], kept[N];
    B::twice(left, p.limb);
    limb::select<N>(left, role == Y, left, p.limb);
    limb::copy<N>(right, left);
#pragma unroll 1
    for (int level = 0;; ++level) {
        L::multiply(product, left, right);
        if (level == 0) {
            L::from(right, product, role == ZZZ ? X : Y);
            limb::select<N>(other, role == X, product, right);
            B::twice(m, other);
            B::add(m, m, other);
            limb::select<N>(left, role == ZZZ, m, left);
            limb::select<N>(right, role == ZZZ, m, right);
        } else if (level == 1) {
            L::from(right, product, role == X ? ZZZ : Y);
            B::subtract(kept, right, product);
            B::subtract(kept, kept, product);
            B::subtract(other, product, kept);
            limb::select<N>(left, role == X, m, p.limb);
            limb::select<N>(right, role == X, other, right);
            limb::select<N>(kept, role == X, kept, product);
        } else {
            break;
        }
    }
    L::from(other, product, X);
    B::subtract(other, other, product);
    limb::select<N>(other, role == Y, other, product);
    limb::select<N>(p.limb, role == X || role == ZZ, kept, other);
}

// p += q, any p and q. add-2008-s:
//            X                    Y               ZZ               ZZZ
//   level 0  U1 = X1 ZZ2          S1 = Y1 ZZZ2    U2 = X2 ZZ1      S2 = Y2 ZZZ1     P = U2 - U1, R = S2 - S1
//   level 1  PP = P^2             R^2             ZZ1 ZZ2          ZZZ1 ZZZ2
//   level 2  Q = U1 PP            PPP = P PP      (ZZ1 ZZ2) PP     (ZZZ1 ZZZ2) P
//   level 3  R (Q - X3)           S1 PPP                           (ZZZ1 ZZZ2 P) PP        X3 = R^2 - PPP - 2 Q
// Opposite points have P = 0, and so ZZ3 = 0. Equal ones, P = R = 0, are doubled, by all groups of a warp where one asks for
// it. CONSTANT_WORK: always, so that the work does not depend on the points.
template <bool CONSTANT_WORK, class C>
__device__ __forceinline__ void add(Point<C>& p, const Point<C>& q) {
    using L = Lanes<C>;
    using B = typename L::B;
    constexpr int N = L::N;
    const uint32_t role = L::role();
    COUNT_POINT_OPERATION();
    const bool p_infinite = is_infinity(p), q_infinite = is_infinity(q);
    bool equal = false;
    uint32_t left[N], right[N], product[N], other[N], first[N], difference[N], pp[N], kept[N];
    limb::copy<N>(left, p.limb);
    L::from(right, q.limb, role ^ 2);
#pragma unroll 1
    for (int level = 0;; ++level) {
        L::multiply(product, left, right);
        if (level == 0) {
            limb::copy<N>(first, product);
            L::from(other, product, role ^ 2);
            limb::select<N>(left, role < ZZ, other, product);
            limb::select<N>(right, role < ZZ, product, other);
            B::subtract(difference, left, right);
            equal = L::all(B::is_zero(difference), 0, 2 * L::PARTS) && !p_infinite && !q_infinite;
            limb::select<N>(left, role < ZZ, difference, p.limb);
            limb::select<N>(right, role < ZZ, difference, q.limb);
        } else if (level == 1) {
            limb::copy<N>(kept, product);
            L::from(pp, product, X);
            L::from(other, difference, X);
            limb::select<N>(left, role == X, first, product);
            limb::select<N>(left, role == Y, other, left);
            limb::select<N>(right, role == ZZZ, other, pp);
        } else if (level == 2) {
            B::subtract(other, kept, product);
            L::from(other, other, Y);
            B::subtract(other, other, product);
            B::subtract(other, other, product);
            B::subtract(right, product, other);
            L::from(left, difference, Y);
            limb::select<N>(kept, role == X, other, product);
            limb::select<N>(left, role == Y, first, left);
            limb::select<N>(left, role == ZZZ, product, left);
            limb::select<N>(right, role == Y, product, right);
            limb::select<N>(right, role == ZZZ, pp, right);
        } else {
            break;
        }
    }
    L::from(other, product, X);
    B::subtract(other, other, product);
    Point<C> sum;
    limb::select<N>(sum.limb, role == Y, other, product);
    limb::select<N>(sum.limb, role == X || role == ZZ, kept, sum.limb);
    if (CONSTANT_WORK || __any_sync(ALL_LANES, equal)) {
        Point<C> doubled = p;
        twice(doubled);
        select(sum, equal, doubled, sum);
    }
    select(sum, q_infinite, p, sum);
    select(p, p_infinite, q, sum);
}

// The affine form of any p, in the lanes of X and Y: infinity's is zeros. Variable time. With i = 1 / ZZZ: y = Y i and, as
// ZZ^3 = ZZZ^2, 1 / ZZ = (ZZ i)^2.
template <class C>
__device__ __forceinline__ void to_affine(Point<C>& p) {
    using L = Lanes<C>;
    constexpr int N = L::N;
    const uint32_t role = L::role();
    const bool infinite = is_infinity(p);
    uint32_t left[N], right[N], product[N], y[N];
    L::one(left);
    L::from(right, p.limb, ZZZ);
    limb::select<N>(left, infinite, left, right);
    L::inverse(right, left);
    L::from(left, p.limb, role == Y ? Y : ZZ);
#pragma unroll 1
    for (int level = 0;; ++level) {
        L::multiply(product, left, right);
        if (level == 0) {
            limb::copy<N>(y, product);
            L::from(left, product, ZZ);
            limb::copy<N>(right, left);
        } else if (level == 1) {
            limb::copy<N>(left, p.limb);
            limb::copy<N>(right, product);
        } else {
            break;
        }
    }
    limb::select<N>(product, role == Y, y, product);
    L::B::zero(left);
    limb::select<N>(p.limb, infinite, left, product);
}

// From homogeneous coordinates (projective.cuh) in the lanes of X, Y and ZZ: X / Z = X Z / Z^2, Y / Z = Y Z^2 / Z^3.
template <class C>
__device__ __forceinline__ void from_projective(Point<C>& p) {
    using L = Lanes<C>;
    constexpr int N = L::N;
    const uint32_t role = L::role();
    uint32_t z[N], product[N], left[N];
    L::from(z, p.limb, ZZ);
    limb::select<N>(left, role == ZZZ, z, p.limb);
#pragma unroll 1
    for (int level = 0; level < 2; ++level) {
        L::multiply(product, left, z);
        limb::copy<N>(left, product);
        if (level == 0) limb::copy<N>(p.limb, product);
    }
    limb::select<N>(p.limb, role == X || role == ZZ, p.limb, product);
}

// To homogeneous coordinates in the lanes of X, Y and ZZ: (X ZZZ : Y ZZ : ZZ ZZZ). Infinity is (0 : 0 : 0), which only
// from_projective understands.
template <class C>
__device__ __forceinline__ void to_projective(Point<C>& p) {
    using L = Lanes<C>;
    uint32_t other[L::N];
    L::from(other, p.limb, L::role() == Y ? ZZ : ZZZ);
    L::multiply(p.limb, p.limb, other);
}

}  // namespace xyzz_lanes
