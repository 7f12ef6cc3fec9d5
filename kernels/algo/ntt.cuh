// One pass of a number-theoretic transform: the next digit of every index, for as many elements as fit a block.
//
// A transform of 2^k elements, k = k_1 + .. + k_p, is p passes (decimation in frequency). Write an input's index as digits
// n = (n_1, .., n_p), n_1 on top, and an output's as j = j_1 + 2^k_1 j_2 + ..: pass i turns digit n_i into j_i by
// transforms of 2^k_i elements, in its place among the bits, and multiplies by omega's powers for what lies below. Between
// passes the array is (j_1, .., j_i, n_i+1, .., n_p). The first load and the last store choose the order: their addresses
// are natural or bit-reversed, so that no order costs a pass of its own.
//
// A block takes a tile of 2^(local + columns) elements: 2^local of one transform of the pass, and 2^columns such transforms
// that lie side by side, so that addresses run through whole sectors: below the digit (a first or middle pass), at the
// bottom of j_1 (a last pass), or in successive transforms (the only pass).
//
// Inside a block the digit is cut into steps of up to LOG_RADIX bits. A thread holds 2^LOG_RADIX elements in registers,
// carries out a step on them, multiplies by twiddles, and exchanges them through shared memory for the next step.
#pragma once

#include "base/constant_load.cuh"
#include "base/element.cuh"
#include "field/transform.cuh"

