// One pass of a number-theoretic transform of n = 2^k elements over a prime field.
//
// The transform is decimated in frequency. With the input index i = t N' + i', t of s bits and i' < N', a pass transforms
// over t for each i' and multiplies by twiddles: y[j, i'] = w^(i' j) sum over t of x[t, i'] w_R^(t j), R = 2^s. What is left
// are R transforms of N' elements, one for each j, and the output index is j + R (that of the smaller transform). Inside a
// pass the same rule is applied level by level, t cut into digits of 1 to 3 bits; a level's twiddles are those of the whole
// transform, so that a pass needs no others.
//
// Where things lie: a pass sees 2^s rows of a stride L (an address is high R L + digit L + low) and works in place on them.
// Natural input has t in the highest bits first (L = n / R, then n / (R R')..., and i' = low); bit-reversed input has t's
// bits, reversed, in the lowest bits first (L = 1, then R, R R'..., and i' = high reversed: MIRRORED). Outputs j take the
// place of t as they are or bit-reversed. Only a last pass may store elsewhere:
//
//   order   the first pass loads              digits are stored    the last pass stores
//   nr      columns                           reversed             rows, by shared memory (STORE_ROWS)
//   nn      columns                           as they are          at column + digit (n / R) (TRANSPOSED)
//   rn      rows, by shared memory            as they are          in place
//   rr      rows, by shared memory            as they are          rows, at the reversed column (REVERSED_ROWS)
//
// A block takes a tile of C = T / R columns through its levels; thread u works on E = 2^LOG_E elements at a time. Between
// levels they lie in shared memory, in place too: position = digits done (reversed) and digits to come. Values are lazy
// (field/lazy.cuh), reduced between levels and passes, canonical in the end.
//
// Here is a pass that has its shape from its arguments; algo/ntt_compiled.cuh has one whose shape is compiled in. ops/transform.py
// makes a pass's arguments; their names are those of its struct.
#pragma once

#include "algo/dft.cuh"
#include "base/element.cuh"

namespace ntt {

// The twiddle of digit d for the column part x and the digits to come t, as uint4 words:
//     [level][x / G][d][word of the constant][t][x mod G],    G = 2^log_group
// so that the lanes of a warp, which differ in t and in the lowest bits of x, read side by side.
enum Flag : uint32_t {
    MIRRORED = 1,        // bit-reversed input: t is reversed, and i' = the high part of the column, reversed
    LOAD_ROWS = 2,       // .. of L = 1, through shared memory
    REVERSED = 4,        // in place: digit j at the place of its reverse
    TRANSPOSED = 8,      // last pass: out[column + j (n / R)]
    STORE_ROWS = 16,     // last pass: rows of R with j reversed, through shared memory
    REVERSED_ROWS = 32,  // .. at the reversed column
    LAST = 64,           // canonical results; its last level has no twiddles
    SCALED = 128,        // the first level has a factor for digit 0 too
    CHECKED = 256,       // elements are compared with m; the lowest index that is not below m is left in args.bad
    BEFORE = 512,        // COSET: the first level's element of digit d > 0 is multiplied by args.factors[d] first
    AFTER = 1024,        // COSET: the last level's element of digit d is multiplied by args.factors[d] at the end
    COMBINES = 2048,     // known to compiled shapes alone: as Pass's parameter of this name
};

__device__ __forceinline__ uint32_t reversed(uint32_t x, uint32_t bits) { return bits ? __brev(x) >> (32 - bits) : 0; }

// The bits of the next level of a thread of 2^LOG_E elements where `left` bits are to come: 3 3 .. 3, 3 2 or 2 2.
template <int LOG_E>
__device__ __forceinline__ uint32_t next_level(uint32_t left) {
    if constexpr (LOG_E == 3) return left == 4 || left == 2 ? 2 : 3;
    return left < LOG_E ? left : LOG_E;
}

// Shared memory: elements as planes of 16 bytes. An index is spread so that lanes which differ in any three bits of it
// (eight lanes of 16 bytes make one access) reach different banks. spread(a | b) = spread(a) + spread(b) for disjoint bits.
__device__ __forceinline__ constexpr uint32_t spread(uint32_t index) { return index + (index >> 3) + (index >> 6) + (index >> 9); }

template <int N>
struct Tile {
    static constexpr int PLANES = (N + 3) / 4;
    uint4* memory;
    uint32_t plane;  // words from plane to plane

