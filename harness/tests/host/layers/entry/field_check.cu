// Every function of field/barrett.cuh, field/fold.cuh and field/mont.cuh for a modulus of N limbs, one case a thread:
// x and y are rows of ROW limbs. The order of the cases is that of OPERATIONS in test_field.py; a modulus suits those
// that its caller asks for.
#include "base/element.cuh"
#include "field/barrett.cuh"
#include "field/fold.cuh"
#include "field/mont.cuh"
#include "unit.cuh"

namespace {

template <int M>
__device__ __forceinline__ void montgomery_case(const field_check_args& args, uint32_t* r, const uint32_t* x,
                                                const uint32_t* y) {
    if constexpr (M % 2 == 0) {
        const uint32_t* const m = args.modulus;
        switch (args.operation) {
            case 5: mont::multiply<M>(r, x, y, m, args.n0inv); break;
            case 6: mont::square<M>(r, x, m, args.n0inv); break;
            case 7: mont::enter<M>(r, x, args.r2, m, args.n0inv); break;
            case 8: mont::leave<M>(r, x, m, args.n0inv); break;
            case 9: mont::multiply_lazy<M>(r, x, y, m, args.n0inv); break;
            case 10: mont::enter_element<M, 12>(r, x, args.r2, m, args.n0inv); break;
        }
    }
}

template <int M>
__device__ __forceinline__ void fold_case(const field_check_args& args, uint32_t* r, const uint32_t* x) {
    if constexpr (M == fold::N) {
        if (args.operation == 15) fold::reduce(r, x, fold::Complement<false>{args.complement});
        if (args.operation == 16) fold::reduce(r, x, fold::Complement<true>{args.complement});
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) field_check(const field_check_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t x[ROW], y[ROW], r[ROW] = {};
    element::load<ROW>(x, args.x, index);
    element::load<ROW>(y, args.y, index);
    const uint32_t* const m = args.modulus;
    switch (args.operation) {
        case 0: barrett::reduce<N>(r, x, m, args.negated, args.reciprocal, args.shift); break;
        case 1: barrett::reduce_any<N>(r, x, args.normalised, args.reciprocal_any, args.shift_any); break;
        case 2: barrett::reduce_element<N, 12>(r, x, m, args.negated, args.reciprocal, args.shift); break;
        case 3: mont::add<N>(r, x, y, m); break;
        case 4: mont::subtract<N>(r, x, y, m); break;
        case 11: barrett::multiply<N, false>(r, x, y, m, args.negated, args.reciprocal, args.shift); break;
        case 12: barrett::square<N, false>(r, x, m, args.negated, args.reciprocal, args.shift); break;
        case 13: barrett::multiply<N, true>(r, x, y, m, args.negated, args.reciprocal, 0); break;
        case 14: barrett::square<N, true>(r, x, m, args.negated, args.reciprocal, 0); break;
        case 15:
        case 16: fold_case<N>(args, r, x); break;
        default: montgomery_case<N>(args, r, x, y);
    }
    element::store<ROW, ROW>(args.out, index, r);
}
