// From buckets to the result: for each row the sum of (j + 1) bucket_j, then over a vector's rows by Horner's rule.
//
// First stage: a segment of 2^s buckets, of which segment q begins at bucket q 2^s, gives R_q, the sum of its buckets, and
// T_q, their sum with weights 1, 2, .. 2^s: two additions a bucket. Then sum of (j + 1) bucket_j = sum of T_q + 2^s q R_q.
// Further stages: with m pairs left and value = sum of T_j + 2^k j R_j, segments of 2^s pairs give
//   R'_q = sum of R_j,  T'_q = sum of T_j + 2^k (sum of (j - q 2^s) R_j),  value = sum of T'_q + 2^(k + s) q R'_q
// until one pair is left, whose T is the row's sum.
#pragma once

#include "algo/bucket_sums.cuh"
#include "curve/jacobian.cuh"

namespace bucket_reduction {

using bucket_sums::load;
using bucket_sums::store;

// One segment of 2^args.log_segment buckets of one row; args: starts (of each bucket's entries; a bucket
// without any is not there, unless args.cleared, where all began as infinity), buckets, row_buckets, segments.
template <class M, class Args>
__device__ __forceinline__ void first_stage(const Args& args, uint32_t index) {
    const uint32_t row = index / args.segments, segment = index % args.segments;
    const uint64_t first = uint64_t(row) * args.row_buckets + (uint64_t(segment) << args.log_segment);
    typename M::Sum running, weighted, bucket;
    set_infinity(running);
    set_infinity(weighted);
    for (uint32_t i = 1u << args.log_segment; i-- > 0;) {
        set_infinity(bucket);
        if (args.cleared || args.starts[first + i] != args.starts[first + i + 1]) load(bucket, args.buckets, first + i);
        add(running, bucket);
        add(weighted, running);
    }
    store(args.sums, index, running);
    store(args.weighted, index, weighted);
}

// One segment of pairs; index: over all rows, as a row's pairs are a power of two. weight: k.
template <class M, class Args>
__device__ __forceinline__ void next_stage(const Args& args, uint32_t index) {
    const uint64_t first = uint64_t(index) << args.log_segment;
    typename M::Sum running, weighted, total, one;
    set_infinity(running);
    set_infinity(weighted);
    set_infinity(total);
    for (uint32_t i = 1u << args.log_segment; i-- > 0;) {
        add(weighted, running);
        load(one, args.sums, first + i);
        add(running, one);
        load(one, args.weighted, first + i);
        add(total, one);
    }
    for (uint32_t i = 0; i < args.weight; ++i) twice(weighted);
    add(total, weighted);
    store(args.next_sums, index, running);
    store(args.next_weighted, index, total);
}

// sum = 2^count sum.
template <class C>
__device__ __forceinline__ void twice_often(xyzz::Point<C>& sum, uint32_t count) {
    jacobian::Point<C> p;
    jacobian::set_xyzz(p, sum);
    for (uint32_t i = 0; i < count; ++i) twice(p);
    jacobian::to_xyzz(sum, p);
}

template <class C>
__device__ __forceinline__ void twice_often(projective::Point<C>& sum, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) twice(sum);
}

// The sum over a vector's windows of 2^(width w) row_w.
template <class M, class Args>
__device__ __forceinline__ void fold(typename M::Sum& sum, const Args& args, uint32_t vector) {
    typename M::Sum row;
    load(sum, args.weighted, uint64_t(vector) * args.windows + args.windows - 1);
    for (uint32_t w = args.windows - 1; w-- > 0;) {
        twice_often(sum, args.width);
        load(row, args.weighted, uint64_t(vector) * args.windows + w);
        add(sum, row);
    }
}

}  // namespace bucket_reduction
