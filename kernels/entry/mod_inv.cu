// mod-inv: x^-1 mod m, or 0 where gcd(x, m) != 1; modulo 1 every result is 0. One element a thread, no cooperation.
// Any m >= 1 of LIMBS limbs, any x of LIMBS limbs; x is not reduced first, because divsteps take any x. out may be x.
#include "base/element.cuh"
#include "field/inverse.cuh"
#include "unit.cuh"

static_assert(32 * LIMBS + 6 <= safegcd::LIMB30_BITS * LIMBS30, "OddModulus leaves room for d and e");

// m odd. 24 warps on a multiprocessor where LIMBS = 8: one wave of an H200 then takes 101,376 elements.
extern "C" __global__ void __launch_bounds__(256, LIMBS == 8 ? 3 : 2) mod_inv_odd(const mod_inv_odd_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    safegcd::OddModulus<LIMBS30> m;
#pragma unroll
    for (int i = 0; i < LIMBS30; ++i) m.limb[i] = static_cast<int32_t>(args.modulus30[i]);
    m.negated_inverse4 = args.negated_inverse4;
    uint32_t a[LIMBS];
    element::load<LIMBS>(a, args.x, index);
    safegcd::Signed30<LIMBS30> x = safegcd::to_signed30<LIMBS30>(a);
    const bool invertible = safegcd::inverse_var(x, m);
    if (invertible)
        safegcd::from_signed30(a, x);
    else
        limb::set_word<LIMBS>(a, 0);
    element::store<LIMBS, LIMBS>(args.out, index, a);
}

// m even, m >= 2.
extern "C" __global__ void __launch_bounds__(256, LIMBS == 8 ? 2 : 1) mod_inv_even(const mod_inv_even_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t a[LIMBS], modulus[LIMBS];
    limb::copy<LIMBS>(modulus, args.modulus);
    element::load<LIMBS>(a, args.x, index);
    const safegcd::Signed30<LIMBS30> m30 = safegcd::to_signed30<LIMBS30>(modulus);
    if (!safegcd::inverse_even_var(a, modulus, m30)) limb::set_word<LIMBS>(a, 0);
    element::store<LIMBS, LIMBS>(args.out, index, a);
}
