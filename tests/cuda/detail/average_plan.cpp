// SPDX-License-Identifier: MIT
#include <subfed/cuda/detail/average_plan.hpp>

#include <cuda/alignments.hpp>
#include <cuda/emulation.hpp>
#include <support/average_properties.hpp>
#include <support/far_memory.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace kernels = subfed::cuda::detail;
using emulation::order;
using subfed::average_options;
using subfed::average_report;
using subfed::tensor_view;
using subfed::tensor_views;
using support::seeded;

namespace {

/// The average by all threads of the launch; wide counts the jobs with wide packs.
template <class T>
average_report by_threads(const subfed::model& net, const std::vector<subfed::update<T>>& updates,
                          const std::vector<subfed::tensor_view<T>>& globals,
                          const average_options& options, order by, std::int64_t& wide) {
  average_report report;
  std::vector<kernels::member<T>> parts;
  double cohort_weight = 0;
  for (const auto& u : updates) {
    ++report.clients;
    cohort_weight += u.weight;
    if (u.weight > 0) parts.push_back({&u.sub, u.weight, &u.tensors});
  }
  using E = kernels::kernel_element_t<T>;
  const kernels::average_plan<E> plan(net, tensor_views<T>(globals),
                                      std::span<const kernels::member<T>>(parts), nullptr,
                                      kernels::rule_of(options, cohort_weight, report.clients));
  wide += emulation::wide_jobs<kernels::average_job>(plan.bytes(), plan.call().jobs, plan.jobs());
  const auto counts = emulation::launch<E>(plan.call(), plan.bytes(), by);
  report.held = counts.held;
  report.unheld = plan.elements() - counts.held;
  report.skipped_elements = counts.skipped;
  return report;
}

const auto forwards = [](const auto& net, const auto& updates, const auto& globals,
                         const average_options& options) {
  std::int64_t wide = 0;
  return by_threads(net, updates, globals, options, order::forwards, wide);
};

/// Options that a launch can have: those that look at whole updates first are not among them.
average_options options_number(std::uint64_t n) {
  average_options out = support::options_number(n);
  if (out.on_non_finite == subfed::non_finite::skip_client ||
      out.on_non_finite == subfed::non_finite::refuse) {
    out.on_non_finite = subfed::non_finite::propagate;
  }
  return out;
}

}  // namespace

TEST_CASE("every thread of an average together gives what the dense loop gives") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    average_options options = options_number(seed);
    if (seed % 2 == 0) options = {};
    support::check_against_oracle<float>(seed, options, forwards);
  }
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    support::check_against_oracle<float>(300 + seed, {}, forwards, {support::large_network, 9});
  }
}

TEST_CASE_TEMPLATE("the bits are those of average_cohort, in any order of the threads", T, float,
                   subfed::half) {
  std::int64_t wide = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    INFO("seed ", seed);
    seeded random(9000 + seed);
    const auto value = [](seeded& r) {
      return T((r.unit() - 0.5) * std::ldexp(1.0, static_cast<int>(r.between(-14, 14))));
    };
    const auto weight = [](seeded& r) { return r.one_in(7) ? 0.0 : r.unit() + 0.01; };
    const bool large = seed % 5 == 4;
    support::cohort<T> group{
        random, large ? support::large_network(random) : support::random_network(random),
        random.between(1, 9), value, weight};
    const average_options options = seed % 3 == 0 ? average_options{} : options_number(seed);
    const auto before = group.elements();
    const average_report expected_report =
        support::at_once(group.net, group.updates(), group.global_views(), options);
    const auto expected = group.elements();
    for (const order by : {order::forwards, order::backwards}) {
      for (std::size_t t = 0; t < before.size(); ++t) {
        group.globals[t].fill(
            [&](std::int64_t n) { return before[t][static_cast<std::size_t>(n)]; });
      }
      support::check_report(
          by_threads(group.net, group.updates(), group.global_views(), options, by, wide),
          expected_report);
      for (std::size_t t = 0; t < expected.size(); ++t) {
        CHECK(support::same_bits(group.globals[t].elements(), expected[t]));
      }
      CHECK(group.rest_untouched());
    }
  }
}

TEST_CASE("the -0 of a single holder stays") {
  subfed::model net;
  net.tensor("x", {7});
  const std::vector<float> x(7, -0.0f);
  std::vector<float> global(7, 1);
  const std::vector<subfed::update<float>> updates{
      {subfed::submodel::full(net), {tensor_view<const float>(x.data(), {7})}, 0.7}};
  forwards(net, updates, std::vector<tensor_view<float>>{tensor_view<float>(global.data(), {7})},
           average_options());
  for (const float value : global) CHECK(std::signbit(value));
}

