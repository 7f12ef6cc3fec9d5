// A CUDA driver without a device, for tests of the host side of worker/device/cuda*.py: device memory is host memory,
// every call works at once, kernels are host functions that the test registers, and any call can be made to fail.
// Built with the soname libcuda.so.1, so that the CUDA bindings find it once it is loaded.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#define API extern "C" __attribute__((visibility("default")))

namespace {

// As in kernels/host/launch.hpp.
struct Job {
    const void* arguments;
    std::uint64_t argument_bytes, next;
    std::uint32_t grid, block, shared, chunk, synchronises, cluster;
};
// Of a block's shared memory: what every kernel declares, and what a launch may have in all before more is asked for, and at most.
constexpr unsigned DECLARED = 512, PLAIN = 48 << 10, MOST = 227 << 10;

struct Kernel {
    void (*run)(Job*);
    std::uint64_t argument_bytes;
    unsigned allowed = PLAIN - DECLARED;
};
struct Failure {
    int after, code;
};

std::mutex guard;
std::map<std::string, Kernel> kernels;
std::map<std::string, Failure> failures;
std::map<std::uintptr_t, std::size_t> allocations;
std::map<std::string, std::uint64_t> calls;
std::size_t used = 0, high = 0, capacity = std::size_t(1) << 40;
int sticky = 0;
thread_local bool bound = false;

enum : int { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, NOT_FOUND = 500, NOT_READY = 600 };

// What a call answers before it does anything: an earlier sticky error, or a failure that the test planned.
int begin(const char* name, bool needs_context = true) {
    std::lock_guard<std::mutex> hold(guard);
    ++calls[name];
    if (sticky) return sticky;
    auto planned = failures.find(name);
    if (planned != failures.end() && planned->second.after-- == 0) {
        const int code = planned->second.code;
        failures.erase(planned);
        if (code >= 700 && code < 800) sticky = code;
        return code;
    }
    return needs_context && !bound ? int(INVALID_CONTEXT) : int(OK);
}

}  // namespace

#define BEGIN() \
    if (const int failed = begin(__func__)) return failed

// --- for the test ---

API void simulate_kernel(const char* name, void (*run)(Job*), std::uint64_t argument_bytes) { kernels[name] = Kernel{run, argument_bytes}; }
API void simulate_failure(const char* name, int after, int code) { failures[name] = {after, code}; }
API void simulate_capacity(std::size_t bytes) { capacity = bytes; }
API std::uint64_t simulated_calls(const char* name) { return calls[name]; }
API std::uint64_t simulated_used() { return used; }

// --- driver, device, context ---

