// SPDX-License-Identifier: MIT
/// Who runs the independent parts of a large job: the caller decides; the library starts no
/// threads.
#pragma once

#include <subfed/config.hpp>
#include <subfed/error.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>

namespace subfed::inline v0 {

/// Anything with parallel_for(n, f) that calls f(0) .. f(n-1), each once, in any order, on any
/// threads, and returns when all have returned. The parts never touch the same element, and how a
/// job is cut into parts does not depend on the executor, so results have the same bits on all of
/// them. An executor that has not run each part once is an error. What it throws itself, or passes on
/// from a part (std::bad_alloc), reaches the caller. Either way tensors that the call was writing may be
/// written in part, and everything else is as before: finish() of a streaming average can be called again.
///
/// oneTBB as an executor:
///   struct tbb_executor {
///     template <class F> void parallel_for(std::int64_t n, F&& f) const {
///       tbb::parallel_for(std::int64_t{0}, n, f);
///     }
///   };
template <class E>
concept executor = requires(E& e, std::int64_t n, void (*f)(std::int64_t)) {
  e.parallel_for(n, f);
};

/// Runs one part after the other, on the calling thread.
struct serial {
  template <class F>
  void parallel_for(std::int64_t n, F&& f) const {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
};

#if defined(_OPENMP)
/// Uses OpenMP's threads; available when the file is compiled with -fopenmp. Where a part throws an
/// exception (std::bad_alloc), the parts that have not begun are left out, and the caller gets it.
struct openmp {
  /// Threads to use; 0: as many as OpenMP chooses.
  int threads = 0;

  template <class F>
  void parallel_for(std::int64_t n, F&& f) const {
#if SUBFED_EXCEPTIONS
    std::exception_ptr thrown;  // it must not leave a thread's part of the loop
    std::atomic<bool> stopped = false;
    run(n, [&](std::int64_t i) {
      if (stopped.load(std::memory_order_relaxed)) return;
      try {
        f(i);
      } catch (...) {
        if (!stopped.exchange(true)) thrown = std::current_exception();
      }
    });
    if (thrown) std::rethrow_exception(thrown);
#else
    run(n, f);
#endif
  }

 private:
  template <class F>
  void run(std::int64_t n, F&& f) const {
    if (threads > 0) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
      for (std::int64_t i = 0; i < n; ++i) f(i);
    } else {
#pragma omp parallel for schedule(dynamic, 1)
      for (std::int64_t i = 0; i < n; ++i) f(i);
    }
  }
};
#endif

namespace detail {

/// Runs a job's parts, f(0) .. f(n-1).
///
/// Throws  error when the executor has left out parts, or run some more than once.
template <class Executor, class F>
void run_parts(Executor&& run_by, std::int64_t n, F&& f) {
  if constexpr (std::is_same_v<std::remove_cvref_t<Executor>, serial>) {
    run_by.parallel_for(n, f);
  } else {
    std::atomic<std::int64_t> runs = 0;
    run_by.parallel_for(n, [&](std::int64_t i) {
      f(i);
      runs.fetch_add(1, std::memory_order_relaxed);
    });
    const std::int64_t all = runs.load(std::memory_order_relaxed);
    if (all == n) return;
    fail("subfed: the executor has run " + std::to_string(all) + " parts of a job of " +
         std::to_string(n) + ", expected each of them once; what is written may be incomplete");
  }
}

}  // namespace detail

}  // namespace subfed::inline v0
