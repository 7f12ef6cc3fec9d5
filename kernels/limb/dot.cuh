// Sums of products with one reduction: an extension of limb/split.cuh with the same conventions.
//
//   dot_product<N, P, WIDE, S = N / 2>(r, x, w, m, n0) -> c
//                                     x: P factors x_k of S limbs, w: P factors w_k of N limbs, each one after the other.
//                                     [r] + c W^N = (sum of [x_k][w_k] + q [m]) / W^S for the q in 0..W^S-1 that makes it
//                                     exact. N even, m odd, n0 = -m^-1 mod W: the result is below the sum of all w_k and
//                                     [m]. Without WIDE (c = 0, and cheaper) that sum has to be at most W^N. r may be x
//
//   S = N / 2: the x_k are parts of elements, and w_k constants below [m].
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
