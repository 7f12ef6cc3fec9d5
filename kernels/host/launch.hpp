// A launch: the blocks of a grid, taken in chunks by as many threads as call run() with the same Job.
#pragma once

namespace limbd_host {

// Mirrored by worker/device/cpu.py. cluster: blocks of a cluster, 1 without. chunk: clusters a thread takes at a time from `next`.
struct Job {
    const void* arguments;
    std::uint64_t argument_bytes;
    std::uint64_t next;
    std::uint32_t grid, block, shared, chunk, synchronises, cluster;
};
static_assert(sizeof(Job) == 48, "worker/device/cpu.py");

// --- shared memory ---

// Fills this thread's copy of every __shared__ array of the library: a kernel that reads what it has not written must
// not find the last block's values. The arrays are all of the library's TLS segment but `context`.
inline void poison_shared(std::size_t dynamic_bytes) {
    const Context kept = context;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void*) {
            const auto here = reinterpret_cast<std::uintptr_t>(&poison_shared);
            bool ours = false;
            std::size_t bytes = 0;
            for (int i = 0; i < object->dlpi_phnum; ++i) {
                const auto& part = object->dlpi_phdr[i];
                const std::uintptr_t start = object->dlpi_addr + part.p_vaddr;
                ours |= part.p_type == PT_LOAD && here - start < part.p_memsz;
                if (part.p_type == PT_TLS) bytes = part.p_memsz;
            }
            if (ours && object->dlpi_tls_data) std::memset(object->dlpi_tls_data, POISON, bytes);
            return ours ? 1 : 0;
        },
        nullptr);
    context = kept;
    if (dynamic_bytes) std::memset(context.dynamic_shared, POISON, dynamic_bytes);
}

// --- what an operating-system thread keeps between launches ---

inline void delete_block(void* block) { delete static_cast<Block*>(block); }

// The fibers of the calling thread, at least `size` of them; freed when the thread ends.
inline Block& block_of_this_thread(unsigned size) {
    static pthread_key_t key = [] {
        pthread_key_t made;
        if (pthread_key_create(&made, delete_block) != 0) fail("no thread-specific key is left");
        return made;
    }();
    auto* block = static_cast<Block*>(pthread_getspecific(key));
    if (!block || block->capacity() < size) {
        delete block;
        block = new Block((size + WARP - 1) / WARP * WARP);
        pthread_setspecific(key, block);
    }
    return *block;
}

// --- the loop over blocks ---

template <auto kernel>
struct Entry;

template <class Arguments, void (*kernel)(Arguments)>
struct Entry<kernel> {
    static void call(const void* arguments) { kernel(*static_cast<const Arguments*>(arguments)); }

    static void run_block(const Job& job) {
        if (context.block) {
            context.block->run(job.cluster * job.block, call, job.arguments);
            return;
        }
        for (unsigned t = 0; t < job.block; ++t) {
            context.thread_index.x = t;
            call(job.arguments);
        }
    }

    static void run(Job& job, const char* name) {
        context = Context{};
        context.kernel = name;
        if (job.argument_bytes != sizeof(Arguments)) fail("its parameter struct has another size than its caller's");
        context.block_size = {job.block, 1, 1};
        context.grid_size = {job.grid, 1, 1};
        context.cluster = job.cluster;
        context.shared_bytes = job.shared;
        const std::size_t shared = std::size_t(job.cluster) * job.shared;
        void* memory = nullptr;
        if (job.cluster > 1 && (!job.synchronises || job.shared % 16 != 0)) fail("a cluster has fibers and aligned memory");
        context.block = job.synchronises ? &block_of_this_thread(job.cluster * job.block) : nullptr;
        if (shared && posix_memalign(&memory, 16, shared) != 0) fail("no memory for shared arrays");
        const std::uint64_t clusters = job.grid / job.cluster;
        for (;;) {
            const std::uint64_t first = __atomic_fetch_add(&job.next, job.chunk, __ATOMIC_RELAXED);
            if (first >= clusters) break;
            const std::uint64_t end = first + job.chunk < clusters ? first + job.chunk : clusters;
            for (std::uint64_t c = first; c < end; ++c) {
                context.block_index.x = static_cast<unsigned>(c * job.cluster);
                context.dynamic_shared = memory;
                if (VERIFYING) poison_shared(shared);
                run_block(job);
            }
        }
        std::free(memory);
        context = Context{};
    }
};

}  // namespace limbd_host

// source.py writes one of these for each kernel of the entry, at the unit's end.
#define LIMBD_HOST_KERNEL(name)                                                                      \
    extern "C" __attribute__((visibility("default"))) void limbd_run_##name(::limbd_host::Job* job) { \
        ::limbd_host::Entry<&name>::run(*job, #name);                                                \
    }
