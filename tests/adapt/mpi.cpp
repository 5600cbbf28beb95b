// SPDX-License-Identifier: MIT
#include <subfed/adapt/mpi.hpp>

#include <doctest/doctest.h>
#include <subfed/adapt/span.hpp>
#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/coverage/text.hpp>
#include <subfed/messages/partial_average.hpp>
#include <support/average_properties.hpp>
#include <support/executors.hpp>
#include <support/failing_memory.hpp>
#include <support/failing_new.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace mpi = subfed::mpi;
using subfed::average_options;
using subfed::average_report;
using subfed::fixed_point;
using subfed::half;
using subfed::index_set;
using subfed::selective_average;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using support::message_of;
using support::seeded;

// Every rank runs these tests at the same time, and makes the same cohorts.
namespace {

/// In pieces of 128 bytes: no tensor here is sent at once.
const mpi::communicator& ranks() {
  static const mpi::communicator all(MPI_COMM_WORLD, 128);
  return all;
}
int last() { return ranks().size() - 1; }

template <class T>
T some_value(seeded& random) {
  const auto exponent = static_cast<int>(random.between(-12, 1));
  return T(std::ldexp(static_cast<double>(random.between(-1003, 1003)) / 1003, exponent));
}
double some_weight(seeded& random) {
  return random.one_in(6) ? 0 : static_cast<double>(random.between(1, 99)) / 50;
}

template <class T>
support::cohort<T> cohort_number(std::uint64_t n, average_options& options) {
  seeded random(n);
  options = support::options_number(n);
  options.sums = fixed_point{.bound = 4, .clients = 12, .total_weight = 24};
  if (n % 3 == 0) options.round = 0;
  const bool odd = options.on_non_finite != subfed::non_finite::propagate;
  return {random, support::random_network(random), 8,
          [&](seeded& r) {
            return odd && r.one_in(30) ? T(std::numeric_limits<double>::infinity())
                                       : some_value<T>(r);
          },
          some_weight};
}

/// The updates of this rank. `deal` says how they are dealt out.
template <class T>
selective_average<T> own_part(const support::cohort<T>& group, const average_options& options,
                              std::uint64_t deal) {
  selective_average<T> out(group.net, options);
  const auto updates = group.updates();
  seeded random(deal);
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const std::int64_t owner = deal == 0 ? 0 : random.between(0, last());
    if (owner == ranks().rank()) out.add(updates[i].sub, updates[i].tensors, updates[i].weight);
  }
  return out;
}

template <class T>
void check_equal(const support::cohort<T>& found, const support::cohort<T>& expected) {
  for (std::size_t t = 0; t < expected.globals.size(); ++t) {
    CHECK(support::same_bits(found.globals[t].elements(), expected.globals[t].elements()));
  }
}

