// SPDX-License-Identifier: MIT
#include <subfed/executor.hpp>

#include <subfed/average/cohort.hpp>
#include <subfed/average/robust.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/model_slice.hpp>
#include <support/checks.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

namespace {

struct without_parallel_for {};

struct own {
  template <class F>
  void parallel_for(std::int64_t n, F&& f) const {
    for (std::int64_t i = n; i-- > 0;) f(i);
  }
};

/// The parts from .. to-1, the one before the first counting as the first.
struct some_parts {
  std::int64_t from, to;
  template <class F>
  void parallel_for(std::int64_t, F&& f) const {
    for (std::int64_t i = from; i < to; ++i) f(i < 0 ? 0 : i);
  }
};

static_assert(subfed::executor<subfed::serial>);
static_assert(subfed::executor<const subfed::serial>);
static_assert(subfed::executor<own>);
static_assert(!subfed::executor<without_parallel_for>);
static_assert(!subfed::executor<int>);

template <class Executor>
void check_each_part_once(const Executor& run_by) {
  for (const std::int64_t n : {0, 1, 2, 257}) {
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(n));
    run_by.parallel_for(n, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
    for (const auto& c : calls) CHECK(c == 1);
  }
}

/// As a part throws std::bad_alloc where memory runs out.
template <class Executor>
void check_exception_arrives(const Executor& run_by) {
  for (const std::int64_t n : {1, 2, 257}) {
    std::atomic<std::int64_t> begun = 0;
    CHECK_THROWS_AS(run_by.parallel_for(n,
                                        [&](std::int64_t i) {
                                          ++begun;
                                          if (i % 3 == (n - 1) % 3) throw std::bad_alloc();
                                        }),
                    std::bad_alloc);
    CHECK(begun >= 1);
    CHECK(begun <= n);
    run_by.parallel_for(n, [](std::int64_t) {});  // and is forgotten
  }
}

}  // namespace

TEST_CASE("an executor runs each part once") {
  check_each_part_once(subfed::serial{});
  check_each_part_once(own{});
#if defined(_OPENMP)
  check_each_part_once(subfed::openmp{});
  check_each_part_once(subfed::openmp{3});
#else
  MESSAGE("Skipped: the OpenMP executor, as this build is without OpenMP.");
#endif
}

TEST_CASE("an exception of a part reaches the caller of an executor") {
  check_exception_arrives(subfed::serial{});
#if defined(_OPENMP)
  check_exception_arrives(subfed::openmp{});
  check_exception_arrives(subfed::openmp{3});
#endif
}

TEST_CASE("an executor that leaves out parts, or runs some twice, is an error") {
  const auto run = [](auto&& run_by) {
    std::vector<int> runs(5);
    return support::message_of([&] {
      subfed::detail::run_parts(run_by, 5,
                                [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
    });
  };
  const auto parts_of = [](std::int64_t from, std::int64_t to) { return some_parts{from, to}; };
  const std::string nothing = support::message_of([] {});
  CHECK(run(own{}) == nothing);
  CHECK(run(subfed::serial{}) == nothing);
  CHECK(run(parts_of(0, 5)) == nothing);
  CHECK(run(parts_of(0, 0)) ==
        "subfed: the executor has run 0 parts of a job of 5, expected each of them once; what is "
        "written may be incomplete");
  CHECK(run(parts_of(1, 5)).find("has run 4 parts") != std::string::npos);
  CHECK(run(parts_of(-1, 5)).find("has run 6 parts") != std::string::npos);
}

TEST_CASE("slices and averages need all parts") {
  subfed::model net;
  net.tensor("w", {3});
  const auto sub = subfed::submodel::full(net);
  std::vector<float> w{1, 2, 3}, global{7, 7, 7};
  const subfed::tensor_view<const float> from(w.data(), {3});
  const subfed::tensor_view<float> to(global.data(), {3});
  const std::vector<subfed::update<float>> updates{{sub, {from}, 1}};
  const some_parts none{0, 0};
  const auto is_refused = [](auto&& f) {
    return support::message_of(f).find("has run 0 parts of a job of 1") != std::string::npos;
  };
  CHECK(is_refused([&] { subfed::slice<float>({from}, sub, {to}, none); }));
  CHECK(is_refused([&] { subfed::scatter<float>({from}, sub, {to}, none); }));
  CHECK(is_refused([&] { subfed::average_cohort<float>(net, updates, {to}, {}, none); }));
  CHECK(is_refused([&] {
    subfed::robust_cohort<float, float>(net, updates, {to}, subfed::robust_options{}, none);
  }));
  const subfed::held_elements before(net, std::vector<subfed::submodel>{sub});
  subfed::held_elements held = before;
  CHECK(is_refused([&] { subfed::average_cohort<float>(net, updates, {to}, held, {}, none); }));
  CHECK(is_refused([&] {
    subfed::robust_cohort<float, float>(net, updates, {to}, held, subfed::robust_options{}, none);
  }));
  CHECK(held == before);
  subfed::selective_average<float> mean(net);
  mean.add(updates);
  CHECK(is_refused([&] { mean.finish(subfed::tensor_views<float>{to}, none); }));
  CHECK(global == std::vector<float>{7, 7, 7});
  mean.finish({to});  // nothing of it is lost
  CHECK(global == w);
}

TEST_CASE("the serial executor goes in order on the calling thread") {
  std::vector<std::int64_t> order;
  subfed::serial{}.parallel_for(4, [&](std::int64_t i) { order.push_back(i); });
  CHECK(order == std::vector<std::int64_t>{0, 1, 2, 3});
}
