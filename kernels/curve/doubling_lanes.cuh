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
enum Slot : uint32_t { W = 4, CROSS = 5 };

// p = 2^count p for a point on the curve or infinity, which both groups of a pair hold, and hold again at the end. count > 0.
//            X            Y     ZZ      ZZZ         W                  CROSS
//   squares  X^2          Y^2           Y ZZZ       (8 B w) (8 B^2)
//   cube     X X^2                                                                      the first time
//   last     X (B - 3 w)  B^2   B ZZ    B (Y ZZZ)   B w                3 w (2 B - w)
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
    uint32_t left[N], right[N], product[N], own[N], b[N], w[N], multiple[N], other[N];
    limb::copy<N>(own, p.limb);
    limb::copy<N>(right, own);
    from_slot(left, own, slot == ZZZ ? uint32_t(Y) : slot);
#pragma unroll 1
    for (;;) {
        L::multiply(product, left, right);
        if (phase == LAST) {
            // All slots: 2, 4, 8 times the product.
            B::twice(multiple, product);
            B::twice(multiple, multiple);
            limb::select<N>(own, slot == ZZ, multiple, product);
            B::twice(multiple, multiple);
            limb::select<N>(own, slot == ZZZ || slot == W, multiple, own);
            limb::select<N>(other, slot == Y, multiple, product);
            from_slot(other, other, slot == Y ? CROSS : Y);
            B::add(multiple, product, other);
            limb::select<N>(own, slot == Y, multiple, own);
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
            B::twice(multiple, w);
            B::add(w, multiple, w);
        }
        B::twice(multiple, w);
        B::add(multiple, multiple, w);
        B::subtract(other, b, multiple);
        limb::select<N>(left, slot == W, w, own);
        limb::select<N>(left, slot == Y, b, left);
        limb::select<N>(left, slot == CROSS, multiple, left);
        limb::select<N>(right, slot == X, other, b);
        B::twice(other, b);
        B::subtract(other, other, w);
        limb::select<N>(right, slot == CROSS, other, right);
        phase = LAST;
    }
    from_slot(p.limb, own, slot % 4);
}

}  // namespace xyzz_lanes
