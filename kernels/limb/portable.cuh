// The carry chains of limb/limb.cuh for any C++ compiler with unsigned __int128: limbs are taken in pairs, as 64-bit
// words. Contracts stand in limb/limb.cuh.
#pragma once

#include "base/platform.cuh"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "pairs of limbs are words in place");

namespace limb {

using Word = uint64_t;
__extension__ typedef unsigned __int128 Wide;

// 64-bit words that hold N limbs; an odd number of limbs leaves the last word half empty.
template <int N>
constexpr int WORDS = (N + 1) / 2;

// Two limbs as one word. A copy of 8 bytes, which the compiler can follow through arrays of limbs, where two of 4 bytes
// would meet again in memory.
__forceinline__ Word load_pair(const uint32_t* limbs) {
    Word word;
    __builtin_memcpy(&word, limbs, sizeof word);
    return word;
}

__forceinline__ void store_pair(uint32_t* limbs, Word word) { __builtin_memcpy(limbs, &word, sizeof word); }

template <int N>
__forceinline__ void load(Word* words, const uint32_t* limbs) {
    UNROLL
    for (int i = 0; i < N / 2; ++i) words[i] = load_pair(limbs + 2 * i);
    if (N % 2) words[N / 2] = limbs[N - 1];
}

// Stores N limbs; what lies above them in the last word is dropped.
template <int N>
__forceinline__ void store(uint32_t* limbs, const Word* words) {
    UNROLL
    for (int i = 0; i < N / 2; ++i) store_pair(limbs + 2 * i, words[i]);
    if (N % 2) limbs[N - 1] = uint32_t(words[N / 2]);
}

// r += a b + carry at one word; returns the carry. (2^64 - 1)^2 + 2 (2^64 - 1) < 2^128.
__forceinline__ Word multiply_add_word(Word& r, Word a, Word b, Word carry) {
    const Wide sum = Wide(a) * b + r + carry;
    r = Word(sum);
    return Word(sum >> 64);
}

template <int N>
__forceinline__ uint32_t add(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    Word carry = 0;
    UNROLL
    for (int i = 0; i < N / 2; ++i) {
        const Wide sum = Wide(load_pair(a + 2 * i)) + load_pair(b + 2 * i) + carry;
        store_pair(r + 2 * i, Word(sum));
        carry = Word(sum >> 64);
    }
    if (N % 2) {
        const Word sum = Word(a[N - 1]) + b[N - 1] + carry;
        r[N - 1] = uint32_t(sum);
        carry = sum >> 32;
    }
    return uint32_t(carry);
}

template <int N>
__forceinline__ uint32_t subtract(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    Word borrow = 0;
    UNROLL
    for (int i = 0; i < N / 2; ++i) {
        const Wide difference = Wide(load_pair(a + 2 * i)) - load_pair(b + 2 * i) - borrow;
        store_pair(r + 2 * i, Word(difference));
        borrow = Word(difference >> 64) & 1;
    }
    if (N % 2) {
        const Word difference = Word(a[N - 1]) - b[N - 1] - borrow;
        r[N - 1] = uint32_t(difference);
        borrow = difference >> 63;
    }
    return uint32_t(borrow);
}

template <int N>
__forceinline__ uint32_t multiply_accumulate(uint32_t* r, const uint32_t* a, uint32_t w) {
    Word carry = 0;
    UNROLL
    for (int i = 0; i < N; ++i) {
        const Word sum = Word(a[i]) * w + r[i] + carry;
        r[i] = uint32_t(sum);
        carry = sum >> 32;
    }
    return uint32_t(carry);
}

// Shifting by 64 - s in two steps: s may be 0.
template <int N>
__forceinline__ void shift_left(uint32_t* r, const uint32_t* a, uint32_t below, uint32_t s) {
    Word words[WORDS<N>];
    load<N>(words, a);
    UNROLL
    for (int i = WORDS<N> - 1; i > 0; --i) words[i] = words[i] << s | words[i - 1] >> 1 >> (63 - s);
    words[0] = words[0] << s | (Word(below) << s) >> 32;
    store<N>(r, words);
}

template <int N>
__forceinline__ void shift_right(uint32_t* r, const uint32_t* a, uint32_t s) {
    Word words[WORDS<N>];
    load<N>(words, a);
    UNROLL
    for (int i = 0; i < WORDS<N> - 1; ++i) words[i] = words[i] >> s | words[i + 1] << 1 << (63 - s);
    words[WORDS<N> - 1] >>= s;
    store<N>(r, words);
}

}  // namespace limb
