// SPDX-License-Identifier: MIT
/// HeteroFL's masked cross entropy, for clients that lack classes.
#pragma once

#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/detail/written_tensors.hpp>
#include <subfed/index_set.hpp>
#include <subfed/scalar.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace subfed::inline v0 {

/// What happens to the logits of classes that a client does not have.
enum class absent_logits {
  zero,           ///< set to 0, as in the released code: such a class still has e^0 in the softmax
  minus_infinity  ///< left out of the softmax
};

namespace detail {

/// Throws unless logits are (samples, classes) with a label for each sample.
inline void check_batch(const char* verb, std::span<const std::int64_t> extents,
                        std::size_t labels) {
  if (extents.size() == 2 && extents[0] == static_cast<std::int64_t>(labels) && labels != 0 &&
      extents[1] != 0) {
    return;
  }
  fail(std::string("subfed: ") + verb + ": logits of shape " + shape_text(extents) +
       " are given for " + std::to_string(labels) + " samples, expected (samples, classes)");
}

/// softmax(z / t) over the classes that take part. Of z the largest logit is taken off; what is returned
/// is log sum exp(z / t) of the rest, which would be lost beside a large one.
inline double softmax(std::vector<double>& logits, const std::vector<unsigned char>& takes_part,
                      std::vector<double>& out, double t = 1) {
  double largest = 0;
  bool first = true;
  for (std::size_t k = 0; k < logits.size(); ++k) {
    if (takes_part[k] == 0) continue;
    largest = first ? logits[k] : (std::max)(largest, logits[k]);
    first = false;
  }
  double sum = 0;
  for (std::size_t k = 0; k < logits.size(); ++k) {
    logits[k] -= largest;
    out[k] = takes_part[k] != 0 ? std::exp(logits[k] / t) : 0;
    sum += out[k];
  }
  for (double& p : out) p /= sum;
  return std::log(sum);
}

/// Mean loss over the batch, under a name that half, which is of this namespace, cannot confuse with that of
/// users; on_gradient(sample, class, dL/dlogit).
template <class T, class F>
double mean_cross_entropy(const tensor_view<const T>& logits, std::span<const std::int64_t> labels,
                          const index_set& present, absent_logits absent, F&& on_gradient) {
  const float_mode mode;
  check_batch("masked_cross_entropy", logits.extents(), labels.size());
  const auto classes = static_cast<std::size_t>(logits.extent(1));
  if (present.extent() != logits.extent(1)) {
    fail("subfed: masked_cross_entropy: the set of present classes has the extent " +
         std::to_string(present.extent()) + ", expected " + std::to_string(classes));
  }
  std::vector<unsigned char> has(classes, 0);
  for (const std::int64_t k : present) has[static_cast<std::size_t>(k)] = 1;
  for (std::size_t b = 0; b < labels.size(); ++b) {
    if (present.contains(labels[b])) continue;
    fail("subfed: masked_cross_entropy: sample " + std::to_string(b) + " has the label " +
         std::to_string(labels[b]) + ", which is not among the client's classes");
  }
  const std::vector<unsigned char> all(classes, 1);
  const std::vector<unsigned char>& takes_part = absent == absent_logits::zero ? all : has;
  const auto samples = static_cast<double>(labels.size());
  std::vector<double> row(classes), p(classes);
  double sum = 0;
  for (std::size_t b = 0; b < labels.size(); ++b) {
    for (std::size_t k = 0; k < classes; ++k) {
      row[k] = has[k] != 0 ? scalar_traits<T>::load(logits(b, k)) : 0;
    }
    const auto label = static_cast<std::size_t>(labels[b]);
    const double rest = softmax(row, takes_part, p);
    sum += rest - row[label];
    for (std::size_t k = 0; k < classes; ++k) {
      on_gradient(b, k, has[k] == 0 ? 0 : (p[k] - (k == label ? 1 : 0)) / samples);
    }
  }
  return sum / samples;
}

}  // namespace detail

/// Mean over samples of -log softmax(z)[label], with z the logits, those of absent classes
/// replaced. [HeteroFL]
///
///   masked_cross_entropy<float>(logits, labels, index_set(10, {3, 7}), absent_logits::zero);
///
/// Shapes    logits (samples, classes), any strides; labels (samples).
/// Throws    error for shapes that do not fit, or a label of an absent class.
/// Numerics  In double, through log sum exp; uses std::exp and std::log.
template <averageable T>
double masked_cross_entropy(const tensor_view<std::type_identity_t<const T>>& logits,
                            std::span<const std::int64_t> labels, const index_set& present,
                            absent_logits absent = absent_logits::zero) {
  return detail::mean_cross_entropy(logits, labels, present, absent,
                                    [](std::size_t, std::size_t, double) {});
}

/// The same, with the derivative with respect to the logits, 0 for absent classes, written to
/// `gradient`.
///
/// Shapes  gradient (samples, classes), any strides.
/// Throws  as above, and error for memory that it shares with the logits; nothing has been written then.
template <averageable T>
double masked_cross_entropy(const tensor_view<std::type_identity_t<const T>>& logits,
                            std::span<const std::int64_t> labels, const index_set& present,
                            absent_logits absent,
                            const tensor_view<std::type_identity_t<T>>& gradient) {
  detail::check_shape("masked_cross_entropy", "gradient", "", gradient.extents(), logits.extents());
  detail::written_tensors memory("masked_cross_entropy");
  memory.writes("gradient", "", gradient);
  memory.reads("logits", "", logits);
  memory.check_apart();
  return detail::mean_cross_entropy(
      logits, labels, present, absent,
      [&](std::size_t b, std::size_t k, double d) { gradient(b, k) = scalar_traits<T>::store(d); });
}

}  // namespace subfed::inline v0
