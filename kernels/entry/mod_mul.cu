// mod-mul: a b mod m for any m of exactly LIMBS limbs, one element a thread, no cooperation. Elements of WORDS limbs
// are plain integers; those >= m are reduced first, on a branch that reduced batches never take. out may be a or b.
#include "base/element.cuh"
#include "field/barrett.cuh"
#include "unit.cuh"

namespace {

// An operand may be >= m: exact but for operands whose two top limbs equal those of m.
__device__ __forceinline__ bool suspect(const uint32_t* a, const uint32_t* m) {
    uint32_t above = 0;
    UNROLL
    for (int i = LIMBS; i < WORDS; ++i) above |= a[i];
    if constexpr (LIMBS == 1) {
        return (above != 0) | (a[0] >= m[0]);
    } else {
        const uint64_t a_top = uint64_t(a[LIMBS - 1]) << 32 | a[LIMBS - 2];
        const uint64_t m_top = uint64_t(m[LIMBS - 1]) << 32 | m[LIMBS - 2];
        return (above != 0) | (a_top >= m_top);
    }
}

template <bool FULL, class Arguments>
__device__ __forceinline__ void multiply_own(const Arguments& args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t a[WORDS], b[WORDS];
    element::load<WORDS>(a, args.a, index);
    element::load<WORDS>(b, args.b, index);
    if (suspect(a, args.modulus) | suspect(b, args.modulus)) {
        // Two turns that exchange a and b, so that the code is there once.
#pragma unroll 1
        for (int turn = 0; turn < 2; ++turn) {
            uint32_t reduced[LIMBS];
            barrett::reduce_element<LIMBS, WORDS>(reduced, a, args.modulus, args.negated, args.reciprocal, args.shift);
            limb::copy<WORDS>(a, b);
            limb::copy<LIMBS>(b, reduced);
        }
    }
    barrett::multiply<LIMBS, FULL>(a, a, b, args.modulus, args.negated, args.reciprocal, args.shift);
    element::store<WORDS, LIMBS>(args.out, index, a);
}

}  // namespace

// m with 1 to 31 leading zeros in its top limb.
extern "C" __global__ void __launch_bounds__(256) mod_mul(const mod_mul_args args) { multiply_own<false>(args); }

// m that fills its top limb.
extern "C" __global__ void __launch_bounds__(256) mod_mul_full(const mod_mul_args args) { multiply_own<true>(args); }
