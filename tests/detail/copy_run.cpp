// SPDX-License-Identifier: MIT
/// Slices and scatters between different floating-point types.
#include <subfed/detail/copy_run.hpp>

#include <subfed/model_slice.hpp>
#include <support/checks.hpp>
#include <support/cohorts.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

using subfed::bfloat16;
using subfed::half;
using subfed::index_set;
using subfed::selection;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using support::message_of;
using support::seeded;

namespace {

template <class To, class From>
To sliced_one(From x) {
  To out{};
  subfed::slice(tensor_view<const From>(&x, {1}), {index_set::full(1)}, tensor_view<To>(&out, {1}));
  return out;
}
template <class To, class From>
To added_one(To to, From x) {
  subfed::scatter_add(tensor_view<const From>(&x, {1}), {index_set::full(1)},
                      tensor_view<To>(&to, {1}));
  return to;
}

/// Values in the range of half, most of them with more digits than it has.
template <class T>
T some_value(seeded& random) {
  const double x = std::ldexp(random.unit() - 0.5, static_cast<int>(random.between(-12, 12)));
  return T(random.one_in(4) ? std::ldexp(std::round(std::ldexp(x, 11)), -11) : x);
}

template <class From, class To>
To nearest(From x) {
  return oracle::nearest<To>(oracle::value_of(x));
}

template <class T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (oracle::value_of(a[i]) != oracle::value_of(b[i])) return false;
  }
  return true;
}

template <class Global, class Local>
void check_conversions() {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    support::cohort<Global> group{
        random, seed % 4 == 0 ? support::large_network(random) : support::random_network(random), 1,
        some_value<Global>, [](seeded&) { return 1.0; }};
    const auto& client = group.clients[0];
    std::vector<support::strided<Local>> locals;
    std::vector<tensor_view<Local>> writes;
    std::vector<tensor_view<const Local>> reads;
    for (const auto& t : client.tensors) {
      locals.emplace_back(support::random_layout(random, t.extents()));
      locals.back().fill([&](std::int64_t) { return some_value<Local>(random); });
    }
    for (auto& l : locals) writes.push_back(l.view());
    for (const auto& l : locals) reads.push_back(l.view());
    const std::vector<tensor_view<void>> any_writes(writes.begin(), writes.end());
    const std::vector<tensor_view<const void>> any_reads(reads.begin(), reads.end());
    const auto views = group.global_views();
    const std::vector<tensor_view<void>> any_globals(views.begin(), views.end());
    std::vector<tensor_view<const void>> any_sources(views.begin(), views.end());

    for (std::size_t t = 0; t < locals.size(); ++t) {
      const auto numbers = oracle::global_numbers(group.plan, group.plan.tensors[t], client.holds);
      // scatter_add: the exact sum, rounded once.
      const std::vector<Global> before = group.globals[t].elements();
      std::vector<Global> sums = before;
      std::vector<Global> put = before;
      const std::vector<Local> from = locals[t].elements();
      for (std::size_t l = 0; l < numbers.size(); ++l) {
        if (numbers[l] < 0) continue;
        const auto g = static_cast<std::size_t>(numbers[l]);
        put[g] = nearest<Local, Global>(from[l]);
        sums[g] = oracle::nearest<Global>(oracle::value_of(sums[g]) + oracle::value_of(from[l]));
      }
      const auto restore = [&] {
        group.globals[t].fill([&](std::int64_t n) { return before[static_cast<std::size_t>(n)]; });
      };
      const selection chosen = client.sub[subfed::tensor_id(t)];
      subfed::scatter_add(reads[t], chosen, views[t]);
      CHECK(equal(group.globals[t].elements(), sums));
      restore();
      subfed::scatter(reads[t], chosen, views[t]);
      CHECK(equal(group.globals[t].elements(), put));
      restore();
      std::vector<Local> cut = from;
      for (std::size_t l = 0; l < numbers.size(); ++l) {
        if (numbers[l] >= 0) {
          cut[l] = nearest<Global, Local>(before[static_cast<std::size_t>(numbers[l])]);
        }
      }
      subfed::slice(views[t], chosen, writes[t]);
      CHECK(equal(locals[t].elements(), cut));
      CHECK(locals[t].rest_untouched());
      locals[t].fill([&](std::int64_t n) { return from[static_cast<std::size_t>(n)]; });
    }

    // All tensors in one call have the bits of each alone.
    const auto globals_before = group.elements();
    for (std::size_t t = 0; t < locals.size(); ++t) {
      subfed::scatter_add(reads[t], client.sub[subfed::tensor_id(t)], views[t]);
    }
    const auto one_by_one = group.elements();
    for (std::size_t t = 0; t < locals.size(); ++t) {
      group.globals[t].fill(
          [&](std::int64_t n) { return globals_before[t][static_cast<std::size_t>(n)]; });
    }
    subfed::scatter_add<void>(any_reads, client.sub, any_globals);
    for (std::size_t t = 0; t < locals.size(); ++t) {
      CHECK(equal(group.globals[t].elements(), one_by_one[t]));
    }
    subfed::scatter<void>(any_reads, client.sub, any_globals);
    subfed::slice<void>(any_sources, client.sub, any_writes);
    CHECK(group.rest_untouched());
  }
}

}  // namespace

