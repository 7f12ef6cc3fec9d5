// limb64.cuh on CUDA. The device has no 64-bit multiplier: ptxas makes each of these instructions of 32-bit ones. One
// operation is one asm block, and outputs are early-clobber, as in limb/ptx.cuh.
#pragma once

#include "base/platform.cuh"

namespace limb64 {

__device__ __forceinline__ void row_multiply(uint64_t* acc, const uint64_t* v, uint64_t w) {
    UNROLL
    for (int k = 0; k < 4; k += 2) {
        asm("mul.lo.u64 %0, %2, %3;\n\tmul.hi.u64 %1, %2, %3;" : "=&l"(acc[k]), "=&l"(acc[k + 1]) : "l"(v[k]), "l"(w));
    }
}

__device__ __forceinline__ void row(uint64_t* acc, const uint64_t* v, uint64_t w, uint64_t& top) {
    asm("mad.lo.cc.u64 %0, %5, %7, %0;\n\tmadc.hi.cc.u64 %1, %5, %7, %1;\n\t"
        "madc.lo.cc.u64 %2, %6, %7, %2;\n\tmadc.hi.cc.u64 %3, %6, %7, %3;\n\t"
        "addc.u64 %4, %4, 0;"
        : "+&l"(acc[0]), "+&l"(acc[1]), "+&l"(acc[2]), "+&l"(acc[3]), "+&l"(top)
        : "l"(v[0]), "l"(v[2]), "l"(w));
}

__device__ __forceinline__ void row_last(uint64_t* acc, const uint64_t* v, uint64_t w) {
    asm("mad.lo.cc.u64 %0, %4, %6, %0;\n\tmadc.hi.cc.u64 %1, %4, %6, %1;\n\t"
        "madc.lo.cc.u64 %2, %5, %6, %2;\n\tmadc.hi.u64 %3, %5, %6, %3;"
        : "+&l"(acc[0]), "+&l"(acc[1]), "+&l"(acc[2]), "+&l"(acc[3])
        : "l"(v[0]), "l"(v[2]), "l"(w));
}

template <int N>
__device__ __forceinline__ uint64_t add(uint64_t* r, const uint64_t* b) {
    static_assert(N == 4 || N == 5, "the lengths of a number and of a row");
    uint64_t carry;
    if constexpr (N == 4) {
        asm("add.cc.u64 %0, %0, %5;\n\taddc.cc.u64 %1, %1, %6;\n\taddc.cc.u64 %2, %2, %7;\n\taddc.cc.u64 %3, %3, %8;\n\t"
            "addc.u64 %4, 0, 0;"
            : "+&l"(r[0]), "+&l"(r[1]), "+&l"(r[2]), "+&l"(r[3]), "=&l"(carry)
            : "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]));
    } else {
        asm("add.cc.u64 %0, %0, %6;\n\taddc.cc.u64 %1, %1, %7;\n\taddc.cc.u64 %2, %2, %8;\n\taddc.cc.u64 %3, %3, %9;\n\t"
            "addc.cc.u64 %4, %4, %10;\n\taddc.u64 %5, 0, 0;"
            : "+&l"(r[0]), "+&l"(r[1]), "+&l"(r[2]), "+&l"(r[3]), "+&l"(r[4]), "=&l"(carry)
            : "l"(b[0]), "l"(b[1]), "l"(b[2]), "l"(b[3]), "l"(b[4]));
    }
    return carry;
}

__device__ __forceinline__ uint64_t add_two(uint64_t* r, uint64_t low, uint64_t high) {
    uint64_t carry;
    asm("add.cc.u64 %0, %0, %5;\n\taddc.cc.u64 %1, %1, %6;\n\taddc.cc.u64 %2, %2, 0;\n\taddc.cc.u64 %3, %3, 0;\n\t"
        "addc.u64 %4, 0, 0;"
        : "+&l"(r[0]), "+&l"(r[1]), "+&l"(r[2]), "+&l"(r[3]), "=&l"(carry)
        : "l"(low), "l"(high));
    return carry;
}

__device__ __forceinline__ uint64_t high_product(uint64_t a, uint64_t b) { return __umul64hi(a, b); }

}  // namespace limb64
