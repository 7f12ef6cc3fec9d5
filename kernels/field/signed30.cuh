// Integers in limbs of 30 bits for modular inversion by divsteps (field/inverse.cuh): a product of two limbs leaves room
// in a 64-bit accumulator for the sums of a matrix-vector product, and 30 divsteps shift by exactly one limb.
#pragma once

#include "base/platform.cuh"

#ifdef __CUDACC_RTC__
#include "field/safegcd_ptx.cuh"
#else
#include "field/safegcd_portable.cuh"
#endif

namespace safegcd {

constexpr int LIMB30_BITS = 30;
constexpr int32_t LIMB30_MASK = (1 << LIMB30_BITS) - 1;

// multiply_add(sum, a, b), of safegcd_ptx.cuh or its twin: sum + a b, for sums within 64 bits.

// value = sum limb[i] * 2^(30 i). limb[0 .. N-2] in [0, 2^30); limb[N-1], the top limb, is signed and carries the sign.
template <int N>
struct Signed30 {
    int32_t limb[N];
};

// An odd modulus m, 1 <= m < 2^(30 N - 6) (the headroom that update_de needs).
// limb: m as Signed30. negated_inverse4: 4 * (-m^-1 mod 2^30): the factor 4 lets the reduction's quotient, a residue mod
// 2^30, be read as a signed integer with one multiplication and one shift.
template <int N>
struct OddModulus {
    int32_t limb[N];
    uint32_t negated_inverse4;
};

// -a^-1 mod 2^32 for odd a. Newton's iteration from 3 right bits (a * a = 1 mod 8): 3, 6, 12, 24, 48.
__device__ __forceinline__ uint32_t negated_inverse32(uint32_t a) {
    VERIFY(a & 1);
    uint32_t y = a;
#pragma unroll
    for (int i = 0; i < 4; ++i) y *= 2 - a * y;
    VERIFY(a * y == 1);
    return 0u - y;
}

// Plain W-word integer -> Signed30, for 32 W < 30 N. The result is in [0, 2^(32 W)).
template <int N, int W>
__device__ __forceinline__ Signed30<N> to_signed30(const uint32_t (&words)[W]) {
    static_assert(32 * W < LIMB30_BITS * N, "the top limb needs a sign bit");
    Signed30<N> a;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const int at = LIMB30_BITS * i / 32, shift = LIMB30_BITS * i % 32;
        const uint32_t low = at < W ? words[at < W ? at : 0] >> shift : 0;
        const uint32_t high = shift > 2 && at + 1 < W ? words[at + 1 < W ? at + 1 : 0] << (32 - shift) : 0;
        a.limb[i] = static_cast<int32_t>((low | high) & LIMB30_MASK);
    }
    return a;
}

// Signed30 -> plain W-word integer. a in [0, 2^(32 W)).
template <int W, int N>
__device__ __forceinline__ void from_signed30(uint32_t (&words)[W], const Signed30<N>& a) {
#pragma unroll
    for (int i = 0; i < W; ++i) {
        const int at = 32 * i / LIMB30_BITS, shift = 32 * i % LIMB30_BITS;
        uint32_t word = static_cast<uint32_t>(a.limb[at]) >> shift;
        word |= static_cast<uint32_t>(a.limb[at + 1]) << (LIMB30_BITS - shift);
        if (shift > 28) word |= static_cast<uint32_t>(a.limb[at + 2 < N ? at + 2 : N - 1]) << (2 * LIMB30_BITS - shift);
        words[i] = word;
    }
}

// Whether the lower limbs are in their range; the top limb has no bound of its own.
template <int N>
__device__ __forceinline__ bool has_limb_range(const Signed30<N>& a) {
    bool inside = true;
    for (int i = 0; i < N - 1; ++i) inside &= a.limb[i] >= 0 && a.limb[i] <= LIMB30_MASK;
    return inside;
}

template <int N>
__device__ __forceinline__ bool is_zero(const Signed30<N>& a) {
    int32_t bits = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) bits |= a.limb[i];
    return bits == 0;
}

// sign * a + multiple * m. sign is 1 or -1, |multiple| <= 2^8; the sum fits Signed30<N>.
template <int N>
__device__ __forceinline__ Signed30<N> add_multiple(const Signed30<N>& a, int32_t sign, int32_t multiple, const OddModulus<N>& m) {
    Signed30<N> sum;
    int64_t carry = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        carry = multiply_add(multiply_add(carry, sign, a.limb[i]), multiple, m.limb[i]);
        sum.limb[i] = i < N - 1 ? static_cast<int32_t>(carry) & LIMB30_MASK : static_cast<int32_t>(carry);
        carry >>= LIMB30_BITS;
    }
    return sum;
}

}  // namespace safegcd
