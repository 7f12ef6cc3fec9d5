// The twin of field/warp_inverse_ptx.cuh for a host C++ compiler.
#pragma once

#include "base/platform.cuh"

namespace safegcd {

// f^2 - 2 mod 2^32.
__device__ __forceinline__ uint32_t square_less_two(uint32_t f) { return f * f - 2; }

}  // namespace safegcd
