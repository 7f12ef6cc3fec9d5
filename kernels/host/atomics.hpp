// Atomic functions: relaxed, as on the device. Blocks run on several operating-system threads, so they are real atomics.
#pragma once

namespace limbd_host {

// The operand has the addressed type, whatever integer the caller writes.
template <class T>
struct Same {
    using type = T;
};
template <class T>
using Operand = typename Same<T>::type;

template <class T, class Change>
inline T atomic_update(T* address, Change change) {
    T old = __atomic_load_n(address, __ATOMIC_RELAXED);
    T next;
    do {
        next = change(old);
    } while (!__atomic_compare_exchange_n(address, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}

}  // namespace limbd_host

template <class T>
inline T atomicAdd(T* address, limbd_host::Operand<T> value) {
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicSub(T* address, limbd_host::Operand<T> value) {
    return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicOr(T* address, limbd_host::Operand<T> value) {
    return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicAnd(T* address, limbd_host::Operand<T> value) {
    return __atomic_fetch_and(address, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicXor(T* address, limbd_host::Operand<T> value) {
    return __atomic_fetch_xor(address, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicExch(T* address, limbd_host::Operand<T> value) {
    return __atomic_exchange_n(address, value, __ATOMIC_RELAXED);
}
template <class T>
inline T atomicMin(T* address, limbd_host::Operand<T> value) {
    return limbd_host::atomic_update(address, [value](T old) { return value < old ? value : old; });
}
template <class T>
inline T atomicMax(T* address, limbd_host::Operand<T> value) {
    return limbd_host::atomic_update(address, [value](T old) { return old < value ? value : old; });
}
template <class T>
inline T atomicCAS(T* address, limbd_host::Operand<T> expected, limbd_host::Operand<T> value) {
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
