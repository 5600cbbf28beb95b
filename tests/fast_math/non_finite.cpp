// SPDX-License-Identifier: MIT
/// Built with -O3 -ffast-math, where the compiler takes every number for a finite one: std::isnan is
/// false for a NaN, and x != x too. What the library refuses or leaves out it must see by the bits.
#include <doctest/doctest.h>

#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/capacity.hpp>
#include <subfed/scalar.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#if !defined(__FAST_MATH__)
#error "tests/fast_math is to be built with -ffast-math"
#endif

using subfed::average_options;
using subfed::index_set;
using subfed::non_finite;
using subfed::submodel;
using subfed::tensor_view;

namespace {

// Bits come from memory that the compiler cannot see through, as a client's would.
volatile std::uint32_t float_bits[] = {0x7FC00000u, 0xFFC00001u, 0x7F800001u, 0x7F800000u,
                                       0xFF800000u};
volatile std::uint64_t double_bits[] = {0x7FF8000000000000u, 0xFFF8000000000001u,
                                        0x7FF0000000000001u, 0x7FF0000000000000u,
                                        0xFFF0000000000000u};
volatile std::uint16_t half_bits[] = {0x7E00u, 0xFE01u, 0x7C01u, 0x7C00u, 0xFC00u};
volatile std::uint16_t bfloat16_bits[] = {0x7FC0u, 0xFFC1u, 0x7F81u, 0x7F80u, 0xFF80u};
constexpr std::size_t bad_numbers = 5;

template <class T>
T bad_number(std::size_t i);
template <>
float bad_number<float>(std::size_t i) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(float_bits[i]));
}
template <>
double bad_number<double>(std::size_t i) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(double_bits[i]));
}
template <>
subfed::half bad_number<subfed::half>(std::size_t i) {
  subfed::half out;
  out.bits = half_bits[i];
  return out;
}
template <>
subfed::bfloat16 bad_number<subfed::bfloat16>(std::size_t i) {
  subfed::bfloat16 out;
  out.bits = bfloat16_bits[i];
  return out;
}

/// Two clients of a group of three nodes: A holds {0, 1} with [1, bad], B {1, 2} with [4, 6].
template <class T>
struct setting {
  subfed::model net;
  subfed::group_id g = net.group("g", 3);
  subfed::tensor_id x = net.tensor("x", {g});
  std::vector<T> a{T(1.0), T(1.0)};
  std::vector<T> b{T(4.0), T(6.0)};
  std::vector<T> global{T(0.0), T(0.0), T(0.0)};

  explicit setting(T bad) { a[1] = bad; }

  subfed::update<T> from_a() const {
    return {submodel(net, {index_set(3, {0, 1})}, {.client = 0}),
            {tensor_view<const T>(a.data(), {2})},
            1};
  }
  subfed::update<T> from_b() const {
    return {submodel(net, {index_set(3, {1, 2})}, {.client = 1}),
            {tensor_view<const T>(b.data(), {2})},
            1};
  }
  tensor_view<T> view() { return {global.data(), {3}}; }
  std::vector<double> values() const {
    std::vector<double> out;
    for (const T& value : global) out.push_back(static_cast<double>(value));
    return out;
  }
};

average_options with_policy(non_finite policy) {
  average_options options;
  options.on_non_finite = policy;
  return options;
}

template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const subfed::error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE_TEMPLATE("is_finite sees every NaN and infinity", T, float, double, subfed::half,
                   subfed::bfloat16) {
  for (std::size_t i = 0; i < bad_numbers; ++i) {
    CHECK_FALSE(subfed::scalar_traits<T>::is_finite(bad_number<T>(i)));
  }
  CHECK(subfed::scalar_traits<T>::is_finite(T(0.0)));
  CHECK(subfed::scalar_traits<T>::is_finite(T(-65504.0)));
}

