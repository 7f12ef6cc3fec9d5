// Copies from device memory into a block's shared memory that go on while the thread works on (from sm_80; before that,
// and on the host, they are done at once).
//
// Each thread begins copies, waits for its own, and the block synchronises: then all of it is visible to all.
#pragma once

#include "base/platform.cuh"

namespace async_copy {

#if defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 800

// 16 bytes; both addresses are aligned to 16.
__device__ __forceinline__ void begin(uint4* shared, const uint4* source) {
    const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(__cvta_generic_to_global(source)) : "memory");
}

__device__ __forceinline__ void wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#else

__device__ __forceinline__ void begin(uint4* shared, const uint4* source) { *shared = *source; }
__device__ __forceinline__ void wait() {}

#endif

}  // namespace async_copy
