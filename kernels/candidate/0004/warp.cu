// mod-inv for odd moduli of up to 256 bits, one element a warp. Any odd m, any x of 8 limbs. out may be x.
//
// A block of 1..8 warps; element i belongs to block i mod gridDim, so that few elements have a multiprocessor each, and
// within it to warp (i / gridDim) mod warps. All threads of a block fetch the table of STEPS, also those of warps without
// an element. FORM: which inversion, of those below.
#include "base/async_copy.cuh"
#include "candidate/0004/late.cuh"
#include "field/warp_inverse.cuh"
#include "limb/limb.cuh"
#include "unit.cuh"

namespace {

enum Form { SHIPPED, LATE };

constexpr int WARP = 32, MOST_WARPS = 8, WORDS = 8;

using Table = safegcd::WarpTable<STEPS, 24 / STEPS, 8>;

// words = words^-1 mod m and true, or false where there is no inverse. A converged warp, as warp_inverse has it.
__device__ __forceinline__ bool invert(uint32_t* words, const uint32_t* modulus, uint32_t n0inv, const void* table) {
    if constexpr (FORM == LATE)
        return late::warp_inverse<Table>(words, modulus, n0inv, table);
    else
        return safegcd::warp_inverse<Table>(words, modulus, n0inv, table);
}

// Element index into the warp's words, if there is one.
__device__ __forceinline__ void fetch(uint32_t* words, const mod_inv_warp_args& args, uint64_t index) {
    const uint32_t lane = threadIdx.x % WARP;
    if (index < args.n && lane < WORDS) words[lane] = args.x[index * WORDS + lane];
}

}  // namespace

extern "C" __global__ void __launch_bounds__(MOST_WARPS * WARP) mod_inv_warp(const mod_inv_warp_args args) {
    DYNAMIC_SHARED(uint4, table);
    __shared__ uint32_t modulus[WORDS], operands[MOST_WARPS][WORDS];
    const uint4* const source = reinterpret_cast<const uint4*>(WARP_TABLE);
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < Table::BYTES / 16; i += blockDim.x) async_copy::begin(table + i, source + i);
    if (threadIdx.x == 0) limb::copy<WORDS>(modulus, args.modulus);
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint64_t stride = uint64_t(gridDim.x) * (blockDim.x / WARP);
    uint64_t index = blockIdx.x + uint64_t(gridDim.x) * warp;
    uint32_t* const words = operands[warp];
    fetch(words, args, index);
    async_copy::wait();
    __syncthreads();
    while (index < args.n) {
        __syncwarp();
        const bool exists = invert(words, modulus, args.n0inv, table);
        // Lanes 0..7 read, and fetch over, what they wrote themselves.
        if (lane < WORDS) args.out[index * WORDS + lane] = exists ? words[lane] : 0;
        index += stride;
        fetch(words, args, index);
    }
}
