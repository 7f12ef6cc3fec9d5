// limb/dot.cuh on CUDA: the two accumulators of limb/ptx_split.cuh.
#pragma once

#include "limb/ptx_split.cuh"

namespace limb {

__device__ __forceinline__ uint32_t mask_above(uint32_t x, uint32_t threshold) {
    uint32_t mask;
    asm("set.gt.u32.u32 %0, %1, %2;" : "=r"(mask) : "r"(x), "r"(threshold));
    return mask;
}

// State between rows as in limb/ptx_split.cuh, WIDE with a word above each accumulator:
//
//     value = [even] + top.even W^N + W ([odd] + top.odd W^N),   even[0] = 0 after a reduction
//     value / W = ([odd] + even[1] + top.odd W^N) + W ([even] / W^2 + top.even W^(N-2)), rounded down to words
//
// so that `odd` becomes the even accumulator and keeps its word above, and top.even becomes word N - 2 of the odd one.
//
// Bounds: the value is below (P + 1) [m] W (limb/ptx_split.cuh). Without WIDE that is at most W^(N+1), and a carry of the even
// accumulator goes into the odd one's last word, which is the value's last. WIDE counts the carries, at most one for each of
// the P + 1 products; the even accumulator has those of the row before as well. The first row of `next`, whose carry is not
// counted, has none: it starts from [even] / W^2 + top.even W^(N-2) < (2 P + 3) W^(N-2), and its products are at most
// W^N - 2 W^(N-1) + 2 W^(N-2). None of this needs to know how many rows there are.
struct Tops {
    uint32_t even, odd;
};

template <int N, bool WIDE>
__device__ __forceinline__ void even_row(uint32_t* even, uint32_t* odd, const uint32_t* v, uint32_t w, Tops& top) {
    uint32_t none = 0;
    row<N / 2>(even, v, w, WIDE ? top.even : odd[N - 1], none);
}

template <int N, bool WIDE>
__device__ __forceinline__ void odd_row(uint32_t* odd, const uint32_t* v, uint32_t w, Tops& top) {
    uint32_t none = 0, dropped = 0;
    row<N / 2>(odd, v, w, WIDE ? top.odd : dropped, none);
}

// The rows of the parts FROM..P-1 and the reduction's, on accumulators with even at word 0.
template <int N, int P, bool WIDE, int S, int FROM, int I>
__device__ __forceinline__ void dot_row(uint32_t* even, uint32_t* odd, Tops& top, const uint32_t* x, const uint32_t* w,
                                        const uint32_t* m, uint32_t n0) {
    if constexpr (FROM < P) {
        odd_row<N, WIDE>(odd, w + FROM * N + 1, x[FROM * S + I], top);
        even_row<N, WIDE>(even, odd, w + FROM * N, x[FROM * S + I], top);
        dot_row<N, P, WIDE, S, FROM + 1, I>(even, odd, top, x, w, m, n0);
    } else {
        const uint32_t q = even[0] * n0;
        odd_row<N, WIDE>(odd, m + 1, q, top);
        even_row<N, WIDE>(even, odd, m, q, top);
    }
}

template <int N, int P, bool WIDE, int S, int I>
__device__ __forceinline__ uint32_t dot_rows(uint32_t* even, uint32_t* odd, Tops top, uint32_t* r, const uint32_t* x,
                                             const uint32_t* w, const uint32_t* m, uint32_t n0) {
    if constexpr (I == S) {
        even[N] = WIDE ? top.even : 0;
        const uint32_t carry = add<N>(r, odd, even + 1);
        return WIDE ? carry + top.odd : 0;
    } else {
        uint32_t next[N + 1];
        UNROLL
        for (int k = 0; k < N - 2; ++k) next[k] = even[k + 2];
        next[N - 2] = WIDE ? top.even : 0;
        next[N - 1] = 0;
        top = {top.odd, 0};
        row_after_add<N / 2>(next, w + 1, x[I], odd[0], even[1]);
        even_row<N, WIDE>(odd, next, w, x[I], top);
        dot_row<N, P, WIDE, S, 1, I>(odd, next, top, x, w, m, n0);
        return dot_rows<N, P, WIDE, S, I + 1>(odd, next, top, r, x, w, m, n0);
    }
}

template <int N, int P, bool WIDE, int S = N / 2>
__device__ __forceinline__ uint32_t dot_product(uint32_t* r, const uint32_t* x, const uint32_t* w, const uint32_t* m,
                                                uint32_t n0) {
    static_assert(N % 2 == 0 && P >= 2 && P <= 4, "parts of whole words");
    uint32_t even[N + 1], odd[N + 1];
    Tops top = {0, 0};
    row_multiply<N / 2>(even, w, x[0]);
    row_multiply<N / 2>(odd, w + 1, x[0]);
    dot_row<N, P, WIDE, S, 1, 0>(even, odd, top, x, w, m, n0);
    return dot_rows<N, P, WIDE, S, 1>(even, odd, top, r, x, w, m, n0);
}

}  // namespace limb
