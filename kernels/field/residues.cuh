// The residues mod m under multiplication as small structs, for algorithms that take their product as a parameter
// (algo/batch_inverse.cuh says what they have in common). An element is a `uint32_t[LIMBS]`, canonical.
//
// multiply(r, a, b): a is canonical, b any LIMBS words, r canonical; r may be a or b. residue(r, x): x mod m for any x.
// never(x): x has no inverse, as its lowest bit alone shows. The pointers lead to the kernel's parameters.
#pragma once

#include "field/barrett.cuh"
#include "field/fold.cuh"
#include "field/mont.cuh"

namespace residues {

// m odd, x o y = x y / R; the neutral element is R mod m. N even.
template <int N>
struct Montgomery {
    static constexpr int LIMBS = N;
    const uint32_t* modulus;
    const uint32_t* r;
    uint32_t n0inv;

    __device__ __forceinline__ void one(uint32_t* out) const { limb::copy<N>(out, r); }
    __device__ __forceinline__ void multiply(uint32_t* out, const uint32_t* a, const uint32_t* b) const {
        mont::multiply<N>(out, a, b, modulus, n0inv);
    }
    __device__ __forceinline__ void residue(uint32_t* out, const uint32_t* x) const {
        if (limb::less<N>(x, modulus)) {
            limb::copy<N>(out, x);
        } else {
            multiply(out, r, x);
        }
    }
    __device__ __forceinline__ bool never(const uint32_t*) const { return false; }
};

// m = 2^256 - c, odd, x o y = x y. MONIC: as in field/fold.cuh.
template <bool MONIC>
struct Fold {
    static constexpr int LIMBS = fold::N;
    fold::Complement<MONIC> complement;

    __device__ __forceinline__ void one(uint32_t* out) const { limb::set_word<LIMBS>(out, 1); }
    __device__ __forceinline__ void multiply(uint32_t* out, const uint32_t* a, const uint32_t* b) const {
        fold::multiply(out, a, b, complement);
    }
    // x - m = x + c - 2^256, and x < 2 m.
    __device__ __forceinline__ void residue(uint32_t* out, const uint32_t* x) const {
        uint32_t c[LIMBS] = {complement.low(), complement.high()}, sum[LIMBS];
        limb::select<LIMBS>(out, limb::add<LIMBS>(sum, x, c) != 0, sum, x);
    }
    __device__ __forceinline__ bool never(const uint32_t*) const { return false; }
};

// m even, of any length up to N limbs, x o y = x y. The numbers are those of barrett::multiply_any.
template <int N>
struct Even {
    static constexpr int LIMBS = N;
    const uint32_t* modulus;
    const uint32_t* normalised;
    const uint32_t* negated;
    const uint32_t* reciprocal;
    uint32_t shift;

    __device__ __forceinline__ void one(uint32_t* out) const { limb::set_word<N>(out, 1); }
    __device__ __forceinline__ void multiply(uint32_t* out, const uint32_t* a, const uint32_t* b) const {
        barrett::multiply_any<N>(out, a, b, normalised, negated, reciprocal, shift);
    }
    __device__ __forceinline__ void residue(uint32_t* out, const uint32_t* x) const {
        if (limb::less<N>(x, modulus)) {
            limb::copy<N>(out, x);
        } else {
            barrett::reduce_element_any<N>(out, x, normalised, reciprocal, shift);
        }
    }
    __device__ __forceinline__ bool never(const uint32_t* x) const { return (x[0] & 1) == 0; }
};

}  // namespace residues
