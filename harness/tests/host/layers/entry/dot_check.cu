// limb/dot.cuh and field/dot.cuh for the field FIELD, one case a thread: x and y are rows of ROW limbs. The order of the cases
// is that of test_dot.py.
#include "base/element.cuh"
#include "field/dot.cuh"
#include "unit.cuh"

namespace {

using M = FIELD;
using F = dot::Residue<M>;
constexpr int N = M::N;

// The sum and the word above it; any constants below m.
template <int P, bool WIDE>
__device__ __forceinline__ void sum_case(uint32_t* r, const uint32_t* x, const uint32_t* y) {
    uint32_t m[N];
    constant_product::set_multiple<M, 1>(m);
    if constexpr (WIDE || constant_product::fits(M::MODULUS, P + 1, 0)) {
        r[N] = limb::dot_product<N, P, WIDE>(r, x, y, m, M::N0INV);
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) dot_check(const dot_check_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t x[ROW], y[ROW], r[ROW] = {};
    element::load<ROW>(x, args.x, index);
    element::load<ROW>(y, args.y, index);
    switch (args.operation) {
        case 0: sum_case<2, false>(r, x, y); break;
        case 1: sum_case<3, false>(r, x, y); break;
        case 2: sum_case<4, false>(r, x, y); break;
        case 3: sum_case<2, true>(r, x, y); break;
        case 4: sum_case<3, true>(r, x, y); break;
        case 5: sum_case<4, true>(r, x, y); break;
        case 6: F::bracket(r, x, y, 0); break;
        case 7: F::bracket(r, x, y, ~0u); break;
        case 8: F::multiply<2>(r, x, y); break;
        case 9: F::multiply<4>(r, x, y); break;
        case 10:
            limb::copy<N>(r, x);
            F::canonical(r);
            break;
        case 11: F::add_signed(r, x, y, 0); break;
        case 12: F::add_signed(r, x, y, ~0u); break;
        default: r[0] = limb::mask_above(x[0], y[0]);
    }
    element::store<ROW, ROW>(args.out, index, r);
}
