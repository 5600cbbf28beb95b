// SPDX-License-Identifier: MIT
/// The results of the library in a page of hashes, one an area: `subfed_results results.txt` computes
/// them and compares them with those in the file, which were computed elsewhere. What is to be equal
/// to the bit everywhere is a hash; what goes through the C library's exp and log is a number.
///
///   subfed_results                 prints what results.txt is to contain
///   subfed_results results.txt     prints each area that differs; the status is how many, or 0
///   subfed_results results.txt --but average,streaming    leaves areas out
#include <subfed/adapt/npy.hpp>
#include <subfed/adapt/safetensors.hpp>
#include <subfed/adapt/span.hpp>
#include <subfed/coverage.hpp>
#include <subfed/subfed.hpp>
#include <subfed/systems.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

/// FNV-1a over the bytes of what is added, little-endian whatever the machine is.
class digest {
 public:
  void number(std::uint64_t x) {
    for (int i = 0; i < 8; ++i) byte(x >> (8 * i) & 0xFF);
  }
  void number(std::int64_t x) { number(static_cast<std::uint64_t>(x)); }
  void bits(double x) { number(std::bit_cast<std::uint64_t>(x)); }
  void bits(float x) { number(std::uint64_t{std::bit_cast<std::uint32_t>(x)}); }
  void bits(subfed::half x) { number(std::uint64_t{x.bits}); }
  void bits(subfed::bfloat16 x) { number(std::uint64_t{x.bits}); }
  void bits(std::int64_t x) { number(x); }
  template <class T>
  void all(const std::vector<T>& values) {
    number(static_cast<std::uint64_t>(values.size()));
    for (const T& x : values) bits(x);
  }
  void text(std::string_view s) {
    number(static_cast<std::uint64_t>(s.size()));
    for (const char c : s) byte(static_cast<unsigned char>(c));
  }
  void set(const subfed::index_set& s) {
    number(s.extent());
    number(s.size());
    for (const std::int64_t node : s) number(node);
  }
  std::string value() const {
    char out[20];
    std::snprintf(out, sizeof out, "%08lx%08lx", static_cast<unsigned long>(hash_ >> 32),
                  static_cast<unsigned long>(hash_ & 0xFFFFFFFFu));
    return out;
  }

 private:
  void byte(std::uint64_t b) { hash_ = (hash_ ^ b) * 0x100000001B3u; }
  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

/// SplitMix64, which shares nothing with the library's own streams.
struct numbers {
  std::uint64_t state;

  std::uint64_t word() {
    std::uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// In [0, 1), with all 53 bits; the product is exact.
  double unit() { return static_cast<double>(word() >> 11) * 0x1.0p-53; }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(word() % static_cast<std::uint64_t>(n));
  }
  /// In [low, low + width), rounded twice.
  double within(double low, double width) {
    volatile double part = width * unit();
    return low + part;
  }
  /// In [-1, 1): multiples of 2^-52.
  double value() {
    return static_cast<double>(static_cast<std::int64_t>(word()) >> 11) * 0x1.0p-52;
  }
  template <class T>
  std::vector<T> values(std::int64_t n) {
    std::vector<T> out(static_cast<std::size_t>(n));
    for (T& x : out) x = static_cast<T>(value());
    return out;
  }
};

/// Two groups, tied over four tensors: rows, a convolution with both groups, gates, a vector.
struct world {
  subfed::model net;
  subfed::group_id a = net.group("a", 60);
  subfed::group_id b = net.group("b", 24);
  std::vector<subfed::tensor_id> tensors = {
      net.tensor("rows", {a, 41}), net.tensor("conv", {b, a, 3, 3}),
      net.tensor("gates", {b.repeat(4), a}), net.tensor("bias", {b})};
};

template <class T>
struct arrays {
  std::vector<std::vector<T>> data;
  std::vector<std::vector<std::int64_t>> extents;

