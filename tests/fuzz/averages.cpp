// SPDX-License-Identifier: MIT
/// Random cohorts, from a seed and choices in the bytes, through all forms of the average: in one
/// pass in two orders and by two executors, untyped, one update at a time, in merged parts; all but
/// the first with instructions that are drawn. All of them against the dumb loop, and against each
/// other where bits are promised.
#include <fuzz/fuzz.hpp>
#include <oracle.hpp>
#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/scalar.hpp>
#include <support/cohorts.hpp>
#include <support/executors.hpp>
#include <support/other_instructions.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace {

using support::seeded;
using support::strided;

/// What is drawn: whole numbers whose weighted sums are exact, numbers of middling size, or any.
enum class numbers { exact, middling, any };

template <class T>
constexpr double largest() {
  if constexpr (std::is_floating_point_v<T>) return (std::numeric_limits<T>::max)();
  return std::is_same_v<T, subfed::half> ? 65504.0 : 0x1.FEp127;
}
template <class T>
constexpr double epsilon() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::epsilon();
  return std::is_same_v<T, subfed::half> ? 0x1p-10 : 0x1p-7;
}
template <class T>
constexpr double smallest() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::denorm_min();
  return std::is_same_v<T, subfed::half> ? 0x1p-24 : 0x1p-133;
}

/// A number that X has.
template <class X>
double any_value(seeded& random, numbers drawn) {
  if (drawn == numbers::exact) return static_cast<double>(random.between(-8, 8));
  const double middling = static_cast<double>(random.between(-999, 999)) / 64;
  if (drawn == numbers::middling) return static_cast<double>(X(static_cast<float>(middling)));
  const double sign = random.one_in(2) ? 1 : -1;
  switch (random.between(0, 5)) {
    case 0:
      return sign * largest<X>();
    case 1:
      return sign * smallest<X>();
    case 2:
      return sign * 0.0;
    case 3:
      return sign * static_cast<double>(random.between(1, 8));
    default: {
      const std::uint64_t bits = random.next();
      X x{};
      std::memcpy(static_cast<void*>(&x), &bits, sizeof x);
      return static_cast<double>(x);
    }
  }
}

double any_weight(seeded& random, numbers drawn) {
  if (drawn == numbers::exact) return support::dyadic_weight(random);
  if (drawn == numbers::middling) return random.one_in(8) ? 0 : 1000 * random.unit();
  static constexpr double choices[] = {0, 1, 5e-324, 1e-300, 1e300, 1e308, 0x1p-149, 3};
  return random.one_in(3) ? random.unit() : choices[random.between(0, 7)];
}

template <class X>
strided<X> typed(const strided<double>& from) {
  strided<X> out(from.where());
  const std::vector<double> values = from.elements();
  return out.fill([&](std::int64_t n) {
    const double x = values[static_cast<std::size_t>(n)];
    if constexpr (std::is_same_v<X, float>) return static_cast<float>(x);
    return X(x);
  });
}

template <class T>
struct outcome {
  bool refused = false;
  subfed::average_report report = {};
  std::vector<std::vector<T>> elements = {};

  bool same(const outcome& other) const {
    if (refused != other.refused || elements.size() != other.elements.size()) return false;
    for (std::size_t t = 0; t < elements.size(); ++t) {
      if (!support::same_bits(elements[t], other.elements[t])) return false;
    }
    return refused || (report.clients == other.report.clients &&
                       report.skipped_clients == other.report.skipped_clients &&
                       report.skipped_elements == other.report.skipped_elements &&
                       report.held == other.report.held && report.unheld == other.report.unheld &&
                       report.overflowed == other.report.overflowed);
  }
};

template <class T>
std::vector<subfed::tensor_view<T>> views(std::vector<strided<T>>& tensors) {
  std::vector<subfed::tensor_view<T>> out;
  for (auto& t : tensors) out.push_back(t.view());
  return out;
}