TEST_CASE_TEMPLATE("slice and scatters convert between all floating types, by the dense loop", T,
                   float, double, half, bfloat16) {
  check_conversions<T, float>();
  check_conversions<T, double>();
  check_conversions<T, half>();
  check_conversions<T, bfloat16>();
}

TEST_CASE("elements are rounded once, to nearest, ties to even") {
  CHECK(sliced_one<half>(1.0009765625f).bits == 0x3C01);
  CHECK(sliced_one<half>(1 + 0x1p-11f).bits == 0x3C00);
  CHECK(sliced_one<half>(1 + 3 * 0x1p-11f).bits == 0x3C02);
  CHECK(sliced_one<half>(70000.0f).bits == 0x7C00);
  // Just above the middle of two bfloat16; as a float it would be the middle, and round to even.
  CHECK(sliced_one<bfloat16>(1 + 0x1p-8 + 0x1p-30).bits == 0x3F81);
  CHECK(sliced_one<bfloat16>(1 + 0x1p-8).bits == 0x3F80);
  CHECK(sliced_one<half>(1 + 0x1p-11 + 0x1p-40).bits == 0x3C01);
  CHECK(sliced_one<float>(1 + 0x1p-24 + 0x1p-50) == 1 + 0x1p-23f);
  CHECK(std::isnan(sliced_one<float>(half(std::numeric_limits<double>::quiet_NaN()))));
  CHECK(std::signbit(static_cast<double>(sliced_one<half>(-0.0f))));
}

TEST_CASE("every half and bfloat16 becomes its float, and comes back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto check = [&]<class T>(T x) {
      if (!std::isfinite(static_cast<double>(x))) return;
      const float wide = sliced_one<float>(x);
      if (static_cast<double>(wide) != static_cast<double>(x)) FAIL("bits ", bits);
      if (!(sliced_one<T>(wide) == x)) FAIL("bits ", bits, " back");
    };
    check(std::bit_cast<half>(static_cast<std::uint16_t>(bits)));
    check(std::bit_cast<bfloat16>(static_cast<std::uint16_t>(bits)));
  }
}

TEST_CASE("a sum across types is rounded once, however small the rest is") {
  // The exact sum is above the middle of two bfloat16; the nearest double is the middle.
  CHECK(added_one(bfloat16(1), 0x1p-8 + 0x1p-60).bits == 0x3F81);
  CHECK(added_one(bfloat16(1), 0x1p-8 - 0x1p-60).bits == 0x3F80);
  CHECK(added_one(bfloat16(1), 0x1p-8).bits == 0x3F80);
  CHECK(added_one(half(-1), -0x1p-11 - 0x1p-60).bits == 0xBC01);
  CHECK(added_one(1.0f, 0x1p-24 + 0x1p-60) == 1 + 0x1p-23f);
  CHECK(added_one(1.0f, half(0x1p-24)) == 1);
  CHECK(added_one(1.0, 0.5f) == 1.5);
  CHECK(std::isinf(added_one(1.0f, std::numeric_limits<double>::infinity())));
  CHECK(std::isnan(static_cast<double>(added_one(half(1), std::nanf("")))));
}

TEST_CASE("integers are not converted") {
  subfed::model net;
  net.tensor("x", {2});
  const auto full = submodel::full(net);
  const std::vector<std::int32_t> whole{1, 2};
  std::vector<float> numbers{3, 4};
  std::vector<std::int64_t> wide{5, 6};
  const tensor_views<const void> from{tensor_view<const std::int32_t>(whole.data(), {2})};
  CHECK(message_of([&] {
          subfed::scatter<void>(from, full, {tensor_view<float>(numbers.data(), {2})});
        }) ==
        "subfed: scatter: the local tensor 'x' has elements of type int32, expected float as in "
        "the global one");
  CHECK(message_of([&] {
          subfed::slice<void>(from, full, {tensor_view<std::int64_t>(wide.data(), {2})});
        }) ==
        "subfed: slice: the local tensor 'x' has elements of type int64, expected int32 as in the "
        "global one");
  CHECK(numbers == std::vector<float>{3, 4});
  CHECK(wide == std::vector<std::int64_t>{5, 6});
}

TEST_CASE("where copies go depends on what a call writes in all, and not on small tensors") {
  using namespace subfed::detail;
  CHECK(bytes_to_place(0, 4) == 0);
  CHECK(bytes_to_place(5, 4) == 20);
  for (const std::size_t size : {1u, 2u, 3u, 4u, 8u, 16u}) {
    CAPTURE(size);
    const auto of = static_cast<std::int64_t>(size);
    CHECK(bytes_to_place(past_cache_bytes / of - 1, size) == (past_cache_bytes / of - 1) * of);
    CHECK(bytes_to_place(past_cache_bytes / of, size) == past_cache_bytes);
    CHECK(bytes_to_place((std::numeric_limits<std::int64_t>::max)(), size) == past_cache_bytes);
  }
  CHECK(placement_of(small_tensor_bytes, past_cache_bytes) == placement::memory);
  CHECK(placement_of(small_tensor_bytes - 1, past_cache_bytes) == placement::cached);
  CHECK(placement_of(small_tensor_bytes, past_cache_bytes - 1) == placement::cached);
}