  arrays(const subfed::submodel& sub, numbers& random) {
    for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
      extents.push_back(sub.extents(subfed::tensor_id(t)));
      std::int64_t n = 1;
      for (const std::int64_t e : extents.back()) n *= e;
      data.push_back(random.values<T>(n));
    }
  }
  subfed::tensor_views<const T> views() const {
    std::vector<subfed::tensor_view<const T>> out;
    for (std::size_t t = 0; t < data.size(); ++t) {
      out.emplace_back(data[t].data(), std::span<const std::int64_t>(extents[t]));
    }
    return subfed::tensor_views<const T>(out);
  }
  subfed::tensor_views<T> views() {
    std::vector<subfed::tensor_view<T>> out;
    for (std::size_t t = 0; t < data.size(); ++t) {
      out.emplace_back(data[t].data(), std::span<const std::int64_t>(extents[t]));
    }
    return subfed::tensor_views<T>(out);
  }
  void enter(digest& into) const {
    for (const auto& d : data) into.all(d);
  }
};

subfed::submodel drawn(const world& w, std::size_t kind, std::uint64_t client,
                       std::uint64_t round) {
  const subfed::draw_key key{
      .seed = 11,
      .round = round,
      .client = client,
      .capacity = subfed::capacity::ratio(static_cast<std::int64_t>(client % 4) + 1, 4)};
  if (kind == 0) return subfed::draw(w.net, subfed::rolling{.client_phase = 2}, key);
  if (kind == 1) return subfed::draw(w.net, subfed::random_subset{}, key);
  return subfed::draw(w.net, subfed::prefix{}, key);
}

template <class T>
struct cohort {
  std::vector<subfed::submodel> subs;
  std::vector<arrays<T>> tensors;
  std::vector<double> weights;

  cohort(const world& w, std::size_t kind, std::uint64_t round, numbers& random) {
    for (std::uint64_t c = 0; c < 7; ++c) {
      subs.push_back(drawn(w, kind, c, round));
      tensors.emplace_back(subs.back(), random);
      weights.push_back(c == 3 ? 1 : 0.01 + random.unit());
    }
  }
  std::vector<subfed::update<T>> updates() const {
    std::vector<subfed::update<T>> out;
    for (std::size_t c = 0; c < subs.size(); ++c) {
      out.push_back({subs[c], std::as_const(tensors[c]).views(), weights[c]});
    }
    return out;
  }
};

std::vector<subfed::average_options> all_options() {
  std::vector<subfed::average_options> out;
  for (const auto divide_by : {subfed::divisor::holders, subfed::divisor::cohort}) {
    for (const auto content : {subfed::content::parameters, subfed::content::deltas}) {
      for (const double step : {1.0, 0.3}) {
        out.push_back({.divide_by = divide_by, .content = content, .step = step});
      }
    }
  }
  out.push_back({.on_non_finite = subfed::non_finite::skip_element});
  return out;
}

template <class T>
void average(digest& one_pass, digest& streaming,
             const std::optional<subfed::fixed_point>& sums = {}) {
  const world w;
  numbers random{17};
  for (std::size_t kind = 0; kind < 3; ++kind) {
    for (subfed::average_options options : all_options()) {
      options.sums = sums;
      const cohort<T> clients(w, kind, 2, random);
      arrays<T> global(subfed::submodel::full(w.net), random);
      arrays<T> again = global;
      subfed::average_cohort<T>(w.net, clients.updates(), global.views(), options);
      global.enter(one_pass);

      subfed::selective_average<T> mean(w.net, options);
      subfed::selective_average<T> shard(w.net, options);
      for (std::size_t c = 0; c < clients.subs.size(); ++c) {
        (c < 4 ? mean : shard).add(clients.subs[c], clients.tensors[c].views(), clients.weights[c]);
      }
      mean.merge(shard);
      mean.finish(again.views());
      again.enter(streaming);
    }
  }
}

void streams(digest& out) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    subfed::random_stream stream(seed * 0x123456789ABCDEFu, seed % 3, seed % 5, "results");
    for (int i = 0; i < 50; ++i) {
      out.number(stream.next_u64());
      out.bits(stream.next_unit());
      out.number(stream.below(1 + (seed * 0x9E3779B97F4A7C15u >> (seed % 60))));
    }
  }
}

