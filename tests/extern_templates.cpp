// SPDX-License-Identifier: MIT
/// The engine of another file, or of this one where it is a program by itself.
#if !defined(SUBFED_TEST_ENGINE_ELSEWHERE)
#define SUBFED_INSTANTIATE
#endif
#include <subfed/draw.hpp>
#include <subfed/extern_templates.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/tensors.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace subfed;

TEST_CASE_TEMPLATE("instantiated averages are those of the headers", T, float, double, half) {
  model net;
  const auto g = net.group("g", 4);
  net.tensor("w", {g});
  const submodel sub = draw(net, rolling{}, {.round = 1, .capacity = 0.5});
  tensors<T> globals(net), locals(sub);
  for (T& x : locals.elements()) x = scalar_traits<T>::store(3);
  average_cohort<T>(net, std::vector<update<T>>{{sub, locals, 2}}, globals);
  std::vector<double> found;
  for (const T x : globals.elements()) found.push_back(scalar_traits<T>::load(x));
  CHECK(found == std::vector<double>{0, 3, 3, 0});
}
