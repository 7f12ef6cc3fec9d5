// The sort of a multi-scalar multiplication: scalars -> for each bucket the points that belong in it. Integers alone, the
// same for every curve.
//
// A row is one window of one vector of scalars; row v W + w is window w of vector v. A row has `buckets` buckets: bucket
// |d| - 1 takes the points whose digit is d, negated for d < 0. Where `spare` is set (constant work) there is one more,
// bucket 2^(c-1), for digits that are 0; without it those are left out. An entry is a point's index, with bit 31 for its
// sign.
//
// Passes: digits; then by the high bits of the bucket (`keys` partitions of a row, of 2^low_bits buckets each), then by the
// low bits within each partition. Each pass counts, scans and scatters; with low_bits = 0 the first pass is all. The last
// scan also leaves what the additions go by: the buckets that have entries (RUNS), or how many chunks of each length there
// are (CHUNKS), which msm_chunks then orders (algo/bucket_chunks.cuh).
//
// DIGIT_BITS: 16, or 32 where windows are wider. Low bits of a bucket are kept in 16.
#include "algo/bucket_chunks.cuh"
#include "algo/counting_sort.cuh"
#include "algo/digits.cuh"
#include "algo/halves.cuh"
#include "algo/scan.cuh"
#include "base/element.cuh"
#include "base/grid_order.cuh"
#include "unit.cuh"

namespace {

constexpr int WARPS = THREADS / 32, TILE = THREADS * ITEMS, CHUNKS_TILE = THREADS * CHUNK_ITEMS;
constexpr uint32_t SIGN = 0x80000000u;

// What a scan leaves in `seconds`.
enum Form : uint32_t { TILES = 0, RUNS = 1, CHUNKS = 2 };

// Blocks of a scatter that a multiprocessor holds.
constexpr int SCATTERS = 3;

template <int BITS>
struct RawOf {
    using type = uint32_t;
};
template <>
struct RawOf<16> {
    using type = uint16_t;
};
// A digit as it is stored, or a bucket of a row.
using Raw = RawOf<DIGIT_BITS>::type;
using Low = uint16_t;

// Of a digit as it is stored: its bucket, with SIGN for the opposite point, or NONE where it is left out.
template <class Args>
__device__ __forceinline__ uint32_t bucket_of(const Args& args, uint32_t raw) {
    const int32_t d = int32_t(raw) - int32_t((1u << (args.width - 1)) - 1);
    if (d == 0) return args.spare ? 1u << (args.width - 1) : counting_sort::NONE;
    return (uint32_t(d < 0 ? -d : d) - 1) | (d < 0 ? SIGN : 0);
}

// A thread's items are numbers t, t + THREADS, .. of each tile of its block's span (algo/counting_sort.cuh). Where i counts
// them, all lie at fixed distances from one address.
__device__ __forceinline__ bool has_item(int i, uint32_t from, uint32_t size) { return from + threadIdx.x + i * THREADS < size; }

// The items of a span of one row: at most args.span.
template <class Args>
struct RowSpan {
    using Bucket = Raw;
    uint32_t row, begin, size;

    __device__ __forceinline__ RowSpan(const Args& args)
        : row(blockIdx.x / args.spans), begin(blockIdx.x % args.spans * args.span), size(min(args.span, args.count - begin)) {}

    // Digits' buckets, with the sign beside them.
    __device__ __forceinline__ void read(const Args& args, uint32_t (&bucket)[ITEMS], uint32_t from) const {
        const Raw* const first = reinterpret_cast<const Raw*>(args.digits) + uint64_t(row) * args.count + begin + from + threadIdx.x;
        UNROLL
        for (int i = 0; i < ITEMS; ++i) bucket[i] = has_item(i, from, size) ? first[i * THREADS] : counting_sort::NONE;
        UNROLL
        for (int i = 0; i < ITEMS; ++i) {
            if (bucket[i] != counting_sort::NONE) bucket[i] = bucket_of(args, bucket[i]);
        }
    }

    __device__ __forceinline__ uint32_t key(const Args& args, uint32_t bucket) const { return (bucket & ~SIGN) >> args.low_bits; }

    // A row has as many levels of multiples as its count has times `points`, and the piece's points are those from `first` on of
    // the `stride` of a level.
    __device__ __forceinline__ uint32_t entry(const Args& args, uint32_t bucket, int i) const {
        const uint32_t item = begin + threadIdx.x + i * THREADS;
        const uint32_t level = args.stride == args.points ? 0 : item / args.points;
        return (args.first + item + level * (args.stride - args.points)) | (bucket & SIGN);
    }

