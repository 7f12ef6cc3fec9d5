// transform::Residue of a modulus that is known at compile time, on plain integers: x and y are rows of ROW limbs. The
// order of the cases is that of OPERATIONS in test_transform_field.py.
#include "base/element.cuh"
#include "field/transform.cuh"
#include "unit.cuh"

namespace {

using Residue = transform::Residue<PARAMS>;
constexpr int N = Residue::N;

// x w: the twiddle is made of a plain w as tables make theirs.
__device__ __forceinline__ void by_twiddle(const Residue& f, uint32_t* r, const uint32_t* x, const uint32_t* w) {
    uint32_t form[N], twiddle[Residue::TWIDDLE];
    mont::Field<PARAMS>::enter(form, w);
    f.twiddle(twiddle, form);
    f.multiply(r, x, twiddle);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) transform_check(const transform_check_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t x[ROW], y[ROW], r[N];
    element::load<ROW>(x, args.x, index);
    element::load<ROW>(y, args.y, index);
    const Residue f{args.modulus, args.n0inv};
    switch (args.operation) {
        case 0: f.add(r, x, y); break;
        case 1: f.subtract(r, x, y); break;
        case 2: f.add_loose(r, x, y); break;
        case 3: f.subtract_loose(r, x, y); break;
        case 4: by_twiddle(f, r, x, y); break;
        case 5: f.finish(r, x); break;
        default: f.product(r, x, y);
    }
    element::store<ROW, N>(args.out, index, r);
}
