// A thread's own memory behind a pointer that a function is given.
//
// Such a pointer has the same value in every lane, but not what lies behind it. ptxas 13.0 takes the one for the other in a
// function that is not inlined: it holds the pointer in a uniform register, takes what it loads there for uniform, and so
// takes a branch on it for one that the whole warp goes. Where lanes go both ways, one way's instructions then overwrite
// uniform registers that the other still reads. (Seen in xyzz::add for sm_90 in two limbs: lanes that doubled left their
// pointer to lanes that had infinity to replace, which then replaced nothing.)
//
// So every function that is not inlined and takes references begins with
//
//   Point<C>& p = own_memory::of(given);
//
// after which ptxas cannot know that lanes agree on the pointer. Costs a special register, a comparison and an addition.
#pragma once

#include "base/platform.cuh"

namespace own_memory {

#ifdef __CUDACC_RTC__

// 0, as a lane's mask never is; ptxas knows the range of lane numbers, but not that of masks.
__device__ __forceinline__ uint32_t zero_of_lane() {
    uint32_t mask;
    asm("mov.u32 %0, %%lanemask_eq;" : "=r"(mask));
    return mask == 0;
}

template <class T>
__device__ __forceinline__ T& of(T& given) {
    return *(&given + zero_of_lane());
}

#else

template <class T>
T& of(T& given) {
    return given;
}

#endif

}  // namespace own_memory
