// safegcd::inverse, the form in a fixed number of batches: out is x^-1 mod m in LIMBS limbs and above them 1, or all 0
// where there is no inverse.
#include "base/element.cuh"
#include "field/inverse.cuh"
#include "unit.cuh"

extern "C" __global__ void __launch_bounds__(64) inverse_fixed(const inverse_fixed_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    safegcd::OddModulus<LIMBS30> m;
#pragma unroll
    for (int i = 0; i < LIMBS30; ++i) m.limb[i] = static_cast<int32_t>(args.modulus30[i]);
    m.negated_inverse4 = args.negated_inverse4;
    uint32_t row[ROW], a[LIMBS], out[LIMBS + 1] = {};
    element::load<ROW>(row, args.x, index);
    limb::copy<LIMBS>(a, row);
    safegcd::Signed30<LIMBS30> x = safegcd::to_signed30<LIMBS30>(a);
    if (safegcd::inverse(x, m)) {
        safegcd::from_signed30(a, x);
        limb::copy<LIMBS>(out, a);
        out[LIMBS] = 1;
    }
    element::store<ROW, LIMBS + 1>(args.out, index, out);
}
