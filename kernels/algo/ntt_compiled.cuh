// A pass of algo/ntt.cuh whose shape the compiler knows: the same addresses, tables and bounds, eight elements a thread.
//
// Each level is one straight stretch of code. So the loads of all elements and constants can be moved past the arithmetic,
// and a DFT of 8 multiplies and stores its even half before it begins with the odd one, which frees half of the registers.
#pragma once

#include "algo/ntt.cuh"

namespace ntt {

// BITS: of the pass. FLAGS: its Flags. Tiles are full, and the pass is one of several.
template <int BITS, int LOG_TILE, uint32_t FLAGS>
struct CompiledShape {
    static constexpr bool WHOLE = true;
    static constexpr int E = 8, ROW_LOADS_AT_ONCE = 2 * E;
    static constexpr bool STREAMS = true;
    static constexpr bool SIDE_BY_SIDE = (FLAGS & (FLAGS & MIRRORED ? LOAD_ROWS : LAST)) != 0;
    static_assert(BITS >= 2 && BITS <= LOG_TILE && LOG_TILE >= 8);

    static __device__ constexpr bool has(uint32_t flag) { return (FLAGS & flag) != 0; }
    static __device__ constexpr uint32_t bits() { return BITS; }
    static __device__ constexpr uint32_t log_tile() { return LOG_TILE; }
    static __device__ constexpr uint32_t threads() { return (1u << LOG_TILE) / E; }
    static __device__ constexpr bool loads_rows() { return SIDE_BY_SIDE; }
    static __device__ constexpr bool stores_rows() { return SIDE_BY_SIDE && !has(TRANSPOSED); }
    static __device__ constexpr bool moved() { return has(TRANSPOSED); }
    // The factors of a tile lie side by side, unless columns share them or there are none.
    static __device__ constexpr uint32_t log_group() {
        return has(MIRRORED) ? (has(LOAD_ROWS) ? LOG_TILE - BITS : 0) : (has(LAST) ? 0 : LOG_TILE - BITS);
    }
};

__device__ constexpr int reversed_digit(int digit, int bits) {
    int reversed = 0;
    for (int i = 0; i < bits; ++i) reversed |= (digit >> i & 1) << (bits - 1 - i);
    return reversed;
}

template <class M, class SHAPE, class Args>
struct CompiledPass : Columns<M, SHAPE, Args> {
    using Base = Columns<M, SHAPE, Args>;
    using typename Base::F;
    using Base::N, Base::QUARTERS, Base::LOADED;
    using Base::args, Base::tile, Base::first_column;
    using Base::base, Base::global_column, Base::unit_of, Base::position, Base::store_base, Base::store_stride;
    using Base::multiply_twiddle, Base::report;
    static constexpr int E = SHAPE::E, BITS = SHAPE::bits(), QUADS = WORDS / 4;
    static constexpr uint32_t LOG_COLUMNS = SHAPE::log_tile() - BITS, LOG_GROUP = SHAPE::log_group();
    static_assert(N <= WORDS, "lazy values lie in device memory between passes");

    static __device__ constexpr bool has(uint32_t flag) { return SHAPE::has(flag); }
    static __device__ constexpr int next(int left) { return left == 4 || left == 2 ? 2 : 3; }

    // A level: digit bits RHO, and B bits to come. CHUNK: uint4 words of its factors for one x / G.
    template <int RHO, int B>
    struct Level {
        static constexpr int R = 1 << RHO;
        static constexpr bool FIRST = B + RHO == BITS, FINAL = B == 0, ENDS = FINAL && has(LAST);
        static constexpr bool FULL = FIRST && has(SCALED), TWIDDLES = !ENDS || FULL;
        static constexpr int FACTORS = R - (FULL ? 0 : 1);
        static constexpr uint32_t CHUNK = uint32_t(FACTORS * QUARTERS) << (B + LOG_GROUP);
    };

    // --- loads ---

    // All R elements at once, so that their loads do not wait for one another: a top limb below m's is enough. above: words
    // that belong to no limb. index_of(d): where element d lay.
    template <int R, class Index>
    __device__ __forceinline__ void check(uint32_t (*x)[N], const uint32_t* above, const Index& index_of) const {
        uint32_t m[N], top = 0;
        constant_product::set_multiple<M, 1>(m);
        UNROLL
        for (int d = 0; d < R; ++d) {
            const uint32_t word = above[d] != 0 ? ~0u : x[d][N - 1];
            top = word > top ? word : top;
        }
        if (top < m[N - 1]) return;
        UNROLL
        for (int d = 0; d < R; ++d) Base::check(x[d], above[d], index_of(d));
    }

