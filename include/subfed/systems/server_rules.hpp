// SPDX-License-Identifier: MIT
/// What a server does with one parameter: SGD with momentum, Adagrad, Adam, Yogi. [FedOpt]
#pragma once

#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>

#include <cmath>
#include <concepts>
#include <string>

namespace subfed::inline v0 {

/// What a server does with one parameter: it gets delta = average - old value, changes the
/// parameter's two moments and returns what is added to the old value. A lambda is one:
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

  void check() const {
    detail::check_server_rate("the learning rate", lr, 0, 0x1p1000);
    detail::check_server_rate("the momentum", momentum, 0, 1);
  }
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

}  // namespace subfed::inline v0
