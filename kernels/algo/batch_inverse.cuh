// Many inverses for the price of one (Montgomery 1987, "Speeding the Pollard and elliptic curve methods of
// factorization", section 10.3.1), over a block: products along each thread's elements, all-but-own products over the
// threads, ONE inversion of the block's total, and the way back. 3 products an element, about 2 (5 + log2 WARPS) a thread.
// Explained in runnable Python in ops/reference/mod_inv_batch.py; the steps below have the same names there.
//
// Which product. A Product makes the residues mod m a commutative monoid: x o y = x y, or x o y = x y / R for Montgomery's
// product, with one = R mod m. Elements go in as plain numbers and come out as plain inverses with either, and nothing
// is ever converted. With the factors of R written out: a product by o of s elements is theirs times R^-(s-1), so
//   P = x_1 o ... o x_s,  u = P^-1 (the plain inverse),  L o x_i = P  for L = the product by o of all but x_i,
// gives L x_i / R = P, and  L o u = L P^-1 / R = x_i^-1.
// This holds for any elements of the monoid, so also for the threads' products P_t in place of the x_i: from the plain
// inverse u of the block's total, others_t o u = P_t^-1 is the plain inverse of the thread's product. (The neutral
// elements of threads without elements change nothing: P o one = P.) Along a thread, with p_j = p_(j-1) o x_j and
// u_j = p_j^-1 plain,
//   x_j^-1 = p_(j-1) o u_j,   and u_(j-1) = u_j o x_j, because all of u_j's product but x_j is p_(j-1), and the reverse.
//
// Elements without an inverse. `absorb` leaves out an x for which the product becomes 0, or which Product::never names.
// Where the block's total has an inverse, every factor in it has: each p was a unit, so that p o x = 0 exactly for x = 0
// mod m, and on the way back, where u is a unit, `release` sees the same elements by the same test. Where it has none,
// some non-unit was absorbed, and two may have met (3 and 5 mod 15): nothing is known of any slot, and every thread
// inverts its elements one by one. That is a branch of the whole block, with the occupancy of mod-inv's kernel.
//
// A Product is a scan::Monoid (multiply takes any LIMBS words as b, a below m, and leaves r below m) with
//   void residue(uint32_t* r, const uint32_t* x) const   x mod m for any x
//   bool never(const uint32_t* x) const                  x is known to have no inverse whatever else it is
// An Inversion inverts the block's total and, for the redo, one element a thread:
//   void prepare() const                   all threads, at the start: begins to fetch what total() needs
//   void arrive() const                    all threads, before a barrier: the own part of it has come
//   bool total(uint32_t* words) const      all lanes of the first warp, after that barrier: words (below m, in shared
//                                          memory) become their inverse, valid after the next barrier; lane 0's answer
//                                          says whether there is one
//   bool single(uint32_t (&words)[LIMBS]) const     one thread, any words: the same
#pragma once

#include "algo/scan.cuh"
#include "base/element.cuh"

