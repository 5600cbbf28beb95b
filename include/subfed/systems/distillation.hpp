// SPDX-License-Identifier: MIT
/// FjORD's self-distillation: a narrow width learns from the widest one that the client holds.
#pragma once

#include <subfed/average/options.hpp>
#include <subfed/capacity.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/detail/written_tensors.hpp>
#include <subfed/scalar.hpp>
#include <subfed/selection.hpp>
#include <subfed/systems/masked_cross_entropy.hpp>
#include <subfed/tensor_view.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace subfed::inline v0 {

struct distillation_options {
  double alpha = 1;        ///< weight of the teacher against the labels
  double temperature = 1;  ///< T
};

namespace detail {

/// T^2 KL(q || p) of q = softmax(w / T), p = softmax(u / T), and its derivative T (p - q).
class softened_divergence {
 public:
  explicit softened_divergence(std::size_t classes)
      : all_(classes, 1), p_(classes), q_(classes), gradient_(classes) {}

  double operator()(std::vector<double>& u, std::vector<double>& w, double t) {
    const double of_u = softmax(u, all_, p_, t), of_w = softmax(w, all_, q_, t);
    constexpr double close = 0x1p-10;
    bool alike = true;
    for (std::size_t k = 0; k < u.size(); ++k) {
      if (p_[k] == 0 && q_[k] == 0) u[k] = w[k] = 0;  // both may be -inf
      alike = alike && std::fabs(u[k] - w[k]) / t <= close;
    }
    return alike ? near_by(u, w, t) : far_apart(u, w, t, of_u - of_w);
  }
  double gradient(std::size_t k) const { return gradient_[k]; }

 private:
  double far_apart(const std::vector<double>& u, const std::vector<double>& w, double t,
                   double logs) {
    double sum = 0;
    for (std::size_t k = 0; k < u.size(); ++k) {
      if (q_[k] > 0) sum += q_[k] * (w[k] - u[k] + t * logs);
      gradient_[k] = t * (p_[k] - q_[k]);
    }
    return t * sum;
  }
  /// Large T: what probabilities differ by is lost in them. With d = log p - log q, T^2 KL is the sum of
  /// q T^2 (e^d - 1 - d), of which no term is negative.
  double near_by(const std::vector<double>& u, const std::vector<double>& w, double t) {
    double more = 0;
    for (std::size_t k = 0; k < u.size(); ++k) more += q_[k] * std::expm1((u[k] - w[k]) / t);
    const double logs = t * std::log1p(more);
    double sum = 0;
    for (std::size_t k = 0; k < u.size(); ++k) {
      const double apart = u[k] - w[k] - logs, d = apart / t;
      sum += q_[k] * apart * apart * (0.5 + d * (1.0 / 6 + d * (1.0 / 24 + d / 120)));
      gradient_[k] = q_[k] * (t * std::expm1(d));
    }
    return sum;
  }

