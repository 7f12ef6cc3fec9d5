// limb/dot.cuh for any C++ compiler.
#pragma once

#include "limb/portable_split.cuh"

namespace limb {

__forceinline__ uint32_t mask_above(uint32_t x, uint32_t threshold) { return x > threshold ? ~0u : 0; }

template <int N, int P, bool WIDE, int S = N / 2>
__forceinline__ uint32_t dot_product(uint32_t* r, const uint32_t* x, const uint32_t* w, const uint32_t* m, uint32_t n0) {
    uint32_t z[N + S + 2] = {};
    UNROLL
    for (int i = 0; i < S; ++i) {
        UNROLL
        for (int k = 0; k <= P; ++k) {
            const uint32_t factor = k < P ? x[k < P ? k * S + i : 0] : z[i] * n0;
            const uint32_t carry = multiply_accumulate<N>(z + i, k < P ? w + (k < P ? k * N : 0) : m, factor);
            const uint64_t sum = uint64_t(z[i + N]) + carry;
            z[i + N] = uint32_t(sum);
            z[i + N + 1] += uint32_t(sum >> 32);
        }
    }
    VERIFY(WIDE || z[N + S] == 0);
    VERIFY(z[N + S + 1] == 0);
    UNROLL
    for (int i = 0; i < N; ++i) r[i] = z[S + i];
    return z[N + S];
}

}  // namespace limb
