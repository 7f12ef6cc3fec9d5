// Products x w mod m by a precomputed constant w. The result is lazy: congruent to x w, within the stated bound. The data
// x stay what they are (plain integers, or any other form that is linear): only the constants are stored in another form.
//
// Notation: W = 2^32, N limbs (even), R = W^N, m the field's modulus (M: its constants as ops/params/render.py writes
// them), E = W^(N-1). Every function is executed by one thread. A Form has
//
//   LIMBS, WORDS          limbs of x and of the stored constant
//   BOUND, SLACK          multiply(r, x, w): [r] = [x] w mod m in [0, BOUND m + SLACK E), for ANY [x] < R; r may be x
//   prepare(w, v)         the stored constant from the Montgomery form v = w R mod m, canonical; no aliases
//
// Which form a field takes is said by Twiddle<M> and Root<M> at the end.
#pragma once

#include "field/mont.cuh"
#include "limb/split.cuh"

namespace constant_product {

// c m mod W^N as limbs.
template <int N>
struct Words {
    uint32_t limb[N];
};

template <int N>
__device__ constexpr Words<N> multiple(const uint32_t (&m)[N], uint32_t c) {
    Words<N> out{};
    uint64_t carry = 0;
    for (int i = 0; i < N; ++i) {
        carry += uint64_t(m[i]) * c;
        out.limb[i] = uint32_t(carry);
        carry >>= 32;
    }
    return out;
}

// c m + slack E <= R, from the top limb alone: m < (top + 1) E.
template <int N>
__device__ constexpr bool fits(const uint32_t (&m)[N], uint32_t c, uint32_t slack) {
    return (uint64_t(m[N - 1]) + 1) * c + slack <= uint64_t(1) << 32;
}

// Writes c m mod R into registers; every limb is an immediate.
template <class M, uint32_t C, int I = 0>
__device__ __forceinline__ void set_multiple(uint32_t* r) {
    constexpr uint32_t limb = multiple(M::MODULUS, C).limb[I];
    r[I] = limb;
    if constexpr (I + 1 < M::N) set_multiple<M, C, I + 1>(r);
}

// [x] < C m + SLACK E, exactly: what the checks of a KERNEL_VERIFY build ask.
template <class M, uint32_t C, uint32_t SLACK>
__device__ __forceinline__ bool within(const uint32_t* x) {
    constexpr int N = M::N;
    uint32_t bound[N + 1] = {}, value[N + 1] = {}, m[N];
    set_multiple<M, 1>(m);
    bound[N] = limb::multiply_accumulate<N>(bound, m, C);
    bound[N] += uint32_t((uint64_t(bound[N - 1]) + SLACK) >> 32);
    bound[N - 1] += SLACK;
    limb::copy<N>(value, x);
    return limb::less<N + 1>(value, bound);
}

// [w] = [v] W^e / R mod m, canonical, 0 <= e <= 2N.
template <class M>
__device__ __forceinline__ void times_power(uint32_t* w, const uint32_t* v, int e) {
    constexpr int N = M::N;
    if (e >= N) {
        limb::copy<N>(w, v);
        e -= N;
        if (e == 0) return;
        mont::Field<M>::enter(w, w);
    } else {
        limb::copy<N>(w, v);
    }
    uint32_t power[N];
    UNROLL
    for (int i = 0; i < N; ++i) power[i] = i == e;
    mont::Field<M>::multiply(w, w, power);
}

// Montgomery's product with the constant cut out of the reduction: x = sum of x_k W^(k S), S = ceil(N / P), and
// w_k = w W^(S (k + 1)) mod m. Then sum of x_k w_k = x w W^S mod m, and S rows of reduction, not N, give x w.
//
// Bound: each of the P - 1 whole parts is below W^S, the last at most that: sum of x_k w_k < P W^S m, and q < W^S, so
// that the result is below (P W^S m + W^S m) / W^S = (P + 1) m. It is the bound of every row too (limb/ptx_split.cuh),
// so that no carry is lost where (P + 1) m <= R. If the last part is shorter than S (N = 8, P = 3: 2 limbs of 3), it adds
// less than m / W: the result is below P m + E.
//
// P = 1 is Montgomery's product (w_0 = w R), P = 2 stores (w W^(N/2), w R), the second of which is the Montgomery form.
template <class M, int P>
struct Split {
    static constexpr int LIMBS = M::N, WORDS = P * M::N, S = (M::N + P - 1) / P;
    static constexpr bool SHORT = S * P > M::N;
    static constexpr int BOUND = SHORT ? P : P + 1, SLACK = SHORT ? 1 : 0;
    static constexpr bool FITS = fits(M::MODULUS, BOUND, SLACK);

    static __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* x, const uint32_t* w) {
        static_assert(FITS, "the result has to fit N limbs");
        uint32_t m[LIMBS];
        set_multiple<M, 1>(m);
        limb::split_product<LIMBS, P>(r, x, w, m, M::N0INV);
        VERIFY((within<M, BOUND, SLACK>(r)));
    }

