// Products by a precomputed constant and conditional sums: an extension of limb/limb.cuh with the same conventions.
//
//   split_product<N, P>(r, x, w, m, n0)
//                                     S = ceil(N / P); x is cut into P parts x_k of S limbs (the last may be shorter), and
//                                     w holds P constants w_k of N limbs each, one after the other:
//                                     [r] = (sum of x_k w_k + q [m]) / W^S for the q in 0..W^S-1 that makes it exact.
//                                     N even, m odd, n0 = -m^-1 mod W; w_k < [m] and (P + 1) [m] <= W^N, so that
//                                     [r] < (P + 1) [m] fits. r may be x
//   high_product<N>(h, x, y)          [h] = floor([x][y] / W^N) - e, 0 <= e < N / W + 2^-30, so e is 0 or 1. N >= 2.
//                                     No aliases
//   subtract_if_above<N>(r, threshold, k)
//                                     [r] = [r] - [k] where the top limb of r is above threshold, else [r]
//   difference_or_add<N>(r, a, b, k)  [r] = [a] - [b], or [a] - [b] + [k] where [a] < [b]; that sum is below W^N
#pragma once

#include "limb/limb.cuh"

#ifdef __CUDACC_RTC__
#include "limb/ptx_split.cuh"
#else
#include "limb/portable_split.cuh"
#endif
