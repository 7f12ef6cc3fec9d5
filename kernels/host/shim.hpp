// Runs CUDA C++ kernels on the CPU: the part of the CUDA language that the kernels use, for an ordinary C++17 compiler.
//
// Every standard header comes first: libstdc++ writes __noinline__ inside its attributes, and language.hpp redefines it.
// What follows is hidden from other libraries: two units loaded into one process must not share an inline function's
// static variables, because the units' constants differ.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

#if defined(__SANITIZE_ADDRESS__)
#define LIMBD_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LIMBD_ASAN 1
#endif
#endif
#ifdef LIMBD_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#pragma GCC visibility push(hidden)

#include "host/context.hpp"
#include "host/fiber.hpp"
#include "host/block.hpp"
#include "host/language.hpp"
#include "host/intrinsics.hpp"
#include "host/warp.hpp"
#include "host/atomics.hpp"
#include "host/counter.hpp"
#include "host/launch.hpp"
