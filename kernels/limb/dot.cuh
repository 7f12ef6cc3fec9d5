// Sums of products by constants with one reduction: an extension of limb/split.cuh with the same conventions.
//
//   dot_product<N, P, WIDE>(r, x, w, m, n0) -> c
//                                     x: P parts x_k of S = N / 2 limbs, w: P constants w_k of N limbs, each one after the
//                                     other. [r] + c W^N = (sum of [x_k][w_k] + q [m]) / W^S for the q in 0..W^S-1 that
//                                     makes it exact. N even, m odd, n0 = -m^-1 mod W, w_k < [m]: the result is below
//                                     (P + 1) [m]. Without WIDE (c = 0, and cheaper) that has to be at most W^N. r may be x
//
//   P = 2 is split_product<N, 2>; P = 4 is a u + b v for two elements u, v and two constants a, b.
//
//   mask_above(x, threshold)          ~0 where x > threshold, else 0; never a branch, which compilers make of comparisons
#pragma once

#include "limb/split.cuh"

#ifdef __CUDACC_RTC__
#include "limb/ptx_dot.cuh"
#else
#include "limb/portable_dot.cuh"
#endif