namespace batch_inverse {

// Where the products p_j wait for the way back.
enum class Storage { REGISTERS = 0, SHARED = 1, OUTPUT = 2 };

// --- one step --------------------------------------------------------------------------------------------------------

// p = p o x, unless x shows itself to have no inverse.
template <class Product>
__device__ __forceinline__ void absorb(const Product& product, uint32_t* p, const uint32_t* x) {
    constexpr int N = Product::LIMBS;
    uint32_t next[N];
    product.multiply(next, p, x);
    limb::select<N>(p, product.never(x) || limb::is_zero<N>(next), p, next);
}

// The thread's first element: p = x mod m, or one.
template <class Product>
__device__ __forceinline__ void begin(const Product& product, uint32_t* p, const uint32_t* x) {
    constexpr int N = Product::LIMBS;
    uint32_t one[N];
    product.residue(p, x);
    product.one(one);
    limb::select<N>(p, product.never(x) || limb::is_zero<N>(p), one, p);
}

// out = x^-1 or 0, and u = (p o x)^-1 becomes p^-1.
template <class Product>
__device__ __forceinline__ void release(const Product& product, uint32_t* out, uint32_t* u, const uint32_t* p,
                                        const uint32_t* x) {
    constexpr int N = Product::LIMBS;
    uint32_t next[N], zero[N] = {};
    product.multiply(out, p, u);
    product.multiply(next, u, x);
    const bool absent = product.never(x) || limb::is_zero<N>(next);
    limb::select<N>(out, absent, zero, out);
    limb::select<N>(u, absent, u, next);
}

// The thread's first element: out = u, or 0 where begin() left it out.
template <class Product>
__device__ __forceinline__ void end(const Product& product, uint32_t* out, const uint32_t* u, const uint32_t* x) {
    constexpr int N = Product::LIMBS;
    uint32_t residue[N], zero[N] = {};
    product.residue(residue, x);
    limb::select<N>(out, product.never(x) || limb::is_zero<N>(residue), zero, u);
}

// --- a thread's elements -----------------------------------------------------------------------------------------------

// Elements first, first + THREADS, ... of the arrays, `count` of them: consecutive threads read consecutive elements.
struct Share {
    uint64_t first;
    int count;
};

// The share of this thread where each has up to `elements`. count < elements at the batch's end alone, and 0 beyond it.
template <int THREADS>
__device__ __forceinline__ Share own_share(uint64_t n, uint32_t elements) {
    const uint64_t first = uint64_t(blockIdx.x) * THREADS * elements + threadIdx.x;
    if (first >= n) return {first, 0};
    const uint64_t rest = (n - first + THREADS - 1) / THREADS;
    return {first, static_cast<int>(rest < elements ? rest : elements)};
}

// Prefix products in the block's shared memory, [j][16 bytes][thread]: the threads of a warp side by side.
template <int N, int THREADS>
struct SharedRows {
    uint4* rows;

    static constexpr int PARTS = N / 4;

    __device__ __forceinline__ void put(int j, const uint32_t* p) const {
        UNROLL
        for (int i = 0; i < PARTS; ++i)
            rows[(j * PARTS + i) * THREADS + threadIdx.x] = make_uint4(p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3]);
    }

    __device__ __forceinline__ void get(uint32_t* p, int j) const {
        UNROLL
        for (int i = 0; i < PARTS; ++i) {
            const uint4 part = rows[(j * PARTS + i) * THREADS + threadIdx.x];
            p[4 * i] = part.x;
            p[4 * i + 1] = part.y;
            p[4 * i + 2] = part.z;
            p[4 * i + 3] = part.w;
        }
    }
};

// Prefix products in the results' own places.
template <int N, int THREADS>
struct OutputRows {
    uint32_t* out;
    uint64_t first;

    __device__ __forceinline__ void put(int j, const uint32_t* p) const { element::store<N, N>(out, first + uint64_t(j) * THREADS, p); }
    __device__ __forceinline__ void get(uint32_t* p, int j) const { element::load<N>(p, out, first + uint64_t(j) * THREADS); }
};

// Elements are read when they are needed, and once more on the way back: enough warps hide that. Rows: one of the above. The last
// product's row is free, and keeps the all-but-own product through the inversion.
template <class Product, int THREADS, class Rows>
struct Streamed {
    static constexpr int N = Product::LIMBS;

    const uint32_t* x;
    uint32_t* out;
    Share share;
    Rows rows;

    __device__ __forceinline__ void load(uint32_t* words, int j) const {
        element::load<N>(words, x, share.first + uint64_t(j) * THREADS);
    }

    // p = the product of the thread's elements.
    __device__ __forceinline__ void forward(const Product& product, uint32_t* p) {
        product.one(p);
        if (share.count == 0) return;
        uint32_t element[N];
        load(element, 0);
        begin(product, p, element);
#pragma unroll 1
        for (int j = 1; j < share.count; ++j) {
            load(element, j);
            rows.put(j - 1, p);
            absorb(product, p, element);
        }
    }

    __device__ __forceinline__ void keep(const uint32_t* others) {
        if (share.count > 0) rows.put(share.count - 1, others);
    }

    __device__ __forceinline__ void recall(uint32_t* others) const {
        if (share.count > 0) rows.get(others, share.count - 1);
    }

    // u = the inverse of the product. Each result is stored after its element was read.
    __device__ __forceinline__ void back(const Product& product, uint32_t* u) {
        if (share.count == 0) return;
        uint32_t element[N], p[N], result[N];
#pragma unroll 1
        for (int j = share.count - 1; j >= 1; --j) {
            load(element, j);
            rows.get(p, j - 1);
            release(product, result, u, p, element);
            store(j, result);
        }
        load(element, 0);
        end(product, result, u, element);
        store(0, result);
    }