namespace ntt {

constexpr int WORDS = 8;  // of an element in device memory

// Flags of a pass.
constexpr uint32_t INVERSE = 1;            // the table is walked backwards
constexpr uint32_t REVERSED_LOAD = 2;      // the first pass reads bit-reversed order
constexpr uint32_t REVERSED_STORE = 4;     // the last pass writes bit-reversed order
constexpr uint32_t CHECK = 8;              // elements that are not below m are reported
constexpr uint32_t SCALE_LOAD = 16;        // times scale[natural index & scale_mask] before anything else
constexpr uint32_t SCALE_STORE = 32;       // the same after everything else

// What a pass is told; the members are the launch's struct, and see ops/ntt.py.
struct Geometry {
    uint32_t log_n, done, local, columns, first_digit, third_digit;
    uint64_t transforms;
    __device__ __forceinline__ uint32_t rest() const { return log_n - done - local; }
};

// Where an element of a tile belongs.
struct Place {
    uint64_t transform;
    uint32_t above;  // the digits before: (j_1, .., j_i-1) as bits
    uint32_t below;  // the digits after: rest bits
};

__device__ __forceinline__ uint32_t low_bits(uint32_t x, uint32_t bits) { return x & ((1u << bits) - 1); }

__device__ __forceinline__ uint32_t reverse(uint32_t x, uint32_t bits) { return bits == 0 ? 0 : __brev(x) >> (32 - bits); }

// The place of a column of block `block`; see the three cases above.
__device__ REPEATED Place place_of(const Geometry& g, uint64_t block, uint32_t column) {
    const uint32_t rest = g.rest();
    if (rest > 0) {
        const uint32_t high = rest - g.columns;
        const uint64_t up = block >> high;
        return {up >> g.done, low_bits(uint32_t(up), g.done), low_bits(uint32_t(block), high) << g.columns | column};
    }
    if (g.done == 0) return {block << g.columns | column, 0, 0};
    // above = (upper bits of j_1, column, other digits)
    const uint32_t others = g.done - g.first_digit, upper = g.first_digit - g.columns;
    const uint64_t up = block >> others;
    const uint32_t top = low_bits(uint32_t(up), upper) << g.columns | column;
    return {up >> upper, top << others | low_bits(uint32_t(block), others), 0};
}

// The natural output index of (above, own digit j): first digit lowest. above has up to three digits; third_digit, the bits
// of its last one, is 0 where it has fewer.
__device__ __forceinline__ uint32_t output_index(const Geometry& g, uint32_t above, uint32_t j) {
    if (g.done == 0) return j;
    const uint32_t others = g.done - g.first_digit, second = others - g.third_digit;
    const uint32_t middle = low_bits(above, others) >> g.third_digit | low_bits(above, g.third_digit) << second;
    return above >> others | middle << g.first_digit | j << g.done;
}

// Where an element of a tile lies in the planes of shared memory, one a limb. A warp's accesses differ in five bits of the
// index: those below a step's digit and those above it. Bits 5 to 7 are folded into the bank's five so that for the digits
// that occur these five bits always choose 32 different banks, or 16 at the least.
__device__ __forceinline__ uint32_t swizzled(uint32_t index) {
    return index ^ ((index >> 5 & 1) * 0x17) ^ ((index >> 6 & 1) * 0x1a) ^ ((index >> 7 & 1) * 0x14);
}

// PLANE: words of a plane.
template <class F, int PLANE>
__device__ REPEATED void put(uint32_t* planes, uint32_t index, const uint32_t* v) {
    uint32_t* const at = planes + swizzled(index);
    UNROLL
    for (int i = 0; i < F::N; ++i) at[i * PLANE] = v[i];
}

template <class F, int PLANE>
__device__ REPEATED void get(const uint32_t* planes, uint32_t index, uint32_t* v) {
    const uint32_t* const at = planes + swizzled(index);
    UNROLL
    for (int i = 0; i < F::N; ++i) v[i] = at[i * PLANE];
}

// A twiddle of F from an array of them. Its loads are begun where they stand: the way to a table is long, so that the next
// twiddle has to be under way while a thread works with one.
template <class F>
__device__ REPEATED void load_twiddle(uint32_t* w, const uint32_t* table, uint32_t index) {
    const uint32_t* const at = table + uint64_t(index) * F::TWIDDLE;
    if constexpr (F::TWIDDLE % 4 == 0) {
        UNROLL
        for (int i = 0; i < F::TWIDDLE; i += 4) constant_load::words4(w + i, at + i);
    } else {
        UNROLL
        for (int i = 0; i < F::TWIDDLE; ++i) w[i] = at[i];
    }
}

// The transform of 2^Q elements v[0..2^Q), tight, in registers: output digit d ends at v[reverse(d)]. roots: the twiddles of
// rho, rho^2, rho^3, rho of order 8. FIRST: v[0] is output 0 of the whole, which stays tight; the others become loose.
template <class F, int Q, bool FIRST = true>
__device__ REPEATED void small_transform(const F& f, uint32_t (*v)[F::N], const uint32_t* roots) {
    if constexpr (Q > 0) {
        constexpr int HALF = 1 << (Q - 1);
        UNROLL
        for (int i = 0; i < HALF; ++i) {
            uint32_t difference[F::N];
            if (i > 0) {
                f.subtract_loose(difference, v[i], v[i + HALF]);
                f.multiply(difference, difference, roots + ((i << (3 - Q)) - 1) * F::TWIDDLE);
            } else if (Q > 1) {
                f.subtract(difference, v[i], v[i + HALF]);
            } else {
                f.subtract_loose(difference, v[i], v[i + HALF]);
            }
            if (Q > 1 || FIRST) {
                f.add(v[i], v[i], v[i + HALF]);
            } else {
                f.add_loose(v[i], v[i], v[i + HALF]);
            }
            limb::copy<F::N>(v[i + HALF], difference);
        }
        small_transform<F, Q - 1, FIRST>(f, v, roots);
        small_transform<F, Q - 1, false>(f, v + HALF, roots);
    }
}

// THREADS: the most of a block; its shared memory is a plane a limb. COMBINES: a last pass whose store is first second -
// value; args has those two.
template <class F, int LOG_RADIX, int THREADS, class Args, bool COMBINES = false>
struct Pass {
    static constexpr int N = F::N, HELD = 1 << LOG_RADIX, PLANE = THREADS << LOG_RADIX;

    const Args& args;
    F f;
    Geometry g;
    uint32_t* planes;

    __device__ __forceinline__ Pass(const Args& arguments, uint32_t* shared)
        : args(arguments),
          f{arguments.modulus, arguments.n0inv},
          g{args.log_n, args.done, args.local, args.columns, args.first_digit, args.third_digit, args.transforms},
          planes(shared) {}

    // The tile's index of digit m of thread unit u, where a step's digit of q bits begins at bit p.
    static __device__ __forceinline__ uint32_t tile_index(uint32_t u, uint32_t m, uint32_t p, uint32_t q) {
        return (u >> p) << (p + q) | m << p | low_bits(u, p);
    }

    // Of an element before this pass.
    __device__ __forceinline__ uint32_t natural_index(const Place& place, uint32_t l) const {
        return (place.above << g.local | l) << g.rest() | place.below;
    }

