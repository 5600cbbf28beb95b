// SPDX-License-Identifier: MIT
/// A server's optimiser on top of any average, which leaves alone what nobody held. [FedOpt]
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/detail/model_checks.hpp>
#include <subfed/detail/written_tensors.hpp>
#include <subfed/scalar.hpp>
#include <subfed/systems/server_rules.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/untyped_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Numbers of elements of parameters in finish().
struct server_step_report {
  std::int64_t moved = 0;  ///< held by a client of the round
  std::int64_t still = 0;  ///< value and moments have kept their bits

  friend bool operator==(const server_step_report&, const server_step_report&) = default;
};

/// A server's moments, and its step from the old values through an average to the new ones:
///
///   server_optimizer<float, server_yogi> yogi(net, {.lr = 0.03});
///   yogi.begin(globals);                       // keeps the old values
///   held_elements held;                        // who held what, as used by the average
///   average_cohort<float>(net, updates, globals, held, options);
///   yogi.finish(held, globals);                // old + rule(average - old)
///
/// A parameter for which the average took no update does not move, and neither do its moments. A
/// plain optimiser would decay m and v or add m again, and the parameter would move without any
/// update. This concerns what nobody held, but also what was held only by clients or values that
/// were left out, by clients of weight 0, or in rows that do not take part. After an average of
/// your own, say what it used: held_elements(net, subs). Statistics, counters and local tensors,
/// and integers of any role, stay as the average left them and have no moments: with momentum a
/// running variance could fall below 0. T void: tensors of mixed types.
///
/// Numerics  Moments and old values are doubles; one rounding to T. The same bits everywhere.
///           Finite values never become infinite or NaN: that is refused. What is not finite in the
///           average enters value and moments; see average_options::on_non_finite.
/// Cost      24 bytes per parameter. The rule is called twice per element: first to check that all
///           results are finite, then for the results.
template <class T, server_rule Rule>
class server_optimizer {
 public:
  /// Throws  error when a constant of the rule is out of range.
  explicit server_optimizer(model net, Rule rule = {})
      : net_(std::move(net)), rule_(std::move(rule)) {
    if constexpr (requires { rule_.check(); }) rule_.check();
    double second = 0;
    if constexpr (requires { rule_.first_second_moment(); }) second = rule_.first_second_moment();
    for (const auto& tensor : net_.tensors()) {
      const std::size_t elements =
          tensor.is_parameter() ? detail::memory_size<double>(tensor.extents) : 0;
      state_.push_back(
          {{}, std::vector<double>(elements, 0.0), std::vector<double>(elements, second)});
    }
  }

  /// Keeps the values that the round starts from.
  ///
  /// Throws  error for a wrong number or shape of tensors; nothing has been kept then.
  void begin(const tensor_views<const T>& globals) {
    const detail::float_mode mode;
    detail::check_all_globals("server_optimizer", "global", net_, globals);
    for (std::size_t t = 0; t < globals.size(); ++t) {
      std::vector<double>& old = state_[t].old;
      old.clear();
      if (!net_.tensors()[t].is_parameter()) continue;
      detail::with_type(globals[t], [&]<class E>(const tensor_view<const E>& tensor) {
        if constexpr (averageable<E>) {
          old.reserve(state_[t].m.size());
          detail::for_each_offset(tensor, [&](std::int64_t o) {
            old.push_back(scalar_traits<E>::load(tensor.data_handle()[o]));
          });
        }
      });
    }
    begun_ = true;
  }