/// Whether all ranks threw the same text, and it has these words.
void check_refused_alike(const std::string& message, const std::string& words) {
  INFO(message);
  CHECK(message.find(words) != std::string::npos);
  for (const auto& theirs :
       mpi::detail::gather_all(std::as_bytes(std::span<const char>(message)), ranks())) {
    CHECK(std::equal(theirs.begin(), theirs.end(),
                     std::as_bytes(std::span<const char>(message)).begin(),
                     std::as_bytes(std::span<const char>(message)).end()));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("however updates are dealt out, the ranks' average is that of all of them", T,
                   float, double, half) {
  for (std::uint64_t n = 0; n < 24; ++n) {
    INFO("number ", n);
    average_options options;
    const support::cohort<T> group = cohort_number<T>(n, options);
    support::cohort<T> expected = group, all = group, one = group, spread = group;
    selective_average<T> here(group.net, options);
    for (const auto& u : group.updates()) here.add(u.sub, u.tensors, u.weight);
    const average_report report = here.finish(tensor_views<T>(expected.global_views()));

    selective_average<T> mean = own_part(group, options, n);
    mpi::all_reduce(mean, ranks());
    support::check_report(mean.finish(tensor_views<T>(all.global_views())), report);
    check_equal(all, expected);
    CHECK(mean.held() == here.held());
    CHECK(mean.report().left_out.size() == here.report().left_out.size());

    mean = own_part(group, options, n + 1);
    const average_report before = mean.report();
    mpi::reduce(mean, last(), ranks());
    if (ranks().rank() == last()) {
      support::check_report(mean.finish(tensor_views<T>(one.global_views())), report);
      check_equal(one, expected);
    } else {
      CHECK(mean.report() == before);
    }

    mean = own_part(group, options, n + 2);
    const auto part = mpi::reduce_scatter(mean, ranks());
    CHECK(mean.report() == average_report{});
    // Tensors of one piece, as the call asks for.
    std::vector<std::vector<T>> memory;
    std::vector<tensor_view<T>> views;
    for (auto& g : spread.globals) memory.push_back(g.elements());
    for (std::size_t t = 0; t < memory.size(); ++t) {
      views.emplace_back(memory[t].data(), group.net.tensors()[t].extents);
    }
    support::check_report(mpi::finish(part, tensor_views<T>(views), ranks()), report);
    for (std::size_t t = 0; t < memory.size(); ++t) {
      CHECK(support::same_bits(memory[t], expected.globals[t].elements()));
    }
  }
}

TEST_CASE("one cohort: 100 orders, merges on each rank, threads, in one pass: one hash") {
  seeded random(11);
  const average_options options{.sums = fixed_point{.bound = 4, .clients = 100}};
  subfed::model net;
  const auto g = net.group("g", 37);
  net.tensor("w", {g, 11});
  net.tensor("b", {g});
  struct update {
    submodel sub;
    std::vector<float> w, b;
  };
  std::vector<update> all;
  for (std::uint64_t c = 0; c < 40; ++c) {
    submodel sub(net, {index_set(37, support::random_nodes(random, 37))}, {.client = c});
    const auto nodes = static_cast<std::size_t>(sub.extent(g));
    update u{std::move(sub), std::vector<float>(nodes * 11), std::vector<float>(nodes)};
    for (float& x : u.w) x = some_value<float>(random);
    for (float& x : u.b) x = some_value<float>(random);
    all.push_back(std::move(u));
  }
  const auto add = [&](selective_average<float>& to, const update& u) {
    const std::int64_t n = u.sub.extent(g);
    to.add(
        u.sub,
        {tensor_view<const float>(u.w.data(), {n, 11}), tensor_view<const float>(u.b.data(), {n})},
        0.5 + static_cast<double>(u.sub.origin().client) / 64);
  };
  const auto hash_of = [&](const auto& finish) {
    std::vector<float> w(37 * 11, 0.125f), b(37, -1);
    finish(tensor_views<float>{tensor_view<float>(w.data(), {37, 11}),
                               tensor_view<float>(b.data(), {37})});
    subfed::detail::byte_hash hash;
    hash.bytes(std::as_bytes(std::span<const float>(w)));
    hash.bytes(std::as_bytes(std::span<const float>(b)));
    return hash.value();
  };
  selective_average<float> in_order(net, options);
  for (const update& u : all) add(in_order, u);
  const std::uint64_t expected = hash_of([&](const auto& globals) { in_order.finish(globals); });
  // The same on every run and machine, and so for every number of ranks.
  CHECK(expected == 10181914173531050931u);

  for (int order = 0; order < 100; ++order) {
    std::vector<std::size_t> places(all.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    for (std::size_t i = places.size(); i > 1; --i) {
      std::swap(
          places[i - 1],
          places[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(i) - 1))]);
    }
    // Two averages on each rank, merged before the ranks are.
    selective_average<float> left(net, options), right(net, options);
    for (const std::size_t i : places) {
      const bool is_left = random.one_in(2);
      if (random.between(0, last()) == ranks().rank()) add(is_left ? left : right, all[i]);
    }
    left.merge(right);
    if (order % 3 == 0) {
      const auto part = mpi::reduce_scatter(left, ranks());
      CHECK(hash_of([&](const auto& to) { mpi::finish(part, to, ranks()); }) == expected);
      continue;
    }
    if (order % 3 == 1) {
      mpi::all_reduce(left, ranks());
    } else {
      // A tree: pairs of ranks, then all.
      const int pair = ranks().rank() / 2;
      MPI_Comm raw;
      MPI_Comm_split(MPI_COMM_WORLD, pair, ranks().rank(), &raw);
      {
        const mpi::communicator two(raw);
        mpi::reduce(left, 0, two);
        if (two.rank() != 0) left.clear();
      }
      MPI_Comm_free(&raw);
      mpi::all_reduce(left, ranks());
    }
    CHECK(hash_of([&](const auto& to) { left.finish(to, support::three_threads{}); }) == expected);
  }
}

TEST_CASE("integers, counters, local tensors and mixed types are merged over ranks") {
  subfed::model net;
  const auto g = net.group("g", 50);
  net.tensor("w", {g});
  net.tensor("n", {g}, subfed::role::counter);
  net.tensor("c", {1}, subfed::role::counter);
  net.tensor("own", {g}, subfed::role::local);
  for (const auto rule :
       {subfed::integer_rule::keep, subfed::integer_rule::max, subfed::integer_rule::sum}) {
    const average_options options{.on_non_finite = subfed::non_finite::skip_element,
                                  .integers = rule,
                                  .sums = fixed_point{.bound = 1, .clients = 64}};
    selective_average<void> all(net, options), mine(net, options), again(net, options);
    seeded random(3);
    for (std::uint64_t c = 0; c < 30; ++c) {
      const submodel sub(net, {index_set(50, support::random_nodes(random, 50))}, {.client = c});
      const std::int64_t n = sub.extent(g);
      std::vector<float> w(static_cast<std::size_t>(n), 0.25f + static_cast<float>(c) / 64);
      if (c % 7 == 3 && n > 0) w[0] = std::numeric_limits<float>::infinity();
      const std::vector<std::int32_t> counts(static_cast<std::size_t>(n),
                                             static_cast<std::int32_t>(c) - 9);
      const double steps = 7.5 + static_cast<double>(c);
      const float nothing = 0;
      const tensor_views<const void> tensors{tensor_view<const float>(w.data(), {n}),
                                             tensor_view<const std::int32_t>(counts.data(), {n}),
                                             tensor_view<const double>(&steps, {1}),
                                             tensor_view<const float>(&nothing, {0})};
      all.add<void>(sub, tensors, 1);
      if (static_cast<int>(c % static_cast<unsigned>(ranks().size())) == ranks().rank()) {
        mine.add<void>(sub, tensors, 1);
        again.add<void>(sub, tensors, 1);
      }
    }
    struct state {
      std::vector<float> w = std::vector<float>(50, 2), own = std::vector<float>(50, 5);
      std::vector<std::int32_t> n = std::vector<std::int32_t>(50, -100);
      double c = 1;
      tensor_views<void> views() {
        return {tensor_view<float>(w.data(), {50}), tensor_view<std::int32_t>(n.data(), {50}),
                tensor_view<double>(&c, {1}), tensor_view<float>(own.data(), {50})};
      }
      bool operator==(const state& other) const {
        return w == other.w && own == other.own && n == other.n && c == other.c;
      }
    };
    state expected, found, spread;
    const auto report = all.finish(expected.views());
    mpi::all_reduce(mine, ranks());
    CHECK(mine.finish(found.views()) == report);
    CHECK(found == expected);
    const auto part = mpi::reduce_scatter(again, ranks());
    CHECK(mpi::finish(part, spread.views(), ranks()) == report);
    CHECK(spread == expected);
  }
}

TEST_CASE(
    "weights of the elements of one tensor, which one rank alone has, are those of all ranks") {
  subfed::model net;
  net.tensor("w", {6});
  net.tensor("v", {6});
  const average_options options{.on_non_finite = subfed::non_finite::skip_element,
                                .sums = fixed_point{.bound = 8, .clients = 16}};
  selective_average<float> all(net, options), mine(net, options), again(net, options);
  for (int rank = 0; rank < ranks().size(); ++rank) {
    std::vector<float> w(6, static_cast<float>(rank)), v(6, 2);
    if (rank == last()) w[4] = std::numeric_limits<float>::infinity();
    const tensor_views<const float> tensors{tensor_view<const float>(w.data(), {6}),
                                            tensor_view<const float>(v.data(), {6})};
    all.add(submodel::full(net), tensors, 1 + rank);
    if (rank != ranks().rank()) continue;
    mine.add(submodel::full(net), tensors, 1 + rank);
    again.add(submodel::full(net), tensors, 1 + rank);
  }
  std::vector<float> memory[6];
  for (auto& m : memory) m.assign(6, 7);
  const auto views = [&](std::size_t first) {
    return tensor_views<float>{tensor_view<float>(memory[first].data(), {6}),
                               tensor_view<float>(memory[first + 1].data(), {6})};
  };
  const auto report = all.finish(views(0));
  mpi::all_reduce(mine, ranks());
  CHECK_FALSE(mine.has_dense_weights());
  CHECK(mine.finish(views(2)) == report);
  CHECK(mpi::finish(mpi::reduce_scatter(again, ranks()), views(4), ranks()) == report);
  for (std::size_t i = 2; i < 6; ++i) CHECK(support::same_bits(memory[i], memory[i % 2]));
}

TEST_CASE("a share is as large as the others, and is averaged without them") {
  subfed::model net;
  const auto g = net.group("g", 3);
  net.tensor("a", {g, 5});
  net.tensor("own", {g}, subfed::role::local);
  net.tensor("b", {g, 1});
  const average_options options{.sums = fixed_point{.bound = 8, .clients = 4}};
  selective_average<float> mean(net, options);
  const std::vector<float> a{1, 2, 3, 4, 5, 6, 7, 0, 1, 2}, b{3, 5};
  const float nothing = 0;
  if (ranks().rank() == last()) {
    mean.add(submodel(net, {index_set(3, {0, 2})}, {}),
             {tensor_view<const float>(a.data(), {2, 5}), tensor_view<const float>(&nothing, {0}),
              tensor_view<const float>(b.data(), {2, 1})});
  }
  auto part = mpi::reduce_scatter(mean, ranks());
  std::int64_t own = 0;
  for (const mpi::element_range& r : part.ranges) own += static_cast<std::int64_t>(r.count);
  CHECK(part.ranges[1].count == 0);
  const int size = ranks().size();
  CHECK(own == 18 / size + (ranks().rank() < 18 % size ? 1 : 0));
  std::vector<std::vector<float>> memory;
  std::vector<tensor_view<float>> views;
  for (const mpi::element_range& r : part.ranges) memory.emplace_back(r.count + 1, -1.f);
  for (std::size_t t = 0; t < 3; ++t)
    views.emplace_back(memory[t].data(), std::vector{part.ranges[t].count});
  part.mean.finish(tensor_views<float>(views));
  const std::vector<float> whole_a{1, 2, 3, 4, 5, -1, -1, -1, -1, -1, 6, 7, 0, 1, 2},
      whole_b{3, -1, 5};
  for (std::size_t i = 0; i < part.ranges[0].count; ++i) {
    CHECK(memory[0][i] == whole_a[part.ranges[0].first + i]);
  }
  for (std::size_t i = 0; i < part.ranges[2].count; ++i) {
    CHECK(memory[2][i] == whole_b[part.ranges[2].first + i]);
  }
}

TEST_CASE("late, repeated and skipped updates are counted and listed over ranks") {
  const support::refusal_setting s;
  average_options options{.round = 7,
                          .on_late = subfed::late_update::skip,
                          .on_repeated = subfed::repeated_update::skip,
                          .sums = fixed_point{.bound = 100, .clients = 64}};
  options.sums->on_out_of_bound = subfed::out_of_bound::skip_client;
  selective_average<float> mean(s.net, options);
  const auto own = static_cast<std::uint64_t>(ranks().rank());
  const auto add = [&](const subfed::update<float>& u) { mean.add(u.sub, u.tensors, u.weight); };
  add(s.update({0, 1}, own, 7));
  add(s.update({0, 1}, own, 7));
  add(s.update({2}, 100 + own, 6));
  mpi::all_reduce(mean, ranks());
  const auto size = static_cast<std::int64_t>(ranks().size());
  CHECK(mean.report().clients == size);
  CHECK(mean.report().repeated_clients == size);
  CHECK(mean.report().late_clients == size);
  REQUIRE(mean.report().left_out.size() == static_cast<std::size_t>(2 * size));
  for (std::size_t r = 0; r < static_cast<std::size_t>(size); ++r) {
    CHECK(mean.report().left_out[2 * r].fate == subfed::fate::repeated);
    CHECK(mean.report().left_out[2 * r].client == r);
    CHECK(mean.report().left_out[2 * r + 1].fate == subfed::fate::late);
    CHECK(mean.report().left_out[2 * r + 1].client == 100 + r);
  }
}

TEST_CASE("an update that was added on two ranks is refused on all of them, and nothing changes") {
  if (last() == 0) return;
  const support::refusal_setting s;
  const average_options options{.round = 7, .sums = fixed_point{.bound = 100, .clients = 64}};
  selective_average<float> mean(s.net, options);
  const auto own = static_cast<std::uint64_t>(ranks().rank());
  const auto mine = s.update({0}, 40 + own, 7), twice = s.update({1, 2}, 9, 7);
  mean.add(mine.sub, mine.tensors);
  if (ranks().rank() == 0 || ranks().rank() == last()) mean.add(twice.sub, twice.tensors);
  const auto before = subfed::write_partial_average(mean);
  const std::string words =
      "subfed: mpi: an update of client 9 for round 7 was added on rank 0 "
      "and on rank " +
      std::to_string(last());
  check_refused_alike(message_of([&] { mpi::all_reduce(mean, ranks()); }), words);
  check_refused_alike(message_of([&] { mpi::reduce(mean, 0, ranks()); }), words);
  check_refused_alike(message_of([&] { mpi::reduce_scatter(mean, ranks()); }), words);
  CHECK(subfed::write_partial_average(mean) == before);
}

TEST_CASE("ranks that mean different things are refused by name on all ranks alike") {
  const support::refusal_setting s;
  const average_options options{.sums = fixed_point{.bound = 100, .clients = 64}};
  const bool odd = ranks().rank() == last();
  const std::string other = "subfed: mpi: rank " + std::to_string(last()) + " has ";
  selective_average<float> mean(s.net, options);
  const auto refused = [&](auto& own) {
    return message_of([&] { mpi::all_reduce(own, ranks()); });
  };
  selective_average<float> doubles(s.net, {});
  check_refused_alike(refused(doubles), "subfed: mpi: rank 0 has sums of doubles");
  check_refused_alike(message_of([&] { mpi::reduce(mean, -1, ranks()); }),
                      "subfed: mpi: rank 0 has the root -1, but there are ");
  if (last() == 0) return;

  subfed::model net;
  const auto g = net.group("g", 4);
  net.tensor("w", {g, 2});
  net.tensor("b", {g});
  selective_average<float> of_other(odd ? net : s.net, options);
  check_refused_alike(refused(of_other), other + "another model, with the fingerprint " +
                                             std::to_string(subfed::fingerprint(net)));
  const auto with = [&](auto&& change) {
    average_options theirs = options;
    if (odd) change(theirs);
    selective_average<float> own(s.net, theirs);
    return refused(own);
  };
  check_refused_alike(with([](average_options& o) { o.step = 0.5; }),
                      other + "the option step = 0.5, rank 0 has 1");
  check_refused_alike(with([](average_options& o) { o.round = 3; }),
                      other + "the option round = set, rank 0 has not set");
  check_refused_alike(with([](average_options& o) { o.sums.reset(); }),
                      other + "the option sums = not set, rank 0 has set");
  check_refused_alike(with([](average_options& o) { o.sums->bound = 99; }),
                      other + "the option sums.bound = 99, rank 0 has 100");
  check_refused_alike(with([](average_options& o) { o.sums->clients = 65; }),
                      other + "the option sums.clients = 65, rank 0 has 64");
  check_refused_alike(with([](average_options& o) { o.divide_by = subfed::divisor::cohort; }),
                      other + "the option divide_by = 1, rank 0 has 0");
  // Other functions, other roots, averages of other kinds.
  check_refused_alike(
      message_of([&] {
        if (odd) {
          mpi::reduce(mean, 0, ranks());
        } else {
          mpi::all_reduce(mean, ranks());
        }
      }),
      "subfed: mpi: rank " + std::to_string(last()) + " calls reduce, rank 0 calls all_reduce");
  check_refused_alike(message_of([&] { mpi::reduce(mean, odd ? 1 : 0, ranks()); }),
                      other + "the root 1, rank 0 has 0");
  check_refused_alike(message_of([&] { mpi::reduce(mean, odd ? -1 : 0, ranks()); }),
                      other + "the root -1, rank 0 has 0");
  selective_average<void> mixed(s.net, options);
  check_refused_alike(odd ? refused(mixed) : refused(mean),
                      other + "an average of mixed types, rank 0 one of one type");
  std::vector<std::int64_t> counts(odd ? 3u : 2u, 5);
  check_refused_alike(message_of([&] { mpi::sum(counts, ranks()); }),
                      other + "another number of values than rank 0");
  CHECK(counts[0] == 5);
}

TEST_CASE("an average of which memory ran out on one rank is refused on all of them") {
  const support::refusal_setting s;
  const auto u = s.update({0}, static_cast<std::uint64_t>(ranks().rank()));
  const average_options options{.sums = fixed_point{.bound = 100, .clients = 64}};
  selective_average<float> mean(s.net, options);
  const auto add = [&] { mean.add(u.sub, u.tensors, 1); };
  const auto is_whole = [&] { return message_of([&] { mean.held(); }) == "nothing was thrown"; };
  for (std::int64_t left = 0; ranks().rank() == last() && is_whole(); ++left) {
    REQUIRE(!support::ends_with({left}, add));
  }
  const std::string words = "subfed: mpi: rank " + std::to_string(last()) +
                            " has an average of which memory ran out while updates were added; "
                            "clear() forgets all";
  check_refused_alike(message_of([&] { mpi::all_reduce(mean, ranks()); }), words);
  check_refused_alike(message_of([&] { mpi::reduce(mean, 0, ranks()); }), words);
  check_refused_alike(message_of([&] { mpi::reduce_scatter(mean, ranks()); }), words);
  mean.clear();
  add();
  mpi::all_reduce(mean, ranks());
  CHECK(mean.report().clients == ranks().size());
}

TEST_CASE("where one rank has no memory for sums, none is left waiting and nothing has changed") {
  subfed::model net;
  net.tensor("w", {64, 64});
  const average_options options{.sums = fixed_point{.bound = 4, .clients = 64}};
  const std::vector<float> ones(64 * 64, 1);
  std::vector<float> global(64 * 64, 3);
  const tensor_views<float> globals{tensor_view<float>(global.data(), {64, 64})};
  selective_average<float> mean(net, options);
  if (ranks().rank() == 0) {
    mean.add(submodel::full(net), {tensor_view<const float>(ones.data(), {64, 64})});
  }
  const bool odd = ranks().rank() == last();
  const auto check_short = [&](std::size_t least, auto&& f) {
    std::string message;
    const bool was_enough =
        support::ends_with({odd ? 0 : -1, least}, [&] { message = message_of(f); });
    if (last() != 0) CHECK(was_enough == !odd);
    if (odd) return;
    CHECK(message == "subfed: mpi: memory ran out on rank " + std::to_string(last()));
  };
  if (last() != 0) {  // rank 0 has its sums already
    check_short(8192, [&] { mpi::all_reduce(mean, ranks()); });
    check_short(8192, [&] { mpi::reduce(mean, 0, ranks()); });
    check_short(8192, [&] { mpi::reduce_scatter(mean, ranks()); });
  }
  const auto part = mpi::reduce_scatter(mean, ranks());
  check_short(64 * 64 * 4 / static_cast<std::size_t>(ranks().size()) - 4,
              [&] { mpi::finish(part, globals, ranks()); });
  CHECK(global == std::vector<float>(64 * 64, 3));
  const average_report report = mpi::finish(part, globals, ranks());
  CHECK(report.clients == 1);
  CHECK(global == ones);
}

TEST_CASE("weights beyond the total are refused on all ranks alike") {
  const support::refusal_setting s;
  selective_average<float> mean(
      s.net, {.sums = fixed_point{.bound = 100, .clients = 64, .total_weight = 1.5}});
  const auto u = s.update({0}, static_cast<std::uint64_t>(ranks().rank()));
  mean.add(u.sub, u.tensors, 1);
  if (last() == 0) return;
  const auto before = subfed::write_partial_average(mean);
  check_refused_alike(message_of([&] { mpi::all_reduce(mean, ranks()); }),
                      "the weights of the cohort add up to 2, more than the total_weight");
  CHECK(subfed::write_partial_average(mean) == before);
}

TEST_CASE("a model is broadcast, whatever its strides, and refused where it is another") {
  support::refusal_setting s;
  const int root = last();
  const bool is_root = ranks().rank() == root;
  // Stored backwards and with gaps on odd ranks.
  std::vector<float> w(24, -7), b(3, -7);
  const bool strided = ranks().rank() % 2 == 1;
  const tensor_views<float> views{strided ? tensor_view<float>(w.data() + 20, {3, 2}, {-8, 3})
                                          : tensor_view<float>(w.data(), {3, 2}),
                                  tensor_view<float>(b.data(), {3})};
  if (is_root) {
    for (std::int64_t i = 0; i < 3; ++i) {
      b[static_cast<std::size_t>(i)] = static_cast<float>(10 + i);
      for (std::int64_t j = 0; j < 2; ++j) {
        views[0].data_handle()[i * views[0].stride(0) + j * views[0].stride(1)] =
            static_cast<float>(100 + 2 * i + j);
      }
    }
  }
  mpi::broadcast(s.net, views, root, ranks());
  for (std::int64_t i = 0; i < 3; ++i) {
    CHECK(b[static_cast<std::size_t>(i)] == static_cast<float>(10 + i));
    for (std::int64_t j = 0; j < 2; ++j) {
      CHECK(views[0].data_handle()[i * views[0].stride(0) + j * views[0].stride(1)] ==
            static_cast<float>(100 + 2 * i + j));
    }
  }
  CHECK(std::count(w.begin(), w.end(), -7.f) == 18);

  const std::string who = "subfed: mpi: rank " + std::to_string(root);
  const tensor_views<float> wrong{is_root ? tensor_view<float>(w.data(), {2, 3}) : views[0],
                                  views[1]};
  check_refused_alike(message_of([&] { mpi::broadcast(s.net, wrong, 0, ranks()); }),
                      who + " has a tensor 'w' of another shape than the model");
  if (last() == 0) return;
  std::vector<double> d(6);
  const tensor_views<void> of_double{tensor_view<double>(d.data(), {3, 2}),
                                     tensor_view<float>(b.data(), {3})};
  const tensor_views<void> of_float{views[0], views[1]};
  check_refused_alike(
      message_of([&] { mpi::broadcast(s.net, is_root ? of_double : of_float, 0, ranks()); }),
      who + " has tensors of other element types than rank 0");
}

TEST_CASE("what one rank's share cannot have is refused on all, with nothing written") {
  subfed::model net;
  net.tensor("w", {6});
  const average_options options{.content = subfed::content::deltas,
                                .on_non_finite = subfed::non_finite::refuse,
                                .sums = fixed_point{.bound = 0x1p127, .clients = 8}};
  selective_average<float> mean(net, options);
  const std::vector<float> deltas{1, 2, 3, 4, 5, 0x1p127f};
  if (ranks().rank() == 0) {
    mean.add(submodel::full(net), {tensor_view<const float>(deltas.data(), {6})});
  }
  const auto part = mpi::reduce_scatter(mean, ranks());
  std::vector<float> globals{1, 1, 1, 1, 1, 0x1p127f};
  const auto before = globals;
  check_refused_alike(
      message_of([&] {
        mpi::finish(part, tensor_views<float>{tensor_view<float>(globals.data(), {6})}, ranks());
      }),
      "is too large for the tensor's type (in the part of rank " + std::to_string(last()) + ")");
  CHECK(support::same_bits(globals, before));
  std::vector<float> strided(12, 1);
  check_refused_alike(message_of([&] {
                        mpi::finish(
                            part, tensor_views<float>{tensor_view<float>(strided.data(), {6}, {2})},
                            ranks());
                      }),
                      "has a tensor 'w' that is not row-major without gaps");
}

TEST_CASE("bytes are broadcast") {
  std::vector<std::byte> bytes(300, static_cast<std::byte>(ranks().rank()));
  mpi::broadcast(bytes, last(), ranks());
  CHECK(bytes == std::vector<std::byte>(300, static_cast<std::byte>(last())));
  if (last() == 0) return;
  bytes.resize(ranks().rank() == last() ? 2 : 300);
  check_refused_alike(message_of([&] { mpi::broadcast(bytes, 0, ranks()); }),
                      "has room for another number of bytes than rank 0");
}

TEST_CASE("coverage counts the clients of all ranks, round by round") {
  const support::refusal_setting s;
  subfed::coverage all(s.net, 2), mine(s.net, 2);
  subfed::coverage_by_class classes_of_all(s.net, 2), classes(s.net, 2);
  seeded random(5);
  for (std::uint64_t round = 0; round < 6; ++round) {
    for (std::uint64_t c = 0; c < 7; ++c) {
      const submodel sub(s.net, {index_set(3, support::random_nodes(random, 3))}, {});
      all.record(sub);
      classes_of_all.record(sub, c % 2);
      if (random.between(0, last()) != ranks().rank()) continue;
      mine.record(sub);
      classes.record(sub, c % 2);
    }
    mpi::merge(mine, ranks());
    mpi::merge(classes, ranks());
    all.end_round();
    mine.end_round();
    classes_of_all.end_round();
    classes.end_round();
  }
  CHECK(subfed::to_text(mine) == subfed::to_text(all));
  CHECK(subfed::to_text(classes) == subfed::to_text(classes_of_all));
  if (last() == 0) return;
  if (ranks().rank() == last()) mine.end_round();
  check_refused_alike(message_of([&] { mpi::merge(mine, ranks()); }),
                      "has counted other rounds, times or classes than rank 0");
}

TEST_CASE("counts are summed over ranks") {
  std::vector<std::int64_t> counts(100);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] = (std::int64_t{1} << 40) * ranks().rank() + static_cast<std::int64_t>(i);
  }
  mpi::sum(counts, ranks());
  const std::int64_t size = ranks().size();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    CHECK(counts[i] ==
          (std::int64_t{1} << 40) * (size * (size - 1) / 2) + size * static_cast<std::int64_t>(i));
  }
}

TEST_CASE("an error of MPI is an error of subfed, and the program's handler stays") {
  MPI_Errhandler before, after;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  const mpi::communicator own(MPI_COMM_WORLD);
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
  CHECK(before == after);
  CHECK(message_of([&] {
          int one = 1;
          mpi::communicator::check(MPI_Bcast(&one, 1, MPI_INT, own.size() + 3, own.handle()),
                                   "MPI_Bcast");
        }).find("subfed: mpi: MPI_Bcast: ") == 0);
  CHECK(message_of([] { const mpi::communicator tiny(MPI_COMM_WORLD, 7); }) ==
        "subfed: mpi: bytes_at_once is 7, expected 8 to 2^30");
}
