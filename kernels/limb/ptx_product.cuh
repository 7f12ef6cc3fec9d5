// Products of limb/limb.cuh on CUDA, by two accumulators.
//
// The 64-bit partial products a[j] b[i] with i + j even go to `even`, the others to `odd`; the value is
// [even] + W [odd]. Within one accumulator every product lies on an aligned pair of registers, so that it is a single
// multiply-add with carry, and one addition at the end joins the two.
//
// A row is one b[i] times every second limb of a. Why its carry stops at the next word: after row i an accumulator is
// at most [a] (b[0] + .. + b[i] W^i) < W^(N + i + 1). A row whose last product is a[N-1] b[i] ends in word N + i, so
// its carry is 0; one whose last product is a[N-2] b[i] carries into word N + i, which is 0 until then.
#pragma once

#include "limb/ptx.cuh"

namespace limb {

// One row of a plain product at acc: v has COUNT products; CARRY where the last one is a[N-2] b[i].
template <int COUNT, bool CARRY>
__device__ __forceinline__ void product_row(uint32_t* acc, const uint32_t* v, uint32_t w) {
    uint32_t none = 0, over = 0;
    if constexpr (COUNT > 0 && CARRY) row<COUNT>(acc, v, w, acc[2 * COUNT], over);
    if constexpr (COUNT > 0 && !CARRY) row<COUNT>(acc, v, w, none, over);
}

// --- [t] = [a][b] ----------------------------------------------------------------------------------------------------

template <int N, int I>
__device__ __forceinline__ void wide_rows(uint32_t* even, uint32_t* odd, const uint32_t* a, const uint32_t* b) {
    constexpr int EVENS = (N + 1) / 2, ODDS = N / 2;
    if constexpr (I % 2 == 0) {
        product_row<EVENS, N % 2 == 0>(even + I, a, b[I]);
        product_row<ODDS, N % 2 == 1>(odd + I, a + 1, b[I]);
    } else {
        product_row<EVENS, N % 2 == 0>(odd + I - 1, a, b[I]);
        product_row<ODDS, N % 2 == 1>(even + I + 1, a + 1, b[I]);
    }
    if constexpr (I + 1 < N) wide_rows<N, I + 1>(even, odd, a, b);
}

template <int N>
__device__ __forceinline__ void wide_product(uint32_t* t, const uint32_t* a, const uint32_t* b) {
    uint32_t even[2 * N + 2] = {}, odd[2 * N + 2] = {};
    row_multiply<(N + 1) / 2>(even, a, b[0]);
    row_multiply<N / 2>(odd, a + 1, b[0]);
    if constexpr (N > 1) wide_rows<N, 1>(even, odd, a, b);
    t[0] = even[0];
    add<2 * N - 1>(t + 1, even + 1, odd);
}

// --- [t] = [a]^2: the products of two different limbs once, doubled, and the squares ---------------------------------

// Row i: a[i] times the limbs above it. a[i] a[i+1], a[i] a[i+3].. are odd and begin at word 2i + 1; a[i] a[i+2].. are
// even and begin at word 2i + 2.
// Carries: the accumulators are below [a] (a[0] + .. + a[i] W^i) again.
template <int N, int I>
__device__ __forceinline__ void square_rows(uint32_t* even, uint32_t* odd, const uint32_t* a) {
    constexpr int ODDS = (N - I) / 2, EVENS = (N - I - 1) / 2;
    product_row<ODDS, (N - I) % 2 == 1>(odd + 2 * I, a + I + 1, a[I]);
    product_row<EVENS, (N - I) % 2 == 0>(even + 2 * I + 2, a + I + 2, a[I]);
    if constexpr (I + 2 < N) square_rows<N, I + 1>(even, odd, a);
}

template <int N>
__device__ __forceinline__ void wide_square(uint32_t* t, const uint32_t* a) {
    uint32_t even[2 * N + 2] = {}, odd[2 * N + 2] = {};
    if constexpr (N > 1) {
        row_multiply<N / 2>(odd, a + 1, a[0]);
        row_multiply<(N - 1) / 2>(even + 2, a + 2, a[0]);
        if constexpr (N > 2) square_rows<N, 1>(even, odd, a);
        add<2 * N - 1>(even + 1, even + 1, odd);
    }
    UNROLL
    for (int i = 2 * N - 1; i > 0; --i) t[i] = __funnelshift_l(even[i - 1], even[i], 1);
    t[0] = 0;
    if constexpr (N <= 6) {
        diagonal<N>(t, a, 0);
    } else {
        diagonal<N - 6>(t + 12, a + 6, diagonal<6>(t, a, 0));
    }
}

// --- [r] = [r] + [q][v] mod W^K --------------------------------------------------------------------------------------

// Row i: the limbs 0..K-1-i of v; of the product in word K - 1 only the low half counts.
template <int K, int Q, int I>
__device__ __forceinline__ void low_rows(uint32_t* even, uint32_t* odd, const uint32_t* q, const uint32_t* v) {
    constexpr int FIRST = (K - I + 1) / 2, SECOND = (K - I) / 2;  // products with v[0], v[2].. and with v[1], v[3]..
    uint32_t* const first = I % 2 == 0 ? even + I : odd + I - 1;
    uint32_t* const second = I % 2 == 0 ? odd + I : even + I + 1;
    if constexpr ((K - I) % 2 == 1) {
        row_cut<FIRST>(first, v, q[I]);
        product_row<SECOND, false>(second, v + 1, q[I]);
    } else {
        product_row<FIRST, false>(first, v, q[I]);
        if constexpr (SECOND > 0) row_cut<SECOND>(second, v + 1, q[I]);
    }
    if constexpr (I + 1 < Q) low_rows<K, Q, I + 1>(even, odd, q, v);
}

template <int K, int Q>
__device__ __forceinline__ void low_multiply_add(uint32_t* r, const uint32_t* q, const uint32_t* v) {
    static_assert(Q <= K, "words of the factor above W^K");
    uint32_t even[K], odd[K + 1] = {};
    UNROLL
    for (int i = 0; i < K; ++i) even[i] = r[i];
    low_rows<K, Q, 0>(even, odd, q, v);
    r[0] = even[0];
    if constexpr (K > 1) add<K - 1>(r + 1, even + 1, odd);
}

// --- [r] = [a] + [v] (W + w) -----------------------------------------------------------------------------------------

// [v] W is what `odd` starts from, where it stands at the right place. The products add less than W^N to each
// accumulator, so that the word above it is 0 or 1.
template <int N>
__device__ __forceinline__ void monic_multiply_add(uint32_t* r, const uint32_t* a, const uint32_t* v, uint32_t w) {
    static_assert(N % 2 == 0, "both accumulators end at the same word");
    uint32_t even[N + 2] = {}, odd[N + 1] = {};
    UNROLL
    for (int i = 0; i < N; ++i) even[i] = a[i];
    UNROLL
    for (int i = 0; i < N; ++i) odd[i] = v[i];
    product_row<N / 2, true>(even, v, w);
    product_row<N / 2, true>(odd, v + 1, w);
    r[0] = even[0];
    add<N + 1>(r + 1, even + 1, odd);
}

// --- the quotient of a Barrett reduction -----------------------------------------------------------------------------

// Columns below word C = max(N - 2, 0) are left out: they hold less than (N - 2) W^N (1 + 2^-30) / W. Words are
// counted from C: even[k] is word C + k, odd[k] is word C + k + 1. Row i begins with y[FROM].
template <int N, int I>
__device__ __forceinline__ void upper_rows(uint32_t* even, uint32_t* odd, const uint32_t* x, const uint32_t* y) {
    constexpr int C = N >= 2 ? N - 2 : 0, FROM = I < C ? C - I : 0, AT = I + FROM - C;
    constexpr int FIRST = (N - FROM + 1) / 2, SECOND = (N - FROM) / 2;
    constexpr bool FIRST_CARRIES = (N - FROM) % 2 == 0;
    product_row<FIRST, FIRST_CARRIES>(AT % 2 == 0 ? even + AT : odd + AT - 1, y + FROM, x[I]);
    product_row<SECOND, !FIRST_CARRIES>(AT % 2 == 0 ? odd + AT : even + AT + 1, y + FROM + 1, x[I]);
    if constexpr (I + 1 < N) upper_rows<N, I + 1>(even, odd, x, y);
}

template <int N>
__device__ __forceinline__ void estimate_quotient(uint32_t* q, const uint32_t* x, const uint32_t* y, uint32_t lo) {
    uint32_t even[N + 4] = {}, odd[N + 4] = {};
    // lo and the high word of lo y', both in word N - 1. Together with the product x[0] y' of the same word they stay
    // below W^2: (W - 1)^2 + (W - 1) + (W - 2) < W^2.
    uint32_t* const correction = N >= 2 ? odd : even;
    const uint32_t high = __umulhi(lo, y[N - 1]);
    correction[0] = lo + high;
    correction[1] = correction[0] < lo;
    upper_rows<N, 0>(even, odd, x, y);
    if constexpr (N == 1) {
        q[0] = x[0] + even[1];
    } else {
        uint32_t sum[N + 1];
        add<N + 1>(sum, even + 1, odd);
        add<N>(q, sum + 1, x);
    }
}

// --- Montgomery ------------------------------------------------------------------------------------------------------

// State between rows: value = [even] + W [odd] + over W^(N+1), with even[0] = 0; the next row divides it by W, which
// makes `odd` the even accumulator and even[2..] the odd one, while even[1] is added to the new word 0.
//
// Bounds, with FULL: before row i value / W < [a] + [m] (Montgomery's invariant), so that value < 2 W^(N+1) and over is
// one bit. The row of odd limbs (words 1..N) starts from even[2..] < W^(N-2) and over W^(N-1); its products are at most
// W^N - 2 W^(N-1) + W^(N-2) relative to word 1, so nothing leaves it.
template <int N, bool FULL, int I>
__device__ __forceinline__ void montgomery_rows(uint32_t* even, uint32_t* odd, uint32_t over, uint32_t* r,
                                                uint32_t& carry, const uint32_t* a, const uint32_t* b,
                                                const uint32_t* m, uint32_t n0) {
    constexpr int P = N / 2;
    if constexpr (I == N) {
        even[N] = 0;
        carry = add<N>(r, odd, even + 1) + (FULL ? over : 0);
    } else {
        uint32_t none = 0, next[N + 1];
        UNROLL
        for (int k = 0; k < N - 2; ++k) next[k] = even[k + 2];
        next[N - 2] = 0;
        next[N - 1] = FULL ? over : 0;
        over = 0;
        row_after_add<P>(next, a + 1, b[I], odd[0], even[1]);
        row<P>(odd, a, b[I], next[N - 1], over);
        const uint32_t w = odd[0] * n0;
        row<P>(next, m + 1, w, over, none);
        row<P>(odd, m, w, next[N - 1], over);
        montgomery_rows<N, FULL, I + 1>(odd, next, over, r, carry, a, b, m, n0);
    }
}

template <int N, bool FULL>
__device__ __forceinline__ uint32_t montgomery_product(uint32_t* r, const uint32_t* a, const uint32_t* b,
                                                       const uint32_t* m, uint32_t n0) {
    static_assert(N % 2 == 0, "an odd number of limbs is padded to an even one");
    uint32_t even[N + 1], odd[N + 1], over = 0, none = 0, carry;
    row_multiply<N / 2>(even, a, b[0]);
    row_multiply<N / 2>(odd, a + 1, b[0]);
    const uint32_t w = even[0] * n0;
    row<N / 2>(odd, m + 1, w, over, none);
    row<N / 2>(even, m, w, odd[N - 1], over);
    montgomery_rows<N, FULL, 1>(even, odd, over, r, carry, a, b, m, n0);
    return carry;
}

// Rows of the lower half alone: with value < W^N before a row, (value + w [m]) / W <= (W^N - 1 + (W - 1)(W^N - 1)) / W
// < W^N after it, so that nothing overflows.
template <int N, int I>
__device__ __forceinline__ void reduce_rows(uint32_t* even, uint32_t* odd, uint32_t* r, const uint32_t* m,
                                            uint32_t n0) {
    uint32_t none = 0;
    if constexpr (I == N) {
        even[N] = 0;
        add<N>(r, odd, even + 1);
    } else {
        uint32_t next[N + 1];
        UNROLL
        for (int k = 0; k < N - 2; ++k) next[k] = even[k + 2];
        next[N - 2] = next[N - 1] = 0;
        const uint32_t w = row_reduce<N / 2>(next, m + 1, n0, odd[0], even[1]);
        row<N / 2>(odd, m, w, next[N - 1], none);
        reduce_rows<N, I + 1>(odd, next, r, m, n0);
    }
}

template <int N>
__device__ __forceinline__ uint32_t montgomery_reduce(uint32_t* r, const uint32_t* t, const uint32_t* m, uint32_t n0) {
    static_assert(N % 2 == 0, "an odd number of limbs is padded to an even one");
    uint32_t even[N + 1], odd[N + 1], low[N], none = 0;
    UNROLL
    for (int i = 0; i < N; ++i) even[i] = t[i];
    const uint32_t w = even[0] * n0;
    row_multiply<N / 2>(odd, m + 1, w);
    row<N / 2>(even, m, w, odd[N - 1], none);
    reduce_rows<N, 1>(even, odd, low, m, n0);
    return add<N>(r, low, t + N);
}

}  // namespace limb