/// An average on fresh global tensors; a refusal leaves them alone.
template <class T>
outcome<T> on_fresh(const support::cohort<double>& world,
                    const std::function<subfed::average_report(std::vector<strided<T>>&)>& form) {
  std::vector<strided<T>> globals;
  for (const auto& g : world.globals) globals.push_back(typed<T>(g));
  const auto before = globals;
  outcome<T> out;
  out.refused = fuzz::refused([&] { out.report = form(globals); });
  for (std::size_t t = 0; t < globals.size(); ++t) {
    fuzz::expect(globals[t].rest_untouched());
    out.elements.push_back(globals[t].elements());
    fuzz::expect(!out.refused || support::same_bits(globals[t].buffer(), before[t].buffer()));
  }
  return out;
}

/// What the dumb loop gives, and how large numbers are that enter the mean of an element.
struct expectation {
  subfed::average_report report = {};
  std::vector<std::vector<oracle::element>> values;
  std::vector<std::vector<oracle::element>> magnitudes;
};

expectation expected_of(const support::cohort<double>& world,
                        const subfed::average_options& options) {
  expectation out;
  out.values = world.expected(options, out.report);
  support::cohort<double> positive = world;
  const auto absolute = [](strided<double>& t) {
    const std::vector<double> values = t.elements();
    t.fill([&](std::int64_t n) { return std::fabs(values[static_cast<std::size_t>(n)]); });
  };
  for (auto& g : positive.globals) absolute(g);
  for (auto& c : positive.clients) {
    for (auto& t : c.tensors) absolute(t);
  }
  subfed::average_options plain = options;
  plain.content = subfed::content::parameters;
  plain.step = 1;
  subfed::average_report ignored;
  out.magnitudes = positive.expected(plain, ignored);
  return out;
}

/// Whether an old value that is not finite may not be part of the new one: where the weight of absent
/// clients, for which it stands, is lost beside the others'.
template <class T>
bool may_lose_old(T before, const subfed::average_options& options, numbers drawn) {
  return drawn == numbers::any && options.divide_by == subfed::divisor::cohort &&
         !std::isfinite(oracle::value_of(before));
}

template <class T>
void check_element(T found, T before, const oracle::element& want, long double magnitude,
                   const subfed::average_options& options, numbers drawn, double clients) {
  if (!want.held) {
    return fuzz::expect(std::memcmp(&found, &before, sizeof found) == 0);
  }
  const long double x = oracle::value_of(found);
  if (!std::isfinite(want.value)) {
    return fuzz::expect(!std::isfinite(x) || may_lose_old(before, options, drawn));
  }
  const bool exact = drawn == numbers::exact && options.step == 1 &&
                     options.content == subfed::content::parameters;
  if (exact) return fuzz::expect(x == oracle::value_of(oracle::nearest<T>(want.value)));
  const long double size = std::fabs(want.value);
  // Of a finite mean an old value that is not finite was no part.
  const long double was = oracle::value_of(before);
  const long double old = std::isfinite(was) ? std::fabs(was) : 0;
  const long double step = std::fabs(static_cast<long double>(options.step));
  // Means are doubles, of which the smallest is 2^-1074.
  const long double off = epsilon<T>() * 0.51L * size + smallest<T>() + 0x1p-1073L * step +
                          (clients + 8) * 0x1p-52L * (magnitude + old) * (1 + step);
  if (!std::isfinite(x)) return fuzz::expect(size + off >= largest<T>());
  fuzz::expect(std::fabs(x - want.value) <= off || size + off >= largest<T>());
}