    __device__ __forceinline__ void write(const Args& args, uint32_t place, uint32_t entry, uint32_t bucket) const {
        args.entries[place] = entry;
        if (args.low_bits != 0) reinterpret_cast<Low*>(args.low_keys)[place] = Low(bucket & ((1u << args.low_bits) - 1));
    }
};

// The items of a tile of one partition: tiles are numbered partition by partition, and tile_starts says where each begins.
template <class Args>
struct PartitionTile {
    using Bucket = Low;
    uint32_t partition, begin, size;

    // shared: one word.
    __device__ __forceinline__ PartitionTile(const Args& args, uint32_t* shared) {
        if (threadIdx.x < scan::WARP) shared[0] = search(args);
        __syncthreads();
        partition = shared[0];
        const uint32_t stop = args.starts[partition + 1], number = blockIdx.x - args.tile_starts[partition];
        begin = uint32_t(min(uint64_t(stop), args.starts[partition] + uint64_t(number) * TILE));
        size = min(uint32_t(TILE), stop - begin);
        __syncthreads();
    }

    // The last partition that begins at this tile or before it: a warp together, of whose lanes each tries one place.
    __device__ __forceinline__ static uint32_t search(const Args& args) {
        uint32_t low = 0, high = args.partitions;
        while (high - low > 1) {
            const uint32_t step = (high - low + scan::WARP - 1) / scan::WARP, at = low + scan::lane() * step;
            const bool begun = at < high && args.tile_starts[at] <= blockIdx.x;
            low += (__popc(__ballot_sync(scan::ALL_LANES, begun)) - 1) * step;
            high = min(high, low + step);
        }
        return low;
    }

    // Low bits of buckets' numbers.
    __device__ __forceinline__ void read(const Args& args, uint32_t (&bucket)[ITEMS], uint32_t from) const {
        const Low* const first = reinterpret_cast<const Low*>(args.low_keys) + begin + from + threadIdx.x;
        UNROLL
        for (int i = 0; i < ITEMS; ++i) bucket[i] = has_item(i, from, size) ? first[i * THREADS] : counting_sort::NONE;
    }

    __device__ __forceinline__ uint32_t key(const Args&, uint32_t bucket) const { return bucket; }

    __device__ __forceinline__ uint32_t entry(const Args& args, uint32_t, int i) const {
        return args.entries[begin + threadIdx.x + i * THREADS];
    }

    __device__ __forceinline__ void write(const Args& args, uint32_t place, uint32_t entry, uint32_t) const {
        args.sorted[place] = entry;
    }

    // The partition's first bucket, in the array of all rows' buckets.
    __device__ __forceinline__ uint64_t first_bucket(const Args& args) const {
        return uint64_t(partition / args.keys) * args.buckets + (uint64_t(partition % args.keys) << args.low_bits);
    }
};

// Two sums at once.
struct Sums {
    static constexpr int LIMBS = 2;
    __device__ __forceinline__ void one(uint32_t* r) const { r[0] = r[1] = 0; }
    __device__ __forceinline__ void multiply(uint32_t* r, const uint32_t* a, const uint32_t* b) const {
        r[0] = a[0] + b[0];
        r[1] = a[1] + b[1];
    }
};

// What each of a thread's SHARE neighbouring counts adds to the two sums: itself, and the tiles that it takes or (RUNS,
// CHUNKS) whether it is there at all.
template <class Args>
__device__ __forceinline__ void summands(const Args& args, uint32_t (&r)[SHARE][2], uint64_t index, uint64_t end) {
    UNROLL
    for (int k = 0; k < SHARE; ++k) {
        const uint32_t count = index + k < end ? args.counts[index + k] : 0;
        r[k][0] = count;
        r[k][1] = args.form == TILES ? (count + TILE - 1) / TILE : count != 0;
    }
}

// r += the sums of a thread's share.
__device__ __forceinline__ void add_share(uint32_t (&r)[2], const uint32_t (&share)[SHARE][2]) {
    UNROLL
    for (int k = 0; k < SHARE; ++k) Sums{}.multiply(r, r, share[k]);
}

}  // namespace

namespace {

// The raw digits of a number, s + O: one for each window, `step` from the one before. sum is used up.
__device__ __forceinline__ void store_digits(Raw* raw, uint32_t* sum, const msm_digits_args& args, uint64_t step) {
    for (uint32_t w = 0; w < args.windows; ++w) raw[w * step] = Raw(digits::take_window(sum, args.width));
}

}  // namespace

