// field/prime_sums.cuh for the field FIELD, one case a thread: x and y are rows of four factors as they are, P of which count.
#include "base/element.cuh"
#include "field/prime_sums.cuh"
#include "unit.cuh"

extern "C" __global__ void __launch_bounds__(64) prime_sums_check(const prime_sums_check_args args) {
    using S = prime::Sums<FIELD>;
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t x[ROW], y[ROW], r[ROW] = {};
    element::load<ROW>(x, args.x, index);
    element::load<ROW>(y, args.y, index);
    if constexpr (P == 0) {
        S::opposite(r, x);
    } else {
        S::sum_of_products<P>(r, x, y);
    }
    element::store<ROW, ROW>(args.out, index, r);
}
