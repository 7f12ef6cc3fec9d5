// One level of sums of points by pairs (levels.cuh), in affine coordinates: 5M + 1S and a share of one inversion a block.
//
// A group of coordinates::Element's lanes takes a share of neighbouring places. On the way there it multiplies the denominators
// of their sums, and leaves before each the product so far where the sum's x will be; the block inverts the products of its
// groups; on the way back, with u = 1 / (d_1 .. d_j): 1 / d_j = u (d_1 .. d_(j-1)), and u d_j is the next u.
//
// What has no chord has another denominator: 2 y for equal points, else 1, and the sum is infinity or the other point. A warp
// in which there is such a pair goes through a branch for it, as does one in which a group has no pair left.
//
// Points lie as curve::Affine. Infinity has x = INFINITE in all limbs, which is no element, and y = 0.
#pragma once

#include "algo/bucket_sums.cuh"
#include "candidate/0011/coordinates.cuh"
#include "candidate/0011/levels.cuh"

namespace pair_sums {

using coordinates::ALL_LANES;

constexpr uint32_t INFINITE = 0xFFFFFFFFu;

// Where a point of the level before comes from: a word names it.
struct Entries {
    static constexpr bool MAY_BE_INFINITE = false;
    const uint32_t *points, *entries;
    __device__ __forceinline__ uint32_t name(uint32_t place) const { return entries[place]; }
    static __device__ __forceinline__ uint32_t index(uint32_t name) { return name & ~bucket_sums::SIGN; }
    static __device__ __forceinline__ bool is_negative(uint32_t name) { return (name & bucket_sums::SIGN) != 0; }
};

struct Sums {
    static constexpr bool MAY_BE_INFINITE = true;
    const uint32_t* points;
    __device__ __forceinline__ uint32_t name(uint32_t place) const { return place; }
    static __device__ __forceinline__ uint32_t index(uint32_t name) { return name; }
    static __device__ __forceinline__ bool is_negative(uint32_t) { return false; }
};

// The own parts of coordinates in memory.
template <class C>
struct Rows {
    using E = coordinates::Element<C>;
    static constexpr int N = E::N;
    static __device__ __forceinline__ uint64_t x(uint32_t index) { return uint64_t(index) * (2 * E::LANES) + E::part(); }
    static __device__ __forceinline__ uint64_t y(uint32_t index) { return x(index) + E::LANES; }
    static __device__ __forceinline__ bool is_infinite(const uint32_t* x) { return x[N - 1] == INFINITE; }
};

enum class Kind : uint32_t { CHORD, TANGENT, FIRST, SECOND, NOTHING };

// One sum, as far as both ways need it.
template <class C, class Source>
struct Pair {
    using E = coordinates::Element<C>;
    using B = typename E::B;
    using At = Rows<C>;
    static constexpr int N = E::N;
    static_assert(B::LAZY, "INFINITE is above all elements");

    const Source& source;
    bool there;
    uint32_t first = 0, second = 0;  // names
    uint32_t x1[N] = {}, x2[N] = {};

    // there: whether the group has a pair at all; input: the first one's place. All lanes of the warp arrive.
    __device__ __forceinline__ Pair(const Source& source, bool there, uint32_t input) : source(source), there(there) {
        if (!there) return;
        first = source.name(input);
        second = source.name(input + 1);
        xyzz_pairs::load_row<N>(x1, source.points, At::x(Source::index(first)));
        xyzz_pairs::load_row<N>(x2, source.points, At::x(Source::index(second)));
    }

    __device__ __forceinline__ void load_y(uint32_t* y, uint32_t name) const {
        limb::set_word<N>(y, 0);
        if (!there) return;
        uint32_t negated[N];
        xyzz_pairs::load_row<N>(y, source.points, At::y(Source::index(name)));
        B::negate(negated, y);
        limb::select<N>(y, Source::is_negative(name), negated, y);
    }

