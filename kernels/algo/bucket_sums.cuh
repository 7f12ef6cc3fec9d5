// Sums of points over buckets whose entries lie side by side: load-balanced segmented accumulation.
//
// The entries of all buckets are one list, and a bucket's are a run of it. The list is cut into slices of one length, one
// for each thread, whatever the buckets' sizes are; where many entries were left out they are shorter, not fewer. A thread adds up the runs of its slice. A run that begins in the slice
// is its own: the sum goes to the bucket. One that began in an earlier slice, the head, leaves its sum as a spill, at most
// one for each slice. Spills are a list of points, ordered by bucket, to which the same is done again (merge) until one
// thread has all of them; there an owner adds its sum to what the bucket has already.
//
// A Mode says how points are added: Variable in XYZZ coordinates, by formulas that leave out the special cases, after which
// one test finds that a run had one; Constant by complete formulas, the same number of additions whatever the points are and
// however they are spread over buckets.
#pragma once

#include "base/element.cuh"
#include "base/own_memory.cuh"
#include "curve/projective.cuh"
#include "curve/xyzz.cuh"

namespace bucket_sums {

constexpr uint32_t SIGN = 0x80000000u, NO_BUCKET = 0xFFFFFFFFu;

// --- points in device memory ---

// Limbs of a stored point: whole groups of four.
template <class P>
constexpr int STORED = (sizeof(P) / 4 + 3) / 4 * 4;

template <class P>
__device__ __forceinline__ void load(P& point, const uint32_t* array, uint64_t index) {
    uint32_t limbs[STORED<P>];
    element::load<STORED<P>>(limbs, array, index);
    limb::copy<sizeof(P) / 4>(reinterpret_cast<uint32_t*>(&point), limbs);
}

template <class P>
__device__ __forceinline__ void store(uint32_t* array, uint64_t index, const P& point) {
    element::store<STORED<P>, sizeof(P) / 4>(array, index, reinterpret_cast<const uint32_t*>(&point));
}

// The point of an entry: its index, and bit 31 for the opposite. P: curve::Affine, or a lane's part of it.
template <class P>
__device__ __forceinline__ void load_entry(P& point, const uint32_t* points, uint32_t entry) {
    load(point, points, entry & ~SIGN);
    negate_if(point, (entry & SIGN) != 0);
}

// Has a stored point brought to the multiprocessor's cache.
template <class P>
struct Prefetch {
    static __device__ __forceinline__ void point(const uint32_t* points, uint32_t index) {
        element::prefetch<STORED<P>>(points, index);
    }
};

// --- modes ---

template <class C>
struct Variable {
    using Group = C;
    using Sum = xyzz::Point<C>;
    static constexpr bool CONSTANT = false;

    // sum = point, which is not infinity.
    static __device__ __forceinline__ void begin(Sum& sum, const curve::Affine<C>& point) {
        limb::copy<C::LIMBS>(sum.x, point.x);
        limb::copy<C::LIMBS>(sum.y, point.y);
        curve::FieldOf<C>::one(sum.zz);
        curve::FieldOf<C>::one(sum.zzz);
    }

    // sum += point. Neither is infinity.
    static __device__ __forceinline__ void add(Sum& sum, const curve::Affine<C>& point) { add_affine_unchecked(sum, point); }

    // sum = (first ? nothing : sum) + point.
    static __device__ __forceinline__ void accumulate(Sum& sum, const curve::Affine<C>& point, bool first) {
        if (first) {
            begin(sum, point);
        } else {
            add(sum, point);
        }
    }

    // Of a run's sum: whether it has to be taken again by complete additions.
    static __device__ __forceinline__ bool is_doubtful(const Sum& sum) { return is_infinity(sum); }
};

template <class C>
struct Constant {
    using Group = C;
    using Sum = projective::Point<C>;
    static constexpr bool CONSTANT = true;

