// Counting sort of many short keys, a tile at a time: what one block does with the items of its tile.
//
// A tile's items have keys in 0 .. keys-1. A block counts them in shared memory, takes for each key as many places as it
// has items from that key's cursor in device memory, puts its items in the order of their keys in shared memory, and writes
// them out from there: neighbouring threads write neighbouring places but where a key ends. Items of one key come in any
// order; how they are spread over keys changes no block's work.
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

// counts[key] = the tile's items with that key; rank[i]: the own item's number among them.
template <int ITEMS>
__device__ __forceinline__ void count(uint32_t* counts, uint32_t keys, const uint32_t (&key)[ITEMS], uint32_t (&rank)[ITEMS]) {
    clear(counts, keys);
    UNROLL
    for (int i = 0; i < ITEMS; ++i) {
        if (key[i] != NONE) rank[i] = atomicAdd(&counts[key[i]], 1u);
    }
    __syncthreads();
}

// totals[key] += counts[key]
__device__ __forceinline__ void add_totals(uint32_t* totals, const uint32_t* counts, uint32_t keys) {
    for (uint32_t key = threadIdx.x; key < keys; key += blockDim.x) {
        if (counts[key] != 0) atomicAdd(&totals[key], counts[key]);
    }
}

// Positions are those of the tile's items in the order of their keys. begins[key] = that of the key's first item, and
// counts[key] becomes what leads from a position to the item's place: place = counts[key] + position mod 2^32. Returns how
// many items the tile has.
template <int WARPS>
__device__ __forceinline__ uint32_t take_places(uint32_t* cursors, uint32_t* counts, uint32_t* begins, uint32_t keys,
                                                scan::Totals<1, WARPS>& totals) {
    const uint32_t share = (keys + blockDim.x - 1) / blockDim.x, from = threadIdx.x * share, to = min(keys, from + share);
    uint32_t before = 0, items;
    for (uint32_t key = from; key < to; ++key) before += counts[key];
    scan::exclusive<WARPS>(Sum{}, &before, &items, totals);
    for (uint32_t key = from; key < to; ++key) {
        const uint32_t own = counts[key];
        begins[key] = before;
        if (own != 0) counts[key] = atomicAdd(&cursors[key], own) - before;
        before += own;
    }
    __syncthreads();
    return items;
}

}  // namespace counting_sort
