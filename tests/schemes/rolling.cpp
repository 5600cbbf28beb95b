// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>
#include <support/spelled.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

using subfed::direction;
using subfed::draw_request;
using subfed::index_set;
using subfed::rolling;
using subfed::rounding;
using support::message_of;

namespace {

struct golden_row {
  std::int64_t step;
  double overlap;
  direction walk;
  rounding round_to;
  std::int64_t minimum;
  std::int64_t phase;
  std::int64_t client_phase;
  draw_request where;
  std::string_view nodes;
};
constexpr golden_row golden[] = {
#include <golden/rolling.inc>
};

draw_request at(std::uint64_t round, std::int64_t extent, const subfed::capacity& share,
                std::uint64_t client = 0) {
  return {.round = round, .client = client, .extent = extent, .capacity = share};
}

/// How often each node is held in rounds first .. first + rounds - 1.
std::vector<int> visits(const rolling& which, std::int64_t extent, const subfed::capacity& share,
                        std::uint64_t first, std::uint64_t rounds) {
  std::vector<int> out(static_cast<std::size_t>(extent), 0);
  for (std::uint64_t j = first; j < first + rounds; ++j) {
    for (const std::int64_t node : which(at(j, extent, share))) {
      ++out[static_cast<std::size_t>(node)];
    }
  }
  return out;
}

constexpr subfed::capacity three_of_eight = subfed::capacity::ratio(3, 8);

}  // namespace

TEST_CASE("the window of Fig. 1, for a large client and a small one 2 nodes on") {
  // [Rolex, Fig. 1]: nodes a .. e are 0 .. 4.
  const rolling window{.client_phase = 2};
  CHECK(window(at(0, 5, 0.8, 0)) == index_set(5, {0, 1, 2, 3}));
  CHECK(window(at(0, 5, 0.6, 1)) == index_set(5, {2, 3, 4}));
  CHECK(window(at(1, 5, 0.8, 0)) == index_set(5, {1, 2, 3, 4}));
  CHECK(window(at(1, 5, 0.6, 1)) == index_set(5, {3, 4, 0}));
  CHECK(window(at(2, 5, 0.8, 0)) == index_set(5, {2, 3, 4, 0}));
  CHECK(window(at(2, 5, 0.6, 1)) == index_set(5, {4, 0, 1}));
}

TEST_CASE("the paper's window walks forward and wraps") {
  for (const rolling& window : {rolling{}, rolling::paper()}) {
    CHECK(window(at(0, 8, three_of_eight)) == index_set(8, {0, 1, 2}));
    CHECK(window(at(5, 8, three_of_eight)) == index_set(8, {5, 6, 7}));
    CHECK(window(at(6, 8, three_of_eight)) == index_set(8, {6, 7, 0}));
    CHECK(window(at(6, 8, three_of_eight, 3)) == index_set(8, {6, 7, 0}));  // of every client
    CHECK(window(at(7, 8, three_of_eight)) == index_set(8, {7, 0, 1}));
    CHECK(window(at(8, 8, three_of_eight)) == index_set(8, {0, 1, 2}));
    CHECK(window(at(0, 10, 0.25)) == index_set(10, {0, 1}));
  }
}

TEST_CASE("the released code's window walks backward and rounds up") {
  const rolling window = rolling::released();
  CHECK(window(at(0, 8, three_of_eight)) == index_set(8, {0, 1, 2}));
  CHECK(window(at(1, 8, three_of_eight)) == index_set(8, {7, 0, 1}));
  CHECK(window(at(6, 8, three_of_eight)) == index_set(8, {2, 3, 4}));
  CHECK(window(at(7, 8, three_of_eight)) == index_set(8, {1, 2, 3}));
  CHECK(window(at(0, 10, 0.25)) == index_set(10, {0, 1, 2}));
}

TEST_CASE("each layer wraps by its own width") {
  CHECK(rolling{}(at(5, 4, 0.5)) == index_set(4, {1, 2}));
  CHECK(rolling{}(at(5, 6, 0.5)) == index_set(6, {5, 0, 1}));
}