/// Shares that are no binary fractions, and products near whole numbers and halves.
void capacities(digest& out) {
  using subfed::rounding;
  numbers random{3};
  for (int i = 0; i < 60000; ++i) {
    const std::int64_t d = 1 + random.below(i % 2 == 0 ? 400 : 100000);
    const std::int64_t n = 1 + random.below(d);
    const double beta = static_cast<double>(n) / static_cast<double>(d);
    const std::int64_t extent = i % 3 == 0 ? d * (1 + random.below(20)) : random.below(1 << 20);
    for (const rounding mode : {rounding::floor, rounding::ceil, rounding::nearest}) {
      out.number(subfed::capacity(beta).of(extent, mode, 0));
      out.number(subfed::capacity(static_cast<float>(beta)).of(extent, mode, 0));
      out.number(subfed::capacity::ratio(n, d).of(extent, mode));
      if (n < d) out.number(subfed::capacity(beta).without(beta / 3).of(extent, mode, 0));
    }
    // Exactly where `slack` ends: one or a few ulps beside a product.
    const double nudged = std::bit_cast<double>(std::bit_cast<std::uint64_t>(beta) - 1 -
                                                static_cast<std::uint64_t>(i % 5));
    out.number(subfed::capacity(nudged).of(d * (i % 100), rounding::floor, 0));
    out.number(subfed::capacity(nudged).of(d * (i % 100) / 2, rounding::nearest, 0));
  }
}

void schemes(digest& out) {
  using subfed::seed_policy;
  numbers random{5};
  for (std::uint64_t i = 0; i < 400; ++i) {
    subfed::draw_request where{.seed = random.word(),
                               .round = i % 2 == 0 ? random.word() : i,
                               .client = i % 3 == 0 ? random.word() : i % 7,
                               .group = i % 2 == 0 ? "layer1.0.conv1" : "h\xC3\xBClle",
                               .extent = 1 + random.below(200),
                               .capacity = random.within(0.001, 0.99)};
    out.set(subfed::rolling{}(where));
    out.set(subfed::rolling::released()(where));
    out.set(subfed::rolling{.window_overlap = random.unit()}(where));
    out.set(subfed::rolling{.step = -3, .phase = 5, .client_phase = 1000003}(where));
    for (const seed_policy& seeds : {seed_policy::per_client_and_round(), seed_policy::per_client(),
                                     seed_policy::pool(5), seed_policy::shared(3)}) {
      out.set(subfed::random_subset{.seeds = seeds, .round_to = subfed::rounding::nearest}(where));
    }
    out.set(subfed::prefix{}(where));
    out.set(subfed::prefix::ordered()(where));
    where.extent = 96;
    where.capacity = subfed::capacity::ratio(1, 1 << (i % 5));
    out.set(subfed::simple_ensemble{.advance = i}(where));
  }
}

/// Sets that follow from sums and products of doubles.
void drawn_widths(digest& out) {
  numbers random{7};
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<subfed::capacity> widths;
    std::vector<double> weights;
    for (int i = 1; i <= 9; ++i) {
      widths.emplace_back(i / 9.0);
      weights.push_back(0.05 + random.unit());
    }
    const subfed::width_distribution by_weight(widths, weights);
    for (std::uint64_t step = 0; step < 40; ++step) {
      out.set(subfed::ordered_dropout{by_weight, subfed::width_for::group, step}(
          {.seed = 3, .client = step % 4, .group = "g", .extent = 90, .capacity = 1.0}));
    }
    // The borders between widths, to the last bit; -ffast-math neither reorders nor inverts these.
    volatile double total = 0;
    for (const double w : weights) total = total + w;
    volatile double before = 0;
    for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
      before = before + weights[i];
      for (int ulps = -3; ulps <= 3; ++ulps) {
        const double u = std::bit_cast<double>(std::bit_cast<std::uint64_t>(before / total) +
                                               static_cast<std::uint64_t>(ulps));
        out.number(static_cast<std::uint64_t>(by_weight.pick(u, 1.0)));
      }
    }
  }
  const world w;
  subfed::keep_probabilities keep(w.net, 1);
  std::vector<double> p(keep.values().size());
  for (double& each : p) each = random.unit();
  keep.assign(p);
  for (std::uint64_t step = 0; step < 20; ++step) {
    const auto sub = subfed::draw(w.net, subfed::sync_dropout{keep, step}, {.seed = 8});
    out.set(sub[w.a]);
    out.set(sub[w.b]);
    for (const double scale : subfed::keep_scale(keep, sub, w.a)) out.bits(scale);
  }
}

