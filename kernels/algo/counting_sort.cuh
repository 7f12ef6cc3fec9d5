// Counting sort of many short keys, a tile at a time: what one block does with the items of its tile.
//
// A tile's items have keys in 0 .. keys-1. A block counts them in shared memory, takes for each key as many places as it
// has items from that key's cursor in device memory, and writes its items there. Items of one key come in any order; how
// they are spread over keys changes no block's work.
//
// ITEMS: of a thread. An item's key is NONE where it is left out. Every function is called by all threads of the block.
#pragma once

#include "base/platform.cuh"

namespace counting_sort {

constexpr uint32_t NONE = 0xFFFFFFFFu;

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

// counts[key] becomes the first of the places that this tile gets for the key.
__device__ __forceinline__ void take_places(uint32_t* cursors, uint32_t* counts, uint32_t keys) {
    for (uint32_t key = threadIdx.x; key < keys; key += blockDim.x) {
        if (counts[key] != 0) counts[key] = atomicAdd(&cursors[key], counts[key]);
    }
    __syncthreads();
}

}  // namespace counting_sort
