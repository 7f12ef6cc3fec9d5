// Both passes of a small transform in one launch: passes of FIRST and SECOND bits (algo/ntt_lanes.cuh), one element a thread.
// A transform is one cluster of CLUSTER blocks, in which elements change threads through the blocks' shared memory.
#include "algo/ntt_lanes.cuh"
#include "base/cluster.cuh"
#include "unit.cuh"

using First = lanes::Pass<FIELD, FIRST, AHEAD_FIRST, false>;
using Second = lanes::Pass<FIELD, SECOND, AHEAD_SECOND, PLAIN_END>;
constexpr int PLANES = lanes::WORDS / 4, OWN = First::SHARED > Second::SHARED ? First::SHARED : Second::SHARED;
static_assert(CLUSTER * THREADS == 1 << (FIRST + SECOND) && !Second::TWO, "a thread an element");

// Shared memory: what the passes use, then a mailbox of an element a thread.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
ntt_lanes_cluster(const ntt_lanes_cluster_args args) {
    DYNAMIC_SHARED(uint4, memory);
    cluster::announce();
    const lanes::Ends<FIELD, ntt_lanes_cluster_args> ends{args};
    const uint32_t number = blockIdx.x * THREADS + threadIdx.x, i = lanes::element_of<FIRST>(number, SECOND);
    First first;
    Second second;
    uint32_t x[lanes::WORDS], across[lanes::WORDS];
    first.begin(args.table, number, i & ((1u << SECOND) - 1), SECOND);
    ends.load_both<First::TWO>(x, across, i, 1u << (FIRST - 1) << SECOND);
    first.run(x, across, memory);
    second.begin(args.second, number, 0, 0);
    uint4* const mailbox = memory + OWN * THREADS;
    const uint32_t slot = i & (CLUSTER * THREADS - 1);
    cluster::wait_for_all();
    UNROLL
    for (int p = 0; p < PLANES; ++p) {
        const uint4 part = make_uint4(x[4 * p], x[4 * p + 1], x[4 * p + 2], x[4 * p + 3]);
        cluster::store(mailbox + p * THREADS + slot % THREADS, slot / THREADS, part);
    }
    cluster::synchronise();
    exchange::get<lanes::WORDS>(x, mailbox, threadIdx.x);
    second.run(x, across, memory);
    ends.store(x, number);
}
