// Passes of small transforms, for throughput: two elements a thread, radix 2. Words, loads and stores are those of
// algo/ntt_lanes.cuh.
//
// A level takes one bit of the position, BIT, from the top: of the elements x_0 and x_1 that differ in it, and that a thread
// holds both, it makes x_0 + x_1 and w^i (x_0 - x_1): one product for two elements. A column has 2^(BITS - 1) threads; at a
// level their numbers are positions without BIT. Between two levels, the thread's bit BIT - 1 turns from the position's bit
// BIT - 1 into its bit BIT: it keeps the element x_s, s being that bit, and gives the other one for the partner's x_s.
//
// There is no place for factors after a transform: constants are plain twiddles, and the last level of a transform has none.
#pragma once

#include "algo/ntt_lanes.cuh"

namespace lanes {

// LAST_PASS: of the transform, span = 0.
template <class M, int BITS, int AHEAD, bool LAST_PASS>
struct PairPass {
    using F = dot::Residue<M>;
    static constexpr int N = F::N;
    static_assert(N == WORDS && BITS >= 2 && AHEAD >= 1 && AHEAD <= BITS, "elements of eight limbs");

    static __device__ constexpr int bit(int level) { return BITS - 1 - level; }
    static __device__ constexpr bool plain(int level) { return LAST_PASS && level == BITS - 1; }
    // 16 bytes of the levels before this one, times 2^span.
    static __device__ constexpr int start(int level) {
        int at = 0;
        for (int l = 0; l < level; ++l) at += (N / 2) << (bit(l) + 1);
        return at;
    }

    const uint4* table;
    uint32_t thread, part, span;
    uint32_t w[BITS][2 * N];

    // The constants of x_1.
    template <int LEVEL>
    __device__ __forceinline__ void fetch() {
        if constexpr (LEVEL < BITS && !plain(LEVEL)) {
            constexpr int BIT = bit(LEVEL);
            const uint32_t entry = part << (BIT + 1) | 1u << BIT | (thread & ((1u << BIT) - 1));
            fetch_entry<N / 2>(w[LEVEL], table + (start(LEVEL) << span), entry, BIT + 1);
        }
    }

    template <int LEVEL = 0>
    __device__ __forceinline__ void fetch_first() {
        if constexpr (LEVEL < AHEAD) {
            fetch<LEVEL>();
            fetch_first<LEVEL + 1>();
        }
    }

    // number: of the thread; the others as in Pass.
    __device__ __forceinline__ void begin(const uint32_t* from, uint32_t number, uint32_t column_part, uint32_t bits_below) {
        VERIFY(!LAST_PASS || bits_below == 0);
        table = reinterpret_cast<const uint4*>(from);
        thread = number;
        part = column_part;
        span = bits_below;
        fetch_first();
    }

    template <int LEVEL>
    __device__ __forceinline__ void butterfly(uint32_t* x0, uint32_t* x1) {
        uint32_t difference[N];
        if constexpr (plain(LEVEL)) {
            F::add_signed(difference, x1, x0, ~0u);
            F::add_signed(x0, x0, x1, 0);
            limb::copy<N>(x1, difference);
        } else {
            F::bracket(difference, x1, x0, ~0u);
            F::add_signed(x0, x0, x1, 0);
            F::template multiply<2>(x1, difference, w[LEVEL]);
        }
    }

    // From the level of BIT to the next.
    template <int BIT>
    __device__ __forceinline__ void change(uint32_t* x0, uint32_t* x1, uint4* memory) {
        const uint32_t s = 0u - (thread >> (BIT - 1) & 1);
        uint32_t given[N], taken[N];
        UNROLL
        for (int i = 0; i < N; ++i) given[i] = (x0[i] & s) | (x1[i] & ~s);
        exchange::across<N, BIT - 1>(taken, given, memory);
        UNROLL
        for (int i = 0; i < N; ++i) {
            x0[i] = (taken[i] & s) | (x0[i] & ~s);
            x1[i] = (x1[i] & s) | (taken[i] & ~s);
        }
    }

    // x0, x1: before, the elements that differ in the position's top bit; after, in its low one. All threads of the block;
    // memory: SHARED x 16 bytes for each of them.
    template <int LEVEL = 0>
    __device__ __forceinline__ void run(uint32_t* x0, uint32_t* x1, uint4* memory) {
        fetch<LEVEL + AHEAD>();
        butterfly<LEVEL>(x0, x1);
        if constexpr (LEVEL < BITS - 1) {
            change<bit(LEVEL)>(x0, x1, memory);
            run<LEVEL + 1>(x0, x1, memory);
        }
    }
    static constexpr int SHARED = BITS > 6 ? (BITS - 6) * (N / 4) : 0;
};

}  // namespace lanes
