// Discrete Fourier transforms of 2, 4 and 8 elements (and of 1, which is itself) in one thread's registers.
//
// dft<RHO>(x, stride, roots): X_d = sum over t of x_t w^(t d), w a root of unity of order 2^RHO, for the 2^RHO elements
// x[0], x[stride], ..; X_d takes the place of x_d (natural order in and out). Operands are reduced (field/lazy.cuh), slack
// at most 8; results are sums or differences, slack at most 64: X_0 is always a sum.
//
// roots: the constants below, each as Residue::Root stores it; w_8 is of order 8, w_4 = w_8^2.
//     roots[0] = w_4,     roots[1] = (w_8 + w_8^3) / 2,     roots[2] = (w_8 - w_8^3) / 2
//
// Products: 0, 1, 4. The odd half of eight needs v_1 w_8 +- v_3 w_8^3 where v_i = x_i - x_(i+4); with w_8^4 = -1
//     a = roots[1] (v_1 + v_3),  b = roots[2] (v_1 - v_3):   a + b = w_8 v_1 + w_8^3 v_3
//                                                           a - b = w_8^3 v_1 + w_8 v_3 = w_4 (w_8 v_1 - w_8^3 v_3)
// (Winograd's pairing of w and its conjugate) takes two products for three.
#pragma once

#include "field/lazy.cuh"

namespace ntt {

// (a, b) -> (a + b, a - b)
template <class F>
__device__ __forceinline__ void cross(uint32_t* a, uint32_t* b) {
    uint32_t difference[F::N];
    F::difference(difference, a, b);
    F::sum(a, a, b);
    limb::copy<F::N>(b, difference);
}

// The same, with both reduced.
template <class F>
__device__ __forceinline__ void cross_reduced(uint32_t* a, uint32_t* b) {
    cross<F>(a, b);
    F::reduce(a);
    F::reduce(b);
}

template <class F>
__device__ __forceinline__ void by_root(uint32_t* x, const uint32_t* roots, int which) {
    F::template multiply<typename F::Root>(x, x, roots + which * F::Root::WORDS);
}

template <int N>
__device__ __forceinline__ void exchange(uint32_t* a, uint32_t* b) {
    uint32_t kept[N];
    limb::copy<N>(kept, a);
    limb::copy<N>(a, b);
    limb::copy<N>(b, kept);
}

// The first stage of eight: sums, reduced, and differences. x[i] -> x_i + x_(i+4), x[i + 4] -> x_i - x_(i+4).
template <class F, int E>
__device__ __forceinline__ void halves(uint32_t (&x)[E][F::N]) {
    UNROLL
    for (int i = 0; i < 4; ++i) {
        cross<F>(x[i], x[i + 4]);
        F::reduce(x[i]);
    }
}

// From the sums u = x_0 + x_2.. of eight, or four elements: the last two stages. a..d -> X_0, X_1, X_2, X_3 of the four.
template <class F>
__device__ __forceinline__ void dft4(uint32_t* a, uint32_t* b, uint32_t* c, uint32_t* d, const uint32_t* roots) {
    cross_reduced<F>(a, c);
    cross<F>(b, d);
    F::reduce(b);
    by_root<F>(d, roots, 0);
    cross<F>(a, b);  // X_0, X_2
    cross<F>(c, d);  // X_1, X_3
    exchange<F::N>(b, c);
}

// v_0..v_3 -> X_1, X_3, X_5, X_7 of the eight.
template <class F>
__device__ __forceinline__ void odd_half(uint32_t* a, uint32_t* b, uint32_t* c, uint32_t* d, const uint32_t* roots) {
    F::reduce(a);
    F::reduce(b);
    F::reduce(d);
    by_root<F>(c, roots, 0);
    cross<F>(b, d);
    by_root<F>(b, roots, 1);
    by_root<F>(d, roots, 2);
    cross_reduced<F>(a, c);
    cross_reduced<F>(b, d);
    cross<F>(a, b);  // X_1, X_5
    cross<F>(c, d);  // X_3, X_7
    exchange<F::N>(b, c);
}

// 0 2 4 6 1 3 5 7 -> 0 1 2 3 4 5 6 7. Registers are only renamed.
template <int N>
__device__ __forceinline__ void interleave(uint32_t (&x)[8][N]) {
    uint32_t kept[8][N];
    UNROLL
    for (int i = 0; i < 8; ++i) limb::copy<N>(kept[i], x[i]);
    UNROLL
    for (int i = 0; i < 8; ++i) limb::copy<N>(x[i], kept[i % 2 * 4 + i / 2]);
}

template <int RHO, class F, int STRIDE, int E>
__device__ __forceinline__ void dft(uint32_t (&x)[E][F::N], int at, const uint32_t* roots) {
    if constexpr (RHO == 0) {
        return;
    } else if constexpr (RHO == 1) {
        cross<F>(x[at], x[at + STRIDE]);
    } else if constexpr (RHO == 2) {
        dft4<F>(x[at], x[at + STRIDE], x[at + 2 * STRIDE], x[at + 3 * STRIDE], roots);
    } else {
        static_assert(RHO == 3 && STRIDE == 1, "eight elements");
        halves<F>(x);
        dft4<F>(x[0], x[1], x[2], x[3], roots);      // X_0, X_2, X_4, X_6
        odd_half<F>(x[4], x[5], x[6], x[7], roots);  // X_1, X_3, X_5, X_7
        interleave<F::N>(x);
    }
}

}  // namespace ntt
