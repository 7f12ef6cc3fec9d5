// Where points lie while those of each bucket are added up by pairs, level by level.
//
// Level 0 are the entries of the sort; a level's points are the sums of pairs of the level before it, first and second, third
// and fourth, .. of each bucket, whose last one is passed on where it has no partner. So a bucket of s entries has
// ceil(s / 2^l) points in level l. They have the places from
//
//     first_l(b) = floor((starts[b] + b (2^l - 1)) / 2^l)
//
// on: as floor(x + y) >= floor(x) + floor(y), first_l(b + 1) - first_l(b) >= floor((s + 2^l - 1) / 2^l). Less than one place a
// bucket is left empty, and nothing but the sort's `starts` is needed to find a point.
#pragma once

#include "base/platform.cuh"

namespace levels {

__device__ __forceinline__ uint32_t first_place(uint32_t start, uint32_t bucket, uint32_t level) {
    return uint32_t((start + (uint64_t(bucket) << level) - bucket) >> level);
}

// Places of a level.
__device__ __forceinline__ uint32_t places(const uint32_t* starts, uint32_t buckets, uint32_t level) {
    return first_place(starts[buckets], buckets, level);
}

// Walks over the places of `level`, which is not 0, and says which points of the level before belong to each.
struct Walk {
    const uint32_t* starts;
    uint32_t level;
    uint32_t bucket = 0, begin = 0, end = 0;  // the bucket at hand, and its places
    uint32_t inputs = 0, size = 0;            // its points in the level before: the first one's place, and how many there are

    // To a place of those that there are.
    __device__ __forceinline__ Walk(const uint32_t* starts, uint32_t buckets, uint32_t level, uint32_t place)
        : starts(starts), level(level) {
        uint32_t low = 0, high = buckets;
        while (high - low > 1) {
            const uint32_t middle = low + (high - low) / 2;
            if (first_place(starts[middle], middle, level) <= place) {
                low = middle;
            } else {
                high = middle;
            }
        }
        set(low);
    }

    // Points that go into this one: 0 to 2.
    __device__ __forceinline__ uint32_t count(uint32_t place) {
        while (place >= end) set(bucket + 1);
        while (place < begin) set(bucket - 1);
        const uint32_t before = 2 * (place - begin);
        return size > before ? min(2u, size - before) : 0;
    }

    // The place of the first of them, for the place of the last count().
    __device__ __forceinline__ uint32_t input(uint32_t place) const { return inputs + 2 * (place - begin); }

  private:
    __device__ __forceinline__ void set(uint32_t number) {
        const uint32_t start = starts[number], next = starts[number + 1];
        bucket = number;
        begin = first_place(start, number, level);
        end = first_place(next, number + 1, level);
        inputs = first_place(start, number, level - 1);
        size = uint32_t((uint64_t(next - start) + (1u << (level - 1)) - 1) >> (level - 1));
    }
};

}  // namespace levels