  std::vector<unsigned char> all_;
  std::vector<double> p_, q_, gradient_;
};

/// Mean loss over the batch, under a name of its own as mean_cross_entropy.
template <class T, class F>
double mean_distillation_loss(const tensor_view<const T>& student,
                              const tensor_view<const T>& teacher,
                              std::span<const std::int64_t> labels,
                              const distillation_options& options, F&& on_gradient) {
  const float_mode mode;
  check_batch("distillation_loss", student.extents(), labels.size());
  check_shape("distillation_loss", "teacher", "", teacher.extents(), student.extents());
  if (options.alpha != 0 && !in_unit_interval(options.alpha)) {
    fail("subfed: distillation_loss: alpha is " + text(options.alpha) + ", expected in [0, 1]");
  }
  if (!(options.temperature > 0) || !is_finite_double(options.temperature)) {
    fail("subfed: distillation_loss: the temperature is " + text(options.temperature) +
         ", expected a positive number");
  }
  const auto classes = static_cast<std::size_t>(student.extent(1));
  for (std::size_t b = 0; b < labels.size(); ++b) {
    if (labels[b] >= 0 && labels[b] < student.extent(1)) continue;
    fail("subfed: distillation_loss: sample " + std::to_string(b) + " has the label " +
         std::to_string(labels[b]) + ", expected in [0, " + std::to_string(classes) + ")");
  }
  const double alpha = options.alpha, t = options.temperature;
  const auto samples = static_cast<double>(labels.size());
  const std::vector<unsigned char> all(classes, 1);
  std::vector<double> own(classes), theirs(classes), plain(classes);
  softened_divergence divergence(classes);
  double sum = 0;
  for (std::size_t b = 0; b < labels.size(); ++b) {
    const auto label = static_cast<std::size_t>(labels[b]);
    const auto read = [&](std::vector<double>& row, const tensor_view<const T>& from) {
      for (std::size_t k = 0; k < classes; ++k) row[k] = scalar_traits<T>::load(from(b, k));
    };
    if (alpha < 1) {  // what weighs nothing may be infinite
      read(own, student);
      const double rest = softmax(own, all, plain);
      sum += (1 - alpha) * (rest - own[label]);
    }
    if (alpha > 0) {
      read(own, student), read(theirs, teacher);
      sum += alpha * divergence(own, theirs, t);
    }
    for (std::size_t k = 0; k < classes; ++k) {
      const double of_labels = alpha < 1 ? plain[k] - (k == label ? 1 : 0) : 0;
      const double of_teacher = alpha > 0 ? divergence.gradient(k) : 0;
      on_gradient(b, k, ((1 - alpha) * of_labels + alpha * of_teacher) / samples);
    }
  }
  return sum / samples;
}

}  // namespace detail

/// Mean over samples of
///
///   (1 - alpha) CE(softmax(student), label) + alpha T^2 KL(softmax(teacher / T) || softmax(student
///   / T))
///
/// [FjORD, 3.2], the student being a width p, the teacher the largest width of the client. T^2,
/// which the paper omits and which is 1 at its T = 1, keeps the size of gradients the same for
/// every T. [FjORD] trains the teacher on the labels in the same step, and found alpha = T = 1
/// best.
///
///   distillation_loss<float>(student, teacher, labels, {.alpha = 1, .temperature = 1});
///
/// Shapes    both (samples, classes), any strides; labels (samples).
/// Throws    error for shapes that do not fit, alpha outside [0, 1], a temperature that is not
///           positive, or a label out of range.
/// Numerics  In double; uses std::exp and std::log. A part that weighs nothing does not count, even where it
///           is infinite.
template <averageable T>
double distillation_loss(const tensor_view<std::type_identity_t<const T>>& student,
                         const tensor_view<std::type_identity_t<const T>>& teacher,
                         std::span<const std::int64_t> labels,
                         const distillation_options& options = {}) {
  return detail::mean_distillation_loss(student, teacher, labels, options,
                                        [](std::size_t, std::size_t, double) {});
}

/// The same, with the derivative with respect to the student's logits written to `gradient`; the
/// teacher is constant.
///
/// Throws  as above, and error for memory that it shares with either; nothing has been written then.
template <averageable T>
double distillation_loss(const tensor_view<std::type_identity_t<const T>>& student,
                         const tensor_view<std::type_identity_t<const T>>& teacher,
                         std::span<const std::int64_t> labels, const distillation_options& options,
                         const tensor_view<std::type_identity_t<T>>& gradient) {
  detail::check_shape("distillation_loss", "gradient", "", gradient.extents(), student.extents());
  detail::written_tensors memory("distillation_loss");
  memory.writes("gradient", "", gradient);
  memory.reads("student", "", student);
  memory.reads("teacher", "", teacher);
  memory.check_apart();
  return detail::mean_distillation_loss(
      student, teacher, labels, options,
      [&](std::size_t b, std::size_t k, double d) { gradient(b, k) = scalar_traits<T>::store(d); });
}

}  // namespace subfed::inline v0
