// The rows of the 32-bit ways, with the names that limb64.cuh gives to those of the 64-bit ways. W = 2^32; v: every
// second limb of four counts, v[0], v[2], v[4], v[6]; acc: 8 limbs. All functions: one thread.
//
//   row_multiply(acc, v, w)      [acc] = (v[0] + v[2] W^2 + ..) w
//   row(acc, v, w, top)          [acc] + top W^8 += (v[0] + v[2] W^2 + ..) w;  top takes the carry
//   row_last(acc, v, w)          the same where the caller knows that nothing leaves acc
#pragma once

#include "base/platform.cuh"

#ifdef __CUDACC_RTC__
#include "candidate/0001/rows32_ptx.cuh"
#else
#include "candidate/0001/rows32_portable.cuh"
#endif
