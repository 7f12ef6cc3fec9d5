// Counting sort of many short keys: what one block does with the items that it has.
//
// Items have keys in 0 .. keys-1. To count, a block takes many tiles of items in turn, its span. To put them in their places
// it takes one tile: it counts in shared memory, takes for each key as many places as it has items from that key's cursor in
// device memory, puts its items in the order of their keys in shared memory, and writes them out from there: neighbouring
// threads write neighbouring places but where a key ends. Items of one key come in any order; how they are spread over keys
// changes no block's work.
//
// What is slow (an H200; plans/0016-faster-sort.md): atomic additions to device memory one by one, so that neighbouring
// threads ask for neighbouring keys; short runs of a key, so that tiles are large; and places that are taken long before
// they are written, whose sectors the cache gives up half full, so that a block does not take them for more than a tile. A
// tile that is not full goes through all its items nevertheless: loops that end early took 1 % of a multiplication more.
//
// ITEMS: of a thread. An item's key is NONE where it is left out. Every function is called by all threads of the block.
#pragma once

#include "algo/scan.cuh"

namespace counting_sort {

constexpr uint32_t NONE = 0xFFFFFFFFu;

struct Sum {
    static constexpr int LIMBS = 1;
    __device__ __forceinline__ void one(uint32_t* r) const { r[0] = 0; }
    __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b) const { r[0] = a[0] + b[0]; }
};

__device__ __forceinline__ void clear(uint32_t* counts, uint32_t keys) {
    for (uint32_t key = threadIdx.x; key < keys; key += blockDim.x) counts[key] = 0;
    __syncthreads();
}

// counts[key] = the span's items with that key. Span:
//   size                                how many items there are
//   read(args, bucket, from)            the buckets of a thread's items number t, t + blockDim.x, .. from item `from` on, or NONE
//   key(args, bucket)
template <int ITEMS, class Span, class Args>
__device__ __forceinline__ void count_span(const Args& args, const Span& span, uint32_t* counts, uint32_t keys) {
    uint32_t bucket[ITEMS];
    clear(counts, keys);
    for (uint32_t from = 0; from < span.size; from += ITEMS * blockDim.x) {
        span.read(args, bucket, from);
        UNROLL
        for (int i = 0; i < ITEMS; ++i) {
            if (bucket[i] != NONE) atomicAdd(&counts[span.key(args, bucket[i])], 1u);
        }
    }
    __syncthreads();
}

// totals[key] += counts[key]
__device__ __forceinline__ void add_totals(uint32_t* totals, const uint32_t* counts, uint32_t keys) {
    for (uint32_t key = threadIdx.x; key < keys; key += blockDim.x) {
        if (counts[key] != 0) atomicAdd(&totals[key], counts[key]);
    }
}

// How many keys a thread asks for places at a time, so that it waits once for all of them.
constexpr int AT_ONCE = 4;

// Takes counts[key] places from each cursor; counts[key] becomes what leads from a position to an item's place: place =
// counts[key] + position mod 2^32.
__device__ __forceinline__ void take_places(uint32_t* cursors, uint32_t* counts, const uint32_t* begins, uint32_t keys) {
    for (uint32_t from = threadIdx.x; from < keys; from += AT_ONCE * blockDim.x) {
        uint32_t first[AT_ONCE];
        UNROLL
        for (int k = 0; k < AT_ONCE; ++k) {
            const uint32_t key = from + k * blockDim.x, own = key < keys ? counts[key] : 0;
            first[k] = own != 0 ? atomicAdd(&cursors[key], own) : 0;
        }
        UNROLL
        for (int k = 0; k < AT_ONCE; ++k) {
            const uint32_t key = from + k * blockDim.x;
            if (key < keys) counts[key] = first[k] - begins[key];
        }
    }
    __syncthreads();
}

// Positions are those of the tile's items in the order of their keys. begins[key] = that of the key's first item. Returns how
// many items the tile has.
template <int WARPS>
__device__ __forceinline__ uint32_t order(const uint32_t* counts, uint32_t* begins, uint32_t keys, scan::Totals<1, WARPS>& totals) {
    const uint32_t share = (keys + blockDim.x - 1) / blockDim.x, from = threadIdx.x * share, to = min(keys, from + share);
    uint32_t before = 0, items;
    for (uint32_t key = from; key < to; ++key) before += counts[key];
    scan::exclusive<WARPS>(Sum{}, &before, &items, totals);
    for (uint32_t key = from; key < to; ++key) {
        begins[key] = before;
        before += counts[key];
    }
    __syncthreads();
    return items;
}

// Puts the items of the block's tile in their places. Span: as for count_span, with at most a tile of items, and
//   Bucket                              what of an item's bucket is kept in shared memory
//   entry(args, bucket, i)              what goes to the place of the thread's item i
//   write(args, place, entry, bucket)
// shared: counts and begins of `keys` words each, then a tile of entries and as many Buckets.
template <int ITEMS, int WARPS, class Span, class Args>
__device__ __forceinline__ void scatter(const Args& args, const Span& span, uint32_t* cursors, uint32_t keys, uint32_t* shared,
                                        scan::Totals<1, WARPS>& totals) {
    using Bucket = typename Span::Bucket;
    constexpr uint32_t THREADS = WARPS * scan::WARP;
    uint32_t *const counts = shared, *const begins = counts + keys, *const entries = begins + keys;
    Bucket* const buckets = reinterpret_cast<Bucket*>(entries + THREADS * ITEMS);
    uint32_t bucket[ITEMS], rank[ITEMS];
    span.read(args, bucket, 0);
    clear(counts, keys);
    UNROLL
    for (int i = 0; i < ITEMS; ++i) {
        if (bucket[i] != NONE) rank[i] = atomicAdd(&counts[span.key(args, bucket[i])], 1u);
    }
    __syncthreads();
    const uint32_t items = order<WARPS>(counts, begins, keys, totals);
    UNROLL
    for (int i = 0; i < ITEMS; ++i) {
        if (bucket[i] == NONE) continue;
        const uint32_t position = begins[span.key(args, bucket[i])] + rank[i];
        entries[position] = span.entry(args, bucket[i], i);
        buckets[position] = Bucket(bucket[i]);
    }
    take_places(cursors, counts, begins, keys);
    UNROLL
    for (int i = 0; i < ITEMS; ++i) {
        const uint32_t position = threadIdx.x + i * THREADS;
        if (position >= items) break;
        const uint32_t own = buckets[position];
        span.write(args, counts[span.key(args, own)] + position, entries[position], own);
    }
}

}  // namespace counting_sort
