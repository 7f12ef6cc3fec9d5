// mod-mul for m = 2^256 - c, 1 <= c < 2^64, MONIC: of the form that field/fold.cuh calls so. One element a thread, no
// cooperation. Elements are any 256-bit integers; those >= m need no care, because the fold takes any product. out may be
// a or b.
#include "base/element.cuh"
#include "field/fold.cuh"
#include "unit.cuh"

extern "C" __global__ void __launch_bounds__(256) mod_mul_fold(const mod_mul_fold_args args) {
    const uint64_t index = element::own_index();
    if (index >= args.n) return;
    uint32_t a[fold::N], b[fold::N];
    element::load<fold::N>(a, args.a, index);
    element::load<fold::N>(b, args.b, index);
    fold::multiply(a, a, b, fold::Complement<MONIC>{args.complement});
    element::store<fold::N, fold::N>(args.out, index, a);
}
