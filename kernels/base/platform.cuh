// What the two compilers of these sources have to agree on: fixed-width integers, CUDA's words, range checks.
// Under NVRTC CUDA's words are built in; a host C++ compiler gets them from host/shim.hpp.
#pragma once

#ifdef __CUDACC_RTC__

// NVRTC has no <stdint.h>.
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;

// The block's dynamic shared memory as `type name[]` (the size is the launch's), aligned to a line of all its banks.
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(128) type name[]

#ifdef KERNEL_VERIFY
#define VERIFY(condition) ((condition) ? (void)0 : __trap())
#endif

#else

#include "host/shim.hpp"

#ifdef KERNEL_VERIFY
#define VERIFY(condition) ((condition) ? (void)0 : ::limbd_host::verify_failed(#condition, __FILE__, __LINE__))
#endif

#endif

// Before a loop of few, known turns: unroll it completely, so that arrays of limbs become registers.
#if defined(__CUDACC_RTC__) || defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif

// For a function that a kernel has in dozens of places: inlined on a device, a call on the host, where its copies would cost
// minutes of compiling and the small stacks of the shim's fibers.
#ifdef __CUDACC_RTC__
#define REPEATED __forceinline__
#else
#define REPEATED __attribute__((noinline))
#endif

// Where a function adds or doubles points: counted in host builds with -DKERNEL_COUNT (host/counter.hpp), else nothing.
#ifndef KERNEL_COUNT
#define COUNT_POINT_OPERATION() ((void)0)
#endif

// Checks of a function's contract: compiled in with -DKERNEL_VERIFY, else nothing (the condition is not evaluated).
#ifndef KERNEL_VERIFY
#define VERIFY(condition) ((void)0)
#endif

static_assert(sizeof(uint32_t) == 4 && sizeof(uint64_t) == 8, "fixed widths");
