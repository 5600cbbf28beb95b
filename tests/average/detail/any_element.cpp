// SPDX-License-Identifier: MIT
/// Updates whose element type is another than the global tensors'.
#include <subfed/average/detail/any_element.hpp>

#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <support/average_properties.hpp>
#include <support/checks.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using subfed::average_options;
using subfed::average_report;
using subfed::bfloat16;
using subfed::half;
using subfed::index_set;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using subfed::update;
using support::message_of;
using support::seeded;

namespace {

/// Another library's half, as far as the library looks.
struct foreign_half {
  std::uint16_t bits;
};

}  // namespace

template <>
class std::numeric_limits<foreign_half> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_integer = false;
  static constexpr int digits = 11;
  static constexpr int max_exponent = 16;
};

namespace {

/// Global tensors of type G with a cohort's old values.
template <class G, class U>
std::vector<support::strided<G>> globals_like(seeded& random, const support::cohort<U>& group) {
  std::vector<support::strided<G>> out;
  for (const auto& g : group.globals) {
    const std::vector<U> old = g.elements();
    out.emplace_back(support::random_layout(random, g.extents()));
    out.back().fill(
        [&](std::int64_t n) { return G(static_cast<double>(old[static_cast<std::size_t>(n)])); });
  }
  return out;
}
template <class G>
std::vector<tensor_view<G>> views_of(std::vector<support::strided<G>>& tensors) {
  std::vector<tensor_view<G>> out;
  for (auto& t : tensors) out.push_back(t.view());
  return out;
}

/// Values and weights are such that the mean has one right rounding.
template <class G>
void check_means(const std::vector<support::strided<G>>& found,
                 const std::vector<std::vector<oracle::element>>& expected) {
  for (std::size_t t = 0; t < found.size(); ++t) {
    const std::vector<G> elements = found[t].elements();
    CHECK(found[t].rest_untouched());
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const G want = oracle::nearest<G>(expected[t][i].value);
      if (support::same_value(elements[i], want)) continue;
      FAIL("tensor " << t << ", element " << i << ": " << static_cast<double>(elements[i])
                     << ", expected " << static_cast<double>(want));
    }
  }
}

average_options options_of(std::uint64_t seed) {
  average_options out;
  if (seed % 3 == 1) out.divide_by = subfed::divisor::cohort;
  if (seed % 4 == 3) out.on_non_finite = subfed::non_finite::skip_element;
  if (seed % 4 == 2) out.on_non_finite = subfed::non_finite::skip_client;
  return out;
}

template <class U>
support::cohort<U> random_cohort(seeded& random, std::uint64_t seed) {
  const auto value = [&](seeded& r) {
    if (seed % 4 > 1 && r.one_in(40)) return U(std::numeric_limits<double>::quiet_NaN());
    return support::small_integer<U>(r);
  };
  return {random, seed % 5 == 0 ? support::large_network(random) : support::random_network(random),
          random.between(1, 9), value, support::dyadic_weight};
}

template <class G, class U>
void check_pair() {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const average_options options = options_of(seed);
    support::cohort<U> group = random_cohort<U>(random, seed);
    for (auto& g : group.globals) {
      g.fill([&](std::int64_t) { return support::small_integer<U>(random); });
    }
    average_report report;
    const auto expected = group.expected(options, report);
    const auto updates = group.updates();
    auto globals = globals_like<G>(random, group);
    if constexpr (std::is_same_v<G, U>) {
      support::check_report(
          subfed::average_cohort<G>(group.net, updates, views_of(globals), options), report);
    } else {
      support::check_report(
          subfed::average_cohort<G, U>(group.net, updates, views_of(globals), options), report);
    }
    check_means(globals, expected);

    globals = globals_like<G>(random, group);
    subfed::selective_average<G> one(group.net, options), other(group.net, options);
    for (std::size_t u = 0; u < updates.size(); ++u) {
      (u % 2 == 0 ? one : other).add(updates[u].sub, updates[u].tensors, updates[u].weight);
    }
    one.merge(other);
    support::check_report(one.finish(views_of(globals)), report);
    check_means(globals, expected);
  }
}

/// The same tensors in another type, with the views of them.
struct stored {
  std::vector<std::shared_ptr<void>> kept;
  std::vector<tensor_view<const void>> views;