    __device__ REPEATED void load_global(uint32_t* v, uint32_t index) const {
        const uint32_t column = low_bits(index, g.columns), l = index >> g.columns;
        const Place place = place_of(g, blockIdx.x, column);
        UNROLL
        for (int i = 0; i < N; ++i) v[i] = 0;
        if (place.transform >= g.transforms) return;
        const uint32_t natural = natural_index(place, l);
        const uint64_t at = (place.transform << g.log_n) + (args.flags & REVERSED_LOAD ? reverse(natural, g.log_n) : natural);
        uint32_t limbs[WORDS];
        element::load<WORDS>(limbs, args.x, at);
        limb::copy<N>(v, limbs);
        if (args.flags & CHECK) check(v, limbs, args.offset + at);
    }

    // An element that may not be is reported and taken as 0: the ranges of the arithmetic hold in every case.
    __device__ REPEATED void check(uint32_t* v, const uint32_t* limbs, uint64_t at) const {
        uint32_t m[N], above = 0;
        mont::Field<typename F::Field::Params>::modulus(m);
        UNROLL
        for (int i = N; i < WORDS; ++i) above |= limbs[i];
        if (above != 0 || !limb::less<N>(limbs, m)) {
            atomicMin(reinterpret_cast<unsigned long long*>(args.bad), static_cast<unsigned long long>(at));
            UNROLL
            for (int i = 0; i < N; ++i) v[i] = 0;
        }
    }

    __device__ REPEATED void scale(uint32_t* v, uint32_t natural) const {
        uint32_t w[F::TWIDDLE];
        load_twiddle<F>(w, args.scale, natural & args.scale_mask);
        f.multiply(v, v, w);
    }

    // Between passes values stay tight; the last pass makes them canonical. EXTRA: by the flags, scaled and combined.
    template <bool EXTRA>
    __device__ REPEATED void store_global(uint32_t* v, uint32_t index) const {
        const uint32_t column = low_bits(index, g.columns), l = index >> g.columns, rest = g.rest();
        const Place place = place_of(g, blockIdx.x, column);
        if (place.transform >= g.transforms) return;
        const uint32_t j = own_digit(l);
        uint64_t at = place.transform << g.log_n;
        if (rest > 0) {
            at += (place.above << g.local | j) << rest | place.below;
        } else {
            const uint32_t natural = output_index(g, place.above, j);
            at += args.flags & REVERSED_STORE ? reverse(natural, g.log_n) : natural;
            if (EXTRA && args.flags & SCALE_STORE) scale(v, natural);
            f.finish(v, v);
            if constexpr (EXTRA && COMBINES) combine(v, at);
        }
        element::store<WORDS, N>(args.out, at, v);
    }

    // v = first[at] second[at] - v, canonical.
    __device__ REPEATED void combine(uint32_t* v, uint64_t at) const {
        uint32_t a[WORDS], b[WORDS];
        element::load<WORDS>(a, args.first, at);
        element::load<WORDS>(b, args.second, at);
        f.product(a, a, b);
        f.subtract(v, a, v);
        f.finish(v, v);
    }

    // The output digit of the element at place l: the steps' digits lie in l first step on top, in the value first step
    // lowest.
    __device__ REPEATED uint32_t own_digit(uint32_t l) const {
        uint32_t j = 0, at = 0, left = g.local;
        for (uint32_t steps = args.steps; left > 0; steps >>= 2) {
            const uint32_t q = steps & 3;
            left -= q;
            j |= low_bits(l >> left, q) << at;
            at += q;
        }
        return j;
    }

    // What the twiddles of a step depend on, for one group of a thread's elements: digit d gets omega^(d low 2^shift).
    struct Powers {
        uint32_t low, shift;
    };

    __device__ __forceinline__ Powers powers_of(int group, uint32_t p, uint32_t q) const {
        const uint32_t index = tile_index(threadIdx.x + group * blockDim.x, 0, p, q);
        const uint32_t l = low_bits(index >> g.columns, p - g.columns);
        const uint32_t low = l << g.rest() | place_of(g, blockIdx.x, low_bits(index, g.columns)).below;
        return {low, g.log_n - g.done - q - (p - g.columns + g.rest())};
    }

    // Of the table, which holds the powers of omega^(2^done).
    __device__ __forceinline__ uint32_t table_index(const Powers& powers, uint32_t digit) const {
        const uint32_t e = digit * powers.low << powers.shift;
        return args.flags & INVERSE ? low_bits(0 - e, g.log_n - g.done) : e;
    }