// digits[row][i] = the raw digit of scalar i: d + 2^(c-1) - 1. With `halves` a row has the digits of all first halves, then
// those of all second ones. A point at infinity has zeros for digits. The first `cleared` counts become 0.
extern "C" __global__ void __launch_bounds__(256) msm_digits(const msm_digits_args args) {
    grid_order::take_turn();
    const uint64_t index = element::own_index(), threads = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t i = index; i < args.cleared; i += threads) args.counts[i] = 0;
    if (index >= uint64_t(args.count) * args.vectors) return;
    const uint32_t vector = uint32_t(index / args.count), at = uint32_t(index % args.count);
    uint32_t s[digits::SCALAR_WORDS], sum[digits::WORDS];
    element::load<digits::SCALAR_WORDS>(s, args.scalars, index);
    digits::reduce(s, s, args.order, args.r2, args.n0inv);
    limb::mask<digits::SCALAR_WORDS>(s, args.infinite[at] == 0);
    const uint64_t row = uint64_t(args.count) << args.halves;
    Raw* const raw = reinterpret_cast<Raw*>(args.digits) + vector * args.windows * row + at;
    if (!args.halves) {
        digits::add_offset<digits::SCALAR_WORDS, false>(sum, s, args.offset);
        store_digits(raw, sum, args, row);
        return;
    }
    uint32_t first[halves::WORDS], second[halves::WORDS];
    halves::split(first, second, s, args);
    digits::add_offset<halves::WORDS, true>(sum, first, args.offset);
    store_digits(raw, sum, args, row);
    digits::add_offset<halves::WORDS, true>(sum, second, args.offset);
    store_digits(raw + args.count, sum, args, row);
}

extern "C" __global__ void __launch_bounds__(THREADS) msm_clear(const msm_clear_args args) {
    grid_order::take_turn();
    const uint64_t index = element::own_index();
    if (index < args.n) args.counts[index] = 0;
}

// counts[row][key] += the span's items.
extern "C" __global__ void __launch_bounds__(THREADS) msm_count(const msm_count_args args) {
    grid_order::take_turn();
    DYNAMIC_SHARED(uint32_t, counts);
    const RowSpan<msm_count_args> span(args);
    counting_sort::count_span<ITEMS>(args, span, counts, args.keys);
    counting_sort::add_totals(args.counts + uint64_t(span.row) * args.keys, counts, args.keys);
}

// Entries, and the low bits of their buckets, in their partitions' places. No spill is there yet: that is said here, where there
// are threads enough.
extern "C" __global__ void __launch_bounds__(THREADS, SCATTERS) msm_scatter(const msm_scatter_args args) {
    grid_order::take_turn();
    DYNAMIC_SHARED(uint32_t, shared);
    __shared__ scan::Totals<1, WARPS> totals;
    const RowSpan<msm_scatter_args> span(args);
    const uint64_t threads = uint64_t(gridDim.x) * THREADS;
    for (uint64_t i = element::own_index(); i < args.slots; i += threads) args.spill_buckets[i] = bucket_chunks::NO_BUCKET;
    uint32_t* const cursors = args.cursors + uint64_t(span.row) * args.keys;
    counting_sort::scatter<ITEMS>(args, span, cursors, args.keys, shared, totals);
}

// counts[bucket] += the tile's items.
extern "C" __global__ void __launch_bounds__(THREADS) msm_count_low(const msm_count_low_args args) {
    grid_order::take_turn();
    DYNAMIC_SHARED(uint32_t, counts);
    const PartitionTile<msm_count_low_args> tile(args, counts);
    if (tile.size == 0) return;
    const uint32_t keys = 1u << args.low_bits;
    counting_sort::count_span<ITEMS>(args, tile, counts, keys);
    counting_sort::add_totals(args.counts + tile.first_bucket(args), counts, keys);
}

// Entries in their buckets' places.
extern "C" __global__ void __launch_bounds__(THREADS, SCATTERS) msm_scatter_low(const msm_scatter_low_args args) {
    grid_order::take_turn();
    DYNAMIC_SHARED(uint32_t, shared);
    __shared__ scan::Totals<1, WARPS> totals;
    const PartitionTile<msm_scatter_low_args> tile(args, shared);
    if (tile.size == 0) return;
    uint32_t* const cursors = args.cursors + tile.first_bucket(args);
    counting_sort::scatter<ITEMS>(args, tile, cursors, 1u << args.low_bits, shared, totals);
}

