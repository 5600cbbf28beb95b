// SPDX-License-Identifier: MIT
/// Language level, assertions and the macros of the library; there are no others.
#pragma once

#if defined(_MSVC_LANG)
#define SUBFED_CPLUSPLUS _MSVC_LANG
#else
#define SUBFED_CPLUSPLUS __cplusplus
#endif
#if SUBFED_CPLUSPLUS < 202002L
#error "subfed: needs C++20 or later; compile with -std=c++20 (nvcc: -std=c++20 as well)."
#else

// Results are the same everywhere only if every operation on doubles is rounded to a double.
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ == 2
#error "subfed: x87 instructions round differently from all others; add -msse2 -mfpmath=sse."
#endif

/// 1 when errors are thrown, 0 when they go to the error handler (see error.hpp).
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
#define SUBFED_EXCEPTIONS 1
#else
#define SUBFED_EXCEPTIONS 0
#endif

/// Marks functions that run on the host and on a CUDA device.
#if defined(__CUDACC__)
#define SUBFED_HD __host__ __device__
#else
#define SUBFED_HD
#endif

/// Promises that no other pointer accesses the same memory.
#if defined(__GNUC__)
#define SUBFED_RESTRICT __restrict__
#else
#define SUBFED_RESTRICT
#endif

/// A function that must be inlined into its caller's loop whatever its size: for conversions that
/// should be vectorised.
#if defined(__GNUC__)
#define SUBFED_ALWAYS_INLINE gnu::always_inline
#else
#define SUBFED_ALWAYS_INLINE
#endif

/// Prefetches a cache line that will be read soon; the address may be beyond the end of any object.
#if defined(__GNUC__)
#define SUBFED_PREFETCH(address) __builtin_prefetch(reinterpret_cast<const void*>(address))
#else
#define SUBFED_PREFETCH(address) static_cast<void>(address)
#endif

/// 1 where inner loops are also compiled for instructions that only some processors have, which are
/// chosen when the program runs (see detail/instructions.hpp). Define it as 0 before the first include
/// to leave them out: results have the same bits.
#ifndef SUBFED_VARIANTS
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__)
#define SUBFED_VARIANTS 1
#else
#define SUBFED_VARIANTS 0
#endif
#endif
#if SUBFED_VARIANTS
/// 1 where a sanitizer is to see every read.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SUBFED_SEES_READS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SUBFED_SEES_READS 1
#endif
#endif
#ifndef SUBFED_SEES_READS
#define SUBFED_SEES_READS 0
#endif
#define SUBFED_AVX2 __attribute__((target("avx2,fma,f16c,popcnt")))
#define SUBFED_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,popcnt")))
#endif

/// Checks an invariant of the library itself, never a caller's data. Active unless NDEBUG is
/// defined; define the macro before the first include to replace it.
#ifndef SUBFED_ASSERT
#include <cassert>
#define SUBFED_ASSERT(condition) assert(condition)
#endif

#endif