/// Who takes part, with which capacity.
void cohorts(digest& out) {
  numbers random{61};
  for (int i = 0; i < 60; ++i) {
    subfed::cohort_options options;
    options.clients = 20 + random.below(3000);
    options.participation =
        (0.5 + static_cast<double>(1 + random.below(9))) / static_cast<double>(options.clients);
    options.dropout = 0.1;
    options.mix.classes.clear();
    for (int c = 1; c <= 7; ++c) {
      options.mix.classes.push_back({subfed::capacity::ratio(c, 7), 0.01 + random.unit()});
    }
    const subfed::cohort_model model(options);
    out.number(model.asked());
    for (std::uint64_t round = 0; round < 3; ++round) {
      for (const subfed::cohort_member& member : model.members(round)) {
        out.number(member.client);
        out.bits(member.capacity.value());
      }
    }
  }
}

template <class T>
void copies(digest& out) {
  const world w;
  numbers random{23};
  for (std::size_t kind = 0; kind < 3; ++kind) {
    for (std::uint64_t client = 0; client < 4; ++client) {
      arrays<T> global(subfed::submodel::full(w.net), random);
      const subfed::submodel sub = drawn(w, kind, client, 5);
      arrays<T> local(sub, random);
      arrays<T> change(sub, random);
      const auto scattered = change.views();
      for (std::size_t t = 0; t < w.tensors.size(); ++t) {
        subfed::scatter<T>(scattered[t], sub[w.tensors[t]], global.views()[t]);
        subfed::slice<T>(global.views()[t], sub[w.tensors[t]], local.views()[t]);
      }
      global.enter(out);
      local.enter(out);
    }
  }
}

void conversions(digest& out) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    subfed::half h;
    h.bits = static_cast<std::uint16_t>(i);
    subfed::bfloat16 b;
    b.bits = static_cast<std::uint16_t>(i);
    // A NaN's payload is the processor's to keep or to quieten.
    const auto wide = static_cast<double>(h), brain = static_cast<double>(b);
    const bool nan = (i & 0x7FFF) > 0x7C00, brain_nan = (i & 0x7FFF) > 0x7F80;
    out.bits(nan ? 0.0 : wide);
    out.bits(brain_nan ? 0.0 : brain);
    if (!nan) out.bits(subfed::half(wide * 1.0009765625));
    if (!brain_nan) out.bits(subfed::bfloat16(brain * 1.00390625));
  }
  numbers random{29};
  for (int i = 0; i < 20000; ++i) {
    // Any exponent but those of infinity and NaN.
    std::uint64_t bits = random.word();
    if ((bits >> 52 & 0x7FF) == 0x7FF) bits ^= std::uint64_t{1} << 62;
    const auto x = std::bit_cast<double>(bits);
    out.bits(subfed::half(x));
    out.bits(subfed::bfloat16(x));
    const double y = random.value() * (i % 2 == 0 ? 1 : 0x1.0p-14);
    out.bits(subfed::half(y));
    out.bits(subfed::bfloat16(y));
  }
}

/// Merged integers of every width, beside a parameter.
void integers(digest& out) {
  for (const auto rule : {subfed::integer_rule::max, subfed::integer_rule::sum}) {
    subfed::model net;
    const auto g = net.group("g", 40);
    net.tensor("count", {g});
    numbers random{31};
    std::vector<subfed::submodel> subs;
    std::vector<std::vector<std::int64_t>> counts;
    std::vector<subfed::update<void>> updates;
    for (std::uint64_t c = 0; c < 5; ++c) {
      subs.push_back(subfed::draw(net, subfed::random_subset{}, {.client = c, .capacity = 0.5}));
      std::vector<std::int64_t> own;
      for (int i = 0; i < 20; ++i) own.push_back(random.below(std::int64_t{1} << 59));
      counts.push_back(own);
    }
    for (std::size_t c = 0; c < subs.size(); ++c) {
      updates.push_back(
          {subs[c], {subfed::tensor_view<const std::int64_t>(counts[c].data(), {20})}, 1.0});
    }
    std::vector<std::int64_t> global(40, 3);
    subfed::average_cohort<void>(
        net, updates, {subfed::tensor_view<std::int64_t>(global.data(), {40})}, {.integers = rule});
    out.all(global);
  }
}

