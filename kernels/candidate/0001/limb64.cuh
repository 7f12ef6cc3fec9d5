// What the 64-bit ways need of arithmetic on four limbs of 64 bits, little-endian: one interface of two implementations,
// as in limb/limb.cuh. B = 2^64; [x] is the integer that an array stands for. All functions: one thread.
//
//   row_multiply(acc, v, w)      [acc] = (v[0] + v[2] B^2) w,             acc: 4 limbs
//   row(acc, v, w, top)          [acc] + top B^4 += (v[0] + v[2] B^2) w,  acc: 4 limbs; top takes the carry
//   row_last(acc, v, w)          the same where the caller knows that nothing leaves acc
//   add<N>(r, b) -> carry        [r] += [b], N = 4 or 5
//   add_two(r, low, high) -> carry
//                                [r] += low + high B, r: 4 limbs
//   high_product(a, b)           floor(a b / B)
#pragma once

#include "base/platform.cuh"

#ifdef __CUDACC_RTC__
#include "candidate/0001/limb64_ptx.cuh"
#else
#include "candidate/0001/limb64_portable.cuh"
#endif

namespace limb64 {

constexpr int N = 4;

// Two 32-bit limbs are one 64-bit limb: on the device a register pair, so that this costs nothing.
__device__ __forceinline__ void from_limbs(uint64_t* r, const uint32_t* a) {
    UNROLL
    for (int i = 0; i < N; ++i) r[i] = uint64_t(a[2 * i + 1]) << 32 | a[2 * i];
}

__device__ __forceinline__ void to_limbs(uint32_t* r, const uint64_t* a) {
    UNROLL
    for (int i = 0; i < N; ++i) {
        r[2 * i] = uint32_t(a[i]);
        r[2 * i + 1] = uint32_t(a[i] >> 32);
    }
}

}  // namespace limb64
