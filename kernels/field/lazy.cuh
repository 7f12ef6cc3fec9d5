// Sums and differences of lazy residues modulo a compile-time m, for transforms: the bounds of field/constant_product.cuh.
//
// M: a field's constants. N limbs, R = W^N, E = W^(N-1). C = 2 where 4 m + 256 E <= R (two spare bits), else C = 1, where
// 2 m + 256 E <= R. K = C m. A value is
//
//   reduced, slack s    [x] < K + s E          operand of sum and difference
//   difference          [x] < K + m
//   sum, slack s        [x] < 2 K + s E
//
// and each of them may be the x of a constant product. Slack comes from comparing top limbs alone: reduce() subtracts K
// where the top limb is above K's, and so leaves [x] < K + E. Products and differences have slack 0 or 1 once reduced, sums
// double it. Where m is below 2^16 E (short moduli of tests) values are compared exactly, and every slack is 0.
#pragma once

#include "field/constant_product.cuh"

namespace lazy {

constexpr uint32_t MAX_SLACK = 64;  // of a reduced value

template <class M>
struct Residue {
    static constexpr int N = M::N;
    static constexpr uint32_t C = constant_product::TWO_SPARE_BITS<M> ? 2 : 1;
    static constexpr bool EXACT = M::MODULUS[N - 1] < 1u << 16;
    static_assert(constant_product::fits(M::MODULUS, 2 * C, 256), "a modulus that fills its limbs takes two limbs more");

    using Twiddle = constant_product::Twiddle<M>;
    using Root = constant_product::Root<M>;

    // r = a + b: a sum. Operands reduced.
    static __device__ REPEATED void sum(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        VERIFY((constant_product::within<M, C, SLACK>(a) && constant_product::within<M, C, SLACK>(b)));
        limb::add<N>(r, a, b);
    }

    // r = a - b mod m: a difference. Operands reduced: [a] - [b] > -(K + 64 E) >= -(K + m).
    static __device__ REPEATED void difference(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        VERIFY((constant_product::within<M, C, SLACK>(a) && constant_product::within<M, C, SLACK>(b)));
        uint32_t k[N];
        constant_product::set_multiple<M, C + 1>(k);
        limb::difference_or_add<N>(r, a, b, k);
        VERIFY((constant_product::within<M, C + 1, 0>(r)));
    }

    // A sum of slack s, a difference or a product below 2 K + s E -> reduced, slack max(s, 1).
    static __device__ REPEATED void reduce(uint32_t* r) {
        VERIFY((constant_product::within<M, 2 * C, 2 * SLACK>(r)));
        subtract_multiple<C>(r);
    }

    // A sum or a difference, of any slack -> reduced, slack 1. C = 2: below 2 m + s E, then below m + s E < K. C = 1: below
    // m + s E, then below m + E.
    static __device__ REPEATED void reduce_bypass(uint32_t* r) {
        reduce(r);
        subtract_multiple<1>(r);
        VERIFY((constant_product::within<M, C, EXACT ? 0 : 1>(r)));
    }

    // The same -> [0, m).
    static __device__ REPEATED void canonical(uint32_t* r) {
        uint32_t m[N];
        constant_product::set_multiple<M, 1>(m);
        if constexpr (C == 2) reduce(r);
        limb::subtract_once<N>(r, 0, m);
        limb::subtract_once<N>(r, 0, m);
        VERIFY((constant_product::within<M, 1, 0>(r)));
    }

    // r = x w, reduced, slack max(1, Form::SLACK). w: stored as Form::prepare does; x any.
    template <class Form>
    static __device__ REPEATED void multiply(uint32_t* r, const uint32_t* x, const uint32_t* w) {
        Form::multiply(r, x, w);
        if constexpr (Form::BOUND > 2 * C) subtract_multiple<C>(r);
        static_assert(Form::BOUND <= 3 * C, "one or two subtractions");
        subtract_multiple<C>(r);
        VERIFY((constant_product::within<M, C, SLACK>(r)));
    }

  private:
    static constexpr uint32_t SLACK = EXACT ? 0 : MAX_SLACK;

    template <uint32_t TIMES>
    static __device__ __forceinline__ void subtract_multiple(uint32_t* r) {
        uint32_t k[N];
        constant_product::set_multiple<M, TIMES>(k);
        if constexpr (EXACT) {
            limb::subtract_once<N>(r, 0, k);
        } else {
            limb::subtract_if_above<N>(r, k[N - 1], k);
        }
    }
};

}  // namespace lazy