template <class Rule>
void optimise(digest& out, const Rule& rule) {
  const world w;
  numbers random{37};
  arrays<float> global(subfed::submodel::full(w.net), random);
  subfed::server_optimizer<float, Rule> optimizer(w.net, rule);
  for (std::uint64_t round = 0; round < 4; ++round) {
    const cohort<float> clients(w, 1, round, random);
    optimizer.begin(std::as_const(global).views());
    subfed::average_cohort<float>(w.net, clients.updates(), global.views());
    optimizer.finish(subfed::held_elements(w.net, clients.subs), global.views());
    global.enter(out);
    for (const subfed::tensor_id t : w.tensors) {
      for (const double m : optimizer.first_moment(t)) out.bits(m);
      for (const double v : optimizer.second_moment(t)) out.bits(v);
    }
  }
}

void other_systems(digest& out) {
  const world w;
  numbers random{41};
  const subfed::submodel sub = drawn(w, 1, 2, 0);
  const arrays<float> start(sub, random), trained(sub, random), control(sub, random);
  arrays<float> delta(sub, random), gradient(sub, random);
  subfed::control_change<float>(w.net, start.views(), trained.views(), control.views(),
                                {.steps = 7, .lr = 0.03}, delta.views());
  subfed::correct_gradients<float>(w.net, std::as_const(delta).views(), control.views(),
                                   gradient.views());
  subfed::add_proximal<float>(w.net, 0.07, trained.views(), start.views(), gradient.views());
  delta.enter(out);
  gradient.enter(out);
  out.bits(subfed::proximal_term<float>(w.net, 0.07, trained.views(), start.views()));

  subfed::element_weighted_average<float> mean(w.net);
  std::vector<arrays<double>> weights;
  std::vector<arrays<float>> values;
  for (std::uint64_t c = 0; c < 5; ++c) {
    const subfed::submodel own = drawn(w, 0, c, 1);
    weights.emplace_back(own, random);
    for (auto& tensor : weights.back().data) {
      for (double& x : tensor) x = x < 0 ? 0 : x;
    }
    values.emplace_back(own, random);
    mean.add(own, std::as_const(values.back()).views(), std::as_const(weights.back()).views());
  }
  arrays<float> global(subfed::submodel::full(w.net), random);
  mean.finish(global.views());
  global.enter(out);

  subfed::channel_moments moments(7);
  for (int i = 0; i < 4; ++i) {
    const std::vector<float> batch = random.values<float>(5 * 7 * 6);
    moments.add<float>(subfed::tensor_view<const float>(batch.data(), {5, 7, 6}));
  }
  for (const double x : moments.mean()) out.bits(x);
  for (const double x : moments.unbiased_variance()) out.bits(x);

  std::vector<std::vector<float>> outputs;
  std::vector<subfed::tensor_view<const float>> members;
  for (int i = 0; i < 3; ++i) outputs.push_back(random.values<float>(50));
  for (const auto& each : outputs)
    members.emplace_back(each.data(), std::initializer_list<std::int64_t>{50});
  std::vector<float> combined(50);
  subfed::average_outputs<float>(subfed::tensor_views<const float>(members),
                                 subfed::tensor_view<float>(combined.data(), {50}));
  out.all(combined);
}

subfed::workload work_of(const world& w) {
  subfed::workload work(w.net);
  work.convolution({.weight = w.tensors[1], .bias = w.tensors[3]}, 49)
      .linear({.weight = w.tensors[0], .bias = {}})
      .pooling(w.b, 49)
      .normalization(w.b, 49);
  return work;
}

