// Where the running thread stands (threadIdx and the rest), and how a broken rule ends the process.
#pragma once

struct uint2 {
    unsigned x, y;
};
struct uint3 {
    unsigned x, y, z;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};

namespace limbd_host {

#ifdef KERNEL_VERIFY
constexpr bool VERIFYING = true;
#else
constexpr bool VERIFYING = false;
#endif

constexpr unsigned WARP = 32;
constexpr int POISON = 0xA5;

class Block;

// One per operating-system thread. It is the only thread_local variable beside the kernels' shared arrays, and has no
// constructor or destructor, so that poison_shared() can overwrite the library's whole TLS segment around it.
struct Context {
    const char* kernel;
    Block* block;  // the fibers of the running block; null while threads run as a plain loop
    void* dynamic_shared;
    unsigned fiber;  // the running thread among those of the block, or of the cluster's blocks
    unsigned cluster, shared_bytes;  // blocks of a cluster, and what lies between their dynamic_shared
    uint3 thread_index, block_index, block_size, grid_size;
};

static thread_local Context context;

// A broken rule of the CUDA model cannot be answered by the kernel's caller: say where, and end the process.
[[noreturn]] __attribute__((format(printf, 1, 2), noinline)) inline void fail(const char* format, ...) {
    std::fprintf(stderr, "limbd kernel %s, block %u, thread %u: ", context.kernel ? context.kernel : "?",
                 context.block_index.x, context.thread_index.x);
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputc('\n', stderr);
    std::fflush(stderr);
    std::abort();
}

// What VERIFY(cond) calls when its condition does not hold.
[[noreturn]] inline void verify_failed(const char* condition, const char* file, int line) {
    fail("VERIFY(%s) failed at %s:%d", condition, file, line);
}

}  // namespace limbd_host
