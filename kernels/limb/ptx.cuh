// The carry chains of limb/limb.cuh in PTX. One operation is one asm block: a chain that is spread over statements can
// be torn apart by the compiler.
//
// An asm text is a literal, so that the number of limbs has to choose between texts. They are built from one step by
// the lists CHAIN and ROW, which name operands by fixed slots: limb i of an array is always operand FIRST + i, whatever
// N is. Slots above N are bound to a spare variable and are not named by the text; they cost nothing.
//
// Every output is early-clobber (&): a block writes some of its outputs before it has read all of its inputs, and
// without the mark the compiler may put both into one register.
#pragma once

#include "base/platform.cuh"

namespace limb {

// --- slots ----------------------------------------------------------------------------------------------------------

// Limb I of an array of N, or the spare. A row's vector is every second limb: stride 2.
template <int N, int I, int STRIDE = 1>
__device__ __forceinline__ uint32_t& slot(uint32_t* array, uint32_t& spare) {
    if constexpr (I < N) {
        return array[I * STRIDE];
    } else {
        return spare;
    }
}

template <int N, int I, int STRIDE = 1>
__device__ __forceinline__ uint32_t word(const uint32_t* array) {
    if constexpr (I < N) {
        return array[I * STRIDE];
    } else {
        return 0;
    }
}

#define LIMB_OUT13(kind, n, r)                                                                                     \
    kind(slot<n, 0>(r, spare)), kind(slot<n, 1>(r, spare)), kind(slot<n, 2>(r, spare)), kind(slot<n, 3>(r, spare)), \
        kind(slot<n, 4>(r, spare)), kind(slot<n, 5>(r, spare)), kind(slot<n, 6>(r, spare)),                        \
        kind(slot<n, 7>(r, spare)), kind(slot<n, 8>(r, spare)), kind(slot<n, 9>(r, spare)),                        \
        kind(slot<n, 10>(r, spare)), kind(slot<n, 11>(r, spare)), kind(slot<n, 12>(r, spare))
#define LIMB_IN13(n, a)                                                                                        \
    "r"(word<n, 0>(a)), "r"(word<n, 1>(a)), "r"(word<n, 2>(a)), "r"(word<n, 3>(a)), "r"(word<n, 4>(a)),        \
        "r"(word<n, 5>(a)), "r"(word<n, 6>(a)), "r"(word<n, 7>(a)), "r"(word<n, 8>(a)), "r"(word<n, 9>(a)),    \
        "r"(word<n, 10>(a)), "r"(word<n, 11>(a)), "r"(word<n, 12>(a))
#define LIMB_IN7(n, v)                                                                                           \
    "r"(word<n, 0, 2>(v)), "r"(word<n, 1, 2>(v)), "r"(word<n, 2, 2>(v)), "r"(word<n, 3, 2>(v)),                  \
        "r"(word<n, 4, 2>(v)), "r"(word<n, 5, 2>(v)), "r"(word<n, 6, 2>(v))

// --- chains over limbs: operands r %0..%12, carry %13, a %14..%26, b %27..%39 ----------------------------------------

#define LIMB_CHAIN_1(F, X) F(0, 14, 27)
#define LIMB_CHAIN_2(F, X) LIMB_CHAIN_1(F, X) X(1, 15, 28)
#define LIMB_CHAIN_3(F, X) LIMB_CHAIN_2(F, X) X(2, 16, 29)
#define LIMB_CHAIN_4(F, X) LIMB_CHAIN_3(F, X) X(3, 17, 30)
#define LIMB_CHAIN_5(F, X) LIMB_CHAIN_4(F, X) X(4, 18, 31)
#define LIMB_CHAIN_6(F, X) LIMB_CHAIN_5(F, X) X(5, 19, 32)
#define LIMB_CHAIN_7(F, X) LIMB_CHAIN_6(F, X) X(6, 20, 33)
#define LIMB_CHAIN_8(F, X) LIMB_CHAIN_7(F, X) X(7, 21, 34)
#define LIMB_CHAIN_9(F, X) LIMB_CHAIN_8(F, X) X(8, 22, 35)
#define LIMB_CHAIN_10(F, X) LIMB_CHAIN_9(F, X) X(9, 23, 36)
#define LIMB_CHAIN_11(F, X) LIMB_CHAIN_10(F, X) X(10, 24, 37)
#define LIMB_CHAIN_12(F, X) LIMB_CHAIN_11(F, X) X(11, 25, 38)
#define LIMB_CHAIN_13(F, X) LIMB_CHAIN_12(F, X) X(12, 26, 39)

// Chooses the text for N limbs: before, the chain, after.
#define LIMB_ASM(N, LIST, BEFORE, F, X, AFTER, ...)                            \
    if constexpr (N == 1) asm(BEFORE LIST##_1(F, X) AFTER : __VA_ARGS__);      \
    else if constexpr (N == 2) asm(BEFORE LIST##_2(F, X) AFTER : __VA_ARGS__); \
    else if constexpr (N == 3) asm(BEFORE LIST##_3(F, X) AFTER : __VA_ARGS__); \
    else if constexpr (N == 4) asm(BEFORE LIST##_4(F, X) AFTER : __VA_ARGS__); \
    else if constexpr (N == 5) asm(BEFORE LIST##_5(F, X) AFTER : __VA_ARGS__); \
    else if constexpr (N == 6) asm(BEFORE LIST##_6(F, X) AFTER : __VA_ARGS__); \
    else if constexpr (N == 7) asm(BEFORE LIST##_7(F, X) AFTER : __VA_ARGS__)
#define LIMB_ASM_LONG(N, LIST, BEFORE, F, X, AFTER, ...)                         \
    LIMB_ASM(N, LIST, BEFORE, F, X, AFTER, __VA_ARGS__);                         \
    else if constexpr (N == 8) asm(BEFORE LIST##_8(F, X) AFTER : __VA_ARGS__);   \
    else if constexpr (N == 9) asm(BEFORE LIST##_9(F, X) AFTER : __VA_ARGS__);   \
    else if constexpr (N == 10) asm(BEFORE LIST##_10(F, X) AFTER : __VA_ARGS__); \
    else if constexpr (N == 11) asm(BEFORE LIST##_11(F, X) AFTER : __VA_ARGS__); \
    else if constexpr (N == 12) asm(BEFORE LIST##_12(F, X) AFTER : __VA_ARGS__); \
    else asm(BEFORE LIST##_13(F, X) AFTER : __VA_ARGS__)

#define LIMB_ADD_FIRST(r, a, b) "add.cc.u32 %" #r ", %" #a ", %" #b ";\n\t"
#define LIMB_ADD(r, a, b) "addc.cc.u32 %" #r ", %" #a ", %" #b ";\n\t"
#define LIMB_SUB_FIRST(r, a, b) "sub.cc.u32 %" #r ", %" #a ", %" #b ";\n\t"
#define LIMB_SUB(r, a, b) "subc.cc.u32 %" #r ", %" #a ", %" #b ";\n\t"
// The low words of [a] w, then (one limb up) the high words; w is %27.
#define LIMB_LOW_FIRST(r, a, b) "mad.lo.cc.u32 %" #r ", %" #a ", %27, %" #r ";\n\t"
#define LIMB_LOW(r, a, b) "madc.lo.cc.u32 %" #r ", %" #a ", %27, %" #r ";\n\t"

template <int N>
__device__ __forceinline__ uint32_t add_short(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    static_assert(N >= 1 && N <= 13, "slots");
    uint32_t carry, spare;
    LIMB_ASM_LONG(N, LIMB_CHAIN, "", LIMB_ADD_FIRST, LIMB_ADD, "addc.u32 %13, 0, 0;",
                  LIMB_OUT13("=&r", N, r), "=&r"(carry) : LIMB_IN13(N, a), LIMB_IN13(N, b));
    return carry;
}

// The same with a carry in (0 or 1): adding 2^32 - 1 to it sets the flag.
template <int N>
__device__ __forceinline__ uint32_t add_carry_short(uint32_t* r, const uint32_t* a, const uint32_t* b, uint32_t carry) {
    static_assert(N >= 1 && N <= 13, "slots");
    uint32_t spare;
    LIMB_ASM_LONG(N, LIMB_CHAIN, "add.cc.u32 %13, %13, 0xffffffff;\n\t", LIMB_ADD, LIMB_ADD, "addc.u32 %13, 0, 0;",
                  LIMB_OUT13("=&r", N, r), "+&r"(carry) : LIMB_IN13(N, a), LIMB_IN13(N, b));
    return carry;
}

template <int N>
__device__ __forceinline__ uint32_t add(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    if constexpr (N <= 13) {
        return add_short<N>(r, a, b);
    } else {
        const uint32_t carry = add_short<12>(r, a, b);
        return add_carry_short<N - 12>(r + 12, a + 12, b + 12, carry);
    }
}

template <int N>
__device__ __forceinline__ uint32_t subtract_short(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    static_assert(N >= 1 && N <= 13, "slots");
    uint32_t mask, spare;
    LIMB_ASM_LONG(N, LIMB_CHAIN, "", LIMB_SUB_FIRST, LIMB_SUB, "subc.u32 %13, 0, 0;",
                  LIMB_OUT13("=&r", N, r), "=&r"(mask) : LIMB_IN13(N, a), LIMB_IN13(N, b));
    return mask != 0;
}

// The same with a borrow in (0 or 1): taking it from 0 sets the flag.
template <int N>
__device__ __forceinline__ uint32_t subtract_borrow_short(uint32_t* r, const uint32_t* a, const uint32_t* b,
                                                          uint32_t borrow) {
    static_assert(N >= 1 && N <= 13, "slots");
    uint32_t spare;
    LIMB_ASM_LONG(N, LIMB_CHAIN, "sub.cc.u32 %13, 0, %13;\n\t", LIMB_SUB, LIMB_SUB, "subc.u32 %13, 0, 0;",
                  LIMB_OUT13("=&r", N, r), "+&r"(borrow) : LIMB_IN13(N, a), LIMB_IN13(N, b));
    return borrow != 0;
}

template <int N>
__device__ __forceinline__ uint32_t subtract(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    if constexpr (N <= 13) {
        return subtract_short<N>(r, a, b);
    } else {
        const uint32_t borrow = subtract_short<12>(r, a, b);
        return subtract_borrow_short<N - 12>(r + 12, a + 12, b + 12, borrow);
    }
}

template <int N>
__device__ __forceinline__ void shift_left(uint32_t* r, const uint32_t* a, uint32_t below, uint32_t s) {
    UNROLL
    for (int i = N - 1; i >= 0; --i) r[i] = __funnelshift_l(i == 0 ? below : a[i == 0 ? 0 : i - 1], a[i], s);
}

template <int N>
__device__ __forceinline__ void shift_right(uint32_t* r, const uint32_t* a, uint32_t s) {
    UNROLL
    for (int i = 0; i < N; ++i) r[i] = __funnelshift_r(a[i], i + 1 == N ? 0 : a[i + 1 == N ? i : i + 1], s);
}

// --- rows: every second limb of a vector times one word, so that the products of a row do not overlap ----------------
//
// acc %0..%13, top %14, over %15, low %16, w %17, v %18..%24 (limbs 0, 2, 4.. of the vector), addend %25, n0 %26.
// mad.lo.cc and madc.hi.cc on the same operands and a register pair become one 32 x 32 + 64 bit multiplication.

#define LIMB_ROW_1(F, X) F(0, 1, 18)
#define LIMB_ROW_2(F, X) LIMB_ROW_1(F, X) X(2, 3, 19)
#define LIMB_ROW_3(F, X) LIMB_ROW_2(F, X) X(4, 5, 20)
#define LIMB_ROW_4(F, X) LIMB_ROW_3(F, X) X(6, 7, 21)
#define LIMB_ROW_5(F, X) LIMB_ROW_4(F, X) X(8, 9, 22)
#define LIMB_ROW_6(F, X) LIMB_ROW_5(F, X) X(10, 11, 23)
#define LIMB_ROW_7(F, X) LIMB_ROW_6(F, X) X(12, 13, 24)

// A row of P - 1 products and the low word of one more: what remains of a row cut at W^K.
#define LIMB_CUT_1(F, X) F(0, , 18)
#define LIMB_CUT_2(F, X) LIMB_ROW_1(LIMB_MAD_FIRST, LIMB_MAD) X(2, , 19)
#define LIMB_CUT_3(F, X) LIMB_ROW_2(LIMB_MAD_FIRST, LIMB_MAD) X(4, , 20)
#define LIMB_CUT_4(F, X) LIMB_ROW_3(LIMB_MAD_FIRST, LIMB_MAD) X(6, , 21)
#define LIMB_CUT_5(F, X) LIMB_ROW_4(LIMB_MAD_FIRST, LIMB_MAD) X(8, , 22)
#define LIMB_CUT_6(F, X) LIMB_ROW_5(LIMB_MAD_FIRST, LIMB_MAD) X(10, , 23)
#define LIMB_CUT_7(F, X) LIMB_ROW_6(LIMB_MAD_FIRST, LIMB_MAD) X(12, , 24)

#define LIMB_MAD_FIRST(l, h, v)                     \
    "mad.lo.cc.u32 %" #l ", %" #v ", %17, %" #l ";\n\t" \
    "madc.hi.cc.u32 %" #h ", %" #v ", %17, %" #h ";\n\t"
#define LIMB_MAD(l, h, v)                            \
    "madc.lo.cc.u32 %" #l ", %" #v ", %17, %" #l ";\n\t" \
    "madc.hi.cc.u32 %" #h ", %" #v ", %17, %" #h ";\n\t"
#define LIMB_CUT_FIRST(l, h, v) "mad.lo.u32 %" #l ", %" #v ", %17, %" #l ";\n\t"
#define LIMB_CUT(l, h, v) "madc.lo.u32 %" #l ", %" #v ", %17, %" #l ";\n\t"
// Twice the carry moves up: into top, then into over.
#define LIMB_ROW_CARRY "addc.cc.u32 %14, %14, 0;\n\taddc.u32 %15, %15, 0;"

#define LIMB_OUT14(kind, n, r) LIMB_OUT13(kind, n, r), kind(slot<n, 13>(r, spare))

// acc = v w; acc: 2P limbs. No carries, because the products lie side by side.
template <int P>
__device__ __forceinline__ void row_multiply(uint32_t* acc, const uint32_t* v, uint32_t w) {
    UNROLL
    for (int k = 0; k < P; ++k) {
        asm("mul.lo.u32 %0, %2, %3;\n\tmul.hi.u32 %1, %2, %3;"
            : "=&r"(acc[2 * k]), "=&r"(acc[2 * k + 1])
            : "r"(v[2 * k]), "r"(w));
    }
}

// (over : top : acc) += v w; acc: 2P limbs, top and over: one each. Unused carries cost nothing.
template <int P>
__device__ __forceinline__ void row(uint32_t* acc, const uint32_t* v, uint32_t w, uint32_t& top, uint32_t& over) {
    uint32_t spare = 0, low = 0;
    LIMB_ASM(P, LIMB_ROW, "", LIMB_MAD_FIRST, LIMB_MAD, LIMB_ROW_CARRY,
             LIMB_OUT14("+&r", 2 * P, acc), "+&r"(top), "+&r"(over), "+&r"(low), "+&r"(w) : LIMB_IN7(P, v));
}

// acc += v w mod W^(2P - 1); acc: 2P - 1 limbs.
template <int P>
__device__ __forceinline__ void row_cut(uint32_t* acc, const uint32_t* v, uint32_t w) {
    uint32_t spare = 0, top = 0, over = 0, low = 0;
    LIMB_ASM(P, LIMB_CUT, "", LIMB_CUT_FIRST, LIMB_CUT, "",
             LIMB_OUT14("+&r", 2 * P - 1, acc), "+&r"(top), "+&r"(over), "+&r"(low), "+&r"(w) : LIMB_IN7(P, v));
}

// low += addend, whose carry enters acc += v w; acc: 2P limbs, no carry may leave it.
template <int P>
__device__ __forceinline__ void row_after_add(uint32_t* acc, const uint32_t* v, uint32_t w, uint32_t& low,
                                              uint32_t addend) {
    uint32_t spare = 0, top = 0, over = 0;
    LIMB_ASM(P, LIMB_ROW, "add.cc.u32 %16, %16, %25;\n\t", LIMB_MAD, LIMB_MAD, "",
             LIMB_OUT14("+&r", 2 * P, acc), "+&r"(top), "+&r"(over), "+&r"(low), "+&r"(w)
             : LIMB_IN7(P, v), "r"(addend));
}

// The same with w = low n0 for the new low: a row of a Montgomery reduction. Returns w.
template <int P>
__device__ __forceinline__ uint32_t row_reduce(uint32_t* acc, const uint32_t* v, uint32_t n0, uint32_t& low,
                                               uint32_t addend) {
    uint32_t spare = 0, top = 0, over = 0, w = 0;
    LIMB_ASM(P, LIMB_ROW, "add.cc.u32 %16, %16, %25;\n\tmul.lo.u32 %17, %16, %26;\n\t", LIMB_MAD, LIMB_MAD, "",
             LIMB_OUT14("+&r", 2 * P, acc), "+&r"(top), "+&r"(over), "+&r"(low), "+&r"(w)
             : LIMB_IN7(P, v), "r"(addend), "r"(n0));
    return w;
}

// acc + c W^(2P) = acc + sum of v[k]^2 W^(2k) + carry; acc: 2P limbs, v: P adjacent limbs, carry 0 or 1. Returns c.
#define LIMB_DIAGONAL_1(F, X) F(0, 1, 18)
#define LIMB_DIAGONAL_2(F, X) LIMB_DIAGONAL_1(F, X) X(2, 3, 19)
#define LIMB_DIAGONAL_3(F, X) LIMB_DIAGONAL_2(F, X) X(4, 5, 20)
#define LIMB_DIAGONAL_4(F, X) LIMB_DIAGONAL_3(F, X) X(6, 7, 21)
#define LIMB_DIAGONAL_5(F, X) LIMB_DIAGONAL_4(F, X) X(8, 9, 22)
#define LIMB_DIAGONAL_6(F, X) LIMB_DIAGONAL_5(F, X) X(10, 11, 23)
#define LIMB_DIAGONAL_7(F, X) LIMB_DIAGONAL_6(F, X) X(12, 13, 24)
#define LIMB_SQUARE(l, h, v)                             \
    "madc.lo.cc.u32 %" #l ", %" #v ", %" #v ", %" #l ";\n\t" \
    "madc.hi.cc.u32 %" #h ", %" #v ", %" #v ", %" #h ";\n\t"

template <int P>
__device__ __forceinline__ uint32_t diagonal(uint32_t* acc, const uint32_t* v, uint32_t carry) {
    uint32_t spare = 0, over = 0, low = 0, w = 0, spread[2 * P];
    UNROLL
    for (int k = 0; k < P; ++k) spread[2 * k] = v[k];
    LIMB_ASM(P, LIMB_DIAGONAL, "add.cc.u32 %14, %14, 0xffffffff;\n\t", LIMB_SQUARE, LIMB_SQUARE, "addc.u32 %14, 0, 0;",
             LIMB_OUT14("+&r", 2 * P, acc), "+&r"(carry), "+&r"(over), "+&r"(low), "+&r"(w) : LIMB_IN7(P, spread));
    return carry;
}

// --- the product by one word, limb by limb ---------------------------------------------------------------------------

// r %0..%12, carry %13, a %14..%26, w %27
template <int N>
__device__ __forceinline__ uint32_t multiply_accumulate(uint32_t* r, const uint32_t* a, uint32_t w) {
    static_assert(N >= 1 && N <= 12, "slots");
    uint32_t high[N + 1], low_carry, spare = 0;
    LIMB_ASM_LONG(N, LIMB_CHAIN, "", LIMB_LOW_FIRST, LIMB_LOW, "addc.u32 %13, 0, 0;",
                  LIMB_OUT13("+&r", N, r), "=&r"(low_carry) : LIMB_IN13(N, a), "r"(w));
    // [r] + low_carry W^N now holds the low words; the high words lie one limb further up.
    UNROLL
    for (int i = 0; i < N; ++i) high[i] = __umulhi(a[i], w);
    if constexpr (N == 1) {
        return high[0] + low_carry;
    } else {
        const uint32_t carry = add<N - 1>(r + 1, r + 1, high);
        return high[N - 1] + low_carry + carry;
    }
}

}  // namespace limb