void costs(digest& out) {
  const world w;
  const subfed::workload work = work_of(w);
  for (std::uint64_t c = 0; c < 8; ++c) {
    const subfed::submodel sub = drawn(w, static_cast<std::size_t>(c % 3), c, c);
    out.number(sub.size());
    out.number(subfed::parameters(sub, w.tensors));
    for (const auto lists : {subfed::index_lists::derived, subfed::index_lists::sent_both_ways}) {
      const auto bytes = subfed::traffic(sub, {.lists = lists});
      out.number(bytes.down);
      out.number(bytes.up);
    }
    for (const auto& rule :
         {subfed::cost_rule::multiply_adds(), subfed::cost_rule::rolex(),
          subfed::cost_rule::feddrop_tables(), subfed::cost_rule::feddrop_equations()}) {
      for (const std::int64_t n : work.counts(sub, rule)) out.number(n);
    }
  }
}

/// Expected costs, and the constant probability that meets a budget to the last bit.
void budgets(digest& out) {
  const world w;
  numbers random{43};
  const subfed::expected_flops cost(w.net, work_of(w), subfed::cost_rule::multiply_adds());
  for (int i = 0; i < 40; ++i) {
    subfed::keep_probabilities keep(w.net, 1);
    std::vector<double> p(keep.values().size());
    for (double& each : p) each = random.unit();
    keep.assign(p);
    out.bits(cost(keep));
    for (const double d : cost.gradient(cost.group_sums(keep))) out.bits(d);
    const subfed::flops_budget budget(cost, random.within(0.05, 0.9));
    out.bits(budget.slack({&keep, 1}));
    out.bits(budget.constant_start());
  }
}

struct covered {
  world w;
  subfed::coverage nodes{w.net, 3};
  subfed::parameter_coverage parameters{w.net};
};
covered watched() {
  covered out;
  for (std::uint64_t round = 0; round < 6; ++round) {
    for (std::uint64_t client = 0; client < 5; ++client) {
      const auto sub = drawn(out.w, static_cast<std::size_t>((client + round) % 3), client, round);
      out.nodes.record(sub);
      out.parameters.record(sub);
    }
    out.nodes.end_round();
    out.parameters.end_round();
  }
  return out;
}

void coverages(digest& out) {
  const covered seen = watched();
  const std::string text = subfed::to_text(seen.nodes);
  out.text(text);
  out.text(subfed::to_text(subfed::read_coverage(seen.w.net, text)));
  out.text(subfed::to_text(seen.parameters));
  for (const subfed::group_id g : {seen.w.a, seen.w.b}) {
    const auto summary = seen.nodes.summary(g);
    const auto holders = seen.nodes.holders(g);
    for (const double x : {summary.mean, summary.variance, summary.unseen_share, summary.gini,
                           holders.mean, holders.held_again, holders.shared_by_two}) {
      out.bits(x);
    }
    out.number(summary.first_full_cover.value_or(-1));
  }
}

template <class T>
void write_all(digest& npy, std::vector<subfed::named_view>& named, const std::string& name,
               const std::vector<T>& values) {
  // As it lies, and turned round: gaps and negative strides.
  const subfed::tensor_view<const T> straight(values.data(), {5, 7});
  const subfed::tensor_view<const T> turned(values.data() + 34, {5, 4}, {-7, -2});
  if constexpr (!std::is_same_v<T, subfed::bfloat16>) {
    npy.text(subfed::npy_bytes<std::string>(straight));
    npy.text(subfed::npy_bytes<std::string>(turned));
  }
  named.emplace_back(name, straight);
  named.emplace_back(name + ".turned", turned);
}

