// mod-inv-batch: x^-1 mod m, or 0 where gcd(x, m) != 1, with one inversion a block (algo/batch_inverse.cuh). A block of
// THREADS threads takes THREADS args.elements consecutive elements. Any m >= 1 of LIMBS limbs that PRODUCT serves, any x
// of LIMBS limbs. out may be x, unless STORAGE is OUTPUT.
#include "algo/batch_inverse.cuh"
#include "algo/total_inverse.cuh"
#include "field/residues.cuh"
#include "unit.cuh"

namespace {

using batch_inverse::Storage;

constexpr int WARPS = THREADS / scan::WARP;

static_assert(32 * LIMBS + 6 <= safegcd::LIMB30_BITS * LIMBS30, "OddModulus leaves room for d and e");

// How the block's total is inverted, m odd. STEPS: 0, or the halvings of a lookup in the unit's WARP_TABLE.
template <int LOOKUP_STEPS, class Args>
struct OddInversion {
    using Single = total_inverse::Odd<LIMBS, LIMBS30>;
    using Table = safegcd::WarpTable<LOOKUP_STEPS>;
    using Inversion = total_inverse::ByWarp<Table, Single>;
    static constexpr int WORDS = Inversion::WORDS;
    static __device__ __forceinline__ Inversion make(const Args& args, uint4* memory) {
        const uint4* const table = reinterpret_cast<const uint4*>(WARP_TABLE);
        return {{args.modulus30, args.negated_inverse4}, args.modulus, args.n0inv, table, memory};
    }
};

template <class Args>
struct OddInversion<0, Args> {
    using Inversion = total_inverse::ByThread<LIMBS, total_inverse::Odd<LIMBS, LIMBS30>>;
    static constexpr int WORDS = 0;
    static __device__ __forceinline__ Inversion make(const Args& args, uint4*) {
        return {{args.modulus30, args.negated_inverse4}};
    }
};

// PRODUCT: 0 Montgomery's (m odd), 1 folding (m = 2^256 - c odd), 2 Barrett's (m even), 3 folding with c MONIC.
template <int, class Args>
struct Residues;

template <class Args>
struct Residues<0, Args> : OddInversion<STEPS, Args> {
    using Product = residues::Montgomery<LIMBS>;
    static __device__ __forceinline__ Product product(const Args& args) { return {args.modulus, args.one, args.n0inv}; }
};

template <bool MONIC, class Args>
struct Folding : OddInversion<STEPS, Args> {
    using Product = residues::Fold<MONIC>;
    static __device__ __forceinline__ Product product(const Args& args) { return {{args.complement}}; }
};

template <class Args>
struct Residues<1, Args> : Folding<false, Args> {};

template <class Args>
struct Residues<3, Args> : Folding<true, Args> {};

template <class Args>
struct Residues<2, Args> {
    using Product = residues::Even<LIMBS>;
    using Inversion = total_inverse::ByThread<LIMBS, total_inverse::Even<LIMBS, LIMBS30>>;
    static constexpr int WORDS = 0;
    static __device__ __forceinline__ Product product(const Args& args) {
        return {args.modulus, args.normalised, args.negated, args.reciprocal, args.shift};
    }
    static __device__ __forceinline__ Inversion make(const Args& args, uint4*) { return {{args.modulus}}; }
};

using Chosen = Residues<PRODUCT, mod_inv_batch_args>;
using Product = Chosen::Product;

// A thread's walk over its elements, by STORAGE. rows: dynamic shared memory, for Storage::SHARED alone.
template <Storage, class Args>
struct Walks;

template <class Args>
struct Walks<Storage::REGISTERS, Args> {
    using Walk = batch_inverse::Held<Product, THREADS, HELD>;
    static __device__ __forceinline__ Walk make(const Args& args, batch_inverse::Share share, uint4*) {
        return {args.x, args.out, share};
    }
};

template <class Args>
struct Walks<Storage::SHARED, Args> {
    using Walk = batch_inverse::Streamed<Product, THREADS, batch_inverse::SharedRows<LIMBS, THREADS>>;
    static __device__ __forceinline__ Walk make(const Args& args, batch_inverse::Share share, uint4* rows) {
        return {args.x, args.out, share, {rows}};
    }
};

template <class Args>
struct Walks<Storage::OUTPUT, Args> {
    using Walk = batch_inverse::Streamed<Product, THREADS, batch_inverse::OutputRows<LIMBS, THREADS>>;
    static __device__ __forceinline__ Walk make(const Args& args, batch_inverse::Share share, uint4*) {
        return {args.x, args.out, share, {args.out, share.first}};
    }
};

}  // namespace

// THREADS, RESIDENT: of a block, and blocks that a multiprocessor holds at once.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) mod_inv_batch(const mod_inv_batch_args args) {
    DYNAMIC_SHARED(uint4, words);  // the inversion's, then the rows
    __shared__ batch_inverse::Memory<LIMBS, WARPS> memory;
    const batch_inverse::Share share = batch_inverse::own_share<THREADS>(args.n, args.elements);
    auto walk = Walks<static_cast<Storage>(STORAGE), mod_inv_batch_args>::make(args, share, words + Chosen::WORDS);
    batch_inverse::invert_block<WARPS>(Chosen::product(args), walk, Chosen::make(args, words), memory);
}
