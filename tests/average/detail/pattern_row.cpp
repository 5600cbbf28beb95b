// SPDX-License-Identifier: MIT
/// Rows of submodels of which not everything takes part: what a client sends has gaps then.
#include <subfed/average/cohort.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensors.hpp>
#include <support/instructions.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace pattern_row_tests {

using subfed::index_set;

/// Of a matrix.
struct part {
  std::vector<std::int64_t> rows, columns;      ///< that a client holds
  std::vector<char> row_counts, column_counts;  ///< whether the nodes at these places take part
};

/// Two columns of three, of which two of five do not take part.
void choose_columns(std::size_t client, std::int64_t extent, part& own) {
  for (std::int64_t n = 0; n < extent; ++n) {
    const std::int64_t at = n * 7 + static_cast<std::int64_t>(client) * 5 + n * n;
    if (at % 3 == 0) continue;
    own.columns.push_back(n);
    own.column_counts.push_back(at % 5 != 3);
  }
}

/// All rows, of which eight of 24 do not take part.
void choose_rows(std::size_t client, std::int64_t extent, part& own) {
  for (std::int64_t n = 0; n < extent; ++n) {
    own.rows.push_back(n);
    own.row_counts.push_back((n / 8 + static_cast<std::int64_t>(client)) % 3 != 0);
  }
}

index_set those(std::int64_t extent, const std::vector<std::int64_t>& nodes,
                const std::vector<char>& counts) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (counts[i] != 0) out.push_back(nodes[i]);
  }
  return {extent, out};
}

/// Whole numbers, and weights of one and two: all sums are exact.
template <class T>
void check_average(std::int64_t rows, std::int64_t columns, std::size_t clients, bool cuts_rows,
                   bool cuts_columns) {
  using traits = subfed::scalar_traits<T>;
  subfed::model net;
  const auto row = net.group("row", rows);
  const auto column = net.group("column", columns);
  const auto matrix = net.tensor("matrix", {row, column});
  subfed::tensors<T> globals(net);
  for (T& x : globals.elements()) x = traits::store(-1);
  const auto size = static_cast<std::size_t>(rows * columns);
  std::vector<double> sums(size), weights(size);
  std::vector<subfed::tensors<T>> locals;
  std::vector<subfed::submodel> subs;
  for (std::size_t c = 0; c < clients; ++c) {
    part own;
    choose_rows(c, rows, own);
    choose_columns(c, columns, own);
    if (!cuts_rows) own.row_counts.assign(own.rows.size(), 1);
    if (!cuts_columns) own.column_counts.assign(own.columns.size(), 1);
    const subfed::submodel held(net, {index_set(rows, own.rows), index_set(columns, own.columns)},
                                {.client = c});
    subs.push_back(held.restricted(row, those(rows, own.rows, own.row_counts))
                       .restricted(column, those(columns, own.columns, own.column_counts)));
    subfed::tensors<T>& sent = locals.emplace_back(held);
    for (std::size_t i = 0; i < own.rows.size(); ++i) {
      for (std::size_t j = 0; j < own.columns.size(); ++j) {
        const auto x = static_cast<double>((i * 31 + j * 17 + c * 5) % 64);
        sent[matrix](static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)) = traits::store(x);
        if (own.row_counts[i] == 0 || own.column_counts[j] == 0) continue;
        const auto at = static_cast<std::size_t>(own.rows[i] * columns + own.columns[j]);
        sums[at] += x * static_cast<double>(1 + c % 2);
        weights[at] += static_cast<double>(1 + c % 2);
      }
    }
  }
  std::vector<subfed::update<T>> updates;
  for (std::size_t c = 0; c < clients; ++c) {
    updates.push_back({subs[c], std::as_const(locals[c]), static_cast<double>(1 + c % 2)});
  }
  subfed::average_cohort<T>(net, updates, globals);
  for (std::size_t at = 0; at < size; ++at) {
    INFO("element ", at);
    const T expected = traits::store(weights[at] == 0 ? -1 : sums[at] / weights[at]);
    REQUIRE(traits::load(globals.elements()[at]) == traits::load(expected));
  }
}

}  // namespace pattern_row_tests

TEST_CASE_TEMPLATE("what does not take part shifts nothing of the rest, with any instructions", T,
                   float, subfed::half, double) {
  using pattern_row_tests::check_average;
  support::with_all_instructions([] {
    for (const bool cuts_rows : {false, true}) {
      for (const bool cuts_columns : {false, true}) {
        INFO("rows ", cuts_rows, " columns ", cuts_columns);
        check_average<T>(25, 42, 3, cuts_rows, cuts_columns);  // rows with the same holders
        const std::size_t many = sizeof(T) == 2 ? 700 : 200;
        check_average<T>(50, 22, many, cuts_rows, cuts_columns);
        check_average<T>(9, 3002, 4, cuts_rows, cuts_columns);  // long ones
      }
    }
  });
}
