// Every function of limb/limb.cuh for N limbs, one case a thread: x, y, z and result are rows of ROW limbs, s a word.
// The order of the cases is that of OPERATIONS in test_limb.py.
#include "base/element.cuh"
#include "limb/limb.cuh"
#include "unit.cuh"

namespace {

// The functions that take an even number of limbs.
template <int M>
__device__ __forceinline__ void even_case(uint32_t operation, uint32_t* r, const uint32_t* x, const uint32_t* y,
                                          const uint32_t* z, uint32_t s) {
    if constexpr (M % 2 == 0) {
        switch (operation) {
            case 13: r[M] = limb::montgomery_product<M, true>(r, x, y, z, s); break;
            case 14: r[M] = limb::montgomery_product<M, false>(r, x, y, z, s); break;
            case 18: limb::monic_multiply_add<M>(r, x, y, s); break;
            case 15: r[M] = limb::montgomery_reduce<M>(r, x, z, s); break;
        }
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) limb_check(const limb_check_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t x[ROW], y[ROW], z[ROW], s[4], r[ROW];
    element::load<ROW>(x, args.x, index);
    element::load<ROW>(y, args.y, index);
    element::load<ROW>(z, args.z, index);
    element::load<4>(s, args.s, index);
    limb::copy<ROW>(r, x);
    switch (args.operation) {
        case 0: r[N] = limb::add<N>(r, x, y); break;
        case 1: r[N] = limb::subtract<N>(r, x, y); break;
        case 2: r[N] = limb::multiply_accumulate<N>(r, y, s[0]); break;
        case 3: limb::shift_left<N>(r, x, y[0], s[0] % 32); break;
        case 4: limb::shift_right<N>(r, x, s[0] % 32); break;
        case 5: limb::barrel_left<N>(r, x, s[0] % (32 * N)); break;
        case 6: limb::barrel_right<N>(r, x, s[0] % (32 * N)); break;
        case 7: limb::subtract_once<N>(r, s[0], y); break;
        case 8: r[0] = limb::less<N>(x, y) | limb::equal<N>(x, y) << 1 | limb::is_zero<N>(x) << 2; break;
        case 9: limb::wide_product<N>(r, x, y); break;
        case 10: limb::wide_square<N>(r, x); break;
        case 11: limb::low_multiply_add<N + 1, N>(r, y, z); break;
        case 12: limb::estimate_quotient<N>(r, x, y, s[0]); break;
        case 16: limb::low_multiply_add<N, N>(r, y, z); break;
        case 17: limb::add<2 * N - 1>(r, x, y); break;
        case 20: r[2 * N] = limb::subtract<2 * N>(r, x, y); break;
        default: even_case<N>(args.operation, r, x, y, z, s[0]);
    }
    element::store<ROW, ROW>(args.out, index, r);
}
