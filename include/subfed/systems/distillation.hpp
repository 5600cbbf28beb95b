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

template <class T, class F>
double distillation_loss(const tensor_view<const T>& student, const tensor_view<const T>& teacher,
                         std::span<const std::int64_t> labels, const distillation_options& options,
                         F&& on_gradient) {
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
  std::vector<double> own(classes), theirs(classes), p(classes), q(classes), plain(classes);
  double sum = 0;
  for (std::size_t b = 0; b < labels.size(); ++b) {
    for (std::size_t k = 0; k < classes; ++k) own[k] = scalar_traits<T>::load(student(b, k));
    const auto label = static_cast<std::size_t>(labels[b]);
    const double hard = softmax(own, all, plain) - own[label];
    for (std::size_t k = 0; k < classes; ++k) {
      own[k] /= t;
      theirs[k] = scalar_traits<T>::load(teacher(b, k)) / t;
    }
    const double own_log = softmax(own, all, p), their_log = softmax(theirs, all, q);
    double divergence = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      if (q[k] > 0) divergence += q[k] * (theirs[k] - their_log - own[k] + own_log);
    }
    sum += (1 - alpha) * hard + alpha * t * t * divergence;
    for (std::size_t k = 0; k < classes; ++k) {
      const double of_labels = plain[k] - (k == label ? 1 : 0);
      on_gradient(b, k, ((1 - alpha) * of_labels + alpha * t * (p[k] - q[k])) / samples);
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
/// Numerics  In double; uses std::exp and std::log.
template <averageable T>
double distillation_loss(const tensor_view<std::type_identity_t<const T>>& student,
                         const tensor_view<std::type_identity_t<const T>>& teacher,
                         std::span<const std::int64_t> labels,
                         const distillation_options& options = {}) {
  return detail::distillation_loss(student, teacher, labels, options,
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
  return detail::distillation_loss(
      student, teacher, labels, options,
      [&](std::size_t b, std::size_t k, double d) { gradient(b, k) = scalar_traits<T>::store(d); });
}

}  // namespace subfed::inline v0
