// mod-inv by Montgomery's trick, the whole batch walked by one warp, for any m of exactly LIMBS limbs. Elements have WORDS
// limbs. x and out must not overlap: out holds the prefix products on the way.
//
// Cooperation: the lanes fetch 32 elements at once and reduce them; the chain of products is walked by all lanes alike,
// so that every lane has every value and keeps the one of its own element.
//
//   forward   P_i = y_0 y_1 .. y_i,    y_i = x_i mod m, or 1 where that is 0, so that one zero does not zero the batch
//   inverse   I = P_(n-1)^-1; where there is none, some element is no unit, and all are inverted one by one
//   back      for i from n-1 down: y_i^-1 = I P_(i-1), then I = I y_i
#include "base/element.cuh"
#include "field/barrett.cuh"
#include "field/inverse.cuh"
#include "unit.cuh"

namespace {

constexpr uint32_t WARP = 32, ALL = 0xFFFFFFFFu;

template <class Arguments>
__device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b, const Arguments& args) {
    barrett::multiply<LIMBS, FULL>(r, a, b, args.modulus, args.negated, args.reciprocal, args.shift);
}

// r = the value that lane `from` has; every lane of the warp takes part.
__device__ __forceinline__ void broadcast(uint32_t* r, const uint32_t* own, uint32_t from) {
    UNROLL
    for (int i = 0; i < LIMBS; ++i) r[i] = __shfl_sync(ALL, own[i], static_cast<int>(from));
}

// y = x mod m, or 1 mod m where that is 0 or where there is no element. Returns whether it is an element that is not 0.
template <class Arguments>
__device__ __forceinline__ bool fetch(uint32_t* y, const Arguments& args, uint64_t index) {
    bool counts = false;
    limb::copy<LIMBS>(y, args.one);
    if (index < args.n) {
        uint32_t x[WORDS], reduced[LIMBS];
        element::load<WORDS>(x, args.x, index);
        barrett::reduce_element<LIMBS, WORDS>(reduced, x, args.modulus, args.negated, args.reciprocal, args.shift);
        counts = !limb::is_zero<LIMBS>(reduced);
        limb::select<LIMBS>(y, counts, reduced, y);
    }
    return counts;
}

// Inversion of x of WORDS limbs, x = x^-1 mod m; false where there is none.
__device__ __forceinline__ bool invert(uint32_t (&x)[WORDS], const sequential_odd_args& args) {
    safegcd::OddModulus<LIMBS30> m;
    UNROLL
    for (int i = 0; i < LIMBS30; ++i) m.limb[i] = static_cast<int32_t>(args.modulus30[i]);
    m.negated_inverse4 = args.negated_inverse4;
    safegcd::Signed30<LIMBS30> wide = safegcd::to_signed30<LIMBS30>(x);
    if (!safegcd::inverse_var(wide, m)) return false;
    safegcd::from_signed30(x, wide);
    return true;
}

__device__ __forceinline__ bool invert(uint32_t (&x)[WORDS], const sequential_even_args& args) {
    uint32_t modulus[WORDS] = {};
    limb::copy<LIMBS>(modulus, args.modulus);
    return safegcd::inverse_even_var(x, modulus, safegcd::to_signed30<LIMBS30>(modulus));
}

// Each lane inverts every 32nd element by itself.
template <class Arguments>
__device__ __noinline__ void one_by_one(const Arguments& args, uint32_t lane) {
    for (uint64_t index = lane; index < args.n; index += WARP) {
        uint32_t x[WORDS];
        element::load<WORDS>(x, args.x, index);
        if (!invert(x, args)) limb::set_word<WORDS>(x, 0);
        element::store<WORDS, WORDS>(args.out, index, x);
    }
}

// out = the prefix products; product = the last of them.
template <class Arguments>
__device__ __forceinline__ void forward(uint32_t* product, const Arguments& args, uint32_t lane) {
    limb::copy<LIMBS>(product, args.one);
    for (uint64_t first = 0; first < args.n; first += WARP) {
        uint32_t y[LIMBS], factor[LIMBS], kept[LIMBS] = {};
        fetch(y, args, first + lane);
#pragma unroll 1
        for (uint32_t turn = 0; turn < WARP; ++turn) {
            broadcast(factor, y, turn);
            multiply(product, product, factor, args);
            limb::select<LIMBS>(kept, turn == lane, product, kept);
        }
        if (first + lane < args.n) element::store<WORDS, LIMBS>(args.out, first + lane, kept);
    }
}

// inverse = P_(n-1)^-1 on entry. The prefix product before element i is read before element i - 1 is overwritten: a lane
// reads it together with its own element, and the warp stores its 32 results only afterwards.
template <class Arguments>
__device__ __forceinline__ void back(uint32_t* inverse, const Arguments& args, uint32_t lane) {
    for (uint64_t first = (args.n - 1) / WARP * WARP + WARP; first != 0;) {
        first -= WARP;
        const uint64_t index = first + lane;
        uint32_t y[LIMBS], before[LIMBS], factor[LIMBS], kept[LIMBS] = {};
        const bool counts = fetch(y, args, index);
        limb::copy<LIMBS>(before, args.one);
        if (index > 0 && index < args.n) {
            uint32_t prefix[WORDS];
            element::load<WORDS>(prefix, args.out, index - 1);
            limb::copy<LIMBS>(before, prefix);
        }
#pragma unroll 1
        for (uint32_t turn = WARP; turn-- > 0;) {
            uint32_t result[LIMBS];
            broadcast(factor, before, turn);
            multiply(result, inverse, factor, args);
            limb::select<LIMBS>(kept, turn == lane && counts, result, kept);
            broadcast(factor, y, turn);
            multiply(inverse, inverse, factor, args);
        }
        __syncwarp();
        if (index < args.n) element::store<WORDS, LIMBS>(args.out, index, kept);
    }
}

template <class Arguments>
__device__ __forceinline__ void walk(const Arguments& args) {
    const uint32_t lane = threadIdx.x;
    uint32_t product[LIMBS], inverse[WORDS] = {};
    VERIFY(gridDim.x == 1 && blockDim.x == WARP && args.n > 0);
    forward(product, args, lane);
    limb::copy<LIMBS>(inverse, product);
    __syncwarp();
    if (invert(inverse, args)) {
        back(inverse, args, lane);
    } else {
        one_by_one(args, lane);
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32) sequential_odd(const sequential_odd_args args) { walk(args); }
extern "C" __global__ void __launch_bounds__(32) sequential_even(const sequential_even_args args) { walk(args); }
