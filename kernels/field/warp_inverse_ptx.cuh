// The operation of field/warp_inverse.cuh that CUDA needs spelled out.
#pragma once

#include "base/platform.cuh"

namespace safegcd {

// f^2 - 2 mod 2^32. Left to the compiler, it becomes an addition behind the f f that is needed as well: one step more in a row.
__device__ __forceinline__ uint32_t square_less_two(uint32_t f) {
    uint32_t less;
    asm("mad.lo.u32 %0, %1, %1, -2;" : "=r"(less) : "r"(f));
    return less;
}

}  // namespace safegcd
