// The field of a group's coordinates (field/prime.cuh, ext/fp2.cuh): one case a thread, on rows of plain coordinates below
// m. Bit i of `lifted` adds m to every part of operand i where elements may be that large. The order of the cases is that
// of OPERATIONS in test_coordinates.py.
#include "base/element.cuh"
#include "curve/affine.cuh"
#include "unit.cuh"

namespace {

using F = curve::FieldOf<GROUP>;
using Base = prime::Field<GROUP::Base>;
constexpr int N = Base::LIMBS, WORDS = ROW / F::DEGREE;

__device__ __forceinline__ void load(uint32_t* r, const uint32_t* rows, uint64_t index, bool lifted) {
    uint32_t plain[ROW], m[N];
    element::load<ROW>(plain, rows, index);
    Base::modulus(m);
    for (int i = 0; i < F::DEGREE; ++i) {
        Base::enter(r + i * N, plain + i * WORDS);
        if (Base::LAZY && lifted) limb::add<N>(r + i * N, r + i * N, m);
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) coordinate_check(const coordinate_check_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t x[F::LIMBS], y[F::LIMBS], z[F::LIMBS], w[F::LIMBS], out[ROW] = {};
    load(x, args.x, index, args.lifted & 1);
    load(y, args.y, index, args.lifted & 2);
    load(z, args.z, index, args.lifted & 4);
    load(w, args.w, index, args.lifted & 8);
    switch (args.operation) {
        case 0: F::add(x, x, y); break;
        case 1: F::subtract(x, x, y); break;
        case 2: F::negate(x, x); break;
        case 3: F::multiply(x, x, y); break;
        case 4: F::square(x, x); break;
        case 5: F::difference_of_products(x, x, y, z, w); break;
        case 6: F::inverse(x, x); break;
        case 7: {
            const bool zero = F::is_zero(x);
            F::zero(x);
            x[0] = zero;
            break;
        }
    }
    for (int i = 0; i < F::DEGREE; ++i) {
        if (args.operation == 7) {
            limb::copy<N>(out + i * WORDS, x + i * N);
        } else {
            Base::leave(out + i * WORDS, x + i * N);
        }
    }
    element::store<ROW, ROW>(args.out, index, out);
}
