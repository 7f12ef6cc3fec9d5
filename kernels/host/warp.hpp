// Warp functions: shuffles, ballots and __syncwarp, with CUDA's rules checked (block.hpp).
#pragma once

namespace limbd_host {

template <class T>
inline std::uint64_t to_slot(T value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    std::uint64_t slot = 0;
    std::memcpy(&slot, &value, sizeof(T));
    return slot;
}

template <class T>
inline T from_slot(std::uint64_t slot) {
    T value;
    std::memcpy(&value, &slot, sizeof(T));
    return value;
}

template <class T>
inline T shuffle(unsigned mask, T value, unsigned source, Site site) {
    Block& block = fibers("a shuffle");
    return from_slot<T>(block.warp_function(WarpFunction::shuffle, mask, to_slot(value), source, site));
}

inline unsigned ballot(unsigned mask, bool predicate, Site site) {
    Block& block = fibers("a ballot");
    return static_cast<unsigned>(block.warp_function(WarpFunction::ballot, mask, predicate, 0, site));
}

inline unsigned lane() { return context.thread_index.x % WARP; }

// The first lane of the calling lane's segment of `width` lanes.
inline unsigned segment(int width) {
    if (width <= 0 || width > int(WARP) || (width & (width - 1))) fail("shuffle: the width %d is not a power of two to 32", width);
    return lane() & ~(static_cast<unsigned>(width) - 1);
}

}  // namespace limbd_host

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE()) {
    const unsigned from = limbd_host::segment(width) + (static_cast<unsigned>(source) & (static_cast<unsigned>(width) - 1));
    return limbd_host::shuffle(mask, value, from, {file, line});
}

// Out of the segment a lane keeps its own value.
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
    const unsigned lane = limbd_host::lane(), first = limbd_host::segment(width);
    return limbd_host::shuffle(mask, value, lane >= first + delta ? lane - delta : lane, {file, line});
}

template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
    const unsigned lane = limbd_host::lane(), end = limbd_host::segment(width) + static_cast<unsigned>(width);
    return limbd_host::shuffle(mask, value, lane + delta < end ? lane + delta : lane, {file, line});
}

template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, const char* file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
    const unsigned lane = limbd_host::lane(), end = limbd_host::segment(width) + static_cast<unsigned>(width);
    const unsigned from = lane ^ static_cast<unsigned>(lanes);
    return limbd_host::shuffle(mask, value, from < end ? from : lane, {file, line});
}

inline unsigned __ballot_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return limbd_host::ballot(mask, predicate != 0, {file, line});
}

inline int __any_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return limbd_host::ballot(mask, predicate != 0, {file, line}) != 0;
}

inline int __all_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return limbd_host::ballot(mask, predicate != 0, {file, line}) == mask;
}

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    limbd_host::Block& block = limbd_host::fibers("__match_any_sync");
    return static_cast<unsigned>(
        block.warp_function(limbd_host::WarpFunction::match, mask, limbd_host::to_slot(value), 0, {file, line}));
}

inline void __syncwarp(unsigned mask = 0xffffffffu, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    limbd_host::fibers("__syncwarp").warp_function(limbd_host::WarpFunction::sync, mask, 0, 0, {file, line});
}
