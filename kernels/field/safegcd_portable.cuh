// The twins of field/safegcd_ptx.cuh for a host C++ compiler.
#pragma once

#include "base/platform.cuh"

namespace safegcd {

__device__ __forceinline__ int64_t multiply_add(int64_t sum, int32_t a, int32_t b) {
    return sum + static_cast<int64_t>(a) * b;
}

// Masks instead of branches: which way a step goes is a coin toss that no branch predictor learns.
__device__ __forceinline__ void divstep(int32_t& y, uint32_t& f, uint32_t& g, uint32_t& f_row, uint32_t& g_row) {
    const uint32_t odd = 0u - (g & 1), negative = static_cast<uint32_t>(y >> 31), swap = odd & negative;
    const uint32_t exchange = (f ^ g) & swap, row_exchange = (f_row ^ g_row) & swap;
    g += ((f ^ negative) - negative) & odd;  // g - f in a swap, else g + f
    g_row += ((f_row ^ negative) - negative) & odd;
    f ^= exchange;
    f_row ^= row_exchange;
    g >>= 1;
    y = static_cast<int32_t>((static_cast<uint32_t>(y) ^ swap) - swap) - 2;
}

}  // namespace safegcd
