// Passes of small transforms, for latency: one element a thread, radix 4, exchanges by shuffles.
//
// A pass transforms over the top BITS bits of the part of an index that is still to come, and leaves 2^BITS transforms over
// `span` bits (algo/ntt.cuh: decimation in frequency). A column is what differs in those BITS bits, and lies in threads side
// by side: the thread at position p of a column holds its element at p. A level takes two bits of p (HIGH, LOW = HIGH - 1),
// from the top. With l1 and l0 the bits of p at HIGH and LOW, the thread makes the output
//
//     d = l1 + 2 l0:    X_d = t (x_0 + (-1)^d x_2) + t w_4^d (x_1 + (-1)^d x_3),    t = w^(d i)
//
// so that digits come out bit-reversed. It has x_(l0 + 2 l1). Across HIGH it receives the element that differs in l1, and adds
// or subtracts: that is one of the two brackets, its own; the thread across LOW has the other one. Both are multiplied in one
// sum of products with a single reduction (field/dot.cuh), and which constant goes to which is the table's business, as are
// the factors 1 / n and those of a coset after the transform: all threads run the same instructions. An odd number of BITS
// begins with a level of radix 2.
//
// The last level of a transform has i = 0. Where it has no other factors either (PLAIN_END), t = 1, and the thread multiplies
// but its own bracket, before it hands it over: with b_l0 = x_l0 + (-1)^d x_(l0 + 2), and w_4^d = (-1)^l0 w_4^l1,
//
//     X_d = b_0 + (-1)^l0 (w_4^l1 b_1)
//
// Both constants, 1 and w_4^l1, stand in the entry of a thread with l0 = 0.
//
// Nothing but the elements depends on the data, so constants are fetched AHEAD levels before they are needed, and those of the
// first level before the elements in any case.
#pragma once

#include "algo/lane_exchange.cuh"
#include "base/element.cuh"
#include "field/dot.cuh"

namespace lanes {

enum Flag : uint32_t {
    REVERSED_IN = 1,   // element i lies at the reverse of i
    REVERSED_OUT = 2,  // element i is stored where the transform leaves it: at the reverse of i
    FIRST = 4,         // elements are compared with m; the lowest index that is not below m is left in args.bad
    LAST = 8,          // canonical results
    BEFORE = 16,       // of a FIRST pass: element i is multiplied by args.before[i]
};

constexpr int WORDS = 8;   // of an element in device memory
constexpr int CHUNK = 5;   // entries of a table lie in chunks of 2^CHUNK, the lanes of a warp side by side

__device__ __forceinline__ uint32_t reversed(uint32_t x, uint32_t bits) { return __brev(x) >> (32 - bits); }

// A load that stays where it is written: compilers would move it down to the first use, behind waits and barriers.
__device__ __forceinline__ uint4 fetch_now(const uint4* at) {
#ifdef __CUDACC_RTC__
    uint4 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at) : "memory");
    return v;
#else
    return *at;
#endif
}

// w = entry number `entry` of QUARTERS x 16 bytes, of 2^log_entries.
template <int QUARTERS>
__device__ __forceinline__ void fetch_entry(uint32_t* w, const uint4* table, uint32_t entry, uint32_t log_entries) {
    const uint32_t chunk = log_entries < CHUNK ? log_entries : CHUNK;
    const uint4* const at = table + (((entry >> chunk) * QUARTERS) << chunk) + (entry & ((1u << chunk) - 1));
    UNROLL
    for (int q = 0; q < QUARTERS; ++q) {
        const uint4 words = fetch_now(at + (q << chunk));
        w[4 * q] = words.x;
        w[4 * q + 1] = words.y;
        w[4 * q + 2] = words.z;
        w[4 * q + 3] = words.w;
    }
}