TEST_CASE("visits after some rounds, and the first full cover") {
  using counts = std::vector<int>;
  CHECK(visits({}, 8, three_of_eight, 0, 5) == counts{1, 2, 3, 3, 3, 2, 1, 0});
  CHECK(visits({}, 8, three_of_eight, 0, 6) == counts{1, 2, 3, 3, 3, 3, 2, 1});
  CHECK(visits({}, 8, three_of_eight, 0, 8) == counts{3, 3, 3, 3, 3, 3, 3, 3});
}

TEST_CASE("windows agree with the golden values") {
  for (const golden_row& row : golden) {
    CAPTURE(row.step);
    CAPTURE(row.overlap);
    CAPTURE(row.phase);
    CAPTURE(row.client_phase);
    CAPTURE(row.where.round);
    CAPTURE(row.where.extent);
    const rolling which{
        .step = row.step,
        .window_overlap = row.overlap < 0 ? std::nullopt : std::optional(row.overlap),
        .walk = row.walk,
        .round_to = row.round_to,
        .minimum = row.minimum,
        .phase = row.phase,
        .client_phase = row.client_phase};
    CHECK(support::spelled(which(row.where)) == row.nodes);
  }
}

TEST_CASE("every window is the equation's, node by node") {
  support::for_all("rolling", [] {
    const auto extent = *rc::gen::inRange<std::int64_t>(1, 40);
    const auto numerator = *rc::gen::inRange<std::int64_t>(1, 17);
    const auto round = *rc::gen::inRange<std::int64_t>(0, 1000);
    const auto client = *rc::gen::inRange<std::int64_t>(0, 1000);
    const rolling which{.step = *rc::gen::inRange<std::int64_t>(-100, 100),
                        .walk = *rc::gen::element(direction::forward, direction::backward),
                        .phase = *rc::gen::inRange<std::int64_t>(-100, 100),
                        .client_phase = *rc::gen::inRange<std::int64_t>(-100, 100)};
    const index_set s =
        which(at(static_cast<std::uint64_t>(round), extent, subfed::capacity::ratio(numerator, 16),
                 static_cast<std::uint64_t>(client)));
    std::int64_t kept = numerator * extent / 16;
    if (kept == 0) kept = 1;
    RC_ASSERT(s.extent() == extent);
    RC_ASSERT(s.size() == kept);
    const std::int64_t way = which.walk == direction::forward ? 1 : -1;
    const std::int64_t start = way * round * which.step + which.phase + client * which.client_phase;
    for (std::int64_t t = 0; t < kept; ++t) {
      RC_ASSERT(s[t] == ((start + t) % extent + extent) % extent);
    }
  });
}

TEST_CASE("any K rounds in a row hold every node exactly L times") {
  support::for_all("visits", [] {
    const auto extent = *rc::gen::inRange<std::int64_t>(1, 30);
    const auto kept = *rc::gen::inRange<std::int64_t>(1, extent + 1);
    const auto first = *rc::gen::inRange<std::uint64_t>(0, 1000);
    const rolling which{.walk = *rc::gen::element(direction::forward, direction::backward),
                        .phase = *rc::gen::inRange<std::int64_t>(0, 50)};
    const auto share = subfed::capacity::ratio(kept, extent);
    for (const int n : visits(which, extent, share, first, static_cast<std::uint64_t>(extent))) {
      RC_ASSERT(n == static_cast<int>(kept));
    }
    // The first full cover comes after K - L + 1 rounds and not before.
    const auto rounds = static_cast<std::uint64_t>(extent - kept + 1);
    int unseen = 0;
    for (const int n : visits(which, extent, share, first, rounds)) unseen += n == 0 ? 1 : 0;
    RC_ASSERT(unseen == 0);
    for (const int n : visits(which, extent, share, first, rounds - 1)) unseen += n == 0 ? 1 : 0;
    RC_ASSERT(unseen == (kept == extent ? static_cast<int>(extent) : 1));
  });
}