TEST_CASE("an old value that is no number goes where no client of the cohort stands for it") {
  subfed::model net;
  net.tensor("x", {net.group("g", 1)});
  const float a = 4;
  const std::vector<subfed::update<float>> updates{
      {subfed::submodel::full(net), {tensor_view<const float>(&a, {1})}, 3}};
  float found = std::numeric_limits<float>::quiet_NaN();
  std::int64_t wide = 0;
  by_threads<float>(net, updates, {tensor_view<float>(&found, {1})},
                    {.divide_by = subfed::divisor::cohort}, order::forwards, wide);
  CHECK(found == 4);
}

TEST_CASE("wide packs give the same bits, and are used where all tensors are aligned") {
  using T = subfed::half;
  subfed::model net;
  const auto rows = net.group("rows", 6);
  const auto columns = net.group("columns", 64);
  net.tensor("matrix", {rows, columns});
  net.tensor("kernel", {rows, columns, 3, 3});
  net.tensor("cut twice", {columns, columns});
  net.tensor("whole", {32});
  const auto shapes = [&](const subfed::submodel& sub) {
    std::vector<std::vector<std::int64_t>> out;
    for (std::size_t t = 0; t < 4; ++t) out.push_back(sub.extents(subfed::tensor_id(t)));
    return out;
  };
  struct alignas(16) line {
    T values[4096];
  };
  for (const std::int64_t step : {16, 1}) {
    seeded random(5);
    std::vector<line> memory(4 * 11);
    const auto views = [&](const subfed::submodel& sub, std::size_t slot) {
      std::vector<subfed::tensor_view<T>> out;
      for (std::size_t t = 0; t < 4; ++t) {
        out.emplace_back(memory[4 * slot + t].values, shapes(sub)[t]);
        for (std::int64_t i = 0; i < out[t].size(); ++i) {
          out[t].data_handle()[i] = T(random.unit() - 0.5);
        }
      }
      return out;
    };
    const auto globals = views(subfed::submodel::full(net), 0);
    std::vector<subfed::update<T>> updates;
    for (std::uint64_t c = 0; c < 9; ++c) {
      const auto columns_set = subfed::index_set::window(
          64, step * random.between(0, 64 / step - 1), step * random.between(1, 64 / step));
      const subfed::submodel sub(net, {support::random_set(random, 6), columns_set}, {.client = c});
      updates.push_back({sub, tensor_views<const T>(views(sub, c + 1)), random.unit()});
    }
    const std::vector<line> before = memory;
    support::at_once(net, updates, globals, {});
    const std::vector<line> expected = memory;
    memory = before;
    std::int64_t wide = 0;
    by_threads(net, updates, globals, {}, order::backwards, wide);
    CHECK(wide == (step == 16 ? 4 : 1));
    for (std::size_t i = 0; i < memory.size(); ++i) {
      REQUIRE(std::equal(memory[i].values, memory[i].values + 4096, expected[i].values));
    }
  }
}

TEST_CASE("where runs or tensors are not aligned no average is lost and no pack is misaligned") {
  // Client 0 has the first half of the nodes, client 1 the form's; weights 1 and 2. All sums are exact.
  subfed::model net;
  const auto nodes = net.group("nodes", alignments::extent);
  net.tensor("x", {alignments::rows, nodes});
  constexpr std::int64_t half = alignments::extent / 2;
  for (const auto policy : {subfed::non_finite::propagate, subfed::non_finite::skip_element}) {
    for (const auto& f : alignments::all()) {
      const bool skips = policy == subfed::non_finite::skip_element;
      INFO((skips ? "skip_element, " : "propagate, "), f.text());
      alignments::floats global(alignments::rows * f.global_stride + 4, -1, 0);
      alignments::floats first(alignments::rows * half), second(160, 5000, 3);
      float* const theirs = second.data() + f.local_at;
      if (skips) theirs[0] = std::numeric_limits<float>::quiet_NaN();
      std::vector<float> expected = global.elements();
      average_report report{.clients = 2, .skipped_elements = skips ? 1 : 0};
      for (std::int64_t r = 0; r < alignments::rows; ++r) {
        for (std::int64_t n = 0; n < alignments::extent; ++n) {
          double sum = 0, weight = 0;
          if (n < half) {
            sum = static_cast<double>(first.data()[r * half + n]);
            weight = 1;
          }
          if (f.takes_part(n)) {
            const std::int64_t p = std::find(f.held.begin(), f.held.end(), n) - f.held.begin();
            const auto value = static_cast<double>(theirs[r * f.local_stride + p]);
            if (std::isfinite(value)) {
              sum += 2 * value;
              weight += 2;
            }
          }
          (weight > 0 ? report.held : report.unheld) += 1;
          if (weight > 0) {
            expected[static_cast<std::size_t>(f.global_at + r * f.global_stride + n)] =
                static_cast<float>(sum / weight);
          }
        }
      }
      const std::vector<subfed::update<float>> updates{
          {subfed::submodel(net, {subfed::index_set::window(alignments::extent, 0, half)}),
           {tensor_view<const float>(first.data(), {alignments::rows, half})},
           1},
          {f.of(net, nodes, {.client = 1}),
           {tensor_view<const float>(theirs, {alignments::rows, f.size()}, {f.local_stride, 1})},
           2}};
      std::int64_t wide = 0;
      const auto found = by_threads<float>(
          net, updates,
          {tensor_view<float>(global.data() + f.global_at, {alignments::rows, alignments::extent},
                              {f.global_stride, 1})},
          {.on_non_finite = policy}, order::forwards, wide);
      CHECK(wide == (f.is_aligned && !skips ? 1 : 0));
      CHECK(global.elements() == expected);
      support::check_report(found, report);
    }
  }
}