API int cuInit(unsigned) { return begin("cuInit", false); }
API int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
API int cuDeviceGetCount(int* count) { return *count = 1, 0; }
API int cuDeviceGet(int* device, int index) { return *device = index, index == 0 ? 0 : 101; }
API int cuDeviceGetName(char* name, int length, int) { return std::strncpy(name, "Simulated", length), 0; }
API int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = std::size_t(1) << 30, 0; }
API int cuDeviceGetAttribute(int* value, int attribute, int) {
    *value = attribute == 16 ? 4 : attribute == 75 ? 9 : 0;
    return 0;
}
API int cuDevicePrimaryCtxRetain(void** context, int) {
    if (const int failed = begin("cuDevicePrimaryCtxRetain", false)) return failed;
    return *context = &kernels, 0;
}
API int cuDevicePrimaryCtxRelease_v2(int) { return begin("cuDevicePrimaryCtxRelease"); }
API int cuCtxSetCurrent(void* context) {
    bound = context != nullptr;
    return 0;
}
API int cuCtxSynchronize() { return begin("cuCtxSynchronize"); }
API int cuGetErrorName(int code, const char** text) { return *text = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR", 0; }
API int cuGetErrorString(int, const char** text) { return *text = "simulated", 0; }

// --- modules ---

API int cuModuleLoadData(void** module, const void* image) {
    BEGIN();
    if (std::memcmp(image, "\177ELF", 4) != 0) return INVALID_VALUE;
    return *module = &kernels, 0;
}
API int cuModuleUnload(void*) { return begin("cuModuleUnload"); }
API int cuModuleGetFunction(void** function, void*, const char* name) {
    BEGIN();
    auto found = kernels.find(name);
    if (found == kernels.end()) return NOT_FOUND;
    return *function = &found->second, 0;
}
// Of the attributes, as in cuda.h, 1 is what a kernel declares and 8 what a launch may add.
API int cuFuncSetAttribute(void* function, int attribute, int value) {
    BEGIN();
    if (attribute != 8 || value + DECLARED > MOST) return INVALID_VALUE;
    static_cast<Kernel*>(function)->allowed = unsigned(value);
    return OK;
}
API int cuFuncGetAttribute(int* value, int attribute, void*) {
    BEGIN();
    return *value = attribute == 1 ? int(DECLARED) : 0, OK;
}
API int cuLaunchKernel(void* function, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned, unsigned shared,
                       void*, void** parameters, void**) {
    BEGIN();
    auto* kernel = static_cast<Kernel*>(function);
    if (shared > kernel->allowed) return INVALID_VALUE;
    Job job{parameters[0], kernel->argument_bytes, 0, grid, block, shared, 1, 1, 1};
    kernel->run(&job);
    return OK;
}

// As in cuda.h.
struct Attribute {
    int id;
    char pad[4];
    unsigned value[16];
};
struct Config {
    unsigned grid[3], block[3], shared;
    void* stream;
    const Attribute* attributes;
    unsigned count;
};
API int cuLaunchKernelEx(const Config* config, void* function, void** parameters, void** extra) {
    BEGIN();
    const bool overlaps = config->count == 1 && config->attributes[0].id == 6 && config->attributes[0].value[0] == 1;
    if (!overlaps || config->grid[1] * config->grid[2] * config->block[1] * config->block[2] != 1) return INVALID_VALUE;
    return cuLaunchKernel(function, config->grid[0], 1, 1, config->block[0], 1, 1, config->shared, config->stream, parameters, extra);
}

// --- streams and events ---

API int cuStreamCreate(void** stream, unsigned) {
    BEGIN();
    return *stream = std::malloc(1), 0;
}
API int cuStreamDestroy_v2(void* stream) { return std::free(stream), 0; }
API int cuStreamSynchronize(void*) { return begin("cuStreamSynchronize"); }
API int cuEventCreate(void** event, unsigned) {
    BEGIN();
    return *event = std::malloc(1), 0;
}
API int cuEventDestroy_v2(void* event) { return std::free(event), 0; }
API int cuEventRecord(void*, void*) { return begin("cuEventRecord"); }
API int cuEventQuery(void*) {
    BEGIN();
    return NOT_READY;
}
API int cuStreamWaitEvent(void*, void*, unsigned) { return begin("cuStreamWaitEvent"); }
API int cuEventSynchronize(void*) { return begin("cuEventSynchronize"); }
API int cuEventElapsedTime(float* ms, void*, void*) { return *ms = 0.5f, begin("cuEventElapsedTime"); }
API int cuEventElapsedTime_v2(float* ms, void*, void*) { return *ms = 0.5f, begin("cuEventElapsedTime"); }

// --- memory ---

API int cuMemPoolCreate(void** pool, const void*) {
    BEGIN();
    return *pool = &allocations, 0;
}
API int cuMemPoolDestroy(void*) { return begin("cuMemPoolDestroy"); }
API int cuMemPoolTrimTo(void*, std::size_t) { return begin("cuMemPoolTrimTo"); }
API int cuMemPoolSetAttribute(void*, int attribute, void* value) {
    BEGIN();
    if (attribute == 8) high = *static_cast<std::uint64_t*>(value) == 0 ? used : high;
    return OK;
}
API int cuMemPoolGetAttribute(void*, int attribute, void* value) {
    BEGIN();
    *static_cast<std::uint64_t*>(value) = attribute == 8 ? high : 0;
    return OK;
}
API int cuMemAllocFromPoolAsync(std::uintptr_t* address, std::size_t bytes, void*, void*) {
    BEGIN();
    std::lock_guard<std::mutex> hold(guard);
    if (used + bytes > capacity) return OUT_OF_MEMORY;
    *address = reinterpret_cast<std::uintptr_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    allocations[*address] = bytes;
    used += bytes;
    high = used > high ? used : high;
    return OK;
}
API int cuMemFreeAsync(std::uintptr_t address, void*) {
    BEGIN();
    std::lock_guard<std::mutex> hold(guard);
    used -= allocations.at(address);
    allocations.erase(address);
    std::free(reinterpret_cast<void*>(address));
    return OK;
}
API int cuMemcpyHtoDAsync_v2(std::uintptr_t device, const void* host, std::size_t bytes, void*) {
    if (const int failed = begin("cuMemcpyHtoDAsync")) return failed;
    return std::memcpy(reinterpret_cast<void*>(device), host, bytes), 0;
}
API int cuMemcpyDtoHAsync_v2(void* host, std::uintptr_t device, std::size_t bytes, void*) {
    if (const int failed = begin("cuMemcpyDtoHAsync")) return failed;
    return std::memcpy(host, reinterpret_cast<void*>(device), bytes), 0;
}
API int cuMemsetD32Async(std::uintptr_t device, unsigned word, std::size_t words, void*) {
    BEGIN();
    for (std::size_t i = 0; i < words; ++i) reinterpret_cast<unsigned*>(device)[i] = word;
    return OK;
}
API int cuMemHostRegister_v2(void*, std::size_t, unsigned) { return begin("cuMemHostRegister"); }
API int cuMemHostAlloc(void** host, std::size_t bytes, unsigned) {
    BEGIN();
    return *host = std::calloc(1, bytes), 0;
}
API int cuMemFreeHost(void* host) { return std::free(host), 0; }
API int cuMemHostUnregister(void*) { return begin("cuMemHostUnregister"); }

// NVRTC looks for profilers through this; there are none.
API int cuGetExportTable(const void**, const void*) { return NOT_FOUND; }

// The bindings ask for every function by its plain name; the newest version that is here answers.
API int cuGetProcAddress_v2(const char* symbol, void** function, int, std::uint64_t, int* status) {
    static void* self = [] {
        Dl_info info;
        dladdr(reinterpret_cast<void*>(&cuInit), &info);
        return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    }();
    *function = dlsym(self, (std::string(symbol) + "_v2").c_str());
    if (!*function) *function = dlsym(self, symbol);
    if (status) *status = *function ? 0 : 1;
    return *function ? OK : NOT_FOUND;
}
