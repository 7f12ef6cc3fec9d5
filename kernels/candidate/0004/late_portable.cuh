// The twin of candidate/0004/late_ptx.cuh for a host C++ compiler.
#pragma once

#include "base/platform.cuh"

namespace late {

// f^2 - 2 mod 2^32.
__device__ __forceinline__ uint32_t square_less_two(uint32_t f) { return f * f - 2; }

}  // namespace late
