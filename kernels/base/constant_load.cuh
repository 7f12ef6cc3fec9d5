// Loads of what does not change while a kernel runs, begun exactly where they stand in the code.
#pragma once

#include "base/platform.cuh"

namespace constant_load {

// Four words, aligned to 16 bytes.
#ifdef __CUDACC_RTC__
__device__ __forceinline__ void words4(uint32_t* w, const uint32_t* from) {
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "l"(__cvta_generic_to_global(from)));
}
#else
inline void words4(uint32_t* w, const uint32_t* from) {
    for (int i = 0; i < 4; ++i) w[i] = from[i];
}
#endif

}  // namespace constant_load
