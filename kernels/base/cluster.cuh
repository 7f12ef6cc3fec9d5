// Blocks of a cluster that hand values to each other through their shared memory (from sm_90; on the host the blocks of a
// cluster are fibers of one group). All threads of the cluster call each of these but store, in this order:
//
//   announce()                this block runs
//   wait_for_all()            all of them do: from now on their shared memory may be written
//   store(place, rank, v)     v into the block of this rank, where `place` is in one's own
//   synchronise()             what was stored before is there, in all blocks; __syncthreads() as well
#pragma once

#include "base/platform.cuh"

namespace cluster {

#ifdef __CUDACC_RTC__

__device__ __forceinline__ void announce() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }

__device__ __forceinline__ void wait_for_all() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

__device__ __forceinline__ void store(uint4* place, uint32_t rank, uint4 v) {
    const uint32_t own = static_cast<uint32_t>(__cvta_generic_to_shared(place));
    asm volatile(
        "{.reg .u32 to;\n\t"
        "mapa.shared::cluster.u32 to, %0, %1;\n\t"
        "st.shared::cluster.v4.u32 [to], {%2, %3, %4, %5};}" ::"r"(own),
        "r"(rank), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
        : "memory");
}

__device__ __forceinline__ void synchronise() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

#else

inline void announce() {}
inline void wait_for_all() { limbd_host::cluster_barrier(); }
inline void store(uint4* place, uint32_t rank, uint4 v) { *limbd_host::in_block(place, rank) = v; }
inline void synchronise() { limbd_host::cluster_barrier(); }

#endif

}  // namespace cluster
