// Every function of field/constant_product.cuh and field/lazy.cuh for the field FIELD, one case a thread: x and y are rows of
// ROW limbs. The order of the cases is that of test_constant_product.py.
#include "base/element.cuh"
#include "field/lazy.cuh"
#include "unit.cuh"

namespace {

using M = FIELD;
using F = lazy::Residue<M>;
using namespace constant_product;
constexpr int N = M::N;

template <class Form>
__device__ __forceinline__ void form_case(uint32_t operation, uint32_t* r, const uint32_t* x, const uint32_t* y) {
    if constexpr (Form::FITS) {
        if (operation == 0) Form::multiply(r, x, y);
        if (operation == 1) Form::prepare(r, x);
        if constexpr (Form::BOUND <= 3 * int(F::C)) {
            if (operation == 2) F::template multiply<Form>(r, x, y);
        }
    }
}

template <int P>
__device__ __forceinline__ void split_case(uint32_t operation, uint32_t* r, const uint32_t* x, const uint32_t* y) {
    if constexpr (P <= N) form_case<Split<M, P>>(operation, r, x, y);
}

__device__ __forceinline__ void sum_case(uint32_t operation, uint32_t* r, const uint32_t* x, const uint32_t* y) {
    limb::copy<N>(r, x);
    switch (operation) {
        case 0: F::sum(r, x, y); break;
        case 1: F::difference(r, x, y); break;
        case 2: F::reduce(r); break;
        case 3: F::reduce_bypass(r); break;
        case 4: F::canonical(r); break;
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) constant_product_check(const constant_product_check_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t x[ROW], y[ROW], r[ROW] = {};
    element::load<ROW>(x, args.x, index);
    element::load<ROW>(y, args.y, index);
    const uint32_t operation = args.operation % 10;
    switch (args.operation / 10) {
        case 0: form_case<Shoup<M>>(operation, r, x, y); break;
        case 1: split_case<1>(operation, r, x, y); break;
        case 2: split_case<2>(operation, r, x, y); break;
        case 3: split_case<3>(operation, r, x, y); break;
        case 4: split_case<4>(operation, r, x, y); break;
        default: sum_case(operation, r, x, y);
    }
    element::store<ROW, ROW>(args.out, index, r);
}