    // d: the sum's denominator. Infinity's x becomes 0.
    __device__ __forceinline__ Kind denominator(uint32_t* d) {
        bool first_infinite = false, second_infinite = false;
        if constexpr (Source::MAY_BE_INFINITE) {
            first_infinite = At::is_infinite(x1);
            second_infinite = At::is_infinite(x2);
            limb::mask<N>(x1, !first_infinite);
            limb::mask<N>(x2, !second_infinite);
        }
        B::subtract(d, x2, x1);
        const bool has_chord = !E::every(B::is_zero(d)) && !first_infinite && !second_infinite;
        if (!__any_sync(ALL_LANES, !has_chord)) return Kind::CHORD;
        uint32_t y1[N], y2[N];
        load_y(y1, first);
        load_y(y2, second);
        B::subtract(y2, y2, y1);
        const bool is_equal = E::every(B::is_zero(y2));
        if (has_chord) return Kind::CHORD;
        const bool both_finite = there && !first_infinite && !second_infinite, is_tangent = both_finite && is_equal;
        E::one(d);
        B::twice(y2, y1);
        limb::select<N>(d, is_tangent, y2, d);
        if (is_tangent) return Kind::TANGENT;
        if (both_finite || first_infinite == second_infinite) return Kind::NOTHING;
        return first_infinite ? Kind::SECOND : Kind::FIRST;
    }

    // (x3, y3): the sum, with 1 / denominator.
    __device__ __forceinline__ void add(uint32_t* x3, uint32_t* y3, const uint32_t* inverse, Kind kind) {
        if (there && E::part() == 0) COUNT_POINT_OPERATION();
        uint32_t y1[N], slope[N];
        typename E::Left left;
        typename E::Right right;
        load_y(y1, first);
        load_y(slope, second);
        B::subtract(slope, slope, y1);
        if (__any_sync(ALL_LANES, kind == Kind::TANGENT)) {
            uint32_t square[N], triple[N];
            E::left(left, x1);
            E::square(square, left);
            B::twice(triple, square);
            B::add(triple, triple, square);
            limb::select<N>(slope, kind == Kind::TANGENT, triple, slope);
        }
        E::right(right, inverse);
        E::left(left, slope);
        E::multiply(slope, left, right);
        E::left(left, slope);
        E::square(x3, left);
        B::subtract(x3, x3, x1);
        B::subtract(x3, x3, x2);
        B::subtract(y3, x1, x3);
        E::right(right, y3);
        E::multiply(y3, left, right);
        B::subtract(y3, y3, y1);
        if (!__any_sync(ALL_LANES, kind > Kind::TANGENT)) return;
        const bool is_first = kind == Kind::FIRST, is_second = kind == Kind::SECOND;
        limb::select<N>(x3, is_first, x1, x3);
        limb::select<N>(y3, is_first, y1, y3);
        load_y(y1, second);
        limb::select<N>(x3, is_second, x2, x3);
        limb::select<N>(y3, is_second, y1, y3);
        if (kind != Kind::NOTHING) return;
        UNROLL
        for (int i = 0; i < N; ++i) x3[i] = INFINITE;
        B::zero(y3);
    }
};

// A point without a partner to its place in the next level.
template <class C, class Source>
__device__ __forceinline__ void pass_on(uint32_t* sums, uint32_t place, const Source& source, uint32_t input) {
    using E = coordinates::Element<C>;
    using At = Rows<C>;
    constexpr int N = E::N;
    uint32_t row[N], negated[N];
    const uint32_t name = source.name(input);
    xyzz_pairs::load_row<N>(row, source.points, At::x(Source::index(name)));
    xyzz_pairs::store_row<N>(sums, At::x(place), row);
    xyzz_pairs::load_row<N>(row, source.points, At::y(Source::index(name)));
    E::B::negate(negated, row);
    limb::select<N>(row, Source::is_negative(name), negated, row);
    xyzz_pairs::store_row<N>(sums, At::y(place), row);
}

// The pair of points whose turn it probably is next: what they are called is read before a product, and they are fetched, or
// their x alone, after it.
template <class C, class Source>
struct Ahead {
    using E = coordinates::Element<C>;
    const Source& source;
    uint32_t first, second;

    __device__ __forceinline__ Ahead(const Source& source, uint32_t input)
        : source(source), first(source.name(input)), second(source.name(input + 1)) {}

