// A thread's own memory behind a pointer that a function is given.
//
// Such a pointer has the same value in every lane, but not what lies behind it. In a function that is not inlined ptxas 13.0
// holds it in a uniform register, of which a warp has one for all lanes, takes what it loads there for the same in all lanes,
// and lets a function that is called on one way overwrite the register that lanes on another way have still to read. (Seen in
// xyzz::add for sm_90 in two limbs: lanes that doubled left their pointer to lanes that had infinity to replace, which then
// replaced nothing.)
//
// So a function that is not inlined and takes references begins with
//
//   Point<C>& p = own_memory::of(given);      ptxas cannot know that lanes agree on the pointer
//
// and calls another one only where lanes have met again, on
//
//   if (own_memory::hidden(condition)) ..     no compiler can join an earlier branch with this one
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

__device__ __forceinline__ bool hidden(bool condition) {
    uint32_t word = condition;
    asm volatile("mov.u32 %0, %0;" : "+r"(word));
    return word != 0;
}

#else

template <class T>
T& of(T& given) {
    return given;
}

inline bool hidden(bool condition) { return condition; }

#endif

}  // namespace own_memory