    __device__ __forceinline__ void store(int j, const uint32_t* result) const {
        element::store<N, N>(out, share.first + uint64_t(j) * THREADS, result);
    }
};

// Up to ELEMENTS elements and their products stay in registers: for few of them, where a second read would be felt.
template <class Product, int THREADS, int ELEMENTS>
struct Held {
    static constexpr int N = Product::LIMBS;

    const uint32_t* x;
    uint32_t* out;
    Share share;
    uint32_t elements[ELEMENTS][N];
    uint32_t products[ELEMENTS][N];

    // Row ELEMENTS - 1 of products is free for all but a full share's last product, which the caller takes away.
    __device__ __forceinline__ void forward(const Product& product, uint32_t* p) {
        UNROLL
        for (int j = 0; j < ELEMENTS; ++j)
            if (j < share.count) load(elements[j], j);
        product.one(p);
        if (share.count > 0) begin(product, p, elements[0]);
        UNROLL
        for (int j = 1; j < ELEMENTS; ++j) {
            limb::copy<N>(products[j - 1], p);
            if (j < share.count) absorb(product, p, elements[j]);
        }
    }

    __device__ __forceinline__ void keep(const uint32_t* others) { limb::copy<N>(products[ELEMENTS - 1], others); }
    __device__ __forceinline__ void recall(uint32_t* others) const { limb::copy<N>(others, products[ELEMENTS - 1]); }

    __device__ __forceinline__ void back(const Product& product, uint32_t* u) {
        uint32_t result[N];
        UNROLL
        for (int j = ELEMENTS - 1; j >= 1; --j) {
            if (j < share.count) {
                release(product, result, u, products[j - 1], elements[j]);
                store(j, result);
            }
        }
        if (share.count == 0) return;
        end(product, result, u, elements[0]);
        store(0, result);
    }

    __device__ __forceinline__ void load(uint32_t* words, int j) const {
        element::load<N>(words, x, share.first + uint64_t(j) * THREADS);
    }

    __device__ __forceinline__ void store(int j, const uint32_t* result) const {
        element::store<N, N>(out, share.first + uint64_t(j) * THREADS, result);
    }
};

// --- a block's elements ------------------------------------------------------------------------------------------------

// What the threads of a block share while they invert, beside the rows.
template <int N, int WARPS>
struct Memory {
    alignas(16) uint32_t total[N];
    scan::Totals<N, WARPS> totals;
    int has_inverse;
};

// Each element of the thread by itself.
template <class Walk, class Inversion>
__device__ __forceinline__ void redo(const Walk& walk, const Inversion& inversion) {
    constexpr int N = Walk::N;
#pragma unroll 1
    for (int j = walk.share.count - 1; j >= 0; --j) {
        uint32_t words[N];
        walk.load(words, j);
        if (!inversion.single(words)) limb::set_word<N>(words, 0);
        walk.store(j, words);
    }
}

// out[i] = x[i]^-1 mod m, or 0, for the elements of the block. Called by all its threads; Walk is Streamed or Held.
template <int WARPS, class Product, class Walk, class Inversion>
__device__ __forceinline__ void invert_block(const Product& product, Walk& walk, const Inversion& inversion,
                                             Memory<Product::LIMBS, WARPS>& memory) {
    constexpr int N = Product::LIMBS;
    uint32_t value[N], total[N];
    inversion.prepare();
    walk.forward(product, value);
    scan::others<WARPS>(product, value, total, memory.totals);
    walk.keep(value);
    if (threadIdx.x == 0) limb::copy<N>(memory.total, total);
    inversion.arrive();
    __syncthreads();
    if (threadIdx.x < scan::WARP) {
        const bool has_inverse = inversion.total(memory.total);
        if (threadIdx.x == 0) memory.has_inverse = has_inverse;
    }
    __syncthreads();
    if (memory.has_inverse) {
        walk.recall(value);
        limb::copy<N>(total, memory.total);
        product.multiply(value, value, total);
        walk.back(product, value);
    } else {
        redo(walk, inversion);
    }
}

}  // namespace batch_inverse
