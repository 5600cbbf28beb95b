// SPDX-License-Identifier: MIT
/// Server optimisers on top of any average: SGD with momentum, Adagrad, Adam, Yogi. [FedOpt]
#pragma once

#include <subfed/average_options.hpp>
#include <subfed/detail/average_kernels.hpp>
#include <subfed/detail/together.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/untyped_view.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// What a server does with one parameter: gets delta = average - old value, changes the parameter's
/// two moments and returns what is added to the old value. A lambda is one:
///   [](double delta, double& m, double&) { return m = 0.9 * m + delta; }
template <class R>
concept server_rule = std::copy_constructible<R> && requires(const R& r, double d, double& m) {
  { r(d, m, m) } -> std::convertible_to<double>;
};

namespace detail {

inline void check_server_rate(const char* what, double value, double low, double high) {
  if (is_finite_double(value) && value >= low && value < high) return;
  fail(std::string("subfed: server_optimizer: ") + what + " is " + text(value) + ", expected in [" +
       text(low) + ", " + text(high) + ")");
}

/// beta old + (1 - beta) now.
inline double blend(double beta, double old, double now) noexcept {
  return rounded_product(beta, old) + rounded_product(1 - beta, now);
}
/// lr m / (sqrt(v) + tau).
inline double adaptive_step(double lr, double m, double v, double tau) noexcept {
  return rounded_product(lr, m) / (std::sqrt(v) + tau);
}
inline void check_adaptive(double lr, double beta1, double beta2, double tau) {
  check_server_rate("the learning rate", lr, 0, 0x1p1000);
  check_server_rate("beta1", beta1, 0, 1);
  check_server_rate("beta2", beta2, 0, 1);
  check_server_rate("tau", tau, 0x1p-500, 0x1p500);
}

}  // namespace detail

/// m = momentum m + delta; x += lr m. With the defaults x becomes the average. [FedAvgM]
struct server_sgd {
  double lr = 1;
  double momentum = 0;

  void check() const { detail::check_adaptive(lr, momentum, 0, 1); }
  double operator()(double delta, double& m, double&) const noexcept {
    m = detail::rounded_product(momentum, m) + delta;
    return detail::rounded_product(lr, m);
  }
};

/// m = beta1 m + (1 - beta1) delta; v += delta^2; x += lr m / (sqrt(v) + tau). [FedOpt, Alg. 2]
struct server_adagrad {
  double lr = 0.1;
  double beta1 = 0;
  double tau = 1e-3;

  void check() const { detail::check_adaptive(lr, beta1, 0, tau); }
  double first_second_moment() const noexcept { return detail::rounded_product(tau, tau); }
  double operator()(double delta, double& m, double& v) const noexcept {
    m = detail::blend(beta1, m, delta);
    v += detail::rounded_product(delta, delta);
    return detail::adaptive_step(lr, m, v, tau);
  }
};

/// m as in Adagrad; v = beta2 v + (1 - beta2) delta^2; no bias correction. [FedOpt, Alg. 2]
struct server_adam {
  double lr = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double tau = 1e-3;

  void check() const { detail::check_adaptive(lr, beta1, beta2, tau); }
  double first_second_moment() const noexcept { return detail::rounded_product(tau, tau); }
  double operator()(double delta, double& m, double& v) const noexcept {
    m = detail::blend(beta1, m, delta);
    v = detail::blend(beta2, v, detail::rounded_product(delta, delta));
    return detail::adaptive_step(lr, m, v, tau);
  }
};

/// m as in Adagrad; v -= (1 - beta2) delta^2 sign(v - delta^2). [FedOpt, Alg. 2]
struct server_yogi {
  double lr = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double tau = 1e-3;

  void check() const { detail::check_adaptive(lr, beta1, beta2, tau); }
  double first_second_moment() const noexcept { return detail::rounded_product(tau, tau); }
  double operator()(double delta, double& m, double& v) const noexcept {
    m = detail::blend(beta1, m, delta);
    const double square = detail::rounded_product(delta, delta);
    const double change = detail::rounded_product(1 - beta2, square);
    if (v > square) {
      v -= change;
    } else if (v < square) {
      v += change;
    }
    return detail::adaptive_step(lr, m, v, tau);
  }
};

