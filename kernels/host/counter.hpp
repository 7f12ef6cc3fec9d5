// Counts what kernels mark with COUNT_POINT_OPERATION, in builds with -DKERNEL_COUNT: for tests that the amount of work does not
// depend on data.
#pragma once

#ifdef KERNEL_COUNT

namespace limbd_host {

inline std::atomic<uint64_t> operations{0};

}  // namespace limbd_host

// What this unit's kernels have counted since the last call.
extern "C" __attribute__((visibility("default"))) inline uint64_t limbd_take_operations() {
    return limbd_host::operations.exchange(0);
}
__attribute__((used)) static uint64_t (*const limbd_keep_take_operations)() = limbd_take_operations;

#define COUNT_POINT_OPERATION() ((void)::limbd_host::operations.fetch_add(1, std::memory_order_relaxed))

#endif