    template <int RHO, int B>
    __device__ __forceinline__ void load_columns(uint32_t (*x)[N], const Unit& unit) const {
        constexpr int R = 1 << RHO;
        const uint64_t from = base(global_column(unit.column)) + (uint64_t(unit.left) << args.log_stride);
        const uint64_t step = uint64_t(1) << (args.log_stride + B);
        uint32_t above[R];
        UNROLL
        for (int d = 0; d < R; ++d) above[d] = Base::template load<has(CHECKED)>(x[d], args.in, from + d * step);
        if constexpr (has(CHECKED)) check<R>(x, above, [&](int d) { return from + d * step; });
    }

    // Bit-reversed input of a stride.
    template <int RHO, int B>
    __device__ __forceinline__ void load_mirrored(uint32_t (*x)[N], const Unit& unit) const {
        const uint64_t from = base(global_column(unit.column)) + (uint64_t(reversed(unit.left, B) << RHO) << args.log_stride);
        const uint64_t step = uint64_t(1) << args.log_stride;
        static_assert(!has(CHECKED), "a first pass loads rows");
        UNROLL
        for (int d = 0; d < 1 << RHO; ++d) Base::load(x[d], args.in, from + reversed_digit(d, RHO) * step);
    }

    template <int RHO, int B>
    __device__ __forceinline__ void load_tile(uint32_t (*x)[N], const Unit& unit) const {
        constexpr int R = 1 << RHO;
        const uint32_t from = position(unit, RHO, B);
        UNROLL
        for (int d = 0; d < R; ++d) tile.get(x[d], from + spread(uint32_t(d) << (B + LOG_COLUMNS)));
        if constexpr (Level<RHO, B>::FIRST && has(CHECKED)) {
            const uint32_t none[R] = {};
            const uint64_t row = base(global_column(unit.column));
            check<R>(x, none, [&](int d) { return row + reversed(uint32_t(d) << B | unit.left, BITS); });
        }
    }

    template <int RHO, int B>
    __device__ __forceinline__ void load(uint32_t (*x)[N], const Unit& unit) const {
        constexpr bool FIRST = Level<RHO, B>::FIRST;
        if constexpr (!FIRST || has(LOAD_ROWS)) {
            load_tile<RHO, B>(x, unit);
        } else if constexpr (has(MIRRORED)) {
            load_mirrored<RHO, B>(x, unit);
        } else {
            load_columns<RHO, B>(x, unit);
        }
        if constexpr (FIRST && has(BEFORE)) {
            UNROLL
            for (int d = 1; d < 1 << RHO; ++d) multiply_factor(x[d], d);
        }
    }

    __device__ __forceinline__ void multiply_factor(uint32_t* x, int digit) const {
        F::template multiply<typename F::Root>(x, x, args.factors + digit * F::Root::WORDS);
    }

    // --- results ---

    // Where a unit's factors begin, and where its digit 0 goes: a place in the tile, or in args.out, a digit's step in uint4.
    struct Sink {
        const uint4* factors;
        uint32_t place;
        uint4* to;
        uint64_t step;
    };

    template <int RHO, int B>
    __device__ __forceinline__ Sink sink_of(const uint4* table, const Unit& unit) const {
        Sink sink{};
        if constexpr (Level<RHO, B>::TWIDDLES) sink.factors = factors_of<RHO, B>(table, unit);
        if constexpr (B == 0 && !has(STORE_ROWS)) {
            // Digit j = lambda + d 2^(s - rho), where lambda is the reverse of what is done.
            const uint32_t stride = store_stride();
            const uint32_t start = has(REVERSED) ? unit.done << RHO : reversed(unit.done, BITS - RHO);
            const uint64_t to = store_base(global_column(unit.column)) + (uint64_t(start) << stride);
            sink.to = reinterpret_cast<uint4*>(args.out) + to * QUADS;
            sink.step = uint64_t(QUADS) << (stride + (has(REVERSED) ? 0 : BITS - RHO));
        } else {
            sink.place = position(unit, RHO, B);
        }
        return sink;
    }

    template <int RHO, int B>
    __device__ __forceinline__ const uint4* factors_of(const uint4* table, const Unit& unit) const {
        constexpr uint32_t CHUNK = Level<RHO, B>::CHUNK;
        const uint64_t mask = (uint64_t(1) << args.log_span) - 1;
        if constexpr (LOG_GROUP == LOG_COLUMNS) {
            const uint64_t group = (first_column & mask) >> LOG_GROUP;
            return table + group * CHUNK + (unit.left << LOG_GROUP | unit.column);
        } else {
            static_assert(LOG_GROUP == 0);
            const uint64_t part = global_column(unit.column) >> (has(MIRRORED) ? args.log_stride : 0) & mask;
            return table + part * CHUNK + unit.left;
        }
    }

