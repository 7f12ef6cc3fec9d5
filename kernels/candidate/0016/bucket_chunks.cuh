// Sums of points over buckets whose entries lie side by side: one chunk of a bucket a thread, longest chunks first.
//
// A bucket's entries are cut into chunks of `length` entries, of which the last may be shorter. Chunks are put in the order of
// their sizes, so that the threads of a warp have the same number of additions and the longest begin first; where buckets are
// alike, and none longer than a chunk, that is a thread a bucket, and where one has nearly all entries, a chunk of it is
// still one thread's work (chunk_sums.cuh). A bucket's first chunk leaves its sum in the bucket. Each other one leaves a spill, at the place
// first entry / length: the places of a bucket's chunks follow each other, and no two chunks have one, as the next bucket's
// second chunk begins at least `length` entries after this one's last. Spills are merged as in bucket_sums.cuh.
//
// A class is length - size: class 0 are the whole chunks. A whole chunk has half as many entries as a thread's share of those
// that there are: then it, which begins first, ends long before all others, however few buckets have nearly all entries. It
// has more, up to a little above the share, where the buckets have twice their mean: usual ones stay whole.
#pragma once

#include "candidate/0016/counting_sort.cuh"

namespace bucket_chunks {

constexpr uint32_t NO_BUCKET = 0xFFFFFFFFu, OWN = 0xFFFFFFFFu, MAX_LENGTH = 256;

// Shorter ones would leave more spills than sums.
constexpr uint32_t SHORTEST = 4;

// A bucket's whole chunks up to so many are written by its own thread.
constexpr uint32_t FEW = 8;

struct Chunk {
    uint32_t first, size, bucket, spill;  // spill: its place, or OWN where the sum is the bucket's own
};

__device__ __forceinline__ Chunk load(const uint32_t* chunks, uint32_t number) {
    const uint4 words = reinterpret_cast<const uint4*>(chunks)[number];
    return {words.x, words.y, words.z, words.w};
}

__device__ __forceinline__ void store(uint32_t* chunks, uint32_t number, const Chunk& chunk) {
    reinterpret_cast<uint4*>(chunks)[number] = make_uint4(chunk.first, chunk.size, chunk.bucket, chunk.spill);
}

// Entries of a whole chunk. args: length, the most; fill, threads that fill the device, or 0 where totals[0], the number of
// entries, is not there yet. buckets: of all rows.
template <class Args>
__device__ __forceinline__ uint32_t length_of(const Args& args, uint64_t buckets) {
    if (args.fill == 0) return args.length;
    const uint32_t share = min(args.totals[0] / args.fill, 2 * MAX_LENGTH), mean = uint32_t(args.totals[0] / buckets);
    const uint32_t usual = min(share + share / 4 + 1, 2 * mean + 1);
    return min(args.length, max(SHORTEST, max(share / 2 + 1, usual)));
}

// --- the order ---

// Adds a bucket's chunks to the counts of their classes, in shared memory. whole, rest: the numbers of its first whole chunk
// and of its shorter one among those of the class so far.
__device__ __forceinline__ void count(uint32_t* classes, uint32_t entries, uint32_t length, uint32_t& whole, uint32_t& rest) {
    if (entries >= length) whole = atomicAdd(&classes[0], entries / length);
    if (entries % length != 0) rest = atomicAdd(&classes[length - entries % length], 1u);
}

__device__ __forceinline__ void count(uint32_t* classes, uint32_t entries, uint32_t length) {
    uint32_t whole, rest;  // of no use here
    count(classes, entries, length, whole, rest);
}

// Of each class, in order: counts[c] = the place of the block's first chunk, where it was how many it has. args: classes (the
// counts over all blocks), cursors (how many places are taken), length (classes). Returns the number of all chunks. Called by all
// threads of the block.
template <int WARPS, class Args>
__device__ __forceinline__ uint32_t take_places(const Args& args, uint32_t* counts, scan::Totals<1, WARPS>& totals) {
    static_assert(MAX_LENGTH <= WARPS * scan::WARP, "a class a thread");
    const uint32_t own = threadIdx.x;
    uint32_t before = own < args.length ? args.classes[own] : 0, all;
    scan::exclusive<WARPS>(counting_sort::Sum{}, &before, &all, totals);
    __syncthreads();
    if (own < args.length && counts[own] != 0) counts[own] = before + atomicAdd(&args.cursors[own], counts[own]);
    __syncthreads();
    return all;
}

// The buckets of one block: a thread's are numbers t, t + blockDim.x, .. from `begin` on.
template <int ITEMS, class Args>
struct Tile {
    const Args& args;
    uint64_t begin;
    uint32_t length;
    uint32_t whole[ITEMS] = {}, rest[ITEMS] = {};