  template <class E>
  void add(seeded& random, const support::strided<double>& tensor) {
    const std::vector<double> values = tensor.elements();
    auto own =
        std::make_shared<support::strided<E>>(support::random_layout(random, tensor.extents()));
    own->fill([&](std::int64_t n) { return E(values[static_cast<std::size_t>(n)]); });
    const support::strided<E>& read = *own;
    views.emplace_back(read.view());
    kept.push_back(std::move(own));
  }
  void add_as(std::int64_t type, seeded& random, const support::strided<double>& tensor) {
    if (type == 0) add<float>(random, tensor);
    if (type == 1) add<double>(random, tensor);
    if (type == 2) add<half>(random, tensor);
    if (type == 3) add<bfloat16>(random, tensor);
  }
};

}  // namespace

TEST_CASE_TEMPLATE(
    "updates of any floating type equal the dense loop, in one pass, streamed, merged", G, float,
    double, half, bfloat16) {
  check_pair<G, float>();
  check_pair<G, double>();
  check_pair<G, half>();
  check_pair<G, bfloat16>();
}

TEST_CASE_TEMPLATE("clients of one cohort may have any floating types", G, float, double, half,
                   bfloat16) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const average_options options = options_of(seed);
    support::cohort<double> group = random_cohort<double>(random, seed);
    for (auto& g : group.globals) {
      g.fill([&](std::int64_t) { return support::small_integer<double>(random); });
    }
    average_report report;
    const auto expected = group.expected(options, report);
    std::vector<stored> tensors(group.clients.size());
    std::vector<update<void>> updates;
    for (std::size_t c = 0; c < group.clients.size(); ++c) {
      const auto& client = group.clients[c];
      for (const auto& t : client.tensors) {
        tensors[c].add_as(random.between(0, 3), random, t);
      }
      updates.push_back({client.sub, tensor_views<const void>(tensors[c].views), client.weight});
    }
    auto globals = globals_like<G>(random, group);
    std::vector<tensor_view<void>> views;
    for (const auto& v : views_of(globals)) views.emplace_back(v);
    support::check_report(subfed::average_cohort<void>(group.net, updates, views, options), report);
    check_means(globals, expected);

    globals = globals_like<G>(random, group);
    support::check_report(
        subfed::average_cohort<G, void>(group.net, updates, views_of(globals), options), report);
    check_means(globals, expected);

    globals = globals_like<G>(random, group);
    views.clear();
    for (const auto& v : views_of(globals)) views.emplace_back(v);
    subfed::selective_average<void> one(group.net, options), other(group.net, options);
    for (std::size_t u = 0; u < updates.size(); ++u) {
      (u % 2 == 0 ? one : other).add(updates[u].sub, updates[u].tensors, updates[u].weight);
    }
    other.merge(one);
    support::check_report(other.finish(views), report);
    check_means(globals, expected);
  }
}

TEST_CASE("half updates into a float model, alone and beside float updates") {
  subfed::model net;
  net.tensor("x", {2});
  const auto full = submodel::full(net);
  const std::vector<half> a{half(3), half(5)};
  const std::vector<float> b{5, 7};
  const tensor_view<const half> halves(a.data(), {2});
  const tensor_view<const float> floats(b.data(), {2});
  std::vector<float> global{1, 2};
  const tensor_views<float> globals{tensor_view<float>(global.data(), {2})};
  const std::vector<update<half>> alone{{full, {halves}}};
  subfed::average_cohort<float>(net, std::span<const update<half>>(alone), globals);
  CHECK(global == std::vector<float>{3, 5});
  const std::vector<update<void>> both{{full, {halves}}, {full, {floats}}};
  subfed::average_cohort<float, void>(net, both, globals);
  CHECK(global == std::vector<float>{4, 6});
  subfed::selective_average<float> mean(net);
  mean.add(full, tensor_views<const half>{halves});
  mean.add(full, {floats});
  mean.add(full, tensor_views<const void>{halves}, 2);
  mean.finish(globals);
  CHECK(global == std::vector<float>{3.5, 5.5});
}