// Block b's sums of its chunk of counts.
extern "C" __global__ void __launch_bounds__(THREADS) msm_scan_sums(const msm_scan_sums_args args) {
    grid_order::take_turn();
    __shared__ scan::Totals<2, WARPS> totals;
    const uint64_t begin = uint64_t(blockIdx.x) * args.chunk, end = min(args.n, begin + args.chunk);
    uint32_t own[2] = {0, 0}, total[2], share[SHARE][2];
    for (uint64_t i = begin + SHARE * threadIdx.x; i < end; i += SHARE * THREADS) {
        summands(args, share, i, end);
        add_share(own, share);
    }
    scan::inclusive<WARPS>(Sums{}, own, total, totals);
    if (threadIdx.x == 0) {
        args.sums[2 * blockIdx.x] = total[0];
        args.sums[2 * blockIdx.x + 1] = total[1];
    }
}

// starts[i] = cursors[i] = the sum of the counts before i, and starts[n] = that of all. sums: of the blocks before this one.
// seconds: with TILES the tiles before i, likewise; with RUNS, for the k-th count that is not 0: the sum before it and its
// index, and after the last one the sum of all; with CHUNKS how many chunks there are of each class, added to what is there.
// totals: both sums over all; with CHUNKS and `fill` the first is there already, and is what it was.
extern "C" __global__ void __launch_bounds__(THREADS) msm_scan_apply(const msm_scan_apply_args args) {
    grid_order::take_turn();
    __shared__ scan::Totals<2, WARPS> totals;
    __shared__ uint32_t classes[bucket_chunks::MAX_LENGTH];
    const uint32_t length = args.form == CHUNKS ? bucket_chunks::length_of(args, args.n) : 0;
    if (args.form == CHUNKS) counting_sort::clear(classes, args.length);
    uint32_t base[2] = {0, 0}, total[2], share[SHARE][2];
    for (uint32_t b = threadIdx.x; b < blockIdx.x; b += THREADS) Sums{}.multiply(base, base, args.sums + 2 * b);
    scan::inclusive<WARPS>(Sums{}, base, total, totals);
    base[0] = total[0];
    base[1] = total[1];
    const uint64_t begin = uint64_t(blockIdx.x) * args.chunk, end = min(args.n, begin + args.chunk);
    for (uint64_t from = begin; from < end; from += SHARE * THREADS) {
        const uint64_t first = from + SHARE * threadIdx.x;
        uint32_t before[2] = {0, 0};
        summands(args, share, first, end);
        add_share(before, share);
        __syncthreads();
        scan::exclusive<WARPS>(Sums{}, before, total, totals);
        Sums{}.multiply(before, before, base);
        UNROLL
        for (int k = 0; k < SHARE; ++k) {
            const uint64_t i = first + k;
            if (i >= end) break;
            args.starts[i] = before[0];
            args.cursors[i] = before[0];
            if (args.form == TILES) args.seconds[i] = before[1];
            if (args.form == RUNS && share[k][0] != 0) {
                args.seconds[2 * uint64_t(before[1])] = before[0];
                args.seconds[2 * uint64_t(before[1]) + 1] = uint32_t(i);
            }
            if (args.form == CHUNKS) bucket_chunks::count(classes, share[k][0], length);
            Sums{}.multiply(before, before, share[k]);
        }
        Sums{}.multiply(base, base, total);
    }
    if (args.form == CHUNKS) {
        __syncthreads();
        counting_sort::add_totals(args.seconds, classes, args.length);
    }
    if (end == args.n && threadIdx.x == 0) {
        args.starts[args.n] = base[0];
        if (args.form == TILES) args.seconds[args.n] = base[1];
        if (args.form == RUNS) args.seconds[2 * uint64_t(base[1])] = base[0];
        if (args.fill == 0) args.totals[0] = base[0];
        args.totals[1] = base[1];
    }
}

// Chunks of all buckets, longest first, and how many they are: totals[1].
extern "C" __global__ void __launch_bounds__(THREADS) msm_chunks(const msm_chunks_args args) {
    grid_order::take_turn();
    __shared__ scan::Totals<1, WARPS> totals;
    using Tile = bucket_chunks::Tile<CHUNK_ITEMS, msm_chunks_args>;
    __shared__ uint32_t counts[bucket_chunks::MAX_LENGTH];
    __shared__ Tile::Huge huge;
    Tile tile(args, uint64_t(blockIdx.x) * CHUNKS_TILE);
    tile.count(counts);
    const uint32_t all = bucket_chunks::take_places<WARPS>(args, counts, totals);
    if (blockIdx.x == 0 && threadIdx.x == 0) args.totals[1] = all;
    tile.place(counts, huge);
}