template <class T>
void check_outcome(const outcome<T>& found, const support::cohort<double>& world,
                   const expectation& want, const subfed::average_options& options, numbers drawn) {
  const subfed::average_report& r = found.report;
  fuzz::expect(r.clients == want.report.clients && r.held == want.report.held &&
               r.unheld == want.report.unheld && r.kept == 0);
  fuzz::expect(r.skipped_clients == want.report.skipped_clients &&
               r.skipped_elements == want.report.skipped_elements);
  std::int64_t overflowed = 0;
  std::int64_t perhaps = 0;
  for (std::size_t t = 0; t < want.values.size(); ++t) {
    const std::vector<T> before = typed<T>(world.globals[t]).elements();
    for (std::size_t i = 0; i < want.values[t].size(); ++i) {
      const T x = found.elements[t][i];
      check_element(x, before[i], want.values[t][i], want.magnitudes[t][i].value, options, drawn,
                    static_cast<double>(world.clients.size()));
      if (!want.values[t][i].held || std::isfinite(oracle::value_of(x))) continue;
      if (std::isfinite(want.values[t][i].value)) {
        ++overflowed;
      } else {
        perhaps += may_lose_old(before[i], options, drawn);
      }
    }
  }
  fuzz::expect(r.overflowed >= overflowed && r.overflowed <= overflowed + perhaps);
}

/// average_cohort<T>, or average_cohort<T, U> where the types differ.
template <class T, class U, class... Rest>
subfed::average_report at_once(const subfed::model& net,
                               const std::vector<subfed::update<U>>& updates,
                               std::vector<strided<T>>& globals, Rest&&... rest) {
  const subfed::tensor_views<T> to(views(globals));
  if constexpr (std::is_same_v<T, U>) {
    return subfed::average_cohort<T>(net, updates, to, rest...);
  } else {
    return subfed::average_cohort<T, U>(net, std::span(updates), to, rest...);
  }
}