void files(digest& npy, digest& safetensors) {
  numbers random{47};
  const auto f64 = random.values<double>(35);
  const auto f32 = random.values<float>(35);
  const auto f16 = random.values<subfed::half>(35);
  const auto bf16 = random.values<subfed::bfloat16>(35);
  std::vector<std::int64_t> i64;
  std::vector<std::uint32_t> u32;
  std::vector<std::int16_t> i16;
  std::vector<std::uint8_t> u8;
  for (int i = 0; i < 35; ++i) {
    i64.push_back(static_cast<std::int64_t>(random.word()));
    u32.push_back(static_cast<std::uint32_t>(random.word()));
    i16.push_back(static_cast<std::int16_t>(random.below(65536) - 32768));
    u8.push_back(static_cast<std::uint8_t>(random.below(256)));
  }
  std::vector<subfed::named_view> named;
  write_all(npy, named, "f64", f64);
  write_all(npy, named, "f32", f32);
  write_all(npy, named, "f16", f16);
  write_all(npy, named, "bf16", bf16);
  write_all(npy, named, "i64", i64);
  write_all(npy, named, "u32", u32);
  write_all(npy, named, "i16", i16);
  write_all(npy, named, "u8", u8);
  const std::vector<subfed::safetensors_view::text_pair> metadata{{"weight", "0.75"}};
  const auto file = subfed::write_safetensors<std::string>(named, metadata);
  safetensors.text(file);

  // Read back, copied where a machine cannot read them in place.
  const subfed::safetensors_view read(file);
  const auto back = [&](const auto& copy) {
    for (std::int64_t i = 0; i < 35; ++i) safetensors.bits(copy.data()[i]);
  };
  back(subfed::aligned_copy<double>(read["f64"]));
  back(subfed::aligned_copy<float>(read["f32"]));
  back(subfed::aligned_copy<subfed::half>(read["f16"]));
  back(subfed::aligned_copy<subfed::bfloat16>(read["bf16"]));
  back(subfed::aligned_copy<std::int64_t>(read["i64"]));
  const auto array =
      subfed::npy_bytes<std::string>(subfed::tensor_view<const double>(f64.data(), {35}));
  const auto own = subfed::aligned_copy<double>(subfed::npy_view(array));
  for (std::int64_t i = 0; i < 35; ++i) npy.bits(own.data()[i]);
}

/// Texts for people and for errors, with numbers in them.
void texts(digest& out) {
  const world w;
  out.text(subfed::describe(w.net));
  numbers random{53};
  for (int i = 0; i < 200; ++i) {
    const double beta = random.within(1, i % 2 == 0 ? 1 : 1e20);
    out.text(subfed::detail::text(beta));
#if SUBFED_EXCEPTIONS
    try {
      static_cast<void>(subfed::capacity(beta));
    } catch (const subfed::error& e) {
      out.text(e.what());
    }
#endif
  }
}

using named_number = std::pair<std::string, double>;

/// What exp, log and pow of the C library are part of.
void numbers_of_libm(std::vector<named_number>& out) {
  const auto put = [&](const std::string& name, double x) { out.emplace_back(name, x); };
  for (const std::int64_t indices : {2, 10, 100, 333}) {
    for (const std::int64_t times : {1, 2, 10}) {
      const auto m = subfed::rounds_until_chosen(indices, times);
      const std::string key = std::to_string(indices) + "." + std::to_string(times);
      put("chosen.mean." + key, m.mean);
      put("chosen.variance." + key, m.variance);
    }
  }
  const subfed::random_round round(60, {6, 6, 6, 30, 30});
  for (const std::int64_t rounds : {1, 5, 40}) {
    put("unseen." + std::to_string(rounds), subfed::unseen_probability(round, rounds));
    const auto counts = subfed::random_counts(round, rounds);
    put("counts.gini." + std::to_string(rounds), counts.gini);
    put("counts.variance." + std::to_string(rounds), counts.variance);
  }
  const auto cover = subfed::first_cover_moments(round);
  put("cover.mean", cover.mean);
  put("cover.variance", cover.variance);
  const covered seen = watched();
  put("entropy", seen.nodes.summary().entropy);

  numbers random{59};
  const world w;
  subfed::keep_probabilities start(w.net, 0.6);
  std::vector<subfed::keep_probabilities> clients(3, start);
  subfed::trajectory_similarity similarity(start.values().size(), clients.size());
  for (std::size_t n = 0; n < start.values().size(); ++n) {
    std::vector<double> x = random.values<double>(3);
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j <= i; ++j) similarity(n, i, j) += 0.3 + x[i] * x[j];
    }
  }
  const subfed::flops_budget budget(
      subfed::expected_flops(w.net, work_of(w), subfed::cost_rule::multiply_adds()), 0.4);
  const auto report = subfed::optimize_keep(similarity, budget, clients, {.iterations = 20});
  put("optimize_keep.objective", report.objective);
  put("optimize_keep.p", clients[1].values()[7]);
}

struct line {
  std::string area;
  std::string value;  ///< a hash, or a number in hexadecimal digits
  bool is_number;
};

std::string number_text(double x) {
  char out[40];
  std::snprintf(out, sizeof out, "%.17g", x);
  return out;
}