TEST_CASE("clients are added in the order in which they are given") {
  subfed::model net;
  net.tensor("x", {1});
  const std::vector<float> values{1e20f, -1e20f, 3};  // any other order loses the 3
  float global = 0;
  std::vector<subfed::update<float>> updates;
  for (const float& v : values) {
    updates.push_back({subfed::submodel::full(net), {tensor_view<const float>(&v, {1})}, 1});
  }
  std::int64_t wide = 0;
  by_threads<float>(net, updates, {tensor_view<float>(&global, {1})}, {}, order::forwards, wide);
  CHECK(global == 1);
}

TEST_CASE("sums are row-major whatever the layout of the global tensor") {
  subfed::model net;
  net.tensor("x", {4, 8});
  const auto whole = subfed::submodel::full(net);
  const std::vector<kernels::member<float>> parts{{&whole, 1, nullptr}};
  std::vector<double> sums(32);
  for (std::size_t i = 0; i < 32; ++i) sums[i] = static_cast<double>(i);
  alignments::floats global(32, -1, 0);
  const kernels::average_plan<float> plan(
      net, tensor_views<float>{tensor_view<float>(global.data(), {4, 8}, {1, 4})},
      std::span<const kernels::member<float>>(parts), sums.data(), kernels::rule_of({}, 1, 1));
  emulation::launch<float>(plan.call(), plan.bytes(), order::forwards);
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 8; ++c) CHECK(global.data()[r + 4 * c] == static_cast<float>(8 * r + c));
  }
}

TEST_CASE("elements more than 2^31 apart are averaged") {
  constexpr std::int64_t apart = (std::int64_t{1} << 31) + 64;
  const support::far_memory memory(static_cast<std::uint64_t>(4 * apart) * sizeof(float));
  if (memory.data() == nullptr) return;
  float* const global = reinterpret_cast<float*>(memory.data());
  float* const local = global + 2 * apart;
  subfed::model net;
  const auto nodes = net.group("nodes", 4);
  net.tensor("x", {2, nodes});
  local[apart] = 5;
  local[apart + 1] = 6;
  global[apart] = 7;
  const std::vector<subfed::update<float>> updates{
      {subfed::submodel(net, {subfed::index_set(4, {3, 1})}),
       {tensor_view<const float>(local, {2, 2}, {apart, 1})},
       2}};
  std::int64_t wide = 0;
  by_threads<float>(net, updates, {tensor_view<float>(global, {2, 4}, {apart, 1})}, {},
                    order::backwards, wide);
  CHECK(global[apart] == 7);
  CHECK(global[apart + 1] == 6);
  CHECK(global[apart + 3] == 5);
}

TEST_CASE("an average of a dimension of 2^31 nodes that is cut in several runs is refused" *
          doctest::skip(!support::has_far_addresses)) {
  constexpr std::int64_t extent = std::int64_t{1} << 31;
  subfed::model net;
  const auto nodes = net.group("nodes", extent);
  net.tensor("far", {nodes});
  float element = 0;  // plans look at no element
  const subfed::submodel sub(net, {subfed::index_set(extent, {0, extent - 1})});
  const tensor_views<const float> local{{&element, {2}}};
  const std::vector<kernels::member<float>> parts{{&sub, 1, &local}};
  CHECK_THROWS_WITH_AS(
      kernels::average_plan<float>(net, tensor_views<float>{{&element, {extent}}},
                                   std::span<const kernels::member<float>>(parts), nullptr,
                                   kernels::rule_of({}, 1, 1)),
      "subfed: cuda: tensor 'far' has a cut dimension of 2147483648 elements, expected at most "
      "2^31 - 1",
      subfed::error);
}