    // By the lanes of a pair each its point.
    template <bool WHOLE>
    __device__ __forceinline__ void fetch() const {
        UNROLL
        for (uint32_t i = 0; i < 2; i += E::LANES) {
            const uint64_t index = Source::index(i + E::part() == 0 ? first : second);
            element::prefetch<C::LIMBS>(source.points, 2 * index);
            if constexpr (WHOLE) element::prefetch<C::LIMBS>(source.points, 2 * index + 1);
        }
    }
};

// Fewer sums make their share of an inversion dear.
constexpr uint32_t FEWEST = 4;

// Places of a group: at most args.most, and such that args.fill groups, which fill the device, take all of them in a whole
// number of turns.
template <class Args>
__device__ __forceinline__ uint32_t share_of(const Args& args, uint32_t places) {
    const uint64_t turn = uint64_t(args.fill) * args.most, turns = (places + turn - 1) / turn;
    const uint32_t share = uint32_t((places + args.fill * turns - 1) / (args.fill * turns));
    return max(share, min(args.most, FEWEST));
}

// Level args.level of a block's places. args: starts, buckets, level, fill and most (share_of), and sums, where the level's
// points go. Executed by all threads of the block, WARPS whole warps.
template <class C, int WARPS, class Source, class Args>
__device__ __forceinline__ void add_level(const Args& args, const Source& source,
                                          coordinates::Totals<coordinates::Element<C>, WARPS>& totals) {
    using E = coordinates::Element<C>;
    using At = Rows<C>;
    constexpr int N = E::N;
    const uint32_t places = levels::places(args.starts, args.buckets, args.level);
    const uint32_t inputs = levels::places(args.starts, args.buckets, args.level - 1);
    if (places == 0) return;
    const uint64_t share = share_of(args, places), block_first = blockIdx.x * share * (blockDim.x / E::LANES);
    if (block_first >= places) return;
    const uint64_t own_first = block_first + share * (threadIdx.x / E::LANES);
    const uint32_t begin = uint32_t(min(own_first, uint64_t(places))), end = uint32_t(min(own_first + share, uint64_t(places)));
    levels::Walk walk(args.starts, args.buckets, args.level, min(begin, places - 1));
    uint32_t p[N], d[N];

    E::one(p);
    uint32_t at = begin;
#pragma unroll 1
    for (;;) {
        for (; at < end; ++at) {
            const uint32_t count = walk.count(at);
            if (count == 2) break;
            if (count == 1) pass_on<C>(args.sums, at, source, walk.input(at));
        }
        const bool there = at < end;
        if (!__any_sync(ALL_LANES, there)) break;
        const uint32_t input = there ? walk.input(at) : 0;
        Pair<C, Source> pair(source, there, input);
        pair.denominator(d);
        if (there) xyzz_pairs::store_row<N>(args.sums, At::x(at), p);
        const Ahead<C, Source> ahead(source, min(input + 2, inputs - 2));
        coordinates::multiply<E>(p, p, d);
        ahead.template fetch<false>();
        at += there;
    }

    coordinates::invert<E, WARPS>(p, totals);

    at = end;
#pragma unroll 1
    for (;;) {
        while (at > begin && walk.count(at - 1) != 2) --at;
        const bool there = at > begin;
        if (!__any_sync(ALL_LANES, there)) break;
        at -= there;
        const uint32_t input = there ? walk.input(at) : 0;
        Pair<C, Source> pair(source, there, input);
        const Kind kind = pair.denominator(d);
        uint32_t x[N] = {}, y[N];
        if (there) xyzz_pairs::load_row<N>(x, args.sums, At::x(at));
        const Ahead<C, Source> ahead(source, max(input, 2u) - 2);
        typename E::Left left;
        typename E::Right right;
        E::left(left, p);
        E::right(right, x);
        E::multiply(y, left, right);
        E::right(right, d);
        E::multiply(p, left, right);
        ahead.template fetch<true>();
        limb::copy<N>(d, y);
        pair.add(x, y, d, kind);
        if (!there) continue;
        xyzz_pairs::store_row<N>(args.sums, At::x(at), x);
        xyzz_pairs::store_row<N>(args.sums, At::y(at), y);
    }
}

}  // namespace pair_sums
