// SPDX-License-Identifier: MIT
/// Rows of many clients that hold windows of them: by the definition, element by element.
#include <subfed/average/cohort.hpp>
#include <subfed/index_set.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensors.hpp>
#include <support/instructions.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace run_row_tests {

using subfed::index_set;

struct setting {
  std::int64_t rows, columns, longest;
  std::size_t clients;
  bool has_gaps;   // a node within a window does not take part
  bool cuts_rows;  // two clients of three hold half of the rows each
  bool weighted;
};

/// Sums of these depend on their order.
double value_of(std::size_t client, std::int64_t row, std::int64_t column) {
  const auto n = static_cast<std::int64_t>(client) * 7919 + row * 104729 + column * 1299709;
  const double mantissa = static_cast<double>(n % 2039) / 1024 - 1;
  return n % 11 == 0 ? mantissa * 4096 : n % 7 == 0 ? mantissa / 1024 : mantissa;
}

index_set window(std::int64_t extent, std::int64_t first, std::int64_t length) {
  std::vector<std::int64_t> nodes;
  for (std::int64_t n = 0; n < length; ++n) nodes.push_back((first + n) % extent);
  std::sort(nodes.begin(), nodes.end());
  return {extent, nodes};
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
void check_average(const setting& the) {
  using traits = subfed::scalar_traits<T>;
  subfed::model net;
  const auto row = net.group("row", the.rows);
  const auto column = net.group("column", the.columns);
  const auto matrix = net.tensor("matrix", {row, column});
  subfed::tensors<T> globals(net);
  for (T& x : globals.elements()) x = traits::store(-1);
  const auto size = static_cast<std::size_t>(the.rows * the.columns);
  std::vector<double> sums(size, -0.0), weights(size);
  std::vector<subfed::tensors<T>> locals;
  std::vector<subfed::submodel> subs;
  for (std::size_t c = 0; c < the.clients; ++c) {
    const auto n = static_cast<std::int64_t>(c);
    const index_set columns = window(the.columns, n * 5 % the.columns, 1 + n * 13 % the.longest);
    const std::int64_t half = the.rows / 2;
    const index_set rows = !the.cuts_rows || n % 3 == 0
                               ? window(the.rows, 0, the.rows)
                               : window(the.rows, n % 3 == 1 ? 0 : half, half);
    std::vector<std::int64_t> counted;
    for (std::int64_t p = 0; p < columns.size(); ++p) {
      if (!the.has_gaps || p % 17 != 9) counted.push_back(columns[p]);
    }
    const subfed::submodel held(net, {rows, columns}, {.client = c});
    subs.push_back(held.restricted(column, index_set(the.columns, counted)));
    subfed::tensors<T>& sent = locals.emplace_back(held);
    const double weight = the.weighted ? 0.1 + static_cast<double>(c % 5) : 1;
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      for (std::int64_t j = 0; j < columns.size(); ++j) {
        const T x = traits::store(value_of(c, rows[i], columns[j]));
        sent[matrix](i, j) = x;
        if (the.has_gaps && j % 17 == 9) continue;
        const auto at = static_cast<std::size_t>(rows[i] * the.columns + columns[j]);
        const volatile double product = weight * traits::load(x);
        sums[at] += product;
        weights[at] += weight;
      }
    }
  }
  std::vector<subfed::update<T>> updates;
  for (std::size_t c = 0; c < the.clients; ++c) {
    const double weight = the.weighted ? 0.1 + static_cast<double>(c % 5) : 1;
    updates.push_back({subs[c], std::as_const(locals[c]), weight});
  }
  subfed::average_cohort<T>(net, updates, globals);
  for (std::size_t at = 0; at < size; ++at) {
    INFO("element ", at);
    const T expected = traits::store(weights[at] == 0 ? -1 : sums[at] / weights[at]);
    REQUIRE(same_bits(globals.elements()[at], expected));
  }
}

}  // namespace run_row_tests

TEST_CASE_TEMPLATE("windows of many clients are averaged by the definition, with any instructions",
                   T, float, subfed::half, subfed::bfloat16, double) {
  using run_row_tests::check_average;
  support::with_all_instructions([] {
    const std::size_t many = sizeof(T) == 2 ? 640 : 64;
    for (const bool weighted : {false, true}) {
      INFO("weighted ", weighted);
      check_average<T>({7, 61, 61, many, false, false, weighted});
      check_average<T>({7, 61, 61, many, true, false, weighted});
      check_average<T>({9, 40, 33, many + 3, false, true, weighted});
      check_average<T>({5, 90, 20, many + 1, true, true, weighted});  // what nobody holds
    }
  });
}

TEST_CASE_TEMPLATE("more rows than fit in the cache have all clients, too", T, float, double) {
  support::with_all_instructions([] {
    run_row_tests::check_average<T>({700, 70, 60, 65, false, false, true});
  });
}
