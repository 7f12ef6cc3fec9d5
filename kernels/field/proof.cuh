// Compile-time proofs of a field's derived constants. Rendered params (ops/params/render.py) call these from
// static_assert, so that a wrong constant does not compile. Schoolbook arithmetic, evaluated by the compiler alone:
// nothing here runs on a device, though NVRTC accepts no other function.
#pragma once

#include "base/platform.cuh"

namespace proof {

template <int N>
struct Number {
    uint32_t limb[N];  // little-endian, any value below 2^(32N)
};

template <int N>
__device__ constexpr Number<N> number(const uint32_t (&limbs)[N]) {
    Number<N> out{};
    for (int i = 0; i < N; ++i) out.limb[i] = limbs[i];
    return out;
}

template <int N>
__device__ constexpr bool equal(const Number<N>& a, const Number<N>& b) {
    for (int i = 0; i < N; ++i)
        if (a.limb[i] != b.limb[i]) return false;
    return true;
}

template <int N>
__device__ constexpr bool less(const Number<N>& a, const Number<N>& b) {
    for (int i = N - 1; i >= 0; --i)
        if (a.limb[i] != b.limb[i]) return a.limb[i] < b.limb[i];
    return false;
}

// a - b modulo 2^(32N).
template <int N>
__device__ constexpr Number<N> subtract(const Number<N>& a, const Number<N>& b) {
    Number<N> out{};
    uint64_t borrow = 0;
    for (int i = 0; i < N; ++i) {
        const uint64_t word = uint64_t(a.limb[i]) - b.limb[i] - borrow;
        out.limb[i] = uint32_t(word);
        borrow = (word >> 32) & 1;
    }
    return out;
}

// a * 2^count modulo 2^(32N), 0 <= count < 32.
template <int N>
__device__ constexpr Number<N> shift_left(const Number<N>& a, int count) {
    Number<N> out{};
    for (int i = 0; i < N; ++i) {
        const uint64_t pair = uint64_t(a.limb[i]) << 32 | (i > 0 ? a.limb[i - 1] : 0u);
        out.limb[i] = uint32_t(pair << count >> 32);
    }
    return out;
}

// 2a mod m, for a < m.
template <int N>
__device__ constexpr Number<N> twice(const Number<N>& a, const Number<N>& m) {
    const Number<N> sum = shift_left(a, 1);
    const bool carry = a.limb[N - 1] >> 31;
    return carry || !less(sum, m) ? subtract(sum, m) : sum;
}

// a * b * 2^(-32N) mod m, canonical, for a, b < m, m odd and n0inv = -1/m modulo 2^32 (CIOS).
template <int N>
__device__ constexpr Number<N> montgomery(const Number<N>& a, const Number<N>& b, const Number<N>& m, uint32_t n0inv) {
    Number<N + 2> t{};
    for (int i = 0; i < N; ++i) {
        uint64_t carry = 0;
        for (int j = 0; j < N; ++j) {
            carry += uint64_t(a.limb[j]) * b.limb[i] + t.limb[j];
            t.limb[j] = uint32_t(carry);
            carry >>= 32;
        }
        carry += t.limb[N];
        t.limb[N] = uint32_t(carry);
        t.limb[N + 1] = uint32_t(carry >> 32);
        const uint32_t q = t.limb[0] * n0inv;
        carry = (uint64_t(q) * m.limb[0] + t.limb[0]) >> 32;
        for (int j = 1; j < N; ++j) {
            carry += uint64_t(q) * m.limb[j] + t.limb[j];
            t.limb[j - 1] = uint32_t(carry);
            carry >>= 32;
        }
        carry += t.limb[N];
        t.limb[N - 1] = uint32_t(carry);
        t.limb[N] = t.limb[N + 1] + uint32_t(carry >> 32);
    }
    Number<N> out{};
    for (int i = 0; i < N; ++i) out.limb[i] = t.limb[i];
    return t.limb[N] != 0 || !less(out, m) ? subtract(out, m) : out;
}

// m has exactly `bits` bits, needs all N limbs, and is odd.
template <int N>
__device__ constexpr bool is_modulus(const uint32_t (&m)[N], int bits) {
    const int top = bits - 32 * (N - 1);
    return top >= 1 && top <= 32 && (m[N - 1] >> (top - 1)) == 1u && (m[0] & 1u) == 1u;
}

// n0inv = -m^-1 modulo 2^32.
template <int N>
__device__ constexpr bool is_n0inv(const uint32_t (&m)[N], uint32_t n0inv) {
    return uint32_t(m[0] * n0inv) == 0xFFFFFFFFu;
}

// r = 2^(32N) mod m, for m > 1.
template <int N>
__device__ constexpr bool is_r(const uint32_t (&m)[N], const uint32_t (&r)[N]) {
    Number<N> power{};
    power.limb[0] = 1;
    for (int i = 0; i < 32 * N; ++i) power = twice(power, number(m));
    return equal(power, number(r));
}

// r2 = r^2 mod m: canonical, and one Montgomery reduction away from r.
template <int N>
__device__ constexpr bool is_r2(const uint32_t (&m)[N], const uint32_t (&r)[N], const uint32_t (&r2)[N], uint32_t n0inv) {
    Number<N> one{};
    one.limb[0] = 1;
    return less(number(r2), number(m)) && equal(montgomery(number(r2), one, number(m), n0inv), number(r));
}

// mu = floor(B^2 / d) - B with B = 2^(32N) and d = m 2^shift, B/2 <= d < B. Equivalent: 0 <= B(B - d) - mu d < d.
template <int N>
__device__ constexpr bool is_mu(const uint32_t (&m)[N], int shift, const uint32_t (&mu)[N]) {
    const Number<N> d = shift_left(number(m), shift);
    if (d.limb[N - 1] >> 31 == 0) return false;
    const Number<N> negative = subtract(Number<N>{}, d);  // B - d
    Number<2 * N> product{}, rest{};
    for (int i = 0; i < N; ++i) {
        uint64_t carry = 0;
        for (int j = 0; j < N; ++j) {
            carry += uint64_t(mu[i]) * d.limb[j] + product.limb[i + j];
            product.limb[i + j] = uint32_t(carry);
            carry >>= 32;
        }
        product.limb[i + N] = uint32_t(carry);
    }
    for (int i = 0; i < N; ++i) rest.limb[N + i] = negative.limb[i];
    if (less(rest, product)) return false;
    rest = subtract(rest, product);
    Number<N> low{};
    for (int i = 0; i < N; ++i) {
        low.limb[i] = rest.limb[i];
        if (rest.limb[N + i] != 0) return false;
    }
    return less(low, d);
}

// root, in Montgomery form, has order exactly 2^k, k >= 1: its 2^(k-1)-th power is -1.
template <int N>
__device__ constexpr bool is_root(const uint32_t (&m)[N], const uint32_t (&r)[N], uint32_t n0inv, const uint32_t (&root)[N], int k) {
    Number<N> power = number(root);
    for (int i = 1; i < k; ++i) power = montgomery(power, power, number(m), n0inv);
    return k >= 1 && equal(power, subtract(number(m), number(r)));
}

}  // namespace proof