TEST_CASE("another library's half goes with all types, on either side") {
  subfed::model net;
  net.tensor("x", {1});
  const auto full = submodel::full(net);
  const foreign_half three{half(3).bits};
  const float four = 4;
  const tensor_view<const foreign_half> foreign(&three, {1});
  const tensor_view<const float> own(&four, {1});
  float global = 0;
  const std::vector<update<foreign_half>> of_foreign{{full, {foreign}}};
  subfed::average_cohort<float, foreign_half>(net, of_foreign, {tensor_view<float>(&global, {1})});
  CHECK(global == 3);
  foreign_half written{};
  const tensor_views<foreign_half> writes{tensor_view<foreign_half>(&written, {1})};
  const std::vector<update<void>> mixed{{full, {own}}, {full, {foreign}}};
  subfed::average_cohort<foreign_half, void>(net, mixed, writes);
  CHECK(written.bits == half(3.5).bits);
  // The half that is seen at run time is the library's own, though the bytes are alike.
  const std::vector<update<void>> alike{{full, {foreign}}};
  subfed::average_cohort<foreign_half, void>(net, alike, writes);
  CHECK(written.bits == half(3).bits);
}

TEST_CASE("elements are loaded exactly and the mean is rounded once") {
  subfed::model net;
  net.tensor("x", {1});
  const auto full = submodel::full(net);
  // Just above the middle of two bfloat16; as a float it would be the middle, and round to even.
  const double above = 1 + 0x1p-8 + 0x1p-30;
  const std::vector<update<double>> updates{{full, {tensor_view<const double>(&above, {1})}}};
  bfloat16 brain;
  subfed::average_cohort<bfloat16, double>(net, updates, {tensor_view<bfloat16>(&brain, {1})});
  CHECK(brain.bits == 0x3F81);
  // A double that no float holds: loaded through float it would be 2^24.
  const double large = 16777217;
  const double one = 1;
  const std::vector<update<double>> pair{{full, {tensor_view<const double>(&large, {1})}, 3},
                                         {full, {tensor_view<const double>(&one, {1})}, 1}};
  float global = 0;
  subfed::average_cohort<float, double>(net, pair, {tensor_view<float>(&global, {1})});
  CHECK(global == 12582913.0f);
}

TEST_CASE("integers are of one type, and never numbers that are averaged") {
  subfed::model net;
  net.tensor("x", {1});
  const auto full = submodel::full(net);
  const std::int64_t wide = 1;
  const std::int32_t narrow = 1;
  const float number = 1;
  const tensor_views<const void> wides{tensor_view<const std::int64_t>(&wide, {1})};
  const tensor_views<const void> narrows{tensor_view<const std::int32_t>(&narrow, {1})};
  const tensor_views<const void> numbers{tensor_view<const float>(&number, {1})};
  float f = 5;
  std::int64_t i = 5;
  const tensor_views<void> floats{tensor_view<float>(&f, {1})};
  const tensor_views<void> integers{tensor_view<std::int64_t>(&i, {1})};
  const auto average = [&](const tensor_views<const void>& from, const tensor_views<void>& to) {
    return message_of([&] {
      subfed::average_cohort<void>(net, std::vector<update<void>>{{full, from}}, to,
                                   {.integers = subfed::integer_rule::max});
    });
  };
  const std::string begin = "subfed: average: the local tensor 'x' has elements of type ";
  CHECK(average(wides, floats) == begin + "int64, expected float as in the global one");
  CHECK(average(narrows, integers) == begin + "int32, expected int64 as in the global one");
  CHECK(average(numbers, integers) == begin + "float, expected int64 as in the global one");
  CHECK(message_of([&] {
          subfed::average_cohort<float, void>(net, std::vector<update<void>>{{full, wides}},
                                              {tensor_view<float>(&f, {1})});
        }) == begin + "int64, expected float as in the global one");
  subfed::selective_average<float> mean(net);
  CHECK(message_of([&] { mean.add(full, wides); }) ==
        "subfed: average: tensor 'x' has elements of type int64, expected floating-point numbers");
  subfed::selective_average<void> any(net);
  any.add(full, numbers);
  CHECK(message_of([&] { any.add(full, wides); }) ==
        "subfed: average: tensor 'x' has elements of type int64, expected float as in earlier "
        "updates");
  CHECK(f == 5);
  CHECK(i == 5);
}