    __device__ __forceinline__ void get(uint32_t* x, uint32_t at) const {
        UNROLL
        for (int p = 0; p < PLANES; ++p) {
            const uint4 part = memory[p * plane + at];
            const uint32_t words[4] = {part.x, part.y, part.z, part.w};
            UNROLL
            for (int i = 0; i < 4; ++i)
                if (4 * p + i < N) x[4 * p + i < N ? 4 * p + i : 0] = words[i];
        }
    }
    __device__ __forceinline__ void put(const uint32_t* x, uint32_t at) const {
        UNROLL
        for (int p = 0; p < PLANES; ++p) {
            uint32_t words[4];
            UNROLL
            for (int i = 0; i < 4; ++i) words[i] = 4 * p + i < N ? x[4 * p + i < N ? 4 * p + i : 0] : 0;
            memory[p * plane + at] = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
};

constexpr int WORDS = 8;  // of an element in device memory

// A unit of work: the elements of one column whose position differs in one digit alone.
struct Unit {
    uint32_t column;  // in the tile
    uint32_t done;    // the position's bits above the digit
    uint32_t left;    // .. and below
};

// What decides how a pass goes about its tile: here the kernel's arguments, which one kernel serves all passes with. A
// compiled shape (algo/ntt_compiled.cuh) has the same functions, all of them constants.
template <class Args>
struct ShapeOfArguments {
    static constexpr bool WHOLE = false;            // all tiles are full
    static constexpr int ROW_LOADS_AT_ONCE = 4;     // of a thread
    static constexpr bool STREAMS = false;          // rows are loaded first and stored last, and not needed soon after
    const Args& args;

    __device__ __forceinline__ bool has(uint32_t flag) const { return (args.flags & flag) != 0; }
    __device__ __forceinline__ uint32_t bits() const { return args.bits; }
    __device__ __forceinline__ uint32_t log_tile() const { return args.log_tile; }
    __device__ __forceinline__ uint32_t log_group() const { return args.log_group; }
    __device__ __forceinline__ uint32_t threads() const { return blockDim.x; }
    // Whether the column's elements lie side by side where they are loaded, and where they are stored.
    __device__ __forceinline__ bool loads_rows() const { return args.log_stride == 0; }
    __device__ __forceinline__ bool stores_rows() const {
        return (has(TRANSPOSED) ? args.log_n - args.bits : args.log_stride) == 0;
    }
    // Whether args.log_first means something.
    __device__ __forceinline__ bool moved() const { return args.log_first != 0; }
};

// Where the elements and factors of a tile's columns lie, and how they come and go: what passes of both kinds share.
template <class M, class SHAPE, class Args>
struct Columns {
    using F = lazy::Residue<M>;
    static constexpr int N = F::N, QUARTERS = F::Twiddle::WORDS / 4;
    static constexpr int LOADED = N < WORDS ? N : WORDS;  // limbs that lie in device memory; more are 0
    static_assert(F::Twiddle::WORDS % 4 == 0, "16 bytes at a time");
    static_assert(sizeof(Args::roots) == 12 * F::Root::WORDS, "ops/constant_product.py has the same forms");
    static_assert(F::Twiddle::WORDS == 2 * N, "ops/transform.py counts on it");

    const Args& args;
    SHAPE shape;
    Tile<N> tile;
    uint64_t first_column;  // the tile's

    // --- where elements lie ---

    __device__ __forceinline__ bool has(uint32_t flag) const { return shape.has(flag); }
    __device__ __forceinline__ uint32_t log_columns() const { return shape.log_tile() - shape.bits(); }
    __device__ __forceinline__ uint64_t global_column(uint32_t column) const { return first_column + column; }
    __device__ __forceinline__ bool inside(uint32_t column) const {
        return SHAPE::WHOLE || global_column(column) < args.columns;
    }

    // The address of digit 0 in place. TRANSPOSED from three digits: out = j_1 + R_1 j_2 + .., but rows lie by (j_1, j_2).
    __device__ __forceinline__ uint64_t base(uint64_t column) const {
        if (shape.moved()) {
            const uint32_t both = args.log_n - shape.bits(), second = both - args.log_first;
            const uint64_t q = column & ((uint64_t(1) << both) - 1);
            column = column - q + ((q & ((1u << args.log_first) - 1)) << second) + (q >> args.log_first);
        }
        const uint64_t low = column & ((uint64_t(1) << args.log_stride) - 1);
        return ((column - low) << shape.bits()) + low;
    }

    // The address of digit 0 where the last pass stores, and the log2 of a digit's stride.
    __device__ __forceinline__ uint64_t store_base(uint64_t column) const {
        if (!has(TRANSPOSED | REVERSED_ROWS)) return base(column);
        const uint32_t both = args.log_n - shape.bits();
        const uint64_t q = column & ((uint64_t(1) << both) - 1), transform = (column - q) << shape.bits();
        if (has(TRANSPOSED)) return transform + q;
        return transform + (uint64_t(reversed(uint32_t(q), both)) << shape.bits());
    }
    __device__ __forceinline__ uint32_t store_stride() const {
        return has(TRANSPOSED) ? args.log_n - shape.bits() : args.log_stride;
    }

    __device__ __forceinline__ uint32_t position(const Unit& unit, uint32_t rho, uint32_t b) const {
        return spread((((unit.done << rho) << b | unit.left) << log_columns()) | unit.column);
    }

    // Unit number `index` of a level with digit bits rho and b bits to come. Lanes go along whatever lies side by side in
    // device memory: along the columns, or along the row where columns are rows.
    __device__ __forceinline__ Unit unit_of(uint32_t index, uint32_t rho, uint32_t b) const {
        const bool first = b + rho == shape.bits();
        const uint32_t rest = shape.bits() - rho;
        const bool along_row = (first && shape.loads_rows()) || (b == 0 && shape.stores_rows());
        const uint32_t row_bits = along_row ? rest : 0;
        uint32_t r = index & ((1u << row_bits) - 1);
        const uint32_t column = (index >> row_bits) & ((1u << log_columns()) - 1);
        if (!along_row) r = index >> log_columns();
        if (first) return {column, 0, r};
        if (b == 0) return {column, reversed(r, rest), 0};
        return {column, r >> b, r & ((1u << b) - 1)};
    }

    // --- loads and stores ---

    // index: in args.in.
    __device__ __forceinline__ void report(uint64_t index) const {
        atomicMin(reinterpret_cast<unsigned long long*>(args.bad), static_cast<unsigned long long>(args.offset + index));
    }

    // An element that is not below m becomes 0, so that what follows keeps its bounds.
    __device__ __forceinline__ void check(uint32_t* x, uint32_t above, uint64_t index) const {
        uint32_t m[N];
        constant_product::set_multiple<M, 1>(m);
        if (above != 0 || !limb::less<N>(x, m)) {
            report(index);
            limb::set_word<N>(x, 0);
        }
    }

    // Returns the element's words above N, ored.
    template <bool ONCE = false>
    static __device__ __forceinline__ uint32_t load(uint32_t* x, const uint32_t* array, uint64_t index) {
        uint32_t words[WORDS], above = 0;
        element::load<WORDS, ONCE>(words, array, index);
        limb::set_word<N>(x, 0);
        limb::copy<LOADED>(x, words);
        UNROLL
        for (int i = N; i < WORDS; ++i) above |= words[i];
        return above;
    }

    __device__ __forceinline__ void load_global(uint32_t* x, uint64_t index) const {
        const uint32_t above = load(x, args.in, index);
        if (has(CHECKED)) check(x, above, index);
    }

    // Pieces of 16 bytes of a tile's elements that each thread moves.
    __device__ __forceinline__ uint32_t turns() const { return (2u << shape.log_tile()) / shape.threads(); }

    // Rows of the tile, side by side in device memory, t reversed: 16 bytes a thread and turn.
    // Columns beyond the last are zeros.
    __device__ __forceinline__ void load_rows() const {
        const uint4* const from = reinterpret_cast<const uint4*>(args.in) + (first_column << shape.bits()) * (WORDS / 4);
#pragma unroll SHAPE::ROW_LOADS_AT_ONCE
        for (uint32_t turn = 0; turn < turns(); ++turn) {
            const uint32_t i = turn * shape.threads() + threadIdx.x;
            const uint32_t column = i >> (shape.bits() + 1), t = reversed(i >> 1 & ((1u << shape.bits()) - 1), shape.bits());
            uint4 part = make_uint4(0, 0, 0, 0);
            if (inside(column)) part = element::load_quad<SHAPE::STREAMS>(from + i);
            const uint32_t p = i & 1, to = spread(t << log_columns() | column);
            if (p < uint32_t(tile.PLANES)) tile.memory[p * tile.plane + to] = part;
            if (N > WORDS && p == 0) tile.memory[2 * tile.plane + to] = make_uint4(0, 0, 0, 0);
            if constexpr (N < WORDS) {
                const uint32_t words[4] = {part.x, part.y, part.z, part.w};
                uint32_t above = 0;
                UNROLL
                for (int w = 0; w < 4; ++w) above |= 4 * p + w >= N ? words[w] : 0;
                if (has(CHECKED) && above != 0) report((first_column << shape.bits()) + (i >> 1));
            }
        }
        __syncthreads();
    }

    __device__ __forceinline__ void store_rows() const {
        __syncthreads();
        uint4* const to = reinterpret_cast<uint4*>(args.out);
#pragma unroll SHAPE::ROW_LOADS_AT_ONCE
        for (uint32_t turn = 0; turn < turns(); ++turn) {
            const uint32_t i = turn * shape.threads() + threadIdx.x;
            const uint32_t column = i >> (shape.bits() + 1), place = i >> 1 & ((1u << shape.bits()) - 1), p = i & 1;
            if (!inside(column)) continue;
            uint4 part = make_uint4(0, 0, 0, 0);
            if (p < uint32_t(tile.PLANES)) part = tile.memory[p * tile.plane + spread(place << log_columns() | column)];
            uint4* at = to + (first_column << shape.bits()) * (WORDS / 4) + i;
            if (has(REVERSED_ROWS)) at = to + (store_base(global_column(column)) + place) * (WORDS / 4) + p;
            element::store_quad<SHAPE::STREAMS>(at, part);
        }
    }

    // --- factors ---

    __device__ __forceinline__ void load_constant(uint32_t* w, const uint4* at, uint64_t stride) const {
        UNROLL
        for (int q = 0; q < QUARTERS; ++q) {
            const uint4 part = __ldg(at + q * stride);
            w[4 * q] = part.x;
            w[4 * q + 1] = part.y;
            w[4 * q + 2] = part.z;
            w[4 * q + 3] = part.w;
        }
    }

    __device__ __forceinline__ void multiply_twiddle(uint32_t* x, const uint4* at, uint64_t stride) const {
        uint32_t w[F::Twiddle::WORDS];
        load_constant(w, at, stride);
        F::template multiply<typename F::Twiddle>(x, x, w);
    }

    // x = (first[at] second[at] / R - x) / R, all canonical: with the three of them R times what they stand for, first second -
    // value. The products' modulus is an argument of the kernel: where the compiler knows that n0 is 2^32 - 1 (bls12_381_fr), it
    // negates instead of multiplying, and takes the products by that word apart into low and high halves, which cost twice as
    // much as whole ones.
    __device__ REPEATED void combine(uint32_t* x, uint64_t at) const {
        uint32_t a[N], b[N];
        load(a, args.first, at);
        load(b, args.second, at);
        mont::multiply<N>(a, a, b, args.modulus, args.n0inv);
        mont::Field<M>::subtract(x, a, x);
        mont::leave<N>(x, x, args.modulus, args.n0inv);
    }
};

// COSET: whether the flags BEFORE and AFTER are served. COMBINES: of a last pass that does not STORE_ROWS: what it stores is
// Columns::combine of args.first and args.second, laid out as args.out, and its own value.
template <class M, int LOG_E, bool COSET, bool COMBINES, class Args>
struct Pass : Columns<M, ShapeOfArguments<Args>, Args> {
    using Base = Columns<M, ShapeOfArguments<Args>, Args>;
    using typename Base::F;
    using Base::N, Base::QUARTERS, Base::LOADED;
    using Base::args, Base::tile;
    using Base::has, Base::global_column, Base::inside, Base::base, Base::unit_of, Base::position, Base::log_columns;
    using Base::store_base, Base::store_stride, Base::load_global, Base::check, Base::load_rows, Base::store_rows;
    using Base::multiply_twiddle, Base::combine;
    static constexpr int E = 1 << LOG_E;

    // --- a level ---

    // table: the level's.
    template <int RHO>
    __device__ __forceinline__ void multiply_twiddles(uint32_t (&x)[E][N], int h, const Unit& unit, uint32_t b, bool full,
                                                      const uint4* table) const {
        constexpr int R = 1 << RHO, H = E / R;
        const uint32_t inner = b + args.log_group;
        const uint64_t stride = uint64_t(1) << inner;
        const uint64_t column = global_column(unit.column) >> (has(MIRRORED) ? args.log_stride : 0);
        const uint32_t part = uint32_t(column & ((uint64_t(1) << args.log_span) - 1));
        const uint32_t factors = full ? R : R - 1;
        const uint4* at = table + ((uint64_t(part >> args.log_group) * (factors * QUARTERS)) << inner) +
                          ((unit.left << args.log_group) | (part & ((1u << args.log_group) - 1)));
        if (full) {
            multiply_twiddle(x[h], at, stride);
            at += QUARTERS * stride;
        }
        UNROLL
        for (int d = 1; d < R; ++d) multiply_twiddle(x[d * H + h], at + (d - 1) * QUARTERS * stride, stride);
    }

    template <int RHO, int FROM>
    __device__ __forceinline__ void multiply_factors(uint32_t (&x)[E][N], int h) const {
        constexpr int R = 1 << RHO, H = E / R;
        UNROLL
        for (int d = FROM; d < R; ++d) {
            F::template multiply<typename F::Root>(x[d * H + h], x[d * H + h], args.factors + d * F::Root::WORDS);
        }
    }

    template <int RHO>
    __device__ REPEATED void level(uint32_t b, const uint4* table) const {
        constexpr int R = 1 << RHO, H = E / R;
        const bool first = b + RHO == args.bits, last = b == 0;
        const bool ends = last && has(LAST), full = first && has(SCALED), twiddles = !ends || full;
        uint32_t x[E][N];
        UNROLL
        for (int h = 0; h < H; ++h) {
            const Unit unit = unit_of(threadIdx.x + h * blockDim.x, RHO, b);
            if (first && !has(LOAD_ROWS)) {
                const bool whole = inside(unit.column), mirrored = has(MIRRORED);
                const uint32_t start = mirrored ? reversed(unit.left, b) << RHO : unit.left;
                const uint64_t from = base(global_column(unit.column)) + (uint64_t(start) << args.log_stride);
                UNROLL
                for (int d = 0; d < R; ++d) {
                    const uint32_t digit = mirrored ? reversed(d, RHO) : uint32_t(d) << b;
                    limb::set_word<N>(x[d * H + h], 0);
                    if (whole) load_global(x[d * H + h], from + (uint64_t(digit) << args.log_stride));
                }
            } else {
                const uint32_t from = position(unit, RHO, b);
                UNROLL
                for (int d = 0; d < R; ++d) tile.get(x[d * H + h], from + spread(uint32_t(d) << (b + log_columns())));
                if (first && has(CHECKED) && inside(unit.column)) {
                    UNROLL
                    for (int d = 0; d < R; ++d) {
                        const uint32_t t = uint32_t(d) << b | unit.left;
                        check(x[d * H + h], 0, base(global_column(unit.column)) + reversed(t, args.bits));
                    }
                }
            }
            if constexpr (COSET) {
                if (first && has(BEFORE)) multiply_factors<RHO, 1>(x, h);
            }
            dft<RHO, F, H>(x, h, args.roots);
        }
        UNROLL
        for (int h = 0; h < H; ++h) {
            const Unit unit = unit_of(threadIdx.x + h * blockDim.x, RHO, b);
            if (twiddles) {
                if (!full) F::reduce_bypass(x[h]);
                multiply_twiddles<RHO>(x, h, unit, b, full, table);
            }
            if constexpr (COSET) {
                if (ends && has(AFTER)) multiply_factors<RHO, 0>(x, h);
            }
            // Between passes too where only canonical values have room in device memory.
            if (ends || (N > WORDS && last)) {
                UNROLL
                for (int d = 0; d < R; ++d) F::canonical(x[d * H + h]);
            }
            if (last && !has(STORE_ROWS)) {
                store_global<RHO>(x, h, unit);
            } else {
                const uint32_t to = position(unit, RHO, b);
                UNROLL
                for (int d = 0; d < R; ++d)
                    tile.put(x[d * H + h], to + spread(reversed(d, RHO) << (b + log_columns())));
            }
        }
    }

    // Digit j = lambda + d 2^(s - rho), where lambda is the reverse of what is done.
    template <int RHO>
    __device__ __forceinline__ void store_global(uint32_t (&x)[E][N], int h, const Unit& unit) const {
        constexpr int R = 1 << RHO, H = E / R;
        if (!inside(unit.column)) return;
        const uint32_t stride = store_stride(), rest = args.bits - RHO;
        const bool reverse = has(REVERSED);
        const uint32_t start = reverse ? unit.done << RHO : reversed(unit.done, rest);
        const uint64_t to = store_base(global_column(unit.column)) + (uint64_t(start) << stride);
        UNROLL
        for (int d = 0; d < R; ++d) {
            const uint32_t digit = reverse ? reversed(d, RHO) : uint32_t(d) << rest;
            const uint64_t at = to + (uint64_t(digit) << stride);
            if constexpr (COMBINES) combine(x[d * H + h], at);
            element::store<WORDS, LOADED>(args.out, at, x[d * H + h]);
        }
    }

    __device__ __forceinline__ void run() const {
        if (has(LOAD_ROWS)) load_rows();
        const uint4* table = reinterpret_cast<const uint4*>(args.table);
        uint32_t left = args.bits;
        if constexpr (LOG_E == 1) {
            if (left == 0) level<0>(0, table);
        }
#pragma unroll 1
        while (left != 0) {
            const uint32_t rho = next_level<LOG_E>(left), b = left - rho;
            if constexpr (LOG_E == 3) {
                if (rho == 3) level<3>(b, table);
                if (rho == 2) level<2>(b, table);
            } else if constexpr (LOG_E == 2) {
                if (rho == 2) level<2>(b, table);
                if (rho == 1) level<1>(b, table);
            } else {
                level<1>(b, table);
            }
            if (b != 0) __syncthreads();
            const uint32_t factors = (1u << rho) - (left == args.bits && has(SCALED) ? 0 : 1);
            table += (uint64_t(factors * QUARTERS) << b) << args.log_span;
            left = b;
        }
        if (has(STORE_ROWS)) store_rows();
    }
};

// By a whole block. memory: (spread(T - 1) + 1) PLANES words of 16 bytes, T = 2^log_tile = blockDim.x 2^LOG_E.
template <class M, int LOG_E, bool COSET, bool COMBINES, class Args>
__device__ __forceinline__ void pass(const Args& args, uint4* memory) {
    VERIFY(blockDim.x << LOG_E == 1u << args.log_tile && args.bits <= args.log_tile);
    const uint32_t plane = spread((1u << args.log_tile) - 1) + 1, log_columns = args.log_tile - args.bits;
    const Pass<M, LOG_E, COSET, COMBINES, Args> work{
        {args, {args}, {memory, plane}, uint64_t(blockIdx.x) << log_columns}};
    work.run();
}

}  // namespace ntt