TEST_CASE("adding one client after the other and finishing gives the bits of selective_average") {
  using T = float;
  using E = kernels::kernel_element_t<T>;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed ", seed);
    seeded random(7000 + seed);
    const auto value = [](seeded& r) { return T((r.unit() - 0.5) * 3.0); };
    const auto weight = [](seeded& r) { return r.unit() + 0.01; };
    support::cohort<T> group{random, support::random_network(random), 5, value, weight};
    average_options options = options_number(seed);
    options.on_non_finite = subfed::non_finite::propagate;
    const auto before = group.elements();

    std::vector<double> sums(static_cast<std::size_t>(group.net.size()) + 1, 0.0);
    std::vector<subfed::tensor_view<double>> sum_views;
    std::int64_t at = 0;
    for (const auto& t : group.net.tensors()) {
      sum_views.emplace_back(sums.data() + at, t.extents);
      at += sum_views.back().size();
    }
    std::vector<kernels::member<T>> parts;
    double cohort_weight = 0;
    for (const auto& c : group.clients) {
      kernels::copy_plan<kernels::direction::scatter, E, double> plan(group.net);
      plan.add(c.sub, tensor_views<double>(sum_views), tensor_views<const T>(c.views()), c.weight);
      const auto call = plan.finish();
      emulation::launch<E, double>(call, plan.bytes(), kernels::accumulate{}, order::backwards);
      cohort_weight += c.weight;
      const auto known = std::find_if(parts.begin(), parts.end(),
                                      [&](const auto& p) { return p.sub->same_nodes(c.sub); });
      if (known == parts.end()) {
        parts.push_back({&c.sub, c.weight, nullptr});
      } else {
        known->weight += c.weight;
      }
    }
    const kernels::average_plan<E> plan(
        group.net, tensor_views<T>(group.global_views()),
        std::span<const kernels::member<T>>(parts), sums.data(),
        kernels::rule_of(options, cohort_weight, static_cast<std::int64_t>(group.clients.size())));
    emulation::launch<E>(plan.call(), plan.bytes(), order::forwards);
    const auto found = group.elements();
    for (std::size_t t = 0; t < before.size(); ++t) {
      group.globals[t].fill([&](std::int64_t n) { return before[t][static_cast<std::size_t>(n)]; });
    }
    support::streamed(group.net, group.updates(), group.global_views(), options);
    for (std::size_t t = 0; t < found.size(); ++t) {
      CHECK(support::same_bits(found[t], group.globals[t].elements()));
    }
  }
}

TEST_CASE(
    "a launch leaves local tensors and counters alone, with and without sums of earlier updates") {
  for (const auto is : {subfed::role::local, subfed::role::counter}) {
    subfed::model net;
    const auto g = net.group("g", 4);
    net.tensor("own", {g, 3}, is);
    net.tensor("w", {g});
    const subfed::submodel all = subfed::submodel::full(net);
    const std::vector<float> given{1, 2, 3, 4};
    const std::vector<double> sums{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1, 2, 3, 4};
    for (const bool one_pass : {true, false}) {
      std::vector<float> own(12, 7.0f), w(4, 0.0f);
      const tensor_views<float> globals{tensor_view<float>(own.data(), {4, 3}),
                                        tensor_view<float>(w.data(), {4})};
      const tensor_views<const float> sent{tensor_view<const float>(nullptr, {0}),
                                           tensor_view<const float>(given.data(), {4})};
      const std::vector<kernels::member<float>> parts{{&all, 1, one_pass ? &sent : nullptr}};
      const kernels::average_plan<float> plan(
          net, globals, std::span<const kernels::member<float>>(parts),
          one_pass ? nullptr : sums.data(), kernels::rule_of({}, 1, 1));
      CHECK(plan.elements() == 4);
      const auto counts = emulation::launch<float>(plan.call(), plan.bytes(), order::forwards);
      CHECK(counts.held == 4);
      CHECK(w == given);
      CHECK(own == std::vector<float>(12, 7.0f));
    }
  }
}

TEST_CASE("weights that are added in another order make no client absent on a device either") {
  const double total = 0.1 + 0.1 + 0.4;
  const double held = 0.1 + 0.4 + 0.1;
  REQUIRE(held != total);
  average_options options{.divide_by = subfed::divisor::cohort};
  const auto rule = kernels::rule_of(options, total, 3);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(kernels::combined(rule, 3, held, nan) == doctest::Approx(5));
  CHECK(std::isnan(kernels::combined(rule, 3, 0.5, nan)));
}
