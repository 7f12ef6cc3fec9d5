// Runs of doublings over two groups of lanes (xyzz_lanes.cuh), two products deep each.
//
// On y^2 = x^3 + b, with B = Y^2 and w = 3 b ZZ^3 = 3 (Y^2 - X^3), dbl-2008-s-1 becomes
//   X3 = X (B - 3 w),  Y3 = B^2 + 3 w (2 B - w),  ZZ3 = 4 B ZZ,  ZZZ3 = 8 B Y ZZZ,  w3 = 64 B^3 w
// (M^2 = 9 X X^3 with X^3 = B - w / 3). So X3 and Y3 wait for B and w alone, and w3 may follow a product later, when the
// next B is made. The first doubling of a run has one product more, X^3.
#pragma once

#include "curve/xyzz_lanes.cuh"

namespace xyzz_lanes {

// Slots of a pair of groups: the first group's coordinates, then what the second one makes.
enum Slot : uint32_t { W = 4, CROSS = 5, SQUARE = 6 };

// p = 2^count p for a point on the curve or infinity, which both groups of a pair hold, and hold again at the end. count > 0.
//            X            Y     ZZ      ZZZ         W                 CROSS          SQUARE
//   squares  X^2          Y^2           Y ZZZ       (8 B w) (8 B^2)
//   cube     X X^2                                                                                 the first time
//   last     X (B - 3 w)  B^2   4 B ZZ  8 B (Y ZZZ) 2 w (4 B)         3 w (2 B - w)  2 B (4 B)
// The multiples of B and w are sums before the products, side by side, as sums after them would wait for each other.
template <class C>
__device__ __forceinline__ void twice_often(Point<C>& p, uint32_t count) {
    using L = Lanes<C>;
    using B = typename L::B;
    constexpr int N = L::N;
    const uint32_t slot = threadIdx.x / L::PARTS % 8;
    const auto from_slot = [](uint32_t* r, const uint32_t* x, uint32_t from) {
        const int source = int(from * L::PARTS + L::part());
        UNROLL
        for (int i = 0; i < N; ++i) r[i] = __shfl_sync(ALL_LANES, x[i], source, 2 * L::COUNT);
    };
    enum Phase { SQUARES, CUBE, LAST } phase = SQUARES;
    bool is_first = true;
    uint32_t left[N], right[N], product[N], own[N], b[N], w[N], other[N];
    limb::copy<N>(own, p.limb);
    limb::copy<N>(right, own);
    from_slot(left, own, slot == ZZZ ? uint32_t(Y) : slot);
#pragma unroll 1
    for (;;) {
        L::multiply(product, left, right);
        if (phase == LAST) {
            from_slot(other, product, slot == Y ? CROSS : SQUARE);
            B::add(own, product, other);
            limb::select<N>(own, slot == Y, own, product);
            if (--count == 0) break;
            limb::select<N>(right, slot == W, other, own);
            from_slot(left, own, slot == ZZZ ? uint32_t(Y) : slot);
            phase = SQUARES;
            continue;
        }
        if (phase == SQUARES) {
            from_slot(b, product, Y);
            limb::select<N>(own, slot == ZZZ, product, own);
            if (is_first) {
                limb::copy<N>(left, own);
                limb::copy<N>(right, product);
                is_first = false;
                phase = CUBE;
                continue;
            }
            from_slot(w, product, W);
        } else {
            from_slot(w, product, X);
            B::subtract(w, b, w);
            B::twice(other, w);
            B::add(w, other, w);
        }
        uint32_t w2[N], w3[N], b2[N], b4[N], b8[N], cross[N];
        B::twice(w2, w);
        B::twice(b2, b);
        B::add(w3, w2, w);
        B::twice(b4, b2);
        B::subtract(cross, b2, w);
        B::subtract(other, b, w3);
        B::twice(b8, b4);
        limb::select<N>(left, slot == Y, b, own);
        limb::select<N>(left, slot == W, w2, left);
        limb::select<N>(left, slot == CROSS, w3, left);
        limb::select<N>(left, slot == SQUARE, b2, left);
        limb::select<N>(right, slot == Y, b, b4);
        limb::select<N>(right, slot == X, other, right);
        limb::select<N>(right, slot == ZZZ, b8, right);
        limb::select<N>(right, slot == CROSS, cross, right);
        phase = LAST;
    }
    from_slot(p.limb, own, slot % 4);
}

}  // namespace xyzz_lanes
