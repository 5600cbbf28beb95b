// SPDX-License-Identifier: MIT
/// Finite values have finite means under -ffast-math too, which may join factors and thinks that
/// there are no infinities.
#include <doctest/doctest.h>

#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>

#include <cmath>
#include <vector>

using subfed::submodel;
using subfed::tensor_view;
using subfed::update;

namespace {

template <class T>
bool is_right(bool streams, const double (&w)[2], const double (&x)[2], double mean) {
  subfed::model net;
  net.tensor("x", {1});
  const auto full = submodel::full(net);
  const T values[2] = {T(x[0]), T(x[1])};
  std::vector<update<T>> updates;
  for (int c = 0; c < 2; ++c) {
    updates.push_back({full, {tensor_view<const T>(&values[c], {1})}, w[c]});
  }
  T global(7);
  if (streams) {
    subfed::selective_average<T> average(net);
    for (const auto& u : updates) average.add(u.sub, u.tensors, u.weight);
    average.finish({tensor_view<T>(&global, {1})});
  } else {
    subfed::average_cohort<T>(net, updates, {tensor_view<T>(&global, {1})});
  }
  if (!subfed::scalar_traits<T>::is_finite(global)) return false;
  return std::fabs(static_cast<double>(global) - mean) <= 1e-6 * std::fabs(mean);
}

}  // namespace

TEST_CASE("weights and values of any size") {
  for (const bool streams : {false, true}) {
    INFO("streams ", streams);
    CHECK(is_right<double>(streams, {1e300, 1e300}, {1e10, 1e10}, 1e10));
    CHECK(is_right<double>(streams, {1e308, 5e307}, {2, 4}, 8.0 / 3));
    CHECK(is_right<double>(streams, {5e-324, 5e-324}, {0.3, 0.4}, 0.35));
    CHECK(is_right<double>(streams, {1e-310, 1e-310}, {0.3, 0.5}, 0.4));
    CHECK(is_right<double>(streams, {1, 1}, {1.7e308, 1.7e308}, 1.7e308));
    CHECK(is_right<double>(streams, {1e-100, 1e-100}, {1e-300, 3e-300}, 2e-300));
    CHECK(is_right<float>(streams, {1e300, 1e300}, {1e10, 3e10}, 2e10));
    CHECK(is_right<float>(streams, {1e-310, 1e-310}, {0.25, 0.75}, 0.5));
    CHECK(is_right<float>(streams, {1, 1e-310}, {3, 5}, 3));
    CHECK(is_right<subfed::half>(streams, {1e-310, 1e-310}, {0.25, 0.75}, 0.5));
  }
}