// The levels of a pass, for the thread of number `thread`, whose position is the low BITS of it. part: the column's low span
// bits of the index, which twiddles depend on. PLAIN_END: the pass is the last one (span = 0), and its last level as above.
template <class M, int BITS, int AHEAD, bool PLAIN_END>
struct Pass {
    using F = dot::Residue<M>;
    static constexpr int N = F::N, LEVELS = (BITS + 1) / 2;
    static_assert(N == WORDS && BITS >= 1 && AHEAD <= LEVELS, "elements of eight limbs");
    static_assert(!PLAIN_END || BITS >= 2, "a last level of radix 4");

    static __device__ constexpr bool radix2(int level) { return BITS % 2 == 1 && level == 0; }
    static __device__ constexpr int high(int level) { return BITS - 1 - 2 * level + (BITS % 2 == 1 && level > 0); }
    static __device__ constexpr bool plain(int level) { return PLAIN_END && level == LEVELS - 1; }
    // 16 bytes of an entry; and, times 2^span, of the levels before this one.
    static __device__ constexpr int quarters(int level) { return radix2(level) ? N / 2 : N; }
    static __device__ constexpr int start(int level) {
        int at = 0;
        for (int l = 0; l < level; ++l) at += quarters(l) << (high(l) + 1);
        return at;
    }

    const uint4* table;
    uint32_t thread, part, span;
    uint32_t w[LEVELS][4 * N];

    template <int LEVEL>
    __device__ __forceinline__ void fetch() {
        if constexpr (LEVEL < LEVELS) {
            constexpr int DIGITS = high(LEVEL) + 1;
            const uint4* const from = table + (start(LEVEL) << span);
            if constexpr (plain(LEVEL)) {
                const uint32_t which = thread & 1;
                fetch_entry<N / 2>(w[LEVEL], from + (which * (N / 2) << DIGITS), thread & 2, DIGITS);
            } else {
                const uint32_t entry = part << DIGITS | (thread & ((1u << DIGITS) - 1));
                fetch_entry<quarters(LEVEL)>(w[LEVEL], from, entry, DIGITS);
            }
        }
    }

    static constexpr int BEGUN = AHEAD > 0 ? AHEAD : 1;

    template <int LEVEL = 0>
    __device__ __forceinline__ void fetch_first() {
        if constexpr (LEVEL < BEGUN) {
            fetch<LEVEL>();
            fetch_first<LEVEL + 1>();
        }
    }

    // What level LEVEL asks for when it begins.
    template <int LEVEL>
    __device__ __forceinline__ void fetch_next() {
        if constexpr (LEVEL + AHEAD >= BEGUN) fetch<LEVEL + AHEAD>();
    }

    __device__ __forceinline__ void begin(const uint32_t* from, uint32_t number, uint32_t column_part, uint32_t bits_below) {
        VERIFY(!PLAIN_END || bits_below == 0);
        table = reinterpret_cast<const uint4*>(from);
        thread = number;
        part = column_part;
        span = bits_below;
        fetch_first();
    }

    // The rest of a level, with the element across HIGH at hand.
    template <int LEVEL>
    __device__ __forceinline__ void finish(uint32_t* x, const uint32_t* across, uint4* memory) {
        constexpr int HIGH = high(LEVEL);
        uint32_t pair[2 * N];
        F::bracket(pair, x, across, 0u - (thread >> HIGH & 1));
        if constexpr (radix2(LEVEL)) {
            F::template multiply<2>(x, pair, w[LEVEL]);
        } else if constexpr (plain(LEVEL)) {
            F::template multiply<2>(x, pair, w[LEVEL]);
            exchange::across<N, HIGH - 1>(pair, x, memory);
            F::add_signed(x, x, pair, 0u - (thread >> (HIGH - 1) & 1));
        } else {
            exchange::across<N, HIGH - 1>(pair + N, pair, memory);
            F::template multiply<4>(x, pair, w[LEVEL]);
        }
    }

