// Modular inversion by divsteps (safegcd), one inversion a thread, for odd moduli, and by an exchange of roles for even
// ones. Explained in runnable Python in ops/reference/safegcd.py; the functions below have the same names there.
//
// Source: D. J. Bernstein, B.-Y. Yang, "Fast constant-time gcd computation and modular inversion", 2019: divsteps
// (section 8), transition matrices (section 9), jumps of many divsteps at once (section 10), inverses modulo an odd
// integer (section 11). The half-delta start, its 590 divsteps for 256 bits and the form with small signed limbs follow
// the approach of bitcoin-core/secp256k1, doc/safegcd_implementation.md.
//
// Invariants through a run, for an odd modulus m and an integer x:
//   f is odd,  d x = f (mod m),  e x = g (mod m),  gcd(f, g) = gcd(m, x).
// A run ends with g = 0 and f = +-gcd(m, x), or earlier with f = +-1, which already gives the inverse: +-d.
#pragma once

#include "base/platform.cuh"
#include "field/divsteps.cuh"
#include "field/signed30.cuh"
#include "limb/limb.cuh"

namespace safegcd {

// Batches after which g = 0, for any odd f and any g, both in [0, 2^bits): 591 divsteps for 256 bits, 886 for 384 (590
// where g <= f < 2^256). Computed by divsteps_bound of ops/reference/safegcd.py.
template <int N>
struct Batches;
template <>
struct Batches<9> {
    static constexpr int bits = 256, value = (591 + DIVSTEPS - 1) / DIVSTEPS;
};
template <>
struct Batches<13> {
    static constexpr int bits = 384, value = (886 + DIVSTEPS - 1) / DIVSTEPS;
};

// --- what a batch does to f and g ---

// (f, g) = t (f, g) / 2^30, exact. |f| and |g| do not grow beyond the larger of them.
template <int N>
__device__ __forceinline__ void update_fg(Signed30<N>& f, Signed30<N>& g, const Transition& t) {
    int64_t cf = multiply_add(multiply_add(0, t.u, f.limb[0]), t.v, g.limb[0]);
    int64_t cg = multiply_add(multiply_add(0, t.q, f.limb[0]), t.r, g.limb[0]);
    VERIFY(((cf | cg) & LIMB30_MASK) == 0);
    cf >>= LIMB30_BITS;
    cg >>= LIMB30_BITS;
#pragma unroll
    for (int i = 1; i < N; ++i) {
        cf = multiply_add(multiply_add(cf, t.u, f.limb[i]), t.v, g.limb[i]);
        cg = multiply_add(multiply_add(cg, t.q, f.limb[i]), t.r, g.limb[i]);
        f.limb[i - 1] = static_cast<int32_t>(cf) & LIMB30_MASK;
        g.limb[i - 1] = static_cast<int32_t>(cg) & LIMB30_MASK;
        cf >>= LIMB30_BITS;
        cg >>= LIMB30_BITS;
    }
    f.limb[N - 1] = static_cast<int32_t>(cf);
    g.limb[N - 1] = static_cast<int32_t>(cg);
}

// Limbs I .. length - 1 of the update below; cf, cg: the carries into limb I. Each limb is written as if it were the top
// and masked when another follows: so all indices are constants.
template <int I, int N>
__device__ __forceinline__ void update_rest_var(
    Signed30<N>& f, Signed30<N>& g, int64_t& cf, int64_t& cg, const Transition& t, int length) {
    if constexpr (I < N) {
        if (I < length) {
            cf = multiply_add(multiply_add(cf, t.u, f.limb[I]), t.v, g.limb[I]);
            cg = multiply_add(multiply_add(cg, t.q, f.limb[I]), t.r, g.limb[I]);
            f.limb[I - 1] = static_cast<int32_t>(cf) & LIMB30_MASK;
            g.limb[I - 1] = static_cast<int32_t>(cg) & LIMB30_MASK;
            cf >>= LIMB30_BITS;
            cg >>= LIMB30_BITS;
            f.limb[I] = static_cast<int32_t>(cf);
            g.limb[I] = static_cast<int32_t>(cg);
            update_rest_var<I + 1>(f, g, cf, cg, t, length);
        }
    }
}

// The same on the first `length` limbs, 1 <= length <= N, of which limb[length - 1] is the signed top; then one limb
// less where both tops are in [-2, 1] and fit the limb below as its bits 30 and 31. limb[0 .. length - 2] are in
// [0, 2^30), the top in [-2^31, 2^31); limbs from `length` on are not used again. Returns whether length fell.
template <int N>
__device__ __forceinline__ bool update_fg_var(Signed30<N>& f, Signed30<N>& g, const Transition& t, int& length) {
    int64_t cf = multiply_add(multiply_add(0, t.u, f.limb[0]), t.v, g.limb[0]);
    int64_t cg = multiply_add(multiply_add(0, t.q, f.limb[0]), t.r, g.limb[0]);
    VERIFY(((cf | cg) & LIMB30_MASK) == 0);
    VERIFY(1 <= length && length <= N);
    cf >>= LIMB30_BITS;
    cg >>= LIMB30_BITS;
    f.limb[0] = static_cast<int32_t>(cf);
    g.limb[0] = static_cast<int32_t>(cg);
    update_rest_var<1>(f, g, cf, cg, t, length);
    const uint32_t top_f = static_cast<uint32_t>(cf), top_g = static_cast<uint32_t>(cg);
    VERIFY(static_cast<int32_t>(cf) == cf && static_cast<int32_t>(cg) == cg);
    const bool fits = length > 1 && top_f + 2 < 4 && top_g + 2 < 4;
    if (fits) {
        --length;
#pragma unroll
        for (int i = 1; i < N; ++i) {
            f.limb[i - 1] |= i == length ? static_cast<int32_t>(top_f << LIMB30_BITS) : 0;
            g.limb[i - 1] |= i == length ? static_cast<int32_t>(top_g << LIMB30_BITS) : 0;
        }
    }
    return fits;
}

// --- what it does to d and e ---

// (d, e) = (t (d, e) + (k, l) m) / 2^30 with the k, l in [-2^29, 2^29) that make the division exact.
// |d|, |e| <= B m before gives (B + 1/2) m afterwards. Nothing corrects this in between: from B = 1, 30 batches reach 16,
// and OddModulus leaves room for 32.
template <int N>
__device__ __forceinline__ void update_de(Signed30<N>& d, Signed30<N>& e, const Transition& t, const OddModulus<N>& m) {
    int64_t cd = multiply_add(multiply_add(0, t.u, d.limb[0]), t.v, e.limb[0]);
    int64_t ce = multiply_add(multiply_add(0, t.q, d.limb[0]), t.r, e.limb[0]);
    const int32_t k = static_cast<int32_t>(static_cast<uint32_t>(cd) * m.negated_inverse4) >> 2;
    const int32_t l = static_cast<int32_t>(static_cast<uint32_t>(ce) * m.negated_inverse4) >> 2;
    cd = multiply_add(cd, k, m.limb[0]);
    ce = multiply_add(ce, l, m.limb[0]);
    VERIFY(((cd | ce) & LIMB30_MASK) == 0);
    cd >>= LIMB30_BITS;
    ce >>= LIMB30_BITS;
#pragma unroll
    for (int i = 1; i < N; ++i) {
        cd = multiply_add(multiply_add(cd, t.u, d.limb[i]), t.v, e.limb[i]);
        ce = multiply_add(multiply_add(ce, t.q, d.limb[i]), t.r, e.limb[i]);
        cd = multiply_add(cd, k, m.limb[i]);
        ce = multiply_add(ce, l, m.limb[i]);
        d.limb[i - 1] = static_cast<int32_t>(cd) & LIMB30_MASK;
        e.limb[i - 1] = static_cast<int32_t>(ce) & LIMB30_MASK;
        cd >>= LIMB30_BITS;
        ce >>= LIMB30_BITS;
    }
    d.limb[N - 1] = static_cast<int32_t>(cd);
    e.limb[N - 1] = static_cast<int32_t>(ce);
    VERIFY(d.limb[N - 1] == cd && e.limb[N - 1] == ce);
}

// --- the end of a run ---

// sign * d reduced to [0, m), sign = 1 or -1. |d| < 32 m. Variable time: |d| is seldom above m / 2.
template <int N>
__device__ __forceinline__ Signed30<N> reduce_var(const Signed30<N>& d, int32_t sign, const OddModulus<N>& m) {
    const bool negative = (d.limb[N - 1] < 0) != (sign < 0);
    Signed30<N> r = add_multiple(d, sign, negative ? 1 : 0, m);
    while (r.limb[N - 1] < 0) r = add_multiple(r, 1, 1, m);
    for (;;) {
        const Signed30<N> less = add_multiple(r, 1, -1, m);
        if (less.limb[N - 1] < 0) return r;
        r = less;
    }
}

// The same without a branch on d: a division by m that adds or subtracts 16 m, 8 m, ... m by the sign, so that |d| < 2^k m
// halves each time and ends in [-m, m).
template <int N>
__device__ __forceinline__ Signed30<N> reduce(const Signed30<N>& d, int32_t sign, const OddModulus<N>& m) {
    Signed30<N> r = add_multiple(d, sign, 0, m);
#pragma unroll
    for (int multiple = 16; multiple > 0; multiple /= 2)
        r = add_multiple(r, 1, r.limb[N - 1] < 0 ? multiple : -multiple, m);
    r = add_multiple(r, 1, r.limb[N - 1] < 0 ? 1 : 0, m);
    VERIFY(r.limb[N - 1] >= 0 && add_multiple(r, 1, -1, m).limb[N - 1] < 0);
    return r;
}

// 1 if a = 1, -1 if a = -1, else 0.
template <int N>
__device__ __forceinline__ int32_t unit_sign(const Signed30<N>& a) {
    int32_t from_one = a.limb[0] ^ 1, from_minus_one = a.limb[0] ^ LIMB30_MASK;
#pragma unroll
    for (int i = 1; i < N; ++i) {
        from_one |= a.limb[i];
        from_minus_one |= a.limb[i] ^ (i < N - 1 ? LIMB30_MASK : -1);
    }
    return from_one == 0 ? 1 : from_minus_one == 0 ? -1 : 0;
}

// --- inversion ---

// x = x^-1 mod m in [0, m) and true, or false where gcd(x, m) != 1 (x is then unspecified). m = 1: 0 and true.
// x: any integer in [0, 2^bits) of Batches<N>, not only x < m. Variable time: the number of batches and the length of f
// and g depend on the data. Inside a batch nothing does, so that the lanes of a warp, one inversion each, stay together.
template <int N>
__device__ __forceinline__ bool inverse_var(Signed30<N>& x, const OddModulus<N>& m) {
    VERIFY(has_limb_range(x) && x.limb[N - 1] >= 0);
    VERIFY((static_cast<uint32_t>(m.limb[0]) * m.negated_inverse4 + 4) == 0);
    Signed30<N> f, g = x, d = {}, e = {};
#pragma unroll
    for (int i = 0; i < N; ++i) f.limb[i] = m.limb[i];
    e.limb[0] = 1;
    int32_t y = INITIAL_Y;
    int length = N;
    for (int batch = 0;; ++batch) {
        VERIFY(batch < Batches<N>::value);
        const Transition t = divsteps30(y, static_cast<uint32_t>(f.limb[0]), static_cast<uint32_t>(g.limb[0]));
        const bool fell = update_fg_var(f, g, t, length);
        update_de(d, e, t, m);
        if (length == 1) {
            if (f.limb[0] == 1 || f.limb[0] == -1 || g.limb[0] == 0) break;
        } else if (t.u == 1 << DIVSTEPS && !fell) {
            // g was 0 mod 2^30. If it is 0, f is final, and it is not +-1: that would have made the length fall.
            int32_t bits = 0;
#pragma unroll
            for (int i = 0; i < N; ++i) bits |= i < length ? g.limb[i] : 0;
            if (bits == 0) return false;
        }
    }
    if (f.limb[0] != 1 && f.limb[0] != -1) return false;
    x = reduce_var(d, f.limb[0], m);
    return true;
}

// The same without a branch on x or m, in the same number of batches for all.
template <int N>
__device__ __forceinline__ bool inverse(Signed30<N>& x, const OddModulus<N>& m) {
    VERIFY(has_limb_range(x) && x.limb[N - 1] >= 0);
    VERIFY((static_cast<uint32_t>(m.limb[0]) * m.negated_inverse4 + 4) == 0);
    Signed30<N> f, g = x, d = {}, e = {};
#pragma unroll
    for (int i = 0; i < N; ++i) f.limb[i] = m.limb[i];
    e.limb[0] = 1;
    int32_t y = INITIAL_Y;
    for (int batch = 0; batch < Batches<N>::value; ++batch) {
        const Transition t = divsteps30(y, static_cast<uint32_t>(f.limb[0]), static_cast<uint32_t>(g.limb[0]));
        update_de(d, e, t, m);
        update_fg(f, g, t);
    }
    VERIFY(is_zero(g));
    const int32_t sign = unit_sign(f);
    x = reduce(d, sign < 0 ? -1 : 1, m);
    return sign != 0;
}

// The inverse modulo an even m, which divsteps cannot have as their odd f: with v = m^-1 mod x for the odd x,
// v in [1, x], the number k = (m v - 1) / x is an integer in [0, m), and x k = -1 (mod m): the inverse is m - k.
//
// words = words^-1 mod m in [1, m) and true, or false where gcd != 1 (words are then unspecified). modulus: m, even,
// m >= 2; m30: the same as Signed30. words: any integer; 32 W is at most bits of Batches<N>. Variable time.
template <int N, int W>
__device__ __forceinline__ bool inverse_even_var(uint32_t (&words)[W], const uint32_t (&modulus)[W], const Signed30<N>& m30) {
    static_assert(32 * W <= Batches<N>::bits, "the number of batches");
    VERIFY((modulus[0] & 1) == 0);
    if ((words[0] & 1) == 0) return false;
    Signed30<N> x = to_signed30<N>(words);
    OddModulus<N> odd;
#pragma unroll
    for (int i = 0; i < N; ++i) odd.limb[i] = x.limb[i];
    odd.negated_inverse4 = negated_inverse32(words[0]) * 4;
    Signed30<N> v = m30;
    if (!inverse_var(v, odd)) return false;
    // The words of x are made again from its limbs, which the run needs anyway: W registers less in its loop.
#pragma unroll
    for (int i = 0; i < N; ++i) x.limb[i] = odd.limb[i];
    from_signed30(words, x);
    const uint32_t negated_inverse = negated_inverse32(words[0]);
    uint32_t v_words[W], rest[W], quotient[W];
    from_signed30(v_words, v);
    if (limb::is_zero<W>(v_words)) v_words[0] = 1;  // x = 1, where v = 0 stands for v = x
    // rest = m v - 1 mod 2^(32 W); then q with rest + q x = 0 mod 2^(32 W), which is -k, one word at a time.
#pragma unroll
    for (int i = 0; i < W; ++i) rest[i] = 0xFFFFFFFFu;
    limb::low_multiply_add<W, W>(rest, v_words, modulus);
#pragma unroll
    for (int i = 0; i < W; ++i) {
        quotient[i] = rest[i] * negated_inverse;
        uint64_t carry = 0;
#pragma unroll
        for (int j = 0; i + j < W; ++j) {
            carry += static_cast<uint64_t>(quotient[i]) * words[j] + rest[i + j];
            rest[i + j] = static_cast<uint32_t>(carry);
            carry >>= 32;
        }
        VERIFY(rest[i] == 0);
    }
    limb::add<W>(words, quotient, modulus);
    return true;
}

}  // namespace safegcd
