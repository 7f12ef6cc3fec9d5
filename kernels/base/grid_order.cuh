// Grids of one stream that overlap (from sm_90, with Launch.overlaps): a grid may begin before the one before it has ended. On the
// host, and below sm_90, each grid ends before the next begins, and these do nothing.
//
//   let_next_begin()       the next grid, launched so, may begin once all blocks of this one have come here or ended
//   wait_for_previous()    the grid before has ended, and what it wrote is there. Until then a thread neither reads what an
//                          earlier grid of the request writes, nor writes at all
//   take_turn()            both, at a kernel's beginning: what is saved is the time between one grid's end and the next one's
//                          beginning
//
// The grid before has waited for its own one before it lets the next begin, so that all earlier ones have ended as well.
#pragma once

#include "base/platform.cuh"

namespace grid_order {

#if defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 900

__device__ __forceinline__ void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ __forceinline__ void wait_for_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

#else

__device__ __forceinline__ void let_next_begin() {}
__device__ __forceinline__ void wait_for_previous() {}

#endif

__device__ __forceinline__ void take_turn() {
    wait_for_previous();
    let_next_begin();
}

}  // namespace grid_order