    template <int LEVEL>
    __device__ __forceinline__ void levels(uint32_t* x, uint4* memory) {
        if constexpr (LEVEL < LEVELS) {
            uint32_t across[N];
            fetch_next<LEVEL>();
            exchange::across<N, high(LEVEL)>(across, x, memory);
            finish<LEVEL>(x, across, memory);
            levels<LEVEL + 1>(x, memory);
        }
    }

    // Whether the element across the top bit is at hand as well: from memory, because a shuffle does not reach it.
    static constexpr bool TWO = BITS > 5;

    // x: this thread's element; across (TWO): the one that differs in the position's top bit. memory: SHARED x 16 bytes for
    // each thread of the block; a barrier stands between two uses of it.
    __device__ __forceinline__ void run(uint32_t* x, const uint32_t* across, uint4* memory) {
        if constexpr (TWO) {
            fetch_next<0>();
            finish<0>(x, across, memory);
            levels<1>(x, memory);
        } else {
            levels<0>(x, memory);
        }
    }
    static constexpr int SHARED = BITS > 6 ? (BITS - 6) * (N / 4) : 0;
};

// How passes load and store: args has in, out, before, bad, offset, log_n and flags (ops/lane_transform.py).
template <class M, class Args>
struct Ends {
    using F = dot::Residue<M>;
    static constexpr int N = F::N;
    const Args& args;

    __device__ __forceinline__ bool has(uint32_t flag) const { return (args.flags & flag) != 0; }

    // Where element i of the transform that number i >> log_n counts lies.
    __device__ __forceinline__ uint32_t place(uint32_t i, bool turned) const {
        const uint32_t low = i & ((1u << args.log_n) - 1);
        return turned ? i - low + reversed(low, args.log_n) : i;
    }

    __device__ __forceinline__ void load(uint32_t* x, uint32_t i, bool own) const {
        const uint32_t at = place(i, has(REVERSED_IN));
        element::load<WORDS>(x, args.in, at);
        if (has(FIRST)) check(x, at, own);
    }

    // An element that is not below m becomes 0, so that what follows keeps its bounds; its own thread reports it.
    __device__ __forceinline__ void check(uint32_t* x, uint32_t at, bool own) const {
        uint32_t m[N];
        constant_product::set_multiple<M, 1>(m);
        if (limb::less<N>(x, m)) return;
        if (own) atomicMin(reinterpret_cast<unsigned long long*>(args.bad), static_cast<unsigned long long>(args.offset + at));
        limb::set_word<N>(x, 0);
    }

    __device__ __forceinline__ void multiply_before(uint32_t* x, uint32_t i) const {
        uint32_t w[F::template WORDS<2>];
        const auto* const table = reinterpret_cast<const uint4*>(args.before);
        fetch_entry<N / 2>(w, table, i & ((1u << args.log_n) - 1), args.log_n);
        F::template multiply<2>(x, x, w);
    }

    // Element i and, for TWO, the one at `distance` from it.
    template <bool TWO>
    __device__ __forceinline__ void load_both(uint32_t* x, uint32_t* across, uint32_t i, uint32_t distance) const {
        load(x, i, true);
        if constexpr (TWO) load(across, i ^ distance, false);
        if (has(BEFORE)) {
            multiply_before(x, i);
            if constexpr (TWO) multiply_before(across, i ^ distance);
        }
    }

    __device__ __forceinline__ void store(uint32_t* x, uint32_t i) const {
        if (has(LAST)) F::canonical(x);
        element::store<WORDS, N>(args.out, place(i, has(LAST) && !has(REVERSED_OUT)), x);
    }
};

// The element of the thread of this number in a pass of BITS whose columns are `span` bits below.
template <int BITS>
__device__ __forceinline__ uint32_t element_of(uint32_t number, uint32_t span) {
    const uint32_t p = number & ((1u << BITS) - 1), column = number >> BITS;
    return ((column >> span << BITS | p) << span) | (column & ((1u << span) - 1));
}

}  // namespace lanes
