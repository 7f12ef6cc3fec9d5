// safegcd::warp_inverse, one element a warp: out row i is x^-1 mod m in 8 words and above them 1, or all 0 where there is no
// inverse. A block of WARPS warps fetches the table of STEPS once; warps without an element do nothing else.
#include "base/async_copy.cuh"
#include "base/element.cuh"
#include "field/warp_inverse.cuh"
#include "unit.cuh"

namespace {

constexpr int WARP = 32, WORDS = 8, ROW = 12;

using Table = safegcd::WarpTable<STEPS>;

}  // namespace

extern "C" __global__ void __launch_bounds__(WARPS* WARP) warp_inverse_check(const warp_inverse_check_args args) {
    DYNAMIC_SHARED(uint4, table);
    __shared__ uint32_t modulus[WORDS], operands[WARPS][WORDS];
    const uint4* const source = reinterpret_cast<const uint4*>(WARP_TABLE);
    for (uint32_t i = threadIdx.x; i < Table::BYTES / 16; i += blockDim.x) async_copy::begin(table + i, source + i);
    if (threadIdx.x < WORDS) modulus[threadIdx.x] = args.modulus[threadIdx.x];
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint64_t index = uint64_t(blockIdx.x) * WARPS + warp;
    uint32_t* const words = operands[warp];
    if (index < args.n && lane < WORDS) words[lane] = args.x[index * WORDS + lane];
    async_copy::wait();
    __syncthreads();
    if (index >= args.n) return;
    const bool exists = safegcd::warp_inverse<Table>(words, modulus, args.n0inv, table);
    // Lanes 0..7 wrote the words that they read here.
    if (lane < ROW) args.out[index * ROW + lane] = !exists ? 0 : lane < WORDS ? words[lane] : lane == WORDS;
}
