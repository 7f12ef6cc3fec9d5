// dft<RHO> of algo/dft.cuh, one transform a thread: x is a row of 8 elements of N limbs, y holds the three constants.
#include "algo/dft.cuh"
#include "base/element.cuh"
#include "unit.cuh"

namespace {

using F = lazy::Residue<FIELD>;
constexpr int N = F::N;

template <int RHO>
__device__ __forceinline__ void transform(uint32_t (&x)[1 << RHO][N], const uint32_t* row, const uint32_t* roots,
                                          uint32_t* r) {
    UNROLL
    for (int i = 0; i < 1 << RHO; ++i) limb::copy<N>(x[i], row + i * N);
    ntt::dft<RHO, F, 1>(x, 0, roots);
    UNROLL
    for (int i = 0; i < 1 << RHO; ++i) {
        F::canonical(x[i]);
        limb::copy<N>(r + i * N, x[i]);
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) dft_check(const dft_check_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t x[ROW], y[ROW], r[ROW] = {};
    element::load<ROW>(x, args.x, index);
    element::load<ROW>(y, args.y, index);
    if (args.operation == 0) {
        uint32_t one[1][N];
        transform<0>(one, x, y, r);
    } else if (args.operation == 1) {
        uint32_t two[2][N];
        transform<1>(two, x, y, r);
    } else if (args.operation == 2) {
        uint32_t four[4][N];
        transform<2>(four, x, y, r);
    } else {
        uint32_t eight[8][N];
        transform<3>(eight, x, y, r);
    }
    element::store<ROW, ROW>(args.out, index, r);
}
