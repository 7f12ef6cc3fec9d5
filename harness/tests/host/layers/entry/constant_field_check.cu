// mont::Field of a modulus that is known at compile time: x y, x^2, x + y, x - y on plain integers below it, through
// Montgomery form and back. The order of the cases is that of test_constant_field.py.
#include "base/element.cuh"
#include "field/mont.cuh"
#include "unit.cuh"

namespace {

using Residue = mont::Field<PARAMS>;
constexpr int N = Residue::LIMBS;

template <class F>
__device__ __forceinline__ void lazy_product(uint32_t* r, const uint32_t* x, const uint32_t* y) {
    if constexpr (F::LAZY) {
        uint32_t m[N];
        F::modulus(m);
        F::multiply_lazy(r, x, y);
        mont::canonical<N>(r, m);
    } else {
        F::multiply(r, x, y);
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) constant_field_check(const constant_field_check_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t x[ROW], y[ROW], r[N];
    element::load<ROW>(x, args.x, index);
    element::load<ROW>(y, args.y, index);
    Residue::enter(x, x);
    Residue::enter(y, y);
    switch (args.operation) {
        case 0: Residue::multiply(r, x, y); break;
        case 1: Residue::square(r, x); break;
        case 2: Residue::add(r, x, y); break;
        case 3: Residue::subtract(r, x, y); break;
        default: lazy_product<Residue>(r, x, y);
    }
    Residue::leave(r, r);
    element::store<ROW, N>(args.out, index, r);
}
