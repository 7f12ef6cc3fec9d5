// limb/split.cuh on CUDA: the two accumulators of limb/ptx_product.cuh, and predicated carry chains.
#pragma once

#include "limb/ptx_product.cuh"

namespace limb {

// --- [r] = (sum of x_k w_k + q [m]) / W^S ----------------------------------------------------------------------------

// State between rows as in montgomery_rows: value = [even] + W [odd], even[0] = 0.
//
// Bound: value / W < (P + 1) [m] before row i. The row adds at most (W - 1) (P [m] + [m]), so that afterwards value <
// (P + 1) [m] + (W - 1) (P + 1) [m] = W (P + 1) [m] <= W^(N + 1): word N is the last one. Each accumulator is at most
// value, so nothing leaves the odd rows, whose last product ends in word N, and the carry of an even row stops there.

// The rows of the parts FROM..P-1 and the reduction's, on accumulators with even at word 0.
template <int N, int P, int FROM, int I>
__device__ __forceinline__ void split_row(uint32_t* even, uint32_t* odd, const uint32_t* x, const uint32_t* w,
                                          const uint32_t* m, uint32_t n0) {
    constexpr int S = (N + P - 1) / P, H = N / 2;
    uint32_t none = 0;
    if constexpr (FROM < P && FROM * S + I < N) {
        row<H>(odd, w + FROM * N + 1, x[FROM * S + I], none, none);
        row<H>(even, w + FROM * N, x[FROM * S + I], odd[N - 1], none);
        split_row<N, P, FROM + 1, I>(even, odd, x, w, m, n0);
    } else {
        const uint32_t q = even[0] * n0;
        row<H>(odd, m + 1, q, none, none);
        row<H>(even, m, q, odd[N - 1], none);
    }
}

template <int N, int P, int I>
__device__ __forceinline__ void split_rows(uint32_t* even, uint32_t* odd, uint32_t* r, const uint32_t* x,
                                           const uint32_t* w, const uint32_t* m, uint32_t n0) {
    constexpr int S = (N + P - 1) / P, H = N / 2;
    if constexpr (I == S) {
        even[N] = 0;
        add<N>(r, odd, even + 1);
    } else {
        uint32_t none = 0, next[N + 1];
        UNROLL
        for (int k = 0; k < N - 2; ++k) next[k] = even[k + 2];
        next[N - 2] = next[N - 1] = 0;
        row_after_add<H>(next, w + 1, x[I], odd[0], even[1]);
        row<H>(odd, w, x[I], next[N - 1], none);
        split_row<N, P, 1, I>(odd, next, x, w, m, n0);
        split_rows<N, P, I + 1>(odd, next, r, x, w, m, n0);
    }
}

template <int N, int P>
__device__ __forceinline__ void split_product(uint32_t* r, const uint32_t* x, const uint32_t* w, const uint32_t* m,
                                              uint32_t n0) {
    static_assert(N % 2 == 0, "an odd number of limbs is padded to an even one");
    uint32_t even[N + 1], odd[N + 1];
    row_multiply<N / 2>(even, w, x[0]);
    row_multiply<N / 2>(odd, w + 1, x[0]);
    split_row<N, P, 1, 0>(even, odd, x, w, m, n0);
    split_rows<N, P, 1>(even, odd, r, x, w, m, n0);
}

// --- the quotient of Shoup's product ---------------------------------------------------------------------------------

// The columns of estimate_quotient, without its corrections: what is left out is below (N - 2) W^N (1 + 2^-30) / W, and
// flooring adds less than 1.
template <int N>
__device__ __forceinline__ void high_product(uint32_t* h, const uint32_t* x, const uint32_t* y) {
    static_assert(N >= 2, "a column below the result");
    uint32_t even[N + 4] = {}, odd[N + 4] = {}, sum[N + 1];
    upper_rows<N, 0>(even, odd, x, y);
    add<N + 1>(sum, even + 1, odd);
    copy<N>(h, sum + 1);
}

// --- predicated chains -----------------------------------------------------------------------------------------------

#define LIMB_SUB_IF_FIRST(r, a, b) "@p sub.cc.u32 %" #r ", %" #r ", %" #b ";\n\t"
#define LIMB_SUB_IF(r, a, b) "@p subc.cc.u32 %" #r ", %" #r ", %" #b ";\n\t"
#define LIMB_ADD_IF_FIRST(r, a, b) "@p add.cc.u32 %" #r ", %" #r ", %" #b ";\n\t"
#define LIMB_ADD_IF(r, a, b) "@p addc.cc.u32 %" #r ", %" #r ", %" #b ";\n\t"

template <int N>
__device__ __forceinline__ void subtract_if_above(uint32_t* r, uint32_t threshold, const uint32_t* k) {
    static_assert(N >= 1 && N <= 13, "slots");
    uint32_t top = r[N - 1], spare = 0;
    LIMB_ASM_LONG(N, LIMB_CHAIN, "{.reg .pred p;\n\tsetp.gt.u32 p, %13, %14;\n\t", LIMB_SUB_IF_FIRST, LIMB_SUB_IF, "}",
                  LIMB_OUT13("+&r", N, r), "+&r"(top) : "r"(threshold), "r"(0), "r"(0), "r"(0), "r"(0), "r"(0), "r"(0),
                  "r"(0), "r"(0), "r"(0), "r"(0), "r"(0), "r"(0), LIMB_IN13(N, k));
}

template <int N>
__device__ __forceinline__ void add_if(uint32_t* r, uint32_t mask, const uint32_t* k) {
    uint32_t spare = 0;
    LIMB_ASM_LONG(N, LIMB_CHAIN, "{.reg .pred p;\n\tsetp.ne.u32 p, %13, 0;\n\t", LIMB_ADD_IF_FIRST, LIMB_ADD_IF, "}",
                  LIMB_OUT13("+&r", N, r), "+&r"(mask) : "r"(0), "r"(0), "r"(0), "r"(0), "r"(0), "r"(0), "r"(0),
                  "r"(0), "r"(0), "r"(0), "r"(0), "r"(0), "r"(0), LIMB_IN13(N, k));
}

template <int N>
__device__ __forceinline__ void difference_or_add(uint32_t* r, const uint32_t* a, const uint32_t* b, const uint32_t* k) {
    uint32_t difference[N];
    const uint32_t borrow = subtract<N>(difference, a, b);
    add_if<N>(difference, borrow, k);
    copy<N>(r, difference);
}

}  // namespace limb