  /// Reads the average from the global tensors and writes old + rule(average - old).
  ///
  /// held    What the average wrote: selective_average::held(), or the output of average_cohort.
  /// Post    Elements that were not held keep value and moments bit for bit.
  /// Throws  error without a preceding begin(), for held elements of another model, a wrong number
  ///         or shape of tensors or ones that overlap in memory, or where finite values and moments lead to results that are not
  ///         finite; nothing has been written then.
  server_step_report finish(const held_elements& held, const tensor_views<T>& globals) {
    const detail::float_mode mode;
    if (!begun_) detail::fail("subfed: server_optimizer: finish() without begin()");
    detail::check_all_globals("server_optimizer", "global", net_, globals);
    if (!(held.parent() == net_)) {
      detail::fail("subfed: server_optimizer: the held elements are of another model");
    }
    detail::written_tensors memory("server_optimizer");
    for (std::size_t t = 0; t < globals.size(); ++t) {
      detail::with_type(globals[t], [&](const auto& tensor) {
        memory.writes("global", net_.tensors()[t].name, tensor);
      });
    }
    memory.check_apart();
    for (std::size_t t = 0; t < globals.size(); ++t) {
      if (!net_.tensors()[t].is_parameter()) continue;
      detail::with_type(globals[t], [&]<class E>(const tensor_view<E>&) {
        if (!averageable<E> || state_[t].old.size() == state_[t].m.size()) return;
        const std::string& name = net_.tensors()[t].name;
        detail::fail("subfed: server_optimizer: tensor '" + name +
                         "' had integers in begin() and has none now",
                     {.tensor = name});
      });
    }
    std::vector<std::span<const std::uint64_t>> words;
    for (std::size_t t = 0; t < globals.size(); ++t) words.push_back(held.words(tensor_id(t)));
    const auto is_held = [&](std::size_t t, std::size_t i) {
      return (words[t][i / 64] >> (i % 64) & 1) != 0;
    };
    server_step_report report;
    for_each_parameter(globals, [&](std::size_t t, std::size_t i, auto& value) {
      if (!is_held(t, i)) {
        ++report.still;
        return;
      }
      ++report.moved;
      using traits = scalar_traits<std::remove_cvref_t<decltype(value)>>;
      const moments& own = state_[t];
      const double average = traits::load(value);
      double m = own.m[i], v = own.v[i];
      bool possible = true;
      for (const double x : {average, own.old[i], m, v}) {
        possible = possible && detail::is_finite_double(x);
      }
      if (!possible) return;
      const auto now = traits::store(own.old[i] + rule_(average - own.old[i], m, v));
      if (traits::is_finite(now) && detail::is_finite_double(m) && detail::is_finite_double(v)) {
        return;
      }
      const auto& info = net_.tensors()[t];
      detail::fail("subfed: server_optimizer: the step from " + detail::text(own.old[i]) +
                       " through the average " + detail::text(average) + " of tensor '" +
                       info.name + "', at element " +
                       detail::index_text(static_cast<std::int64_t>(i), info.extents) +
                       ", leaves the range of its numbers",
                   {.tensor = info.name});
    });
    for_each_parameter(globals, [&](std::size_t t, std::size_t i, auto& value) {
      if (!is_held(t, i)) return;
      using traits = scalar_traits<std::remove_cvref_t<decltype(value)>>;
      moments& own = state_[t];
      const double delta = traits::load(value) - own.old[i];
      value = traits::store(own.old[i] + rule_(delta, own.m[i], own.v[i]));
    });
    begun_ = false;
    return report;
  }

  /// The moments of a tensor, row-major, for checkpoints: what has to be saved and restored. Empty
  /// for tensors that are not parameters.
  std::span<double> first_moment(tensor_id tensor) { return at(tensor).m; }
  std::span<double> second_moment(tensor_id tensor) { return at(tensor).v; }

  const model& parent() const noexcept { return net_; }

 private:
  struct moments {
    std::vector<double> old, m, v;
  };

  /// Calls f(tensor, row-major number, element) for every floating-point element of parameters.
  template <class F>
  void for_each_parameter(const tensor_views<T>& globals, F&& f) const {
    for (std::size_t t = 0; t < globals.size(); ++t) {
      if (!net_.tensors()[t].is_parameter()) continue;
      detail::with_type(globals[t], [&]<class E>(const tensor_view<E>& tensor) {
        if constexpr (averageable<E>) {
          std::size_t i = 0;
          detail::for_each_offset(tensor,
                                  [&](std::int64_t o) { f(t, i++, tensor.data_handle()[o]); });
        }
      });
    }
  }

  moments& at(tensor_id tensor) {
    static_cast<void>(net_[tensor]);  // refuses a foreign tensor
    return state_[tensor.number()];
  }

  model net_;
  Rule rule_;
  std::vector<moments> state_;
  bool begun_ = false;
};

}  // namespace subfed::inline v0
