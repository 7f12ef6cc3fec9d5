// mod-exp: a^e mod m for odd m of up to LIMBS limbs (an even number), one element a thread, no cooperation, in
// Montgomery form. Elements and exponents of WORDS limbs are plain integers; the exponent is never reduced.
// out may be a or e: both are read to the end before the result is written.
#include "algo/power.cuh"
#include "base/element.cuh"
#include "field/mont.cuh"
#include "unit.cuh"

namespace {

// Residues in Montgomery form. The references lead to the kernel's parameters.
struct MontgomeryRing {
    static constexpr int LIMBS = ::LIMBS;
    const mod_exp_args& args;

    __device__ __forceinline__ void one(uint32_t* r) const { limb::copy<LIMBS>(r, args.one); }
    __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        mont::multiply<LIMBS>(r, a, b, args.modulus, args.n0inv);
    }
    __device__ __forceinline__ void square(uint32_t* r, const uint32_t* a) const {
        mont::square<LIMBS>(r, a, args.modulus, args.n0inv);
    }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(THREADS) mod_exp(const mod_exp_args args) {
    __shared__ uint32_t words[power::TABLE_WORDS<LIMBS, THREADS>];
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t a[WORDS], value[LIMBS];
    element::load<WORDS>(a, args.a, index);
    mont::enter_element<LIMBS, WORDS>(value, a, args.r2, args.modulus, args.n0inv);
    power::raise<MontgomeryRing, THREADS, WORDS>(value, MontgomeryRing{args}, value, args.e + index * WORDS,
                                                 power::Table<LIMBS, THREADS>{words});
    mont::leave<LIMBS>(value, value, args.modulus, args.n0inv);
    element::store<WORDS, LIMBS>(args.out, index, value);
}
