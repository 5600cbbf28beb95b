// SPDX-License-Identifier: MIT
#include <subfed/secure/secure_options.hpp>

#include <doctest/doctest.h>
#include <support/checks.hpp>

#include <limits>
#include <string>

using subfed::secure_options;
using support::message_of;

namespace {

std::string refusal_of(const secure_options& options, std::size_t participants = 10) {
  const std::string found =
      message_of([&] { subfed::detail::check_secure_options(options, participants); });
  const std::string begin = "subfed: secure: ";
  return found.starts_with(begin) ? found.substr(begin.size()) : found;
}

}  // namespace

TEST_CASE("options that are not for secure sums are refused") {
  const secure_options good{.average = {.sums = subfed::fixed_point{}}, .threshold = 6};
  const std::string nothing = "nothing was thrown";
  CHECK(refusal_of(good) == nothing);

  secure_options o = good;
  o.average.sums = {};
  CHECK(refusal_of(o) == "average.sums is not set; masks cancel in fixed-point sums only");
  o = good;
  o.average.step = std::numeric_limits<double>::infinity();
  CHECK(refusal_of(o) == "the step is not finite");
  o = good;
  o.average.sums->bound = -1;
  CHECK(refusal_of(o) == "subfed: fixed_point: bound is -1, expected 2^-400 to 2^400");
  o = good;
  o.average.sums->on_out_of_bound = subfed::out_of_bound::skip_client;
  CHECK(refusal_of(o) == "on_out_of_bound is skip_client, which nobody can do behind masks");
  o.average.sums->on_out_of_bound = subfed::out_of_bound::clip;
  CHECK(refusal_of(o) == nothing);
  for (const auto skips : {subfed::non_finite::skip_client, subfed::non_finite::skip_element}) {
    o = good;
    o.average.on_non_finite = skips;
    CHECK(refusal_of(o) == "on_non_finite skips what nobody sees behind masks");
  }
  o = good;
  o.average.integers = subfed::integer_rule::sum;
  CHECK(refusal_of(o) == "integers and counters are not sent, so that their rule is keep");
  o = good;
  o.average.round = 3;
  o.average.on_late = subfed::late_update::skip;
  CHECK(refusal_of(o).starts_with("on_late and on_repeated are refuse"));
}

TEST_CASE("the threshold is over half of the participants and not over all of them") {
  for (std::int64_t n = 0; n < 12; ++n) {
    for (std::int64_t t = -1; t < 14; ++t) {
      const secure_options o{.average = {.sums = subfed::fixed_point{}}, .threshold = t};
      const bool right = t >= 2 && t <= n && t > n / 2;
      CAPTURE(n);
      CAPTURE(t);
      CHECK((refusal_of(o, static_cast<std::size_t>(n)) == "nothing was thrown") == right);
    }
  }
  const secure_options one{.average = {.sums = subfed::fixed_point{}}, .threshold = 1};
  CHECK(refusal_of(one, 1) ==
        "the threshold is 1, expected more than half of the 1 participants, at least 2 and at most "
        "all");
}

TEST_CASE("fewer than three holders are never opened") {
  for (const std::int64_t k : {-1, 0, 1, 2, 3, 4}) {
    const secure_options o{
        .average = {.sums = subfed::fixed_point{}}, .threshold = 6, .least_holders = k};
    CHECK(refusal_of(o) == (k >= 3 ? "nothing was thrown"
                                   : "least_holders is " + std::to_string(k) +
                                         ", expected 3 or more: of two, each learns the other"));
  }
  secure_options o{.average = {.sums = subfed::fixed_point{}}, .threshold = 6};
  o.expected_dropouts = -1;
  CHECK(refusal_of(o) == "expected_dropouts is -1, expected 0 to 10");
}