    static __device__ __forceinline__ void accumulate(Sum& sum, const curve::Affine<C>& point, bool first) {
        Sum nothing;
        set_infinity(nothing);
        select(sum, first, nothing, sum);
        add_affine(sum, point);
    }
    static __device__ __forceinline__ bool is_doubtful(const Sum&) { return false; }
    static __device__ __forceinline__ void select(Sum& r, bool condition, const Sum& a, const Sum& b) {
        limb::select<C::LIMBS>(r.x, condition, a.x, b.x);
        limb::select<C::LIMBS>(r.y, condition, a.y, b.y);
        limb::select<C::LIMBS>(r.z, condition, a.z, b.z);
    }
};

template <class C, bool CONSTANT_WORK>
struct ModeFor {
    using type = Variable<C>;
};
template <class C>
struct ModeFor<C, true> {
    using type = Constant<C>;
};

template <class C, bool CONSTANT_WORK>
using ModeOf = typename ModeFor<C, CONSTANT_WORK>::type;

// --- entries ---

// The last run that begins at an entry or before it. runs: pairs of first entry and bucket, `count` of them, the first at 0.
__device__ __forceinline__ uint32_t run_at(const uint32_t* runs, uint32_t count, uint32_t entry) {
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (runs[2 * uint64_t(middle)] <= entry) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// sum += entries begin .. end-1 by complete additions.
template <class M>
__device__ __noinline__ void add_again(typename M::Sum& given, const uint32_t* points, const uint32_t* entries, uint32_t begin,
                                       uint32_t end) {
    typename M::Sum& sum = own_memory::of(given);
    for (uint32_t at = begin; at < end; ++at) {
        curve::Affine<typename M::Group> point;
        load_entry(point, points, entries[at]);
        add_affine(sum, point);
    }
}

// The points of entries begin .. end-1, one after the other. Entries are read two turns before they are used and points
// fetched one turn before, so that an addition hides both; after the last one it is the last again that is read. P: as of
// load_entry. take() gives the point of entry number `at`, and is called for each in turn.
template <class P>
struct FetchedPoints {
    const uint32_t *points, *entries;
    uint32_t end, entry, following;

    __device__ __forceinline__ FetchedPoints(const uint32_t* points, const uint32_t* entries, uint32_t begin, uint32_t end)
        : points(points), entries(entries), end(end) {
        entry = entries[begin];
        following = entries[min(begin + 2, end) - 1];
    }

    __device__ __forceinline__ void take(P& point, uint32_t at) {
        load_entry(point, points, entry);
        Prefetch<P>::point(points, following & ~SIGN);
        entry = following;
        following = entries[min(at + 3, end) - 1];
    }
};

// The same with the next point in registers, and the one after it on its way to the cache: reading one from there takes a while
// too, which few warps do not hide, and ptxas reads it late in the turn before its own.
template <class P>
struct HeldPoints {
    const uint32_t *points, *entries;
    uint32_t end, entry, following, last;
    P next;

    __device__ __forceinline__ HeldPoints(const uint32_t* points, const uint32_t* entries, uint32_t begin, uint32_t end)
        : points(points), entries(entries), end(end) {
        entry = entries[begin];
        following = entries[min(begin + 2, end) - 1];
        last = entries[min(begin + 3, end) - 1];
        load(next, points, entry & ~SIGN);
    }

    __device__ __forceinline__ void take(P& point, uint32_t at) {
        point = next;
        negate_if(point, (entry & SIGN) != 0);
        load(next, points, following & ~SIGN);
        Prefetch<P>::point(points, last & ~SIGN);
        entry = following;
        following = last;
        last = entries[min(at + 4, end) - 1];
    }
};

// Which of the two has the registers that it needs: those of twelve limbs do, where few warps leave more than 200 to each
// thread; sums of eight limbs have 128, those of the extension field take all that there are.
template <class P>
constexpr bool HOLDS = false;
template <class C>
constexpr bool HOLDS<curve::Affine<C>> = C::DEGREE == 1 && (C::LIMBS > 8);

template <class P, bool HELD>
struct PointsBy {
    using type = FetchedPoints<P>;
};
template <class P>
struct PointsBy<P, true> {
    using type = HeldPoints<P>;
};
template <class P>
using Points = typename PointsBy<P, HOLDS<P>>::type;

// Stores a run's sum: in its bucket, or as the slice's spill if it began in an earlier slice. run: its first entry and its
// bucket; end: of its entries in this slice.
template <class M, class Args>
__device__ __forceinline__ void store_run(const Args& args, typename M::Sum& sum, const uint32_t* run, uint32_t slice,
                                          uint32_t slice_begin, uint32_t end) {
    if (M::is_doubtful(sum)) {
        typename M::Sum again;  // sum itself stays in registers
        set_infinity(again);
        add_again<M>(again, args.points, args.entries, max(slice_begin, run[0]), end);
        sum = again;
    }
    const bool head = run[0] < slice_begin;
    store(head ? args.spills : args.buckets, head ? slice : run[1], sum);
}

// Slice number `slice` of args.slices. args: points, entries, runs, totals (entries, runs), shortest (a slice that there is
// has so many entries, but for the last), buckets, spills and spill_buckets.
template <class M, class Args>
__device__ __forceinline__ void accumulate_slice(const Args& args, uint32_t slice) {
    const uint32_t total = args.totals[0];
    const uint32_t length = max(args.shortest, total / args.slices + (total % args.slices != 0 ? 1 : 0));
    const uint64_t first = uint64_t(slice) * length;
    if (first >= total) {
        args.spill_buckets[slice] = NO_BUCKET;
        return;
    }
    const uint32_t begin = uint32_t(first), end = uint32_t(min(uint64_t(total), first + length));
    const uint32_t* run = args.runs + 2 * uint64_t(run_at(args.runs, args.totals[1], begin));
    args.spill_buckets[slice] = run[0] < begin ? run[1] : NO_BUCKET;
    uint32_t run_end = min(end, run[2]);
    bool begins = true;
    Points<curve::Affine<typename M::Group>> points(args.points, args.entries, begin, end);
    typename M::Sum sum;
    for (uint32_t at = begin; at < end; ++at) {
        curve::Affine<typename M::Group> point;
        points.take(point, at);
        M::accumulate(sum, point, begins);
        begins = at + 1 == run_end;
        if (!begins) continue;
        store_run<M>(args, sum, run, slice, begin, run_end);
        run += 2;
        if (run_end < end) run_end = min(end, run[2]);
    }
}

// --- spills ---

// Where a slice's run of spills ends: to the bucket, or for the head to the next level's spills.
template <class M, class Args>
__device__ __forceinline__ void finish_run(const Args& args, uint32_t slice, uint32_t bucket, bool head,
                                           const typename M::Sum& sum) {
    if (head) {
        store(args.next_spills, slice, sum);
        args.next_spill_buckets[slice] = bucket;
        return;
    }
    typename M::Sum whole;
    load(whole, args.buckets, bucket);
    add(whole, sum);
    store(args.buckets, bucket, whole);
}

// Slice number `slice` of args.count spills: args.spills and spill_buckets, to next_spills and next_spill_buckets.
template <class M, class Args>
__device__ __forceinline__ void merge_slice(const Args& args, uint32_t slice) {
    const uint32_t begin = slice * args.length, end = min(args.count, begin + args.length);
    args.next_spill_buckets[slice] = NO_BUCKET;
    const uint32_t before = begin > 0 ? args.spill_buckets[begin - 1] : NO_BUCKET;
    uint32_t bucket = args.spill_buckets[begin];
    bool head = bucket == before, first = true;
    typename M::Sum sum, spill;
    set_infinity(sum);
    for (uint32_t at = begin; at < end; ++at) {
        const uint32_t following = at + 1 < end ? args.spill_buckets[at + 1] : NO_BUCKET;
        if (bucket != NO_BUCKET) {
            load(spill, args.spills, at);
            if (first) set_infinity(sum);
            add(sum, spill);
            first = false;
            if (following != bucket) finish_run<M>(args, slice, bucket, head, sum);
        }
        if (following != bucket) {
            head = false;
            first = true;
        }
        bucket = following;
    }
}

// The same with two additions for each spill, whether there is one or not.
template <class M, class Args>
__device__ __forceinline__ void merge_slice_constant(const Args& args, uint32_t slice) {
    const uint32_t begin = slice * args.length, end = min(args.count, begin + args.length);
    args.next_spill_buckets[slice] = NO_BUCKET;
    uint32_t bucket = args.spill_buckets[begin];
    bool head = begin > 0 && bucket == args.spill_buckets[begin - 1], first = true;
    typename M::Sum sum, other, nothing;
    set_infinity(nothing);
    sum = nothing;
    for (uint32_t at = begin; at < end; ++at) {
        const uint32_t following = at + 1 < end ? args.spill_buckets[at + 1] : NO_BUCKET;
        const bool there = bucket != NO_BUCKET, ends = there && following != bucket, owned = ends && !head;
        M::select(sum, first, nothing, sum);
        other = nothing;
        if (there) load(other, args.spills, at);
        add(sum, other);
        other = nothing;
        if (owned) load(other, args.buckets, bucket);
        add(other, sum);
        if (owned) store(args.buckets, bucket, other);
        if (ends && head) {
            store(args.next_spills, slice, sum);
            args.next_spill_buckets[slice] = bucket;
        }
        first = following != bucket;
        head = head && following == bucket;
        bucket = following;
    }
}

}  // namespace bucket_sums
