// algo/scan.cuh over blocks of 32 WARPS threads: out row i is the scan's result at i, then the block's total. x: rows of
// 8 words. A block scans twice, so that shared memory left in a bad state would show.
#include "algo/scan.cuh"
#include "base/element.cuh"
#include "field/residues.cuh"
#include "unit.cuh"

namespace {

// 2x2 matrices over the integers mod 2^32: not commutative. An element's upper four words are not used.
struct Matrices {
    static constexpr int LIMBS = 4;

    __device__ __forceinline__ void one(uint32_t* r) const {
        r[0] = r[3] = 1;
        r[1] = r[2] = 0;
    }
    __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        const uint32_t product[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                                     a[2] * b[1] + a[3] * b[3]};
        limb::copy<4>(r, product);
    }
};

template <class Monoid>
__device__ __forceinline__ void scanned(const Monoid& monoid, const scan_check_args& args) {
    constexpr int N = Monoid::LIMBS;
    __shared__ scan::Totals<N, WARPS> totals;
    const uint64_t index = element::own_index();
    uint32_t x[8], value[8] = {}, total[8] = {}, first[8];
    element::load<8>(x, args.x, index);
    for (int turn = 0; turn < 2; ++turn) {
        limb::copy<8>(value, x);
        if constexpr (OPERATION == 0) scan::inclusive<WARPS>(monoid, value, total, totals);
        if constexpr (OPERATION == 1) scan::exclusive<WARPS>(monoid, value, total, totals);
        if constexpr (OPERATION == 2) scan::others<WARPS>(monoid, value, total, totals);
        if (turn == 0) limb::copy<N>(first, value);
        if (turn == 1 && !limb::equal<N>(first, value)) limb::set_word<N>(value, 0);
        __syncthreads();
    }
    element::store<8, N>(args.out, 2 * index, value);
    element::store<8, N>(args.out, 2 * index + 1, total);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * WARPS) scan_check(const scan_check_args args) {
    if constexpr (OPERATION == 2) {
        scanned(residues::Fold<true>{args.complement}, args);
    } else {
        scanned(Matrices{}, args);
    }
}
