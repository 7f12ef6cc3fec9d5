// Residues as a transform needs them: sums, differences, and products by constants that are known beforehand.
//
// P: a field's constants (ops/params/render.py). Data are plain integers of N limbs, twiddles come in a form of their own,
// TWIDDLE limbs, so that nothing is converted on the way in or out. A value is `tight` or `loose`, by the class:
//
//                     tight     loose     a twiddle of w
//   transform::Lazy   [0, 2m)   [0, 4m)   w W^(N/2) mod m, w W^N mod m (2N limbs): limb::split_product
//   transform::Exact  [0, m)    [0, m)    w W^N mod m (N limbs): Montgomery's product
//
// Lazy needs 4m < W^N, Exact any odd m. Functions are executed by one thread; results may alias operands exactly.
//
//   add, subtract              tight, tight -> tight
//   add_loose, subtract_loose  tight, tight -> loose
//   multiply(r, x, w)          loose, twiddle -> tight: x w mod m
//   finish(r, x)               loose -> canonical, [0, m)
//   product(r, a, b)           tight, tight -> tight: a b mod m, of two values that are plain integers
//   twiddle(t, w)              W^N w mod m, canonical, -> the twiddle of w
#pragma once

#include "field/mont.cuh"

namespace transform {

template <class P>
struct Exact {
    static constexpr int N = P::N, TWIDDLE = N;
    using Field = mont::Field<P>;

    // The kernel's arguments. Where the compiler knows that n0 is 2^32 - 1 (bls12_381_fr), it negates instead of multiplying,
    // and takes the products by that word apart into low and high halves, which cost twice as much as whole ones.
    const uint32_t* m;
    uint32_t n0;

    __device__ REPEATED void add(uint32_t* r, const uint32_t* a, const uint32_t* b) const { Field::add(r, a, b); }
    __device__ REPEATED void subtract(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        Field::subtract(r, a, b);
    }
    __device__ REPEATED void add_loose(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        Field::add(r, a, b);
    }
    __device__ REPEATED void subtract_loose(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        Field::subtract(r, a, b);
    }
    __device__ REPEATED void multiply(uint32_t* r, const uint32_t* x, const uint32_t* w) const {
        mont::multiply<N, Field::FULL>(r, w, x, m, n0);
    }
    __device__ REPEATED void finish(uint32_t* r, const uint32_t* x) const { limb::copy<N>(r, x); }
    __device__ REPEATED void product(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        uint32_t entered[N], r2[N];
        Field::r2(r2);
        mont::multiply<N, Field::FULL>(entered, r2, a, m, n0);
        mont::multiply<N, Field::FULL>(r, entered, b, m, n0);
    }
    __device__ REPEATED void twiddle(uint32_t* t, const uint32_t* w) const { limb::copy<N>(t, w); }
};

template <class P>
struct Lazy {
    static constexpr int N = P::N, TWIDDLE = 2 * N;

    const uint32_t* unused;  // the modulus is known to the compiler, which keeps its products whole
    uint32_t unused_too;
    static_assert(P::BITS <= 32 * N - 2, "4m has to fit");
    using Field = mont::Field<P>;

    static __device__ REPEATED void twice(uint32_t* r) {
        uint32_t m[N];
        Field::modulus(m);
        UNROLL
        for (int i = N - 1; i >= 0; --i) r[i] = m[i] << 1 | (i > 0 ? m[i > 0 ? i - 1 : 0] >> 31 : 0);
    }

    // r = x >= 2m ? x - 2m : x
    __device__ REPEATED void tighten(uint32_t* r, const uint32_t* x) const {
        uint32_t twice_m[N];
        twice(twice_m);
        limb::reduce_once<N>(r, x, twice_m);
        VERIFY(limb::less<N>(r, twice_m));
    }

    __device__ REPEATED void add(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        add_loose(r, a, b);
        tighten(r, r);
    }
    __device__ REPEATED void subtract(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        uint32_t difference[N], twice_m[N];
        twice(twice_m);
        VERIFY(limb::less<N>(a, twice_m) && limb::less<N>(b, twice_m));
        const uint32_t borrow = limb::subtract<N>(difference, a, b);
        limb::mask<N>(twice_m, borrow);
        limb::add<N>(r, difference, twice_m);
    }
    __device__ REPEATED void add_loose(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        limb::add<N>(r, a, b);
    }
    __device__ REPEATED void subtract_loose(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        uint32_t raised[N], twice_m[N];
        twice(twice_m);
        VERIFY(limb::less<N>(b, twice_m));
        limb::add<N>(raised, a, twice_m);
        limb::subtract<N>(r, raised, b);
    }
    // The product is below 3m for any x of N limbs.
    __device__ REPEATED void multiply(uint32_t* r, const uint32_t* x, const uint32_t* w) const {
        uint32_t m[N], raw[N];
        Field::modulus(m);
        VERIFY(limb::less<N>(w, m) && limb::less<N>(w + N, m));
        limb::split_product<N>(raw, x, w, m, P::N0INV);
        limb::reduce_once<N>(r, raw, m);
    }
    __device__ REPEATED void finish(uint32_t* r, const uint32_t* x) const {
        uint32_t m[N];
        Field::modulus(m);
        tighten(r, x);
        limb::reduce_once<N>(r, r, m);
        VERIFY(limb::less<N>(r, m));
    }
    __device__ REPEATED void product(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        uint32_t entered[N];
        Field::enter(entered, a);
        Field::multiply(r, entered, b);
    }
    // The Montgomery form of w times W^(N/2), divided by W^N.
    __device__ REPEATED void twiddle(uint32_t* t, const uint32_t* w) const {
        uint32_t half[N] = {};
        half[N / 2] = 1;
        Field::multiply(t, w, half);
        limb::copy<N>(t + N, w);
    }
};

template <class P, bool LAZY>
struct Choose {
    using Residue = Exact<P>;
};
template <class P>
struct Choose<P, true> {
    using Residue = Lazy<P>;
};

// What ops/ntt.py counts on: Lazy wherever it can be.
template <class P>
using Residue = typename Choose<P, (P::BITS <= 32 * P::N - 2)>::Residue;

}  // namespace transform
