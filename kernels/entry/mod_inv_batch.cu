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

// PRODUCT: 0 Montgomery's (m odd), 1 folding (m = 2^256 - c odd), 2 Barrett's (m even).
template <int, class Args>
struct Residues;

template <class Args>
struct Residues<0, Args> {
    using Product = residues::Montgomery<LIMBS>;
    using Inversion = total_inverse::ByThread<LIMBS, total_inverse::Odd<LIMBS, LIMBS30>>;
    static __device__ __forceinline__ Product product(const Args& args) { return {args.modulus, args.one, args.n0inv}; }
    static __device__ __forceinline__ Inversion inversion(const Args& args) {
        return {{args.modulus30, args.negated_inverse4}};
    }
};

template <class Args>
struct Residues<1, Args> {
    using Product = residues::Fold;
    using Inversion = total_inverse::ByThread<LIMBS, total_inverse::Odd<LIMBS, LIMBS30>>;
    static __device__ __forceinline__ Product product(const Args& args) { return {args.complement}; }
    static __device__ __forceinline__ Inversion inversion(const Args& args) {
        return {{args.modulus30, args.negated_inverse4}};
    }
};

template <class Args>
struct Residues<2, Args> {
    using Product = residues::Even<LIMBS>;
    using Inversion = total_inverse::ByThread<LIMBS, total_inverse::Even<LIMBS, LIMBS30>>;
    static __device__ __forceinline__ Product product(const Args& args) {
        return {args.modulus, args.normalised, args.negated, args.reciprocal, args.shift};
    }
    static __device__ __forceinline__ Inversion inversion(const Args& args) { return {{args.modulus}}; }
};

using Chosen = Residues<PRODUCT, mod_inv_batch_args>;
using Product = Chosen::Product;

// A thread's walk over its elements, by STORAGE.
template <Storage>
struct Walks;

template <>
struct Walks<Storage::REGISTERS> {
    using Walk = batch_inverse::Held<Product, THREADS, HELD>;
    static __device__ __forceinline__ Walk make(const mod_inv_batch_args& args, batch_inverse::Share share, uint4*) {
        return {args.x, args.out, share};
    }
};

template <>
struct Walks<Storage::SHARED> {
    using Rows = batch_inverse::SharedRows<LIMBS, THREADS>;
    using Walk = batch_inverse::Streamed<Product, THREADS, Rows>;
    static __device__ __forceinline__ Walk make(const mod_inv_batch_args& args, batch_inverse::Share share, uint4* rows) {
        return {args.x, args.out, share, {rows}};
    }
};

template <>
struct Walks<Storage::OUTPUT> {
    using Rows = batch_inverse::OutputRows<LIMBS, THREADS>;
    using Walk = batch_inverse::Streamed<Product, THREADS, Rows>;
    static __device__ __forceinline__ Walk make(const mod_inv_batch_args& args, batch_inverse::Share share, uint4*) {
        return {args.x, args.out, share, {args.out, share.first}};
    }
};

}  // namespace

// RESIDENT: blocks that a multiprocessor holds at once.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) mod_inv_batch(const mod_inv_batch_args args) {
    DYNAMIC_SHARED(uint4, rows);
    __shared__ batch_inverse::Memory<LIMBS, WARPS> memory;
    const batch_inverse::Share share = batch_inverse::own_share<THREADS>(args.n, args.elements);
    auto walk = Walks<static_cast<Storage>(STORAGE)>::make(args, share, rows);
    batch_inverse::invert_block<WARPS>(Chosen::product(args), walk, Chosen::inversion(args), memory);
}
