// The launches of plan 0001 for the way WAY of ways.cuh. Elements are any 256-bit integers; out may be a or b.
//
// The struct of each kernel holds all constants of all ways, so that they differ in nothing but the arithmetic.
#include "base/element.cuh"
#include "candidate/0001/ways.cuh"
#include "unit.cuh"

namespace {

constexpr int WORDS = ways::N;

// One element a thread, one product: bound by memory.
__device__ __forceinline__ void streamed(const columns_args& args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t a[WORDS], b[WORDS];
    element::load<WORDS>(a, args.a, index);
    element::load<WORDS>(b, args.b, index);
    ways::multiply<WAY>(a, a, b, args);
    element::store<WORDS, WORDS>(args.out, index, a);
}

// One element a thread, `rounds` products in registers, each of which needs the one before: a b^rounds.
__device__ __forceinline__ void resident(const columns_args& args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t a[WORDS], b[WORDS];
    element::load<WORDS>(a, args.a, index);
    element::load<WORDS>(b, args.b, index);
#pragma unroll 1
    for (uint32_t round = 0; round < args.rounds; ++round) ways::multiply<WAY>(a, a, b, args);
    element::store<WORDS, WORDS>(args.out, index, a);
}

// The article's loop: each thread has a run of adjacent elements, and multiplies the same a and b `rounds` times over.
// XOR: a's lowest limb changes with each result. FLIPPED: rows are [b] a[i], so that only row 0 has the changing limb.
// UNROLLED turns of the loop over rounds follow one another without a branch; then the compiler shares between them what
// depends on no changing limb.
template <bool XOR, bool FLIPPED>
__device__ __forceinline__ void article(const columns_args& args) {
    const uint64_t threads = uint64_t(gridDim.x) * blockDim.x, each = (args.n + threads - 1) / threads;
    const uint64_t begin = element::own_index() * each, end = begin + each < args.n ? begin + each : args.n;
#pragma unroll 1
    for (uint64_t index = begin; index < end; ++index) {
        uint32_t a[WORDS], b[WORDS], r[WORDS] = {};
        element::load<WORDS>(a, args.a, index);
        element::load<WORDS>(b, args.b, index);
#pragma unroll UNROLLED
        for (uint32_t round = 0; round < args.rounds; ++round) {
            if constexpr (FLIPPED) {
                ways::multiply<WAY>(r, b, a, args);
            } else {
                ways::multiply<WAY>(r, a, b, args);
            }
            if constexpr (XOR) a[0] ^= r[0];
        }
        element::store<WORDS, WORDS>(args.out, index, r);
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) columns_streamed(const columns_args args) { streamed(args); }
extern "C" __global__ void __launch_bounds__(256) columns_resident(const columns_args args) { resident(args); }
extern "C" __global__ void __launch_bounds__(32) columns_article(const columns_args args) { article<false, false>(args); }
extern "C" __global__ void __launch_bounds__(32) columns_article_xor(const columns_args args) { article<true, false>(args); }
extern "C" __global__ void __launch_bounds__(32) columns_article_flipped(const columns_args args) {
    article<true, true>(args);
}
