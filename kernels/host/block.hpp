// One block whose threads synchronise, or the blocks of one cluster: every thread is a fiber, and this scheduler runs them in
// turn. In a cluster __syncthreads waits for all of its blocks, which is more than the device does: that a cluster's barrier
// is missing does not show. Their __shared__ arrays would be one; kernels for clusters have dynamic shared memory alone.
//
// A thread runs until it finishes, reaches __syncthreads or enters a warp function. Breaking a rule that the hardware
// answers with a hang or with garbage (a barrier that some threads never reach, a mask that names a thread that does
// not take part) ends the process with a message: at once where the call shows it, else when nobody can run any more.
#pragma once

namespace limbd_host {

// Where a thread waits: the source line that called. Two threads that meet must have called from the same one.
struct Site {
    const char* file;
    int line;
    bool operator==(const Site& other) const {
        return line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
    }
};

enum class State : unsigned char { runnable, at_barrier, in_warp_function, done };

enum class WarpFunction : unsigned char { sync, shuffle, ballot, match };

struct Thread {
    Fiber fiber;
    State state;
    Site site;
    // At a barrier: its predicate. In a warp function: what it brings, whom it reads, what it takes away.
    WarpFunction function;
    unsigned mask;
    unsigned source;
    std::uint64_t value;
    std::uint64_t answer;
};

class Block {
  public:
    explicit Block(unsigned capacity)
        : capacity_(capacity), stacks(capacity), threads(new Thread[capacity]()), warps(new unsigned[capacity / WARP + 1]()) {
        for (unsigned i = 0; i < capacity; ++i) {
            threads[i].fiber.stack = stacks.stack(i);
            threads[i].fiber.stack_bytes = Stacks::stack_bytes();
            prepare(threads[i].fiber, &Block::thread_main);
        }
    }
    ~Block() {
        delete[] threads;
        delete[] warps;
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    unsigned capacity() const { return capacity_; }

    // Runs body(arguments) once for each of `size` threads, to the end.
    void run(unsigned size, void (*body)(const void*), const void* arguments) {
        this->size = size;
        this->body = body;
        this->arguments = arguments;
        for (unsigned i = 0; i < size; ++i) threads[i].state = State::runnable;
        bool descending = false;
        do {
            run_until_all_wait(descending);
            // Checked builds turn the order round at every barrier: a result must not depend on it.
            descending = VERIFYING && !descending;
        } while (!finished());
        const unsigned overflown = stacks.overflown();
        if (overflown < capacity_) fail("the stack of thread %u was too small", overflown);
    }

    // __syncthreads and its counting variants: the number of threads whose predicate is true.
    unsigned barrier(bool predicate, Site site) {
        Thread& me = current();
        me.value = predicate;
        me.site = site;
        me.state = State::at_barrier;
        switch_fiber(me.fiber, scheduler);
        return static_cast<unsigned>(me.answer);
    }

    // All threads of the warp that mask names meet here; source: the lane whose value a shuffle takes.
    std::uint64_t warp_function(WarpFunction function, unsigned mask, std::uint64_t value, unsigned source, Site site) {
        Thread& me = current();
        const unsigned first = context.fiber / WARP * WARP;
        const unsigned lane = context.fiber % WARP;
        check_mask(mask, first, lane);
        me.function = function;
        me.mask = mask;
        me.value = value;
        me.source = source;
        me.site = site;
        me.state = State::in_warp_function;
        unsigned& waiting = warps[context.fiber / WARP];
        waiting |= 1u << lane;
        if ((waiting & mask) == mask) {
            resolve(me, first);
            waiting &= ~mask;
        } else {
            switch_fiber(me.fiber, scheduler);
        }
        return me.answer;
    }

  private:
    Thread& current() { return threads[context.fiber]; }

    // A fiber's life: one CUDA thread after another, so that a stack is set up once and serves every block.
    static void thread_main() {
        arrive_first(context.block->scheduler);
        for (;;) {
            Block& block = *context.block;
            block.body(block.arguments);
            Thread& me = block.current();
            me.state = State::done;
            switch_fiber(me.fiber, block.scheduler);
        }
    }

    void resume(unsigned i) {
        stand(i);
        switch_fiber(scheduler, threads[i].fiber);
    }

    // Makes `context` that of thread i.
    static void stand(unsigned i) {
        context.fiber = context.thread_index.x = i;
        if (context.cluster == 1) return;
        const unsigned rank = i / context.block_size.x, before = context.block_index.x % context.cluster;
        context.thread_index.x = i % context.block_size.x;
        context.block_index.x += rank - before;
        context.dynamic_shared = static_cast<char*>(context.dynamic_shared) + std::ptrdiff_t(rank) * context.shared_bytes -
                                 std::ptrdiff_t(before) * context.shared_bytes;
    }

    void run_until_all_wait(bool descending) {
        const unsigned count = (size + WARP - 1) / WARP;
        for (unsigned w = 0; w < count; ++w) run_warp((descending ? count - 1 - w : w) * WARP, descending);
    }

    void run_warp(unsigned first, bool descending) {
        const unsigned lanes = size - first < WARP ? size - first : WARP;
        bool progress;
        do {
            progress = false;
            for (unsigned l = 0; l < lanes; ++l) {
                const unsigned i = first + (descending ? lanes - 1 - l : l);
                if (threads[i].state != State::runnable) continue;
                progress = true;
                resume(i);
            }
        } while (progress);
    }

    // Nobody can run: either all threads are done, or all wait at one barrier, which opens.
    bool finished() {
        const Thread& head = threads[0];
        for (unsigned i = 0; i < size; ++i) {
            const Thread& thread = threads[i];
            const bool with_head = thread.state == head.state && (head.state == State::done || thread.site == head.site);
            if (thread.state == State::in_warp_function || !with_head) fail_divergent(i);
        }
        if (head.state == State::done) return true;
        const unsigned block = context.block_size.x;
        for (unsigned first = 0; first < size; first += block) open_barrier(first, block);
        return false;
    }

    // Of the block of threads from `first` on: all get the number of predicates that are true.
    void open_barrier(unsigned first, unsigned count) {
        unsigned predicates = 0;
        for (unsigned i = first; i < first + count; ++i) predicates += threads[i].value != 0;
        for (unsigned i = first; i < first + count; ++i) {
            threads[i].answer = predicates;
            threads[i].state = State::runnable;
        }
    }

    void check_mask(unsigned mask, unsigned first, unsigned lane) {
        const unsigned lanes = size - first < WARP ? size - first : WARP;
        const unsigned existing = lanes == WARP ? ~0u : (1u << lanes) - 1;
        if (!(mask >> lane & 1)) fail("warp function: the mask %#x does not name the calling lane %u", mask, lane);
        if (mask & ~existing) fail("warp function: the mask %#x names lanes that the warp (%u lanes) lacks", mask, lanes);
    }

    // Every lane of the mask is here: all must have come to the same call with the same mask.
    void resolve(const Thread& me, unsigned first) {
        for (unsigned l = 0; l < WARP; ++l) {
            if (!(me.mask >> l & 1)) continue;
            Thread& thread = threads[first + l];
            if (thread.mask != me.mask || thread.function != me.function || !(thread.site == me.site)) fail_mismatch(me, l, thread);
            if (me.function == WarpFunction::shuffle) {
                if (!(me.mask >> thread.source & 1)) {
                    fail("shuffle: lane %u reads lane %u, which is not in the mask %#x", l, thread.source, me.mask);
                }
                thread.answer = threads[first + thread.source].value;
            } else if (me.function != WarpFunction::sync) {
                thread.answer = lanes_like(me, thread.value, first);
            }
        }
        for (unsigned l = 0; l < WARP; ++l) {
            if (me.mask >> l & 1) threads[first + l].state = State::runnable;
        }
    }

    // ballot: the lanes whose value is not zero. match: the lanes whose value is the same.
    unsigned lanes_like(const Thread& me, std::uint64_t value, unsigned first) const {
        unsigned lanes = 0;
        for (unsigned l = 0; l < WARP; ++l) {
            if (!(me.mask >> l & 1)) continue;
            const std::uint64_t theirs = threads[first + l].value;
            lanes |= unsigned(me.function == WarpFunction::match ? theirs == value : theirs != 0) << l;
        }
        return lanes;
    }

    [[noreturn]] void fail_mismatch(const Thread& me, unsigned lane, const Thread& other) {
        fail("warp function at %s:%d with mask %#x, but lane %u is in one at %s:%d with mask %#x", me.site.file, me.site.line,
             me.mask, lane, other.site.file, other.site.line, other.mask);
    }

    [[noreturn]] void fail_divergent(unsigned i) {
        const Thread &one = threads[0], &other = threads[i];
        stand(i);
        fail("divergent synchronisation: it %s (%s:%d) while thread 0 %s (%s:%d)", describe(other.state), file(other),
             other.site.line, describe(one.state), file(one), one.site.line);
    }

    static const char* file(const Thread& thread) { return thread.site.file ? thread.site.file : "-"; }

    static const char* describe(State state) {
        switch (state) {
            case State::at_barrier: return "waits at __syncthreads";
            case State::in_warp_function: return "waits in a warp function";
            case State::done: return "has exited";
            default: return "runs";
        }
    }

    unsigned capacity_;
    Stacks stacks;
    Thread* threads;
    unsigned* warps;  // the lanes of each warp that wait in a warp function
    Fiber scheduler{};
    unsigned size = 0;
    void (*body)(const void*) = nullptr;
    const void* arguments = nullptr;
};

// The running block, for functions that only fibers may call.
inline Block& fibers(const char* caller) {
    if (!context.block) fail("%s, but the kernel is declared as one that does not synchronise", caller);
    return *context.block;
}

// --- clusters ---

inline void cluster_barrier(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    fibers("a cluster's barrier").barrier(false, {file, line});
}

// What lies in the block of this rank where `own` lies in the calling thread's.
template <class T>
inline T* in_block(T* own, unsigned rank) {
    if (rank >= context.cluster) fail("a block of rank %u in a cluster of %u", rank, context.cluster);
    const std::ptrdiff_t blocks = std::ptrdiff_t(rank) - std::ptrdiff_t(context.block_index.x % context.cluster);
    return reinterpret_cast<T*>(reinterpret_cast<char*>(own) + blocks * std::ptrdiff_t(context.shared_bytes));
}

}  // namespace limbd_host