    // A step's digit of Q bits at bit p of the tile's index: the transforms, and the twiddles of what lies below.
    template <int Q>
    __device__ REPEATED void step(uint32_t (*v)[N], uint32_t p) const {
        constexpr int GROUPS = HELD >> Q, EACH = (1 << Q) - 1, COUNT = GROUPS * EACH;
        const bool twiddled = p > g.columns || g.rest() > 0;
        Powers powers[GROUPS];
        UNROLL
        for (int group = 0; group < GROUPS; ++group) powers[group] = powers_of(group, p, Q);
        uint32_t w[2][F::TWIDDLE];
        if (twiddled) load_next<Q>(w[0], 0, powers);
        UNROLL
        for (int group = 0; group < GROUPS; ++group) small_transform<F, Q>(f, v + (group << Q), args.roots);
        if (!twiddled) return;
        UNROLL
        for (int i = 0; i < COUNT; ++i) {
            if (i + 1 < COUNT) load_next<Q>(w[(i + 1) % 2], i + 1, powers);
            uint32_t* const element = v[(i / EACH << Q) + i % EACH + 1];
            f.multiply(element, element, w[i % 2]);
        }
    }

    // The i-th twiddle of a step.
    template <int Q>
    __device__ __forceinline__ void load_next(uint32_t* w, int i, const Powers* powers) const {
        constexpr int EACH = (1 << Q) - 1;
        constexpr int REVERSED[8] = {0, 4, 2, 6, 1, 5, 3, 7};
        const uint32_t digit = REVERSED[i % EACH + 1] >> (3 - Q);
        load_twiddle<F>(w, args.table, table_index(powers[i / EACH], digit));
    }

    template <int Q>
    __device__ REPEATED void turn(uint32_t (*v)[N], uint32_t p, bool first, bool last) const {
        UNROLL
        for (int h = 0; h < HELD; ++h) {
            const uint32_t index = tile_index(threadIdx.x + (h >> Q) * blockDim.x, h & ((1 << Q) - 1), p, Q);
            if (first) {
                load_global(v[h], index);
            } else {
                get<F, PLANE>(planes, index, v[h]);
            }
        }
        step<Q>(v, p);
        if (!first && !last) __syncthreads();
        UNROLL
        for (int h = 0; h < HELD; ++h) {
            constexpr int REVERSED[8] = {0, 4, 2, 6, 1, 5, 3, 7};
            const uint32_t digit = REVERSED[h & ((1 << Q) - 1)] >> (3 - Q);
            const uint32_t index = tile_index(threadIdx.x + (h >> Q) * blockDim.x, digit, p, Q);
            if (last) {
                store_global<false>(v[h], index);
            } else {
                put<F, PLANE>(planes, index, v[h]);
            }
        }
        __syncthreads();
    }

    // A turn of q bits, 1 to Q.
    template <int Q>
    __device__ __forceinline__ void choose(uint32_t q, uint32_t (*v)[N], uint32_t p, bool first, bool last) const {
        if (Q == 1 || q == Q) {
            turn<Q>(v, p, first, last);
        } else {
            if constexpr (Q > 1) choose<Q - 1>(q, v, p, first, last);
        }
    }

    // What is not part of every pass is done element by element, so that its code is there once: elements are brought into
    // shared memory and scaled before the first step, and leave from there after the last.
    __device__ __forceinline__ void begin_from_shared() const {
#pragma unroll 1
        for (uint32_t index = threadIdx.x; index < 1u << (g.columns + g.local); index += blockDim.x) {
            uint32_t v[N];
            load_global(v, index);
            const Place place = place_of(g, blockIdx.x, low_bits(index, g.columns));
            if (args.flags & SCALE_LOAD) scale(v, natural_index(place, index >> g.columns));
            put<F, PLANE>(planes, index, v);
        }
        __syncthreads();
    }

    __device__ __forceinline__ void end_from_shared() const {
#pragma unroll 1
        for (uint32_t index = threadIdx.x; index < 1u << (g.columns + g.local); index += blockDim.x) {
            uint32_t v[N];
            get<F, PLANE>(planes, index, v);
            store_global<true>(v, index);
        }
    }

    __device__ __forceinline__ void run() const {
        const bool begins = (args.flags & SCALE_LOAD) != 0 || args.steps == 0;
        const bool ends = COMBINES || (args.flags & SCALE_STORE) != 0 || args.steps == 0;
        if (begins) begin_from_shared();
        uint32_t v[HELD][N];
        uint32_t p = g.columns + g.local;
#pragma unroll 1
        for (uint32_t steps = args.steps; steps != 0; steps >>= 2) {
            const uint32_t q = steps & 3;
            p -= q;
            const bool first = steps == args.steps && !begins, last = p == g.columns && !ends;
            choose<LOG_RADIX>(q, v, p, first, last);
        }
        if (ends) end_from_shared();
    }
};

}  // namespace ntt