std::vector<line> compute() {
  std::vector<line> out;
  const auto area = [&](const std::string& name, auto&& fill) {
    digest d;
    fill(d);
    out.push_back({name, d.value(), false});
  };
  area("streams", streams);
  area("capacities", capacities);
  area("schemes", schemes);
  area("widths", drawn_widths);
  area("cohorts", cohorts);
  area("copies.float", copies<float>);
  area("copies.half", copies<subfed::half>);
  area("copies.double", copies<double>);
  area("conversions", conversions);
  const auto averages = [&](const std::string& name, auto&& fill) {
    digest one_pass, streaming;
    fill(one_pass, streaming);
    out.push_back({"average." + name, one_pass.value(), false});
    out.push_back({"streaming." + name, streaming.value(), false});
  };
  averages("float", [](digest& a, digest& b) { average<float>(a, b); });
  averages("half", [](digest& a, digest& b) { average<subfed::half>(a, b); });
  averages("bfloat16", [](digest& a, digest& b) { average<subfed::bfloat16>(a, b); });
  averages("double", [](digest& a, digest& b) { average<double>(a, b); });
  averages("fixed", [](digest& a, digest& b) {
    const subfed::fixed_point sums{.bound = 1, .clients = 7};
    average<float>(a, b, sums);
    average<double>(a, b, sums);
  });
  area("integers", integers);
  area("optimizer.sgd",
       [](digest& d) { optimise(d, subfed::server_sgd{.lr = 0.7, .momentum = 0.9}); });
  area("optimizer.adagrad", [](digest& d) { optimise(d, subfed::server_adagrad{.beta1 = 0.3}); });
  area("optimizer.adam", [](digest& d) { optimise(d, subfed::server_adam{}); });
  area("optimizer.yogi", [](digest& d) { optimise(d, subfed::server_yogi{}); });
  area("systems", other_systems);
  area("costs", costs);
  area("budgets", budgets);
  area("coverage", coverages);
  digest npy, safetensors;
  files(npy, safetensors);
  out.push_back({"npy", npy.value(), false});
  out.push_back({"safetensors", safetensors.value(), false});
  area("texts", texts);
  std::vector<named_number> by_libm;
  numbers_of_libm(by_libm);
  for (const auto& [name, x] : by_libm) out.push_back({"libm." + name, number_text(x), true});
  return out;
}

bool named(std::string_view list, std::string_view area) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view word = list.substr(0, end);
    if (area == word || (area.starts_with(word) && area.substr(word.size()).starts_with('.'))) {
      return true;
    }
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<line> own = compute();
  if (count < 2) {
    for (const line& l : own) std::printf("%s %s\n", l.area.c_str(), l.value.c_str());
    return 0;
  }
  const std::string_view left_out =
      count == 4 && std::string_view(words[2]) == "--but" ? words[3] : "";
  std::ifstream file(words[1]);
  std::string area, value;
  std::size_t at = 0;
  int wrong = 0, equal = 0, skipped = 0;
  double furthest = 0;
  while (file >> area >> value) {
    const bool here = at < own.size() && own[at].area == area;
    const std::string found = here ? own[at].value : "nothing";
    bool good = found == value;
    if (here && !good && own[at].is_number) {
      // exp and log differ in their last bits between C libraries; the sums that they are part of,
      // in a few more.
      const double expected = std::strtod(value.c_str(), nullptr);
      const double apart = std::fabs(std::strtod(found.c_str(), nullptr) - expected);
      furthest = std::max(furthest, apart / std::fabs(expected));
      good = apart <= 1e-9 * std::fabs(expected);
    }
    ++at;
    if (named(left_out, area)) {
      ++skipped;
    } else if (good) {
      ++equal;
    } else {
      ++wrong;
      std::printf("differs: %s is %s, expected %s\n", area.c_str(), found.c_str(), value.c_str());
    }
  }
  if (at != own.size()) {
    ++wrong;
    std::printf("differs: %s has %zu areas, expected %zu\n", words[1], at, own.size());
  }
  std::printf("%d areas equal, %d differ, %d left out; libm apart by %.2g at most\n", equal, wrong,
              skipped, furthest);
  return wrong;
}