TEST_CASE_TEMPLATE("a client with a NaN or an infinity is skipped, in both forms", T, float, double,
                   subfed::half, subfed::bfloat16) {
  for (std::size_t i = 0; i < bad_numbers; ++i) {
    setting<T> s(bad_number<T>(i));
    const auto options = with_policy(non_finite::skip_client);
    const std::vector<subfed::update<T>> updates{s.from_a(), s.from_b()};
    auto report = subfed::average_cohort<T>(s.net, updates, {s.view()}, options);
    CHECK(s.values() == std::vector<double>{0, 4, 6});
    CHECK(report.skipped_clients == 1);

    setting<T> streamed(bad_number<T>(i));
    subfed::selective_average<T> mean(streamed.net, options);
    for (const auto& u : {streamed.from_a(), streamed.from_b()}) mean.add(u.sub, u.tensors);
    report = mean.finish({streamed.view()});
    CHECK(streamed.values() == std::vector<double>{0, 4, 6});
    CHECK(report.skipped_clients == 1);
  }
}

TEST_CASE_TEMPLATE("an element that is NaN or infinite is skipped, in both forms", T, float, double,
                   subfed::half, subfed::bfloat16) {
  for (std::size_t i = 0; i < bad_numbers; ++i) {
    setting<T> s(bad_number<T>(i));
    const auto options = with_policy(non_finite::skip_element);
    const std::vector<subfed::update<T>> updates{s.from_a(), s.from_b()};
    auto report = subfed::average_cohort<T>(s.net, updates, {s.view()}, options);
    CHECK(s.values() == std::vector<double>{1, 4, 6});
    CHECK(report.skipped_elements == 1);

    setting<T> streamed(bad_number<T>(i));
    subfed::selective_average<T> mean(streamed.net, options);
    for (const auto& u : {streamed.from_a(), streamed.from_b()}) mean.add(u.sub, u.tensors);
    report = mean.finish({streamed.view()});
    CHECK(streamed.values() == std::vector<double>{1, 4, 6});
    CHECK(report.skipped_elements == 1);
  }
}

TEST_CASE_TEMPLATE("a client with a NaN or an infinity is refused, in both forms", T, float, double,
                   subfed::half, subfed::bfloat16) {
  const std::string expected =
      "subfed: average: client 0 of round 0 has a value that is not finite in tensor 'x', at "
      "global "
      "element (1,)";
  for (std::size_t i = 0; i < bad_numbers; ++i) {
    setting<T> s(bad_number<T>(i));
    const auto options = with_policy(non_finite::refuse);
    const std::vector<subfed::update<T>> updates{s.from_a(), s.from_b()};
    CHECK(message_of([&] { subfed::average_cohort<T>(s.net, updates, {s.view()}, options); }) ==
          expected);
    CHECK(s.values() == std::vector<double>{0, 0, 0});

    subfed::selective_average<T> mean(s.net, options);
    const auto bad = s.from_a();
    CHECK(message_of([&] { mean.add(bad.sub, bad.tensors); }) == expected);
    const auto good = s.from_b();
    mean.add(good.sub, good.tensors);
    mean.finish({s.view()});
    CHECK(s.values() == std::vector<double>{0, 4, 6});
  }
}

TEST_CASE("a capacity that is no number, or infinite, is refused") {
  for (std::size_t i = 0; i < bad_numbers; ++i) {
    CHECK_THROWS_AS(subfed::capacity(bad_number<double>(i)), subfed::error);
    CHECK_THROWS_AS(subfed::capacity(bad_number<float>(i)), subfed::error);
  }
  CHECK(subfed::capacity(0.5).of(8) == 4);
}

TEST_CASE("weights and steps that are no numbers, or infinite, are refused and leave no trace") {
  for (std::size_t i = 0; i < bad_numbers; ++i) {
    setting<float> s(1.0f);
    const double bad = bad_number<double>(i);
    subfed::selective_average<float> mean(s.net);
    const auto update = s.from_a();
    CHECK(message_of([&] { mean.add(update.sub, update.tensors, bad); }).find(" is not finite") !=
          std::string::npos);
    std::vector<subfed::update<float>> updates{s.from_a(), s.from_b()};
    updates[1].weight = bad;
    CHECK_THROWS_AS(subfed::average_cohort<float>(s.net, updates, {s.view()}), subfed::error);
    CHECK(s.values() == std::vector<double>{0, 0, 0});

    average_options options;
    options.step = bad;
    CHECK_THROWS_AS(subfed::selective_average<float>(s.net, options), subfed::error);

    const auto good = s.from_b();
    mean.add(good.sub, good.tensors, 2);
    mean.finish({s.view()});
    CHECK(s.values() == std::vector<double>{0, 4, 6});
  }
}
