// limb64.cuh for any C++ compiler with unsigned __int128.
#pragma once

#include "base/platform.cuh"

namespace limb64 {

__extension__ typedef unsigned __int128 Product;

// r += a b + carry; returns what leaves the limb.
__forceinline__ uint64_t multiply_add(uint64_t& r, uint64_t a, uint64_t b, uint64_t carry) {
    const Product sum = Product(a) * b + r + carry;
    r = uint64_t(sum);
    return uint64_t(sum >> 64);
}

// r += b + carry; returns the carry.
__forceinline__ uint64_t add_limb(uint64_t& r, uint64_t b, uint64_t carry) {
    const Product sum = Product(r) + b + carry;
    r = uint64_t(sum);
    return uint64_t(sum >> 64);
}

// [acc] += (v[0] + v[2] B^2) w; returns the carry. v[1] w has no part in it: limb 1 takes the high half alone.
__forceinline__ uint64_t accumulate_row(uint64_t* acc, const uint64_t* v, uint64_t w) {
    uint64_t carry = 0;
    UNROLL
    for (int k = 0; k < 4; k += 2) {
        carry = multiply_add(acc[k], v[k], w, carry);
        carry = add_limb(acc[k + 1], carry, 0);
    }
    return carry;
}

__forceinline__ void row_multiply(uint64_t* acc, const uint64_t* v, uint64_t w) {
    UNROLL
    for (int k = 0; k < 4; ++k) acc[k] = 0;
    accumulate_row(acc, v, w);
}

__forceinline__ void row(uint64_t* acc, const uint64_t* v, uint64_t w, uint64_t& top) {
    top += accumulate_row(acc, v, w);
}

__forceinline__ void row_last(uint64_t* acc, const uint64_t* v, uint64_t w) {
    const uint64_t carry = accumulate_row(acc, v, w);
    VERIFY(carry == 0);
    (void)carry;
}

template <int N>
__forceinline__ uint64_t add(uint64_t* r, const uint64_t* b) {
    uint64_t carry = 0;
    UNROLL
    for (int i = 0; i < N; ++i) carry = add_limb(r[i], b[i], carry);
    return carry;
}

__forceinline__ uint64_t add_two(uint64_t* r, uint64_t low, uint64_t high) {
    uint64_t carry = add_limb(r[0], low, 0);
    carry = add_limb(r[1], high, carry);
    carry = add_limb(r[2], 0, carry);
    return add_limb(r[3], 0, carry);
}

__forceinline__ uint64_t high_product(uint64_t a, uint64_t b) { return uint64_t(Product(a) * b >> 64); }

}  // namespace limb64