/// Elements that finish() looked at.
struct server_step_report {
  std::int64_t moved = 0;  ///< held by a client of the round
  std::int64_t still = 0;  ///< value and moments are as they were, bit for bit

  friend bool operator==(const server_step_report&, const server_step_report&) = default;
};

/// A server's moments, and its step from the old values through an average to the new ones:
///
///   server_optimizer<float, server_yogi> yogi(net, {.lr = 0.03});
///   yogi.begin(globals);                       // keeps the old values
///   average_cohort<float>(net, updates, globals, options);   // any average, also one of your own
///   yogi.finish(subs, globals);                // old + rule(average - old)
///
/// A parameter that no submodel of the round holds does not move, and neither do its moments: with
/// m and v decayed or m added again, as a plain optimiser does, it would go on without any update.
/// T void: tensors of mixed types; integers stay as the average left them.
///
/// Numerics  Moments and old values are doubles; one rounding to T. The same bits everywhere.
/// Cost      24 bytes a parameter.
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
      std::size_t elements = 1;
      for (const std::int64_t e : tensor.extents) elements *= static_cast<std::size_t>(e);
      state_.push_back(
          {{}, std::vector<double>(elements, 0.0), std::vector<double>(elements, second)});
    }
  }

  /// Keeps the values that the round starts from.
  ///
  /// Throws  error for a wrong number or shape of tensors; nothing is kept then.
  void begin(const tensor_views<const T>& globals) {
    detail::check_all_globals("server_optimizer", "global", net_, globals);
    for (std::size_t t = 0; t < globals.size(); ++t) {
      std::vector<double>& old = state_[t].old;
      old.clear();
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

  /// Takes the average that stands in the global tensors and writes old + rule(average - old).
  ///
  /// held_by  The submodels of the clients that the average took in with a positive weight (leave
  ///          out those that it skipped), each as it was given to the average.
  /// Post     Elements that none of them holds keep value and moments bit for bit.
  /// Throws   error without begin() before, for a submodel of another model, or a wrong number or
  ///          shape of tensors; nothing has been written then.
  server_step_report finish(std::span<const submodel> held_by, const tensor_views<T>& globals) {
    if (!begun_) detail::fail("subfed: server_optimizer: finish() without begin()");
    detail::check_all_globals("server_optimizer", "global", net_, globals);
    detail::check_parents("server_optimizer", net_, held_by);
    for (std::size_t t = 0; t < globals.size(); ++t) {
      detail::with_type(globals[t], [&](const auto& tensor) {
        detail::check_unique("server_optimizer", "global", net_.tensors()[t].name, tensor);
      });
    }
    server_step_report report;
    for (std::size_t t = 0; t < globals.size(); ++t) {
      const std::vector<unsigned char> held = detail::held_by_any(net_, held_by, t);
      moments& own = state_[t];
      detail::with_type(globals[t], [&]<class E>(const tensor_view<E>& tensor) {
        if constexpr (averageable<E>) {
          using traits = scalar_traits<E>;
          std::size_t i = 0;
          detail::for_each_offset(tensor, [&](std::int64_t o) {
            if (held[i] != 0) {
              E& value = tensor.data_handle()[o];
              const double delta = traits::load(value) - own.old[i];
              value = traits::store(own.old[i] + rule_(delta, own.m[i], own.v[i]));
              ++report.moved;
            } else {
              ++report.still;
            }
            ++i;
          });
        }
      });
    }
    begun_ = false;
    return report;
  }

  /// The moments of a tensor, row-major: what a checkpoint has to keep, and to put back.
  std::span<double> first_moment(tensor_id tensor) { return at(tensor).m; }
  std::span<double> second_moment(tensor_id tensor) { return at(tensor).v; }

  const model& parent() const noexcept { return net_; }

 private:
  struct moments {
    std::vector<double> old, m, v;
  };
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
