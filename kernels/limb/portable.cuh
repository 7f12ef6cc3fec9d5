// The carry chains of limb/limb.cuh for any C++ compiler with unsigned __int128: limbs are taken in pairs, as 64-bit
// words. Contracts stand in limb/limb.cuh.
#pragma once

#include "base/platform.cuh"

namespace limb {

using Word = uint64_t;
__extension__ typedef unsigned __int128 Wide;

// 64-bit words that hold N limbs; an odd number of limbs leaves the last word half empty.
template <int N>
constexpr int WORDS = (N + 1) / 2;

template <int N>
__forceinline__ void load(Word* words, const uint32_t* limbs) {
    for (int i = 0; i < N / 2; ++i) words[i] = limbs[2 * i] | Word(limbs[2 * i + 1]) << 32;
    if (N % 2) words[N / 2] = limbs[N - 1];
}

// Stores N limbs; what lies above them in the last word is dropped.
template <int N>
__forceinline__ void store(uint32_t* limbs, const Word* words) {
    for (int i = 0; i < N; ++i) limbs[i] = uint32_t(words[i / 2] >> 32 * (i % 2));
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
    for (int i = 0; i < N / 2; ++i) {
        const Word x = a[2 * i] | Word(a[2 * i + 1]) << 32, y = b[2 * i] | Word(b[2 * i + 1]) << 32;
        const Wide sum = Wide(x) + y + carry;
        r[2 * i] = uint32_t(sum);
        r[2 * i + 1] = uint32_t(sum >> 32);
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
    for (int i = 0; i < N / 2; ++i) {
        const Word x = a[2 * i] | Word(a[2 * i + 1]) << 32, y = b[2 * i] | Word(b[2 * i + 1]) << 32;
        const Wide difference = Wide(x) - y - borrow;
        r[2 * i] = uint32_t(difference);
        r[2 * i + 1] = uint32_t(difference >> 32);
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
    for (int i = 0; i < N; ++i) {
        const Word sum = Word(a[i]) * w + r[i] + carry;
        r[i] = uint32_t(sum);
        carry = sum >> 32;
    }
    return uint32_t(carry);
}

}  // namespace limb