template <class T, class U>
void check_cohort(fuzz::input& in) {
  seeded random(in.word());
  const auto drawn = static_cast<numbers>(in.below(3));
  static constexpr double steps[] = {1, 1, 1, 0.5, 1.7, 0, -1, 1e300};
  subfed::average_options options;
  options.step = steps[in.below(drawn == numbers::any ? 8 : 7)];
  if (in.below(2) == 0) options.divide_by = subfed::divisor::cohort;
  if (in.below(2) == 0) options.content = subfed::content::deltas;
  options.on_non_finite = static_cast<subfed::non_finite>(in.below(4));
  const bool repeated = in.below(4) == 0;  // numbers of clients come twice
  const bool with_round = in.below(4) == 0;
  if (with_round) {
    options.round = 0;
    options.on_repeated = subfed::repeated_update::skip;
  }

  const auto plan =
      in.below(24) == 0 ? support::large_network(random) : support::random_network(random);
  const bool with_bad = options.on_non_finite != subfed::non_finite::propagate;
  const auto value = [&](seeded& r) {
    if (with_bad && r.one_in(60)) return r.one_in(2) ? std::nan("") : -HUGE_VAL;
    return any_value<U>(r, drawn);
  };
  // From 160 clients on short rows are averaged client by client.
  const std::int64_t clients = (random.one_in(64) ? 160 : 1) + in.below(12);
  support::cohort<double> world(random, plan, clients, value,
                                [&](seeded& r) { return any_weight(r, drawn); });
  for (auto& g : world.globals) {
    g.fill([&](std::int64_t) { return any_value<T>(random, drawn); });
  }
  if (repeated) {
    std::uint64_t number = 0;
    for (auto& c : world.clients)
      c.sub = support::submodel_of(world.net, c.holds, {.client = number++ / 2});
  }

  std::vector<std::vector<strided<U>>> locals;
  for (const auto& c : world.clients) {
    locals.emplace_back();
    for (const auto& t : c.tensors) locals.back().push_back(typed<U>(t));
  }
  std::vector<subfed::update<U>> updates;
  for (std::size_t c = 0; c < world.clients.size(); ++c) {
    std::vector<subfed::tensor_view<const U>> own;
    for (const auto& t : locals[c]) own.push_back(t.view());
    updates.push_back(
        {world.clients[c].sub, subfed::tensor_views<const U>(own), world.clients[c].weight});
  }

  const auto once = on_fresh<T>(world, [&](std::vector<strided<T>>& globals) {
    return at_once<T, U>(world.net, updates, globals, options);
  });
  std::vector<subfed::update<U>> arrived = updates;
  random.shuffle(arrived);
  for (auto& u : arrived) {
    if (random.one_in(2)) u.sub = u.sub.planned();
  }
  subfed::held_elements held;
  const support::other_instructions any_of_them(
      std::min(subfed::detail::best_instructions(),
               static_cast<subfed::detail::instructions>(random.between(0, 2))));
  const auto again = on_fresh<T>(world, [&](std::vector<strided<T>>& globals) {
    return at_once<T, U>(world.net, arrived, globals, held, options, support::backwards{});
  });
  fuzz::expect(once.same(again));
  fuzz::expect(once.refused || held.count() == once.report.held);
  // Which of two updates is the repeated one is told in other tests.
  if (repeated && with_round) return;
  const auto untyped = on_fresh<T>(world, [&](std::vector<strided<T>>& globals) {
    std::vector<subfed::update<void>> all;
    for (std::size_t c = 0; c < locals.size(); ++c) {
      std::vector<subfed::tensor_view<const void>> own;
      for (const auto& t : locals[c]) own.emplace_back(t.view());
      all.push_back({updates[c].sub, subfed::tensor_views<const void>(own), updates[c].weight});
    }
    std::vector<subfed::tensor_view<void>> to;
    for (auto& g : globals) to.emplace_back(g.view());
    return subfed::average_cohort<void>(world.net, all, subfed::tensor_views<void>(to), options);
  });
  fuzz::expect(once.same(untyped));

  std::int64_t bad = 0;
  double total = 0;
  for (const auto& c : world.clients) {
    total += c.weight;
    for (const auto& t : c.tensors) {
      for (const double x : t.elements()) bad += !std::isfinite(x);
    }
  }
  const bool refuses = options.on_non_finite == subfed::non_finite::refuse;
  const expectation want = expected_of(world, options);
  if (once.refused) {
    // Results that are too large for T are refused too.
    fuzz::expect(refuses || !std::isfinite(total));
  } else {
    fuzz::expect(std::isfinite(total) || bad > 0);
    check_outcome(once, world, want, options, drawn);
  }

  const auto streamed = on_fresh<T>(world, [&](std::vector<strided<T>>& globals) {
    subfed::selective_average<T> mean(world.net, options);
    for (const auto& u : updates) mean.template add<U>(u.sub, u.tensors, u.weight);
    const auto report = mean.finish(subfed::tensor_views<T>(views(globals)), support::backwards{});
    fuzz::expect(mean.held().count() == report.held);
    return report;
  });
  const std::int64_t shards = 1 + in.below(4);
  const auto merged = on_fresh<T>(world, [&](std::vector<strided<T>>& globals) {
    std::vector<subfed::selective_average<T>> parts(
        static_cast<std::size_t>(shards), subfed::selective_average<T>(world.net, options));
    for (const auto& u : arrived) {
      parts[static_cast<std::size_t>(random.between(0, shards - 1))].template add<U>(
          u.sub, u.tensors, u.weight);
    }
    for (std::size_t p = 1; p < parts.size(); ++p) parts[0].merge(parts[p]);
    return parts[0].finish(subfed::tensor_views<T>(views(globals)));
  });
  for (const auto* form : {&streamed, &merged}) {
    if (form->refused) {
      // Sums of doubles that lie too far apart are refused too.
      fuzz::expect(once.refused || drawn == numbers::any);
      continue;
    }
    if (once.refused) continue;  // by the order in which weights add up to infinity
    check_outcome(*form, world, want, options, drawn);
    if (drawn == numbers::exact) fuzz::expect(form->same(once));
  }
}

const fuzz::registered averages("averages", [](fuzz::bytes bytes) {
  fuzz::input in(bytes);
  switch (in.below(4)) {
    case 0:
      return check_cohort<float, float>(in);
    case 1:
      return check_cohort<double, double>(in);
    case 2:
      return check_cohort<subfed::half, subfed::half>(in);
    default:
      return check_cohort<subfed::bfloat16, double>(in);
  }
});

}  // namespace
