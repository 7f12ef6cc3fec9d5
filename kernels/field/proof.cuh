// Compile-time proofs of the derived constants of fields and curves. Rendered params (ops/params/render.py) call these from
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

// 2a mod m, for a < m.
template <int N>
__device__ constexpr Number<N> twice(const Number<N>& a, const Number<N>& m) {
    Number<N> sum{};
    uint32_t carry = 0;
    for (int i = 0; i < N; ++i) {
        sum.limb[i] = a.limb[i] << 1 | carry;
        carry = a.limb[i] >> 31;
    }
    return carry != 0 || !less(sum, m) ? subtract(sum, m) : sum;
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

// m has exactly `bits` bits and is odd.
template <int N>
__device__ constexpr bool is_modulus(const uint32_t (&m)[N], int bits) {
    int used = 0;
    for (int i = 0; i < 32 * N; ++i)
        if (m[i / 32] >> (i % 32) & 1u) used = i + 1;
    return used == bits && bits > 1 && (m[0] & 1u) == 1u;
}

// k is the largest with 2^k | m - 1, for m odd.
template <int N>
__device__ constexpr bool is_two_adicity(const uint32_t (&m)[N], int k) {
    int lowest = 1;
    while (lowest < 32 * N && (m[lowest / 32] >> (lowest % 32) & 1u) == 0) ++lowest;
    return lowest == k;
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

// root, in Montgomery form, is generator^((m - 1) / 2^k), and of order exactly 2^k: its 2^(k-1)-th power is -1.
// generator: plain, below m; k >= 1.
template <int N>
__device__ constexpr bool is_root(const uint32_t (&m)[N], const uint32_t (&r)[N], const uint32_t (&r2)[N], uint32_t n0inv,
                                  const uint32_t (&generator)[N], const uint32_t (&root)[N], int k) {
    const Number<N> base = montgomery(number(generator), number(r2), number(m), n0inv);
    Number<N> power = number(r);
    for (int bit = 32 * N - 1; bit >= k; --bit) {  // m - 1 differs from m in bit 0 alone, and k >= 1
        power = montgomery(power, power, number(m), n0inv);
        if (m[bit / 32] >> (bit % 32) & 1u) power = montgomery(power, base, number(m), n0inv);
    }
    if (!equal(power, number(root))) return false;
    for (int i = 1; i < k; ++i) power = montgomery(power, power, number(m), n0inv);
    return k >= 1 && equal(power, subtract(number(m), number(r)));
}

// --- curves: a coordinate is DEGREE numbers in Montgomery form, one after the other (c0, c1 for c0 + c1 u, u^2 = -1) ------

template <int DEGREE, int N>
struct Coordinate {
    Number<N> part[DEGREE];
};

template <int DEGREE, int N>
__device__ constexpr Coordinate<DEGREE, N / DEGREE> coordinate(const uint32_t (&limbs)[N]) {
    Coordinate<DEGREE, N / DEGREE> out{};
    for (int i = 0; i < N; ++i) out.part[i / (N / DEGREE)].limb[i % (N / DEGREE)] = limbs[i];
    return out;
}

template <int DEGREE, int N>
__device__ constexpr bool equal(const Coordinate<DEGREE, N>& a, const Coordinate<DEGREE, N>& b) {
    for (int i = 0; i < DEGREE; ++i)
        if (!equal(a.part[i], b.part[i])) return false;
    return true;
}

// a - b mod m and a + b mod m, for a, b < m.
template <int N>
__device__ constexpr Number<N> difference(const Number<N>& a, const Number<N>& b, const Number<N>& m) {
    return less(a, b) ? subtract(a, subtract(b, m)) : subtract(a, b);
}

template <int N>
__device__ constexpr Number<N> sum(const Number<N>& a, const Number<N>& b, const Number<N>& m) {
    return difference(a, difference(Number<N>{}, b, m), m);
}

template <int DEGREE, int N>
__device__ constexpr Coordinate<DEGREE, N> sum(const Coordinate<DEGREE, N>& a, const Coordinate<DEGREE, N>& b,
                                               const Number<N>& m) {
    Coordinate<DEGREE, N> out{};
    for (int i = 0; i < DEGREE; ++i) out.part[i] = sum(a.part[i], b.part[i], m);
    return out;
}

template <int DEGREE, int N>
__device__ constexpr Coordinate<DEGREE, N> product(const Coordinate<DEGREE, N>& a, const Coordinate<DEGREE, N>& b,
                                                   const Number<N>& m, uint32_t n0inv) {
    static_assert(DEGREE <= 2, "u^2 = -1");
    Coordinate<DEGREE, N> out{};
    for (int i = 0; i < DEGREE; ++i) {
        for (int j = 0; j < DEGREE; ++j) {
            const Number<N> term = montgomery(a.part[i], b.part[j], m, n0inv);
            Number<N>& to = out.part[(i + j) % DEGREE];
            to = i + j < DEGREE ? sum(to, term, m) : difference(to, term, m);
        }
    }
    return out;
}

// y^2 = x^3 + b.
template <int DEGREE, int M, int N>
__device__ constexpr bool is_on_curve(const uint32_t (&modulus)[M], uint32_t n0inv, const uint32_t (&x)[N],
                                      const uint32_t (&y)[N], const uint32_t (&b)[N]) {
    const Number<M> m = number(modulus);
    const auto cx = coordinate<DEGREE>(x), cy = coordinate<DEGREE>(y);
    const auto cube = product(product(cx, cx, m, n0inv), cx, m, n0inv);
    return equal(product(cy, cy, m, n0inv), sum(cube, coordinate<DEGREE>(b), m));
}

// triple = 3 a.
template <int DEGREE, int M, int N>
__device__ constexpr bool is_triple(const uint32_t (&modulus)[M], const uint32_t (&a)[N],
                                    const uint32_t (&triple)[N]) {
    const Number<M> m = number(modulus);
    const auto one = coordinate<DEGREE>(a);
    return equal(sum(sum(one, one, m), one, m), coordinate<DEGREE>(triple));
}

// Every part of a is k, in Montgomery form; one: R mod m.
template <int DEGREE, int M, int N>
__device__ constexpr bool is_multiple_of_ones(const uint32_t (&modulus)[M], const uint32_t (&one)[M],
                                              const uint32_t (&a)[N], int k) {
    const Number<M> m = number(modulus);
    Number<M> multiple{};
    for (int i = 0; i < k; ++i) multiple = sum(multiple, number(one), m);
    for (int i = 0; i < DEGREE; ++i)
        if (!equal(coordinate<DEGREE>(a).part[i], multiple)) return false;
    return true;
}

}  // namespace proof
