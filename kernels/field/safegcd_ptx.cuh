// The two operations of safegcd that CUDA needs spelled out; their contracts stand in field/signed30.cuh (multiply_add)
// and field/divsteps.cuh (divstep).
#pragma once

#include "base/platform.cuh"

namespace safegcd {

// One IMAD.WIDE. Left to the compiler, a factor that is used several times is widened once and then multiplied as a
// 64-bit number, which takes three multiplications.
__device__ __forceinline__ int64_t multiply_add(int64_t sum, int32_t a, int32_t b) {
    asm("{\n"
        ".reg .b32 low, high;\n"
        "mov.b64 {low, high}, %0;\n"
        "mad.lo.cc.s32 low, %1, %2, low;\n"
        "madc.hi.s32 high, %1, %2, high;\n"
        "mov.b64 %0, {low, high};\n"
        "}"
        : "+l"(sum)
        : "r"(a), "r"(b));
    return sum;
}

// Nine instructions, none of them a branch (the caller's doubling of f's row is the tenth). The multiplications by +-1
// are there on purpose: additions, shifts and selects share one pipe, and giving half of the work to the multiplier lets
// both run at once.
__device__ __forceinline__ void divstep(int32_t& y, uint32_t& f, uint32_t& g, uint32_t& f_row, uint32_t& g_row) {
    asm("{\n"
        ".reg .pred odd, swap;\n"
        ".reg .b32 bit, sign;\n"
        "and.b32 bit, %2, 1;\n"
        "setp.ne.u32 odd, bit, 0;\n"
        "setp.lt.and.s32 swap, %0, 0, odd;\n"
        "selp.s32 sign, -1, 1, swap;\n"
        "@odd mad.lo.s32 %2, %1, sign, %2;\n"  // g - f in a swap, else g + f
        "@odd mad.lo.s32 %4, %3, sign, %4;\n"
        "@swap add.s32 %1, %1, %2;\n"  // f + (g - f): the old g
        "@swap add.s32 %3, %3, %4;\n"
        "shr.u32 %2, %2, 1;\n"
        "mad.lo.s32 %0, %0, sign, -2;\n"
        "}"
        : "+r"(y), "+r"(f), "+r"(g), "+r"(f_row), "+r"(g_row));
}

}  // namespace safegcd
