// What bucket_sums.cuh and bucket_reduction.cuh do after the additions into buckets, with points over groups of lanes
// (curve/xyzz_lanes.cuh): merging spills, the reduction of each row, the fold.
//
// All lanes of a warp take the same steps; a group that has nothing to add adds infinity. So the work of a step does not
// depend on points, and CONSTANT_WORK needs no more than that no step is left out.
//
// Buckets and spills are as the additions leave them: XYZZ, or for constant work projective coordinates. All later sums are
// XYZZ.
#pragma once

#include "algo/bucket_sums.cuh"
#include "curve/doubling_lanes.cuh"

namespace bucket_lanes {

using bucket_sums::NO_BUCKET;
using xyzz_lanes::ALL_LANES;
using xyzz_lanes::Lanes;
using xyzz_lanes::Point;

// --- points in memory ---

// This lane's share of a point of `stride` limbs; coordinates: how many of them there are.
template <class C>
__device__ __forceinline__ void load_share(Point<C>& p, const uint32_t* array, uint64_t index, uint32_t stride) {
    constexpr int N = Lanes<C>::N;
    const uint32_t* const at = array + index * stride + Lanes<C>::lane() * N;
    if constexpr (N % 4 == 0) {
        element::load<N>(p.limb, at, 0);
    } else {
        for (int i = 0; i < N; ++i) p.limb[i] = at[i];
    }
}

template <class C>
__device__ __forceinline__ void store_share(uint32_t* array, uint64_t index, uint32_t stride, const Point<C>& p) {
    constexpr int N = Lanes<C>::N;
    uint32_t* const at = array + index * stride + Lanes<C>::lane() * N;
    if constexpr (N % 4 == 0) {
        element::store<N, N>(at, 0, p.limb);
    } else {
        for (int i = 0; i < N; ++i) at[i] = p.limb[i];
    }
}

// A sum in XYZZ coordinates.
template <class C>
__device__ __forceinline__ void load(Point<C>& p, const uint32_t* array, uint64_t index) {
    load_share(p, array, index, 4 * C::LIMBS);
}

template <class C>
__device__ __forceinline__ void store(uint32_t* array, uint64_t index, const Point<C>& p) {
    store_share(array, index, 4 * C::LIMBS, p);
}

// A bucket or a spill as it lies in memory; infinity where it is not there.
template <class M, class C = typename M::Group>
__device__ __forceinline__ void load_raw(Point<C>& p, const uint32_t* array, uint64_t index, bool there) {
    constexpr uint32_t HELD = sizeof(typename M::Sum) / sizeof(Point<C>);
    set_infinity(p);
    if (there && Lanes<C>::lane() < HELD) load_share(p, array, index, bucket_sums::STORED<typename M::Sum>);
}

// What load_raw has read -> XYZZ.
template <class M, class C = typename M::Group>
__device__ __forceinline__ void enter(Point<C>& p) {
    if constexpr (M::CONSTANT) from_projective(p);
}

// p, which is lost, to a bucket or a spill, or where `there` is false to nowhere.
template <class M, class C = typename M::Group>
__device__ __forceinline__ void leave(uint32_t* array, uint64_t index, bool there, Point<C>& p) {
    constexpr uint32_t HELD = sizeof(typename M::Sum) / sizeof(Point<C>);
    if constexpr (M::CONSTANT) to_projective(p);
    if (there && Lanes<C>::lane() < HELD) store_share(array, index, bucket_sums::STORED<typename M::Sum>, p);
}

// --- spills ---

// Slice number `slice` of count spills, by one group: one addition for each spill. A slice that owns a run begins with what
// the bucket has, one that continues a run, its head, with nothing. Slices from the last on take part without effect.
template <class M>
__device__ __forceinline__ void merge_slice(const uint32_t* spills, const uint32_t* spill_buckets, uint32_t* buckets,
                                            uint32_t* next_spills, uint32_t* next_spill_buckets, uint32_t count,
                                            uint32_t length, uint32_t slice) {
    using C = typename M::Group;
    const uint32_t begin = uint32_t(min(uint64_t(count), uint64_t(slice) * length)), end = min(count, begin + length);
    uint32_t bucket = begin < end ? spill_buckets[begin] : NO_BUCKET, left = NO_BUCKET;
    bool head = bucket != NO_BUCKET && begin > 0 && bucket == spill_buckets[begin - 1], first = true;
    Point<C> sum, spill, whole, next_spill, next_whole;
    set_infinity(sum);
    load_raw<M>(next_spill, spills, begin, bucket != NO_BUCKET);
    load_raw<M>(next_whole, buckets, bucket, bucket != NO_BUCKET && !head);
#pragma unroll 1
    for (uint32_t i = 0; i < length; ++i) {
        const uint32_t at = begin + i, following = at + 1 < end ? spill_buckets[at + 1] : NO_BUCKET;
        const bool there = bucket != NO_BUCKET, ends = there && following != bucket;
        spill = next_spill;
        whole = next_whole;
        // Read ahead: the addition takes longer than memory does.
        load_raw<M>(next_spill, spills, uint64_t(at) + 1, following != NO_BUCKET);
        load_raw<M>(next_whole, buckets, following, following != NO_BUCKET && following != bucket);
        if (M::CONSTANT || __any_sync(ALL_LANES, there)) {
            enter<M>(spill);
            enter<M>(whole);
            select(sum, first, whole, sum);
            xyzz_lanes::add<M::CONSTANT>(sum, spill);
            whole = sum;
            leave<M>(head ? next_spills : buckets, head ? slice : bucket, ends, whole);
        }
        if (ends && head) left = bucket;
        first = following != bucket;
        head = head && !first;
        bucket = following;
    }
    if (begin < end && Lanes<C>::lane() == 0) next_spill_buckets[slice] = left;
}

// The same by a warp, for a slice of a spill a group: an addition of what an owner's bucket has, and a segmented sum over the
// groups from each one on, log2 of the groups additions deep, after which the first group of a run has the run's.
template <class M>
__device__ __forceinline__ void merge_tree(const uint32_t* spills, const uint32_t* spill_buckets, uint32_t* buckets,
                                           uint32_t* next_spills, uint32_t* next_spill_buckets, uint32_t count,
                                           uint32_t slice) {
    using C = typename M::Group;
    using L = Lanes<C>;
    const uint32_t group = L::group();
    const uint64_t at = uint64_t(slice) * L::GROUPS + group;
    const uint32_t bucket = at < count ? spill_buckets[at] : NO_BUCKET;
    const bool there = bucket != NO_BUCKET, owned = there && (at == 0 || spill_buckets[at - 1] != bucket);
    const bool head = there && group == 0 && !owned;
    bool adds = owned;
    Point<C> sum, other, nothing;
    set_infinity(nothing);
    load_raw<M>(sum, spills, at, there);
    enter<M>(sum);
    load_raw<M>(other, buckets, bucket, owned);
    enter<M>(other);
#pragma unroll 1
    for (uint32_t distance = 0; distance < L::GROUPS; distance += max(1u, distance)) {
        if (distance > 0) {
            // Between two spills of one run there are only others of it.
            const uint32_t following = __shfl_down_sync(ALL_LANES, bucket, distance * L::COUNT);
            adds = there && group + distance < L::GROUPS && following == bucket;
            from_group_after(other, sum, distance);
        }
        if (M::CONSTANT || __any_sync(ALL_LANES, adds)) {
            select(other, adds, other, nothing);
            xyzz_lanes::add<M::CONSTANT>(sum, other);
        }
    }
    leave<M>(head ? next_spills : buckets, head ? slice : bucket, head || owned, sum);
    if (group == 0 && L::lane() == 0 && at < count) next_spill_buckets[slice] = head ? bucket : NO_BUCKET;
}

// Slices of args.length spills by a group each: one addition for each spill.
template <class M, class Args>
struct ByRows {
    const Args& args;
    static constexpr uint32_t LANES = Lanes<typename M::Group>::COUNT;
    __device__ __forceinline__ uint32_t length() const { return args.length; }
    __device__ __forceinline__ void merge(const uint32_t* spills, const uint32_t* spill_buckets, uint32_t* next,
                                          uint32_t* next_buckets, uint32_t count, uint32_t slice) const {
        merge_slice<M>(spills, spill_buckets, args.buckets, next, next_buckets, count, args.length, slice);
    }
};

// Slices of a spill a group by a warp each: in less time and by more work, where most of the device would be idle.
template <class M, class Args>
struct ByTrees {
    const Args& args;
    static constexpr uint32_t LANES = 32;
    __device__ __forceinline__ uint32_t length() const { return Lanes<typename M::Group>::GROUPS; }
    __device__ __forceinline__ void merge(const uint32_t* spills, const uint32_t* spill_buckets, uint32_t* next,
                                          uint32_t* next_buckets, uint32_t count, uint32_t slice) const {
        merge_tree<M>(spills, spill_buckets, args.buckets, next, next_buckets, count, slice);
    }
};

// args.levels levels of merging: one by all blocks, or all that there are by a single block. A level's spills are read from
// args.spills and left in args.next_spills, the next one's the other way round. Form: ByRows or ByTrees.
template <class Form, class Args>
__device__ __forceinline__ void merge(const Args& args) {
    const Form form = {args};
    const uint32_t workers = gridDim.x * (blockDim.x / Form::LANES);
    const uint32_t worker = uint32_t((uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) / Form::LANES);
    uint32_t *spills = args.spills, *spill_buckets = args.spill_buckets, *next = args.next_spills,
             *next_buckets = args.next_spill_buckets, count = args.count;
    for (uint32_t level = 0; level < args.levels; ++level) {
        if (level > 0) __syncthreads();
        const uint32_t slices = (count + form.length() - 1) / form.length();
#pragma unroll 1
        for (uint32_t done = 0; done < slices; done += workers) {
            form.merge(spills, spill_buckets, next, next_buckets, count, done + worker);
        }
        uint32_t *const read = spills, *const read_buckets = spill_buckets;
        spills = next;
        spill_buckets = next_buckets;
        next = read;
        next_buckets = read_buckets;
        count = slices;
    }
}

// --- reduction ---
//
// The sums of bucket_reduction.cuh, but for R, which is passed on doubled as often as its weight says, 2^k R: then
//   value = sum of T_j + sum of j R_j,  R'_q = 2^s (sum of R_j),  T'_q = sum of T_j + sum of (j - q 2^s) R_j.
// The groups of a team take a part of a segment's sums each, one of them a step behind the one before it.

// p of group 0 in a team, doubled so many times; of the others, p.
template <class C>
__device__ __forceinline__ void twice_in_first(Point<C>& p, uint32_t count, uint32_t group) {
    Point<C> doubled = p;
#pragma unroll 1
    for (uint32_t i = 0; i < count; ++i) xyzz_lanes::twice(doubled);
    select(p, group == 0, doubled, p);
}

// A segment of 2^args.log_segment buckets, of which those without entries are not there, unless args.cleared, where all began
// as infinity: group 0 adds up buckets from the last to the first, group 1 the sums on its way.
constexpr uint32_t FIRST_TEAM = 2;

template <class M, class Args>
__device__ __forceinline__ void first_stage(const Args& args) {
    using C = typename M::Group;
    constexpr uint32_t LANES = Lanes<C>::COUNT;
    const uint64_t index = element::own_index() / (FIRST_TEAM * LANES);
    const uint32_t group = threadIdx.x / LANES % FIRST_TEAM, size = 1u << args.log_segment;
    const bool inside = index < args.n;
    const uint64_t row = index / args.segments, segment = index % args.segments;
    const uint64_t first = row * args.row_buckets + (segment << args.log_segment);
    const auto fetch = [&](Point<C>& p, uint32_t step) {
        const uint64_t at = first + size - 1 - step;
        const bool asked = inside && group == 0 && step < size;
        load_raw<M>(p, args.buckets, at, asked && (args.cleared || args.starts[at] != args.starts[at + 1]));
    };
    Point<C> sum, one, next, before;
    // Of group 1 infinity.
    fetch(sum, 0);
    enter<M>(sum);
    fetch(next, 1);
#pragma unroll 1
    for (uint32_t step = 1; step <= size; ++step) {
        one = next;
        fetch(next, step + 1);
        enter<M>(one);
        from_group_before(before, sum);
        select(one, group == 0, one, before);
        xyzz_lanes::add<M::CONSTANT>(sum, one);
    }
    twice_in_first(sum, args.doublings, group);
    if (inside) store(group == 0 ? args.sums : args.weighted, index, sum);
}

// One block's chunk of 2^args.log_chunk pairs, all of one row, down to one pair: two neighbours a turn become one,
//   R' = 2 (R_0 + R_1),  T' = T_0 + T_1 + R_1
// One group makes R', and one of another warp T', so that what both do at the same time is an addition and a doubling deep, or
// two additions. Between turns pairs lie in shared memory, in two halves by turns. args.doublings: of the last turn's R.
template <class M, class C = typename M::Group>
__device__ __forceinline__ void add_neighbours(const uint32_t* sums, const uint32_t* weighted, uint32_t* next_sums,
                                               uint32_t* next_weighted, uint64_t first, uint64_t to, bool makes_sum,
                                               bool doubles, bool inside) {
    const auto fetch = [&](Point<C>& p, const uint32_t* array, uint64_t at) {
        set_infinity(p);
        if (inside) load(p, array, at);
    };
    Point<C> sum, one;
    fetch(sum, makes_sum ? sums : weighted, first);
    fetch(one, makes_sum ? sums : weighted, first + 1);
#pragma unroll 1
    for (bool again = !makes_sum;; again = false) {
        xyzz_lanes::add<M::CONSTANT>(sum, one);
        if (!again) break;
        fetch(one, sums, first + 1);
    }
    if (makes_sum && doubles) xyzz_lanes::twice(sum);
    if (inside) store(makes_sum ? next_sums : next_weighted, to, sum);
}

template <class M, class Args>
__device__ __forceinline__ void chunk(const Args& args, uint32_t* memory) {
    using C = typename M::Group;
    constexpr uint32_t GROUPS = 32 / Lanes<C>::COUNT, POINT = 4 * C::LIMBS;
    const uint32_t warp = threadIdx.x / 32, teams = blockDim.x / 64 * GROUPS;
    const uint32_t first_team = warp / 2 * GROUPS, group = threadIdx.x % 32 / Lanes<C>::COUNT;
    const uint32_t room = POINT << (args.log_chunk - 1);
    const uint32_t *sums = args.sums, *weighted = args.weighted;
    uint64_t base = uint64_t(blockIdx.x) << args.log_chunk;
    uint32_t half = 0;
#pragma unroll 1
    for (uint32_t left = args.log_chunk; left-- > 0;) {
        uint32_t* const next_sums = left > 0 ? memory + half * 2 * room : args.next_sums;
        uint32_t* const next_weighted = left > 0 ? next_sums + room : args.next_weighted;
        const uint64_t next_base = left > 0 ? 0 : blockIdx.x;
#pragma unroll 1
        for (uint32_t done = first_team; done < 1u << left; done += teams) {
            const uint32_t pair = done + group;
            add_neighbours<M>(sums, weighted, next_sums, next_weighted, base + 2 * uint64_t(pair), next_base + pair, warp % 2 == 0,
                              left > 0 || args.doublings, pair < 1u << left);
        }
        __syncthreads();
        sums = next_sums;
        weighted = next_weighted;
        base = next_base;
        half ^= 1;
    }
}

// --- fold ---

// The sum over a vector's windows of 2^(width w) row_w, and of what is kept. Every group of the warp has it.
template <class M, class Args, class C = typename M::Group>
__device__ __forceinline__ void fold(Point<C>& sum, const Args& args, uint32_t vector) {
    const uint64_t first = uint64_t(vector) * args.windows;
    Point<C> row;
    load(sum, args.weighted, first + args.windows - 1);
    // The last turn is for what is kept.
#pragma unroll 1
    for (uint32_t w = args.windows; w-- > (args.is_first ? 1u : 0u);) {
        if (w > 0) {
            load(row, args.weighted, first + w - 1);
            xyzz_lanes::twice_often(sum, args.width);
        } else {
            load(row, args.kept, vector);
        }
        xyzz_lanes::add<M::CONSTANT>(sum, row);
    }
}

}  // namespace bucket_lanes
