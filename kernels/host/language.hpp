// The CUDA language's own words.
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__

#define threadIdx (::limbd_host::context.thread_index)
#define blockIdx (::limbd_host::context.block_index)
#define blockDim (::limbd_host::context.block_size)
#define gridDim (::limbd_host::context.grid_size)

// The block's dynamic shared memory as `type name[]` (the size is the launch's).
#define DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(::limbd_host::context.dynamic_shared)

constexpr int warpSize = 32;

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    limbd_host::fibers("__syncthreads").barrier(false, {file, line});
}

inline int __syncthreads_count(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return static_cast<int>(limbd_host::fibers("__syncthreads_count").barrier(predicate != 0, {file, line}));
}

inline int __syncthreads_or(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return limbd_host::fibers("__syncthreads_or").barrier(predicate != 0, {file, line}) != 0;
}

inline int __syncthreads_and(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return limbd_host::fibers("__syncthreads_and").barrier(predicate != 0, {file, line}) == blockDim.x;
}

[[noreturn]] inline void __trap() { limbd_host::fail("__trap()"); }

inline void __threadfence_block() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
