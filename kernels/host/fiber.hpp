// Fibers: one small stack for each CUDA thread of a block, and the switch between them.
#pragma once

// Which switch: assembly where we have it (four times faster), else POSIX contexts; -DLIMBD_UCONTEXT chooses these.
#if !defined(LIMBD_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define LIMBD_UCONTEXT 1
#endif

namespace limbd_host {

// Bytes of a fiber's stack by build. Optimised kernels keep a few KiB; checked builds spill every temporary, and
// AddressSanitizer pads every local array with red zones.
#if defined(LIMBD_ASAN)
constexpr std::size_t STACK_BYTES = 512 << 10;
#elif defined(KERNEL_VERIFY)
constexpr std::size_t STACK_BYTES = 128 << 10;
#else
constexpr std::size_t STACK_BYTES = 64 << 10;
#endif

// A suspended flow of control. stack is its lowest usable byte.
struct Fiber {
    void* stack_pointer;
    void* stack;
    std::size_t stack_bytes;
    void* fake_stack;  // AddressSanitizer's own record of the stack
#ifdef LIMBD_UCONTEXT
    ucontext_t machine;
#endif
};

#if defined(LIMBD_UCONTEXT)

inline void prepare(Fiber& fiber, void (*entry)()) {
    getcontext(&fiber.machine);
    fiber.machine.uc_stack.ss_sp = fiber.stack;
    fiber.machine.uc_stack.ss_size = fiber.stack_bytes;
    fiber.machine.uc_link = nullptr;
    makecontext(&fiber.machine, entry, 0);
}

inline void switch_machine(Fiber& from, Fiber& to) { swapcontext(&from.machine, &to.machine); }

#elif defined(__x86_64__)

// Saves the callee-saved registers on the current stack, its pointer in *from, and continues at `to`.
extern "C" void limbd_host_switch(void** from, void* to);
asm(R"(
    .text
    .p2align 4
    .type limbd_host_switch, @function
limbd_host_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size limbd_host_switch, . - limbd_host_switch
)");

inline void prepare(Fiber& fiber, void (*entry)()) {
    // From the top: a null return address (entry never returns; it keeps the stack aligned as after a call), the
    // entry that `ret` jumps to, six saved registers.
    void** top = reinterpret_cast<void**>(static_cast<char*>(fiber.stack) + fiber.stack_bytes);
    std::memset(top - 8, 0, 8 * sizeof(void*));
    top[-2] = reinterpret_cast<void*>(entry);
    fiber.stack_pointer = top - 8;
}

inline void switch_machine(Fiber& from, Fiber& to) { limbd_host_switch(&from.stack_pointer, to.stack_pointer); }

#else  // aarch64

extern "C" void limbd_host_switch(void** from, void* to);
asm(R"(
    .text
    .p2align 4
    .type limbd_host_switch, %function
limbd_host_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size limbd_host_switch, . - limbd_host_switch
)");

inline void prepare(Fiber& fiber, void (*entry)()) {
    void** top = reinterpret_cast<void**>(static_cast<char*>(fiber.stack) + fiber.stack_bytes);
    std::memset(top - 20, 0, 20 * sizeof(void*));
    top[-20 + 11] = reinterpret_cast<void*>(entry);  // x30, at 88 bytes
    fiber.stack_pointer = top - 20;
}

inline void switch_machine(Fiber& from, Fiber& to) { limbd_host_switch(&from.stack_pointer, to.stack_pointer); }

#endif

// The first thing a fiber does when it runs for the first time. from: who switched to it; its stack is learnt here,
// which is how the bounds of the operating system's own stack become known.
inline void arrive_first([[maybe_unused]] Fiber& from) {
#ifdef LIMBD_ASAN
    const void* bottom;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &from.stack_bytes);
    from.stack = const_cast<void*>(bottom);
#endif
}

inline void switch_fiber(Fiber& from, Fiber& to) {
#ifdef LIMBD_ASAN
    __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.stack_bytes);
#endif
    switch_machine(from, to);
#ifdef LIMBD_ASAN
    __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

// Stacks for `count` fibers in one mapping. Below every GROUP of them lies a guard page, on which an overflow is a fault at
// once. A page below each would cut the mapping into more pieces than a process may have (vm.max_map_count, 65,530): every
// thread that runs blocks has stacks for each unit that it has run. So an overflow into a neighbour of the same group is found
// by the mark that each stack ends with.
class Stacks {
  public:
    explicit Stacks(unsigned count)
        : count(count), page(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), bytes(offset(count)) {
        void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) fail("no memory for the stacks of %u fibers", count);
        base = static_cast<char*>(mapped);
        for (unsigned i = 0; i < count; i += GROUP) {
            if (mprotect(base + offset(i) - page, page, PROT_NONE) != 0) fail("no guard page for a fiber's stack");
        }
        for (unsigned i = 0; i < count; ++i) *mark(i) = MARK;
    }
    ~Stacks() { munmap(base, bytes); }
    Stacks(const Stacks&) = delete;
    Stacks& operator=(const Stacks&) = delete;

    void* stack(unsigned i) const { return base + offset(i) + sizeof(Mark); }
    static constexpr std::size_t stack_bytes() { return STACK_BYTES - sizeof(Mark); }

    // The first stack whose mark is gone, or `count`.
    unsigned overflown() const {
        for (unsigned i = 0; i < count; ++i) {
            if (!(*mark(i) == MARK)) return i;
        }
        return count;
    }

  private:
    static constexpr unsigned GROUP = 8;
    struct Mark {
        std::uint64_t words[8];
        bool operator==(const Mark& other) const { return std::memcmp(words, other.words, sizeof words) == 0; }
    };
    static constexpr Mark MARK = {{1, 2, 3, 4, 5, 6, 7, 8}};

    std::size_t offset(unsigned i) const { return i * STACK_BYTES + (i / GROUP + 1) * page; }
    Mark* mark(unsigned i) const { return reinterpret_cast<Mark*>(base + offset(i)); }

    unsigned count;
    std::size_t page;
    std::size_t bytes;
    char* base;
};

}  // namespace limbd_host
