// mod-sub: a - b mod m for any m of up to LIMBS limbs, one element a thread, no cooperation. Elements of LIMBS limbs
// are plain integers; those >= m are reduced first, on a branch that reduced batches never take. out may be a or b.
#include "base/element.cuh"
#include "field/barrett.cuh"
#include "field/mont.cuh"
#include "unit.cuh"

extern "C" __global__ void __launch_bounds__(256) mod_sub(const mod_sub_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t a[LIMBS], b[LIMBS];
    element::load<LIMBS>(a, args.a, index);
    element::load<LIMBS>(b, args.b, index);
    if (!limb::less<LIMBS>(a, args.modulus) | !limb::less<LIMBS>(b, args.modulus)) {
        // Two turns that exchange a and b, so that the code is there once.
#pragma unroll 1
        for (int turn = 0; turn < 2; ++turn) {
            uint32_t reduced[LIMBS];
            barrett::reduce_element_any<LIMBS>(reduced, a, args.normalised, args.reciprocal, args.shift);
            limb::copy<LIMBS>(a, b);
            limb::copy<LIMBS>(b, reduced);
        }
    }
    mont::subtract<LIMBS>(a, a, b, args.modulus);
    element::store<LIMBS, LIMBS>(args.out, index, a);
}
