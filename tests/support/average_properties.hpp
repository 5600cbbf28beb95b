// SPDX-License-Identifier: MIT
/// Properties that both forms of the average have; `form` is called as form(net, updates, globals,
/// options) and gives the report.
#pragma once

#include <doctest/doctest.h>

#include <oracle.hpp>
#include <support/average_examples.hpp>
#include <support/checks.hpp>
#include <support/cohorts.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace support {

/// Distance of neighbours of 1.
template <class T>
constexpr double epsilon_of() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::epsilon();
  return std::is_same_v<T, subfed::half> ? 0x1p-10 : 0x1p-7;
}

template <class T>
bool same_value(T a, T b) {
  const long double x = oracle::value_of(a);
  const long double y = oracle::value_of(b);
  return x == y || (std::isnan(x) && std::isnan(y));
}

inline std::string text_of(const subfed::average_report& r) {
  return "clients " + std::to_string(r.clients) + ", refused " + std::to_string(r.refused_clients) +
         ", skipped " + std::to_string(r.skipped_clients) + " and elements " +
         std::to_string(r.skipped_elements) + ", held " + std::to_string(r.held) + ", unheld " +
         std::to_string(r.unheld);
}
inline void check_report(const subfed::average_report& found,
                         const subfed::average_report& expected) {
  // Who was left out is compared in the tests that are about it; here their number.
  subfed::average_report counts = found;
  counts.left_out = expected.left_out;
  CHECK_MESSAGE(counts == expected, text_of(found) << "; expected " << text_of(expected));
  CHECK(static_cast<std::int64_t>(found.left_out.size()) ==
        found.skipped_clients + found.late_clients + found.repeated_clients);
}

/// Every average that was worked out by hand.
template <class T, class Form>
void check_examples(Form&& form) {
  for (const example& e : average_examples()) {
    INFO(e.name);
    std::vector<std::vector<T>> found;
    check_report(run_example<T>(e, form, found), e.report);
    for (std::size_t t = 0; t < found.size(); ++t) {
      REQUIRE(found[t].size() == e.after[t].size());
      for (std::size_t i = 0; i < found[t].size(); ++i) {
        CHECK_MESSAGE(same_value(found[t][i], T(e.after[t][i])),
                      "tensor " << t << ", element " << i << ": "
                                << static_cast<double>(found[t][i]) << ", expected "
                                << e.after[t][i]);
      }
    }
  }
}

/// Which networks the oracle is asked about, and of how many clients at most.
struct ask {
  oracle::network (*network)(seeded&) = random_network;
  std::int64_t clients = 6;
};

/// One random cohort against the oracle. Elements that nobody holds keep their bits, and what lies
/// between the elements of a strided tensor is not touched.
template <class T, class Form>
void check_against_oracle(std::uint64_t seed, const subfed::average_options& options, Form&& form,
                          const ask& about = {}) {
  INFO("seed ", seed);
  seeded random(seed);
  const bool with_bad = options.on_non_finite != subfed::non_finite::propagate;
  const auto value = [&](seeded& r) {
    if (with_bad && r.one_in(40)) {
      return r.one_in(2) ? T(std::numeric_limits<double>::quiet_NaN())
                         : T(std::numeric_limits<double>::infinity());
    }
    return small_integer<T>(r);
  };
  cohort<T> group{random, about.network(random), random.between(1, about.clients), value,
                  dyadic_weight};
  for (auto& g : group.globals) {
    g.fill([&](std::int64_t) { return random.one_in(8) ? T(-0.0) : small_integer<T>(random); });
  }
  subfed::average_report report;
  const auto expected = group.expected(options, report);
  const auto before = group.elements();
  check_report(form(group.net, group.updates(), group.global_views(), options), report);
  CHECK(group.rest_untouched());

  // Sums of small dyadic numbers are exact, so without a step there is one rounding to get right.
  const bool exact = options.step == 1 && options.content == subfed::content::parameters;
  const auto after = group.elements();
  for (std::size_t t = 0; t < expected.size(); ++t) {
    for (std::size_t i = 0; i < expected[t].size(); ++i) {
      const oracle::element& want = expected[t][i];
      const T found = after[t][i];
      bool right = false;
      if (!want.held) {
        right = same_bits(std::vector<T>{found}, std::vector<T>{before[t][i]});
      } else if (exact) {
        right = same_value(found, oracle::nearest<T>(want.value));
      } else {
        const double off = std::fabs(static_cast<double>(oracle::value_of(found) - want.value));
        const double size = std::fabs(static_cast<double>(want.value));
        right = off <= epsilon_of<T>() * 0.51 * size + 0x1p-48;
      }
      if (right) continue;
      FAIL("tensor " << t << ", element " << i << ": " << static_cast<double>(found)
                     << ", expected " << static_cast<double>(want.value)
                     << (want.held ? "" : " with the bits that it had"));
    }
  }
}

/// The options in every combination, one after the other by number.
inline subfed::average_options options_number(std::uint64_t n) {
  static constexpr double steps[] = {1, 1, 0.5, 1.7, 0};
  static constexpr subfed::non_finite policies[] = {subfed::non_finite::propagate,
                                                    subfed::non_finite::skip_client,
                                                    subfed::non_finite::skip_element};
  subfed::average_options out;
  out.divide_by = n % 2 == 0 ? subfed::divisor::holders : subfed::divisor::cohort;
  out.content = n / 2 % 2 == 0 ? subfed::content::parameters : subfed::content::deltas;
  out.on_non_finite = policies[n / 4 % 3];
  out.step = steps[n / 12 % 5];
  return out;
}

/// A call that an average refuses: what is wrong, the message, and the call on a cohort of three.
/// `net` has a group 'g' of 3 nodes and tensors 'w' (g, 2) and 'b' (g).
struct refusal_setting {
  subfed::model net;
  subfed::group_id g = net.group("g", 3);
  subfed::tensor_id w = net.tensor("w", {g, 2});
  subfed::tensor_id b = net.tensor("b", {g});
  std::vector<float> global_w{1, 2, 3, 4, 5, 6};
  std::vector<float> global_b{7, 8, 9};
  std::vector<float> client_w{10, 20, 30, 40, 50, 60};
  std::vector<float> client_b{70, 80, 90};

  subfed::submodel holds(std::vector<std::int64_t> nodes, std::uint64_t client,
                         std::uint64_t round = 0) const {
    return {net, {subfed::index_set(3, nodes)}, {.round = round, .client = client}};
  }
  /// The first rows of the client's tensors.
  subfed::update<float> update(std::vector<std::int64_t> nodes, std::uint64_t client,
                               std::uint64_t round = 0, double weight = 1) const {
    const auto n = static_cast<std::int64_t>(nodes.size());
    return {holds(std::move(nodes), client, round),
            {subfed::tensor_view<const float>(client_w.data(), {n, 2}),
             subfed::tensor_view<const float>(client_b.data(), {n})},
            weight};
  }
  subfed::tensor_views<float> globals() {
    return {subfed::tensor_view<float>(global_w.data(), {3, 2}),
            subfed::tensor_view<float>(global_b.data(), {3})};
  }
  bool untouched() const {
    return same_bits(global_w, {1, 2, 3, 4, 5, 6}) && same_bits(global_b, {7, 8, 9});
  }
};

}  // namespace support
