// Products of limb/limb.cuh for any C++ compiler: schoolbook rows over 64-bit words. Contracts stand in limb/limb.cuh.
#pragma once

#include "limb/portable.cuh"

namespace limb {

template <int N>
__forceinline__ void wide_product(uint32_t* t, const uint32_t* a, const uint32_t* b) {
    constexpr int L = WORDS<N>;
    Word x[L], y[L], z[2 * L] = {};
    load<N>(x, a);
    load<N>(y, b);
    UNROLL
    for (int i = 0; i < L; ++i) {
        Word carry = 0;
        UNROLL
        for (int j = 0; j < L; ++j) carry = multiply_add_word(z[i + j], x[j], y[i], carry);
        z[i + L] = carry;
    }
    store<2 * N>(t, z);
}

template <int N>
__forceinline__ void wide_square(uint32_t* t, const uint32_t* a) {
    constexpr int L = WORDS<N>;
    Word x[L], z[2 * L] = {};
    load<N>(x, a);
    UNROLL
    for (int i = 0; i < L; ++i) {
        Word carry = 0;
        UNROLL
        for (int j = i + 1; j < L; ++j) carry = multiply_add_word(z[i + j], x[j], x[i], carry);
        z[i + L] = carry;
    }
    UNROLL
    for (int i = 2 * L - 1; i > 0; --i) z[i] = z[i] << 1 | z[i - 1] >> 63;
    z[0] <<= 1;
    Word carry = 0;
    UNROLL
    for (int i = 0; i < L; ++i) {
        const Wide low = Wide(x[i]) * x[i] + z[2 * i] + carry;
        z[2 * i] = Word(low);
        const Wide high = Wide(z[2 * i + 1]) + Word(low >> 64);
        z[2 * i + 1] = Word(high);
        carry = Word(high >> 64);
    }
    store<2 * N>(t, z);
}

template <int K, int Q>
__forceinline__ void low_multiply_add(uint32_t* r, const uint32_t* q, const uint32_t* v) {
    static_assert(Q <= K, "words of the factor above W^K");
    constexpr int L = WORDS<K>;
    Word x[WORDS<Q>], y[L], z[L];
    load<Q>(x, q);
    load<K>(y, v);
    load<K>(z, r);
    UNROLL
    for (int i = 0; i < WORDS<Q>; ++i) {
        Word carry = 0;
        UNROLL
        for (int j = 0; i + j < L; ++j) carry = multiply_add_word(z[i + j], y[j], x[i], carry);
    }
    store<K>(r, z);
}

template <int N>
__forceinline__ void monic_multiply_add(uint32_t* r, const uint32_t* a, const uint32_t* v, uint32_t w) {
    static_assert(N % 2 == 0, "as in limb/ptx_product.cuh");
    constexpr int L = WORDS<N>;
    Word x[L], z[L], carry = 0;
    load<N>(x, v);
    load<N>(z, a);
    UNROLL
    for (int i = 0; i < L; ++i) carry = multiply_add_word(z[i], x[i], Word(1) << 32 | w, carry);
    store<N>(r, z);
    r[N] = uint32_t(carry);
    r[N + 1] = uint32_t(carry >> 32);
}

// The whole product is formed here, so that the loss is only that of lo y' W^(N-2).
template <int N>
__forceinline__ void estimate_quotient(uint32_t* q, const uint32_t* x, const uint32_t* y, uint32_t lo) {
    constexpr int L = WORDS<2 * N>, AT = (N - 1) / 2;  // the word with limb N - 1
    uint32_t product[2 * N];
    Word z[L];
    wide_product<N>(product, x, y);
    load<2 * N>(z, product);
    const Word correction = Word(lo) + (Word(lo) * y[N - 1] >> 32);
    Wide sum = z[AT] + (Wide(correction) << (N % 2 ? 0 : 32));
    z[AT] = Word(sum);
    UNROLL
    for (int i = AT + 1; i < L; ++i) {
        sum = z[i] + (sum >> 64);
        z[i] = Word(sum);
    }
    store<2 * N>(product, z);
    add<N>(q, product + N, x);
}

// -m^-1 mod 2^64 from n0 = -m^-1 mod 2^32, by one step of Newton's iteration: n (2 + m n).
__forceinline__ Word widen_inverse(uint32_t n0, Word m) { return n0 * (2 + m * n0); }

template <int N, bool FULL>
__forceinline__ uint32_t montgomery_product(uint32_t* r, const uint32_t* a, const uint32_t* b, const uint32_t* m,
                                            uint32_t n0) {
    static_assert(N % 2 == 0, "an odd number of limbs is padded to an even one");
    constexpr int L = N / 2;
    Word x[L], y[L], p[L], z[L + 2] = {};
    load<N>(x, a);
    load<N>(y, b);
    load<N>(p, m);
    const Word inverse = widen_inverse(n0, p[0]);
    UNROLL
    for (int i = 0; i < L; ++i) {
        Word carry = 0;
        UNROLL
        for (int j = 0; j < L; ++j) carry = multiply_add_word(z[j], x[j], y[i], carry);
        Wide sum = Wide(z[L]) + carry;
        z[L] = Word(sum);
        z[L + 1] = Word(sum >> 64);
        const Word w = z[0] * inverse;
        Wide column = Wide(w) * p[0] + z[0];
        carry = Word(column >> 64);
        UNROLL
        for (int j = 1; j < L; ++j) {
            column = Wide(w) * p[j] + z[j] + carry;
            z[j - 1] = Word(column);
            carry = Word(column >> 64);
        }
        sum = Wide(z[L]) + carry;
        z[L - 1] = Word(sum);
        z[L] = z[L + 1] + Word(sum >> 64);
    }
    store<N>(r, z);
    VERIFY(FULL || z[L] == 0);
    return uint32_t(z[L]);
}

template <int N>
__forceinline__ uint32_t montgomery_reduce(uint32_t* r, const uint32_t* t, const uint32_t* m, uint32_t n0) {
    static_assert(N % 2 == 0, "an odd number of limbs is padded to an even one");
    constexpr int L = N / 2;
    Word p[L], z[2 * L], top = 0;
    load<N>(p, m);
    load<2 * N>(z, t);
    const Word inverse = widen_inverse(n0, p[0]);
    UNROLL
    for (int i = 0; i < L; ++i) {
        const Word w = z[i] * inverse;
        Word carry = 0;
        UNROLL
        for (int j = 0; j < L; ++j) carry = multiply_add_word(z[i + j], p[j], w, carry);
        const Wide sum = Wide(z[i + L]) + carry + top;
        z[i + L] = Word(sum);
        top = Word(sum >> 64);
    }
    store<N>(r, z + L);
    return uint32_t(top);
}

}  // namespace limb
