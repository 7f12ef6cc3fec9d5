// mod-inv for odd moduli in the fixed number of batches (safegcd::inverse): no branch on x or m, one element a thread, no
// cooperation. Otherwise as entry/mod_inv.cu: any odd m of LIMBS limbs, any x of LIMBS limbs. out may be x.
#include "base/element.cuh"
#include "field/inverse.cuh"
#include "unit.cuh"

static_assert(32 * LIMBS + 6 <= safegcd::LIMB30_BITS * LIMBS30, "OddModulus leaves room for d and e");
static_assert(32 * LIMBS <= safegcd::Batches<LIMBS30>::bits, "the number of batches");

// As many warps on a multiprocessor as the incumbent has.
extern "C" __global__ void __launch_bounds__(256, LIMBS == 8 ? 3 : 2) mod_inv_branch_free(const mod_inv_odd_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    safegcd::OddModulus<LIMBS30> m;
#pragma unroll
    for (int i = 0; i < LIMBS30; ++i) m.limb[i] = static_cast<int32_t>(args.modulus30[i]);
    m.negated_inverse4 = args.negated_inverse4;
    uint32_t a[LIMBS];
    element::load<LIMBS>(a, args.x, index);
    safegcd::Signed30<LIMBS30> x = safegcd::to_signed30<LIMBS30>(a);
    const uint32_t kept = safegcd::inverse(x, m) ? ~0u : 0u;
    safegcd::from_signed30(a, x);
#pragma unroll
    for (int i = 0; i < LIMBS; ++i) a[i] &= kept;
    element::store<LIMBS, LIMBS>(args.out, index, a);
}