TEST_CASE("the overlap says how far a window moves") {
  // [Rolex, A.4]: 1 + floor(beta (1 - r) K) nodes a round.
  const auto step = [](double overlap, std::int64_t extent, const subfed::capacity& share) {
    return rolling{.window_overlap = overlap}(at(1, extent, share))[0];
  };
  CHECK(step(1, 8, 0.5) == 1);
  CHECK(step(0.75, 8, 0.5) == 2);
  CHECK(step(0.5, 8, 0.5) == 3);
  CHECK(step(0, 8, 0.5) == 5);
  CHECK(step(0, 100, 0.07) == 8);
  CHECK(step(0.93, 100, 1.0) == 8);
  CHECK(step(0.5, 10, 0.25) == 2);
  CHECK(step(0, 100, 0.29f) == 30);
  CHECK(step(0, 10, 0.05) == 1);  // the step follows beta K, not the minimum of one node kept
  // An overlap replaces the step.
  CHECK(rolling{.step = 7, .window_overlap = 0.5}(at(1, 8, 0.5)) ==
        rolling{.step = 3}(at(1, 8, 0.5)));
}

TEST_CASE("numbers of 64 bits neither overflow nor lose their lower half") {
  const std::uint64_t far = std::uint64_t{1} << 32;
  CHECK(rolling{}(at(far + 1, 7, 0.5))[0] == static_cast<std::int64_t>((far + 1) % 7));
  const std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  CHECK(rolling{}(at(last, 10, 0.5))[0] == 5);            // 2^64 - 1 = 5 mod 10
  CHECK(rolling{.step = most}(at(1, 10, 0.5))[0] == 7);   // 2^63 - 1 = 7 mod 10
  CHECK(rolling{.step = least}(at(1, 10, 0.5))[0] == 2);  // -2^63 = 2 mod 10
  CHECK(rolling{.phase = least}(at(0, 10, 0.5))[0] == 2);
  CHECK(rolling{.client_phase = most}(at(0, 10, 0.5, last))[0] == 5);  // 5 * 7 mod 10
  // Groups beyond 2^32 nodes: 3 * 2^40 steps of 2^40 nodes among 2^62 - 1 are 3 * 2^80, and
  // 2^62 = 1 there, so 3 * 2^18.
  const std::int64_t extent = (std::int64_t{1} << 62) - 1;
  CHECK(rolling{.step = std::int64_t{1} << 40}(at(std::uint64_t{3} << 40, extent, 0.5))[0] ==
        std::int64_t{3} << 18);
}

TEST_CASE("a group of no nodes has one window, the empty one") {
  CHECK(rolling{}(at(3, 0, 0.5)) == index_set());
  CHECK(rolling::released()(at(3, 0, 0.5)) == index_set());
  CHECK(rolling{.window_overlap = 0.5}(at(3, 0, 0.5)) == index_set());
  CHECK(rolling{.minimum = 0}(at(3, 4, 0.1)) == index_set(4, {}));
}

TEST_CASE("an overlap outside [0, 1] is refused") {
  CHECK(message_of([] { rolling{.window_overlap = 1.5}(at(0, 8, 0.5)); }) ==
        "subfed: rolling: the window_overlap 1.5 is outside [0, 1]");
  CHECK(message_of([] { rolling{.window_overlap = -0.25}(at(0, 8, 0.5)); }) ==
        "subfed: rolling: the window_overlap -0.25 is outside [0, 1]");
  CHECK(message_of([] { rolling{.window_overlap = std::nan("")}(at(0, 8, 0.5)); }) ==
        "subfed: rolling: the window_overlap NaN is outside [0, 1]");
  CHECK(message_of([] { rolling{.minimum = -1}(at(0, 8, 0.5)); }) ==
        "subfed: capacity: extent 8 and minimum -1 must not be negative");
}

TEST_CASE("a step of all nodes and one more is a step of one, in the largest group too") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const rolling whole{.window_overlap = 1e-300};
  for (const std::int64_t extent : {std::int64_t{1}, std::int64_t{7}, most}) {
    for (const std::uint64_t round : {std::uint64_t{0}, std::uint64_t{3}}) {
      const auto first = static_cast<std::int64_t>(round % static_cast<std::uint64_t>(extent));
      CHECK(whole(draw_request{.round = round, .extent = extent}) ==
            index_set::window(extent, first, extent));
    }
  }
}