    // Digit D of a unit, from the sums to its place.
    template <int RHO, int B, int D>
    __device__ __forceinline__ void finish(uint32_t* x, const Sink& sink) const {
        using L = Level<RHO, B>;
        constexpr int FACTOR = D - (L::FULL ? 0 : 1), REVERSE = reversed_digit(D, RHO);
        if constexpr (L::TWIDDLES && FACTOR < 0) F::reduce_bypass(x);
        if constexpr (L::TWIDDLES && FACTOR >= 0) {
            constexpr uint32_t STRIDE = 1u << (B + LOG_GROUP);
            multiply_twiddle(x, sink.factors + FACTOR * QUARTERS * STRIDE, STRIDE);
        }
        if constexpr (L::ENDS && has(AFTER)) multiply_factor(x, D);
        if constexpr (L::ENDS) F::canonical(x);
        if constexpr (L::FINAL && !has(STORE_ROWS)) {
            uint4* const to = sink.to + (has(REVERSED) ? REVERSE : D) * sink.step;
            if constexpr (has(COMBINES)) Base::combine(x, (to - reinterpret_cast<uint4*>(args.out)) / QUADS);
            element::store<WORDS, LOADED, Level<RHO, B>::ENDS>(reinterpret_cast<uint32_t*>(to), 0, x);
        } else {
            tile.put(x, sink.place + spread(uint32_t(REVERSE) << (B + LOG_COLUMNS)));
        }
    }

    // --- levels ---

    template <int B>
    __device__ __forceinline__ void eight(uint32_t (&x)[E][N], const Sink& sink) const {
        halves<F>(x);
        dft4<F>(x[0], x[1], x[2], x[3], args.roots);
        finish<3, B, 0>(x[0], sink);
        finish<3, B, 2>(x[1], sink);
        finish<3, B, 4>(x[2], sink);
        finish<3, B, 6>(x[3], sink);
        odd_half<F>(x[4], x[5], x[6], x[7], args.roots);
        finish<3, B, 1>(x[4], sink);
        finish<3, B, 3>(x[5], sink);
        finish<3, B, 5>(x[6], sink);
        finish<3, B, 7>(x[7], sink);
    }

    template <int B>
    __device__ __forceinline__ void four(uint32_t (*x)[N], const Sink& sink) const {
        dft4<F>(x[0], x[1], x[2], x[3], args.roots);
        finish<2, B, 0>(x[0], sink);
        finish<2, B, 1>(x[1], sink);
        finish<2, B, 2>(x[2], sink);
        finish<2, B, 3>(x[3], sink);
    }

    template <int RHO, int B>
    __device__ __forceinline__ void level(const uint4* table) const {
        constexpr int R = 1 << RHO, UNITS = E / R;
        uint32_t x[E][N];
        UNROLL
        for (int h = 0; h < UNITS; ++h) load<RHO, B>(x + h * R, unit_of(threadIdx.x + h * SHAPE::threads(), RHO, B));
        UNROLL
        for (int h = 0; h < UNITS; ++h) {
            const Sink sink = sink_of<RHO, B>(table, unit_of(threadIdx.x + h * SHAPE::threads(), RHO, B));
            if constexpr (RHO == 3) eight<B>(x, sink);
            if constexpr (RHO == 2) four<B>(x + h * R, sink);
        }
    }

    template <int LEFT>
    __device__ __forceinline__ void levels(const uint4* table) const {
        constexpr int RHO = next(LEFT), B = LEFT - RHO;
        level<RHO, B>(table);
        if constexpr (B != 0) {
            __syncthreads();
            levels<B>(table + (uint64_t(Level<RHO, B>::CHUNK >> LOG_GROUP) << args.log_span));
        }
    }

    __device__ __forceinline__ void run() const {
        VERIFY(blockDim.x == SHAPE::threads() && args.bits == SHAPE::bits() && args.log_tile == SHAPE::log_tile());
        VERIFY(args.log_group == LOG_GROUP && args.columns << BITS == uint64_t(gridDim.x) << SHAPE::log_tile());
        VERIFY((args.log_stride == 0) == SHAPE::SIDE_BY_SIDE && args.bits < args.log_n);
        if constexpr (has(LOAD_ROWS)) Base::load_rows();
        levels<BITS>(reinterpret_cast<const uint4*>(args.table));
        if constexpr (has(STORE_ROWS)) Base::store_rows();
    }
};

// By a whole block. memory: as of pass().
template <class M, class SHAPE, class Args>
__device__ __forceinline__ void compiled_pass(const Args& args, uint4* memory) {
    constexpr uint32_t PLANE = spread((1u << SHAPE::log_tile()) - 1) + 1, LOG_COLUMNS = SHAPE::log_tile() - SHAPE::bits();
    const CompiledPass<M, SHAPE, Args> work{{args, {}, {memory, PLANE}, uint64_t(blockIdx.x) << LOG_COLUMNS}};
    work.run();
}

}  // namespace ntt