TEST_CASE("values that are not finite are found in updates of another type") {
  subfed::model net;
  net.tensor("x", {2});
  const auto full = submodel::full(net);
  const std::vector<half> bad{half(1), half(std::numeric_limits<double>::infinity())};
  const std::vector<update<half>> updates{{full, {tensor_view<const half>(bad.data(), {2})}}};
  std::vector<float> global{7, 8};
  const auto run = [&](subfed::non_finite policy) {
    average_options options;
    options.on_non_finite = policy;
    return subfed::average_cohort<float, half>(net, updates,
                                               {tensor_view<float>(global.data(), {2})}, options);
  };
  CHECK(message_of([&] { run(subfed::non_finite::refuse); }) ==
        "subfed: average: client 0 of round 0 has a value that is not finite in tensor 'x', at "
        "global element (1,)");
  CHECK(run(subfed::non_finite::skip_client).skipped_clients == 1);
  CHECK(global == std::vector<float>{7, 8});
  CHECK(run(subfed::non_finite::skip_element).skipped_elements == 1);
  CHECK(global == std::vector<float>{1, 8});
  run(subfed::non_finite::propagate);
  CHECK(std::isinf(global[1]));
}

TEST_CASE("results too large for the global tensor's type are counted, and refused under refuse") {
  subfed::model net;
  net.tensor("y", {1});
  net.tensor("x", {3});
  const auto full = submodel::full(net);
  const float zero = 0;
  const std::vector<float> large{1, 70000, -1e30f};
  const std::vector<update<float>> updates{
      {full, {tensor_view<const float>(&zero, {1}), tensor_view<const float>(large.data(), {3})}}};
  std::vector<half> y{half(9)}, x{half(7), half(8), half(9)};
  const tensor_views<half> globals{tensor_view<half>(y.data(), {1}),
                                   tensor_view<half>(x.data(), {3})};
  average_options refuse;
  refuse.on_non_finite = subfed::non_finite::refuse;
  subfed::selective_average<half> careful(net, refuse), mean(net);
  careful.add(full, updates[0].tensors);
  mean.add(full, updates[0].tensors);
  const std::string message =
      "subfed: average: the average of tensor 'x' at global element (1,) is too large for the "
      "tensor's type";
  CHECK(message_of([&] { subfed::average_cohort<half, float>(net, updates, globals, refuse); }) ==
        message);
  CHECK(message_of([&] { careful.finish(globals); }) == message);
  CHECK(y[0] == half(9));
  CHECK(x == std::vector<half>{half(7), half(8), half(9)});
  const average_report expected{.clients = 1, .held = 4, .overflowed = 2};
  support::check_report(subfed::average_cohort<half, float>(net, updates, globals), expected);
  CHECK(x[0] == half(1));
  CHECK(x[1].bits == 0x7C00);
  CHECK(x[2].bits == 0xFC00);
  support::check_report(mean.finish(globals), expected);
}

TEST_CASE("deltas and steps may take a value over the largest of its type") {
  subfed::model net;
  net.tensor("x", {2});
  const auto full = submodel::full(net);
  average_options options;
  options.content = subfed::content::deltas;
  const auto run = [&]<class T>(T old, T delta, average_options with) {
    const std::vector<T> deltas{delta, T(1)};
    const std::vector<update<T>> updates{{full, {tensor_view<const T>(deltas.data(), {2})}}};
    std::vector<T> global{old, T(1)};
    return std::pair(
        subfed::average_cohort<T>(net, updates, {tensor_view<T>(global.data(), {2})}, with)
            .overflowed,
        global);
  };
  CHECK(run(3e38f, 3e38f, options).first == 1);
  CHECK(run(3e38f, 3e38f, options).second[1] == 2);
  CHECK(run(1e308, 1e308, options).first == 1);
  CHECK(run(half(60000), half(60000), options).first == 1);
  CHECK(run(half(60000), half(-60000), options).first == 0);
  options.on_non_finite = subfed::non_finite::refuse;
  CHECK(message_of([&] { run(1e308, 1e308, options); }).find("too large for the tensor's type") !=
        std::string::npos);
  // The way there may be over it: 1.7e308 + 0.5 (-1.7e308 - 1.7e308).
  options.content = subfed::content::parameters;
  options.step = 0.5;
  const auto halfway = run(1.7e308, -1.7e308, options);
  CHECK(halfway.first == 0);
  CHECK(halfway.second[0] == 0);
}