    __device__ __forceinline__ Tile(const Args& args, uint64_t begin) : args(args), begin(begin), length(length_of(args, args.buckets)) {}

    __device__ __forceinline__ uint64_t bucket(int i) const { return begin + threadIdx.x + uint64_t(i) * blockDim.x; }

    // Entries of the own bucket i, from `first` on.
    __device__ __forceinline__ uint32_t entries(int i, uint32_t& first) const {
        first = 0;
        if (bucket(i) >= args.buckets) return 0;
        first = args.starts[bucket(i)];
        return args.starts[bucket(i) + 1] - first;
    }

    __device__ __forceinline__ void count(uint32_t* counts) {
        counting_sort::clear(counts, args.length);
        UNROLL
        for (int i = 0; i < ITEMS; ++i) {
            uint32_t first;
            bucket_chunks::count(counts, entries(i, first), length, whole[i], rest[i]);
        }
        __syncthreads();
    }

    // places: of each class's first chunk of the block. The whole chunks of a bucket that has many are written by all lanes of
    // the warp.
    __device__ __forceinline__ void place(const uint32_t* places) const {
        UNROLL
        for (int i = 0; i < ITEMS; ++i) {
            uint32_t first;
            const uint32_t size = entries(i, first), number = uint32_t(bucket(i)), wholes = size / length;
            const uint32_t left = size % length, last = first + wholes * length, at = places[0] + whole[i];
            if (left != 0) {
                const Chunk chunk = {last, left, number, wholes == 0 ? OWN : last / length};
                store(args.chunks, places[length - left] + rest[i], chunk);
            }
            for (uint32_t j = 0; j < (wholes <= FEW ? wholes : 0); ++j) place_whole(first, j, number, at);
            for (uint32_t lanes = __ballot_sync(scan::ALL_LANES, wholes > FEW); lanes != 0; lanes &= lanes - 1) {
                place_wholes(__ffs(int(lanes)) - 1, first, wholes, number, at);
            }
        }
    }

  private:
    // Whole chunk j of the bucket whose entries begin at `first`; place: of its chunk 0.
    __device__ __forceinline__ void place_whole(uint32_t first, uint32_t j, uint32_t bucket, uint32_t place) const {
        const uint32_t at = first + j * length;
        store(args.chunks, place + j, {at, length, bucket, j == 0 ? OWN : at / length});
    }

    // The `wholes` chunks from entry `first` on, at the places from `place` on: what lane `source` has of these numbers.
    __device__ __forceinline__ void place_wholes(int source, uint32_t first, uint32_t wholes, uint32_t bucket,
                                                 uint32_t place) const {
        first = __shfl_sync(scan::ALL_LANES, first, source);
        wholes = __shfl_sync(scan::ALL_LANES, wholes, source);
        bucket = __shfl_sync(scan::ALL_LANES, bucket, source);
        place = __shfl_sync(scan::ALL_LANES, place, source);
        for (uint32_t j = scan::lane(); j < wholes; j += scan::WARP) place_whole(first, j, bucket, place);
    }
};

}  // namespace bucket_chunks
