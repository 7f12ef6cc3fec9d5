// limb/split.cuh for any C++ compiler.
#pragma once

#include "limb/portable_product.cuh"

namespace limb {

// 64-bit words where a part is a whole number of them.
template <int N, int P>
__forceinline__ void split_product(uint32_t* r, const uint32_t* x, const uint32_t* w, const uint32_t* m, uint32_t n0) {
    static_assert(N % 2 == 0, "an odd number of limbs is padded to an even one");
    constexpr int S = (N + P - 1) / P;
    if constexpr (S % 2 == 0) {
        constexpr int L = N / 2, SL = S / 2;
        Word v[L], c[P * L], p[L], z[L + SL + 1] = {};
        load<N>(v, x);
        load<P * N>(c, w);
        load<N>(p, m);
        const Word inverse = widen_inverse(n0, p[0]);
        UNROLL
        for (int i = 0; i < SL; ++i) {
            UNROLL
            for (int k = 0; k <= P; ++k) {
                if (k < P && k * SL + i >= L) continue;
                const Word factor = k < P ? v[k < P ? k * SL + i : 0] : z[i] * inverse;
                const Word* const row = k < P ? c + (k < P ? k * L : 0) : p;
                Word carry = 0;
                UNROLL
                for (int j = 0; j < L; ++j) carry = multiply_add_word(z[i + j], row[j], factor, carry);
                z[i + L] += carry;
                z[i + L + 1] += z[i + L] < carry;
            }
        }
        store<N>(r, z + SL);
        VERIFY(z[L + SL] == 0);
    } else {
        uint32_t z[N + S + 1] = {};
        UNROLL
        for (int i = 0; i < S; ++i) {
            UNROLL
            for (int k = 0; k <= P; ++k) {
                if (k < P && k * S + i >= N) continue;
                const uint32_t factor = k < P ? x[k < P ? k * S + i : 0] : z[i] * n0;
                const uint32_t carry = multiply_accumulate<N>(z + i, k < P ? w + (k < P ? k * N : 0) : m, factor);
                const uint64_t sum = uint64_t(z[i + N]) + carry;
                z[i + N] = uint32_t(sum);
                z[i + N + 1] += uint32_t(sum >> 32);
            }
        }
        VERIFY(z[N + S] == 0);
        UNROLL
        for (int i = 0; i < N; ++i) r[i] = z[S + i];
    }
}

template <int N>
__forceinline__ void high_product(uint32_t* h, const uint32_t* x, const uint32_t* y) {
    uint32_t t[2 * N];
    wide_product<N>(t, x, y);
    UNROLL
    for (int i = 0; i < N; ++i) h[i] = t[N + i];
}

template <int N>
__forceinline__ void subtract_if_above(uint32_t* r, uint32_t threshold, const uint32_t* k) {
    uint32_t difference[N];
    const bool above = r[N - 1] > threshold;
    subtract<N>(difference, r, k);
    UNROLL
    for (int i = 0; i < N; ++i) r[i] = above ? difference[i] : r[i];
}

template <int N>
__forceinline__ void difference_or_add(uint32_t* r, const uint32_t* a, const uint32_t* b, const uint32_t* k) {
    uint32_t difference[N], raised[N];
    const bool below = subtract<N>(difference, a, b) != 0;
    add<N>(raised, difference, k);
    UNROLL
    for (int i = 0; i < N; ++i) r[i] = below ? raised[i] : difference[i];
}

}  // namespace limb