    static __device__ __forceinline__ void prepare(uint32_t* w, const uint32_t* v) {
        VERIFY((within<M, 1, 0>(v)));
        UNROLL
        for (int k = 0; k < P; ++k) times_power<M>(w + k * LIMBS, v, S * (k + 1));
    }
};

// Shoup's product: w' = floor(w R / m), q = floor(x w' / R) or 1 less, and x w - q m modulo R (two low products).
//
// Bound: x w' / R > x w / m - x / R, because w' > w R / m - 1. limb::high_product loses less than 1 + 7 / W, so that
// q > x w / m - x / R - 1 - 7 / W, and q <= x w / m. Hence 0 <= x w - q m < m (1 + x / R + 7 / W) < 2 m + 4 E, for
// m < R / 2.
// Where m = 1 - W modulo W^2 (bls12_381_fr), R - m = W - 1 + U W^2: two of the words of a row are sums of q, not products.
//
// The stored constant is (w, w'). w' from v = w R mod m: w R = w' m + v, hence w' = -v m^-1 mod R.
template <class M>
struct Shoup {
    static constexpr int LIMBS = M::N, WORDS = 2 * M::N, BOUND = 2, SLACK = 4;
    static constexpr bool FITS = fits(M::MODULUS, BOUND, SLACK);
    static constexpr bool ONE_LESS_W = LIMBS > 2 && M::MODULUS[0] == 1 && M::MODULUS[1] == 0xffffffff;

    static __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* x, const uint32_t* w) {
        static_assert(FITS, "the result has to fit N limbs");
        uint32_t q[LIMBS], negated[LIMBS], value[LIMBS] = {};
        negative_modulus(negated);
        limb::high_product<LIMBS>(q, x, w + LIMBS);
        limb::low_multiply_add<LIMBS, LIMBS>(value, x, w);
        if constexpr (ONE_LESS_W) {
            limb::low_multiply_add<LIMBS - 2, LIMBS - 2>(value + 2, q, negated + 2);
            limb::subtract<LIMBS>(value, value, q);
            limb::add<LIMBS - 1>(value + 1, value + 1, q);
        } else {
            limb::low_multiply_add<LIMBS, LIMBS>(value, q, negated);
        }
        limb::copy<LIMBS>(r, value);
        VERIFY((within<M, BOUND, SLACK>(r)));
    }

    static __device__ __forceinline__ void prepare(uint32_t* w, const uint32_t* v) {
        VERIFY((within<M, 1, 0>(v)));
        uint32_t inverse[LIMBS];
        mont::Field<M>::leave(w, v);
        negative_inverse(inverse);
        limb::set_word<LIMBS>(w + LIMBS, 0);
        limb::low_multiply_add<LIMBS, LIMBS>(w + LIMBS, v, inverse);
    }

  private:
    // R - m
    static __device__ __forceinline__ void negative_modulus(uint32_t* r) {
        uint32_t m[LIMBS], zero[LIMBS] = {};
        set_multiple<M, 1>(m);
        limb::subtract<LIMBS>(r, zero, m);
    }

    // -m^-1 mod R from N0INV = -m^-1 mod W: with n m = -1 + e, n (2 + n m) doubles the number of right bits.
    static __device__ __forceinline__ void negative_inverse(uint32_t* n) {
        uint32_t m[LIMBS];
        set_multiple<M, 1>(m);
        limb::set_word<LIMBS>(n, M::N0INV);
        for (int limbs = 1; limbs < LIMBS; limbs *= 2) {
            uint32_t factor[LIMBS], product[LIMBS] = {};
            limb::set_word<LIMBS>(factor, 2);
            limb::low_multiply_add<LIMBS, LIMBS>(factor, n, m);
            limb::low_multiply_add<LIMBS, LIMBS>(product, n, factor);
            limb::copy<LIMBS>(n, product);
        }
    }
};

// --- which form a field takes ----------------------------------------------------------------------------------------

template <bool, class A, class B>
struct Choose {
    using type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
    using type = B;
};

// Constants from tables: 2N words. Lazy sums of two operands, each below 2 m + 64 E (field/lazy.cuh), have to fit as well.
template <class M>
constexpr bool TWO_SPARE_BITS = fits(M::MODULUS, 4, 256);
template <class M>
using Twiddle = typename Choose<TWO_SPARE_BITS<M>, Split<M, 2>, Shoup<M>>::type;

// The few constants of a transform itself, which stay in the constant bank: longer ones are cheaper there.
template <class M>
using Root = typename Choose<TWO_SPARE_BITS<M> && M::N >= 4 && fits(M::MODULUS, 5, 0), Split<M, M::N >= 4 ? 4 : 2>,
                             Twiddle<M>>::type;

}  // namespace constant_product
