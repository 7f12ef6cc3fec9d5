// mod-exp: a^e mod m for any m of exactly LIMBS limbs, one element a thread, no cooperation, by Barrett reduction: what
// even moduli need. Elements and exponents of WORDS limbs are plain integers; the exponent is never reduced.
// out may be a or e: both are read to the end before the result is written.
#include "algo/power.cuh"
#include "base/element.cuh"
#include "field/barrett.cuh"
#include "unit.cuh"

namespace {

// Plain residues. FULL: m fills its top limb. The references lead to the kernel's parameters.
template <bool FULL>
struct PlainRing {
    static constexpr int LIMBS = ::LIMBS;
    const mod_exp_even_args& args;

    __device__ __forceinline__ void one(uint32_t* r) const { limb::copy<LIMBS>(r, args.one); }
    __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        barrett::multiply<LIMBS, FULL>(r, a, b, args.modulus, args.negated, args.reciprocal, args.shift);
    }
    __device__ __forceinline__ void square(uint32_t* r, const uint32_t* a) const {
        barrett::square<LIMBS, FULL>(r, a, args.modulus, args.negated, args.reciprocal, args.shift);
    }
};

template <bool FULL>
__device__ __forceinline__ void raise_own(const mod_exp_even_args& args, uint32_t* words) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t a[WORDS], value[LIMBS];
    element::load<WORDS>(a, args.a, index);
    barrett::reduce_element<LIMBS, WORDS>(value, a, args.modulus, args.negated, args.reciprocal, args.shift);
    power::raise<PlainRing<FULL>, THREADS, WORDS>(value, PlainRing<FULL>{args}, value, args.e + index * WORDS,
                                                  power::Table<LIMBS, THREADS>{words});
    element::store<WORDS, LIMBS>(args.out, index, value);
}

}  // namespace

// m with 1 to 31 leading zeros in its top limb.
extern "C" __global__ void __launch_bounds__(THREADS) mod_exp_even(const mod_exp_even_args args) {
    __shared__ uint32_t words[power::TABLE_WORDS<LIMBS, THREADS>];
    raise_own<false>(args, words);
}

// m that fills its top limb.
extern "C" __global__ void __launch_bounds__(THREADS) mod_exp_even_full(const mod_exp_even_args args) {
    __shared__ uint32_t words[power::TABLE_WORDS<LIMBS, THREADS>];
    raise_own<true>(args, words);
}
