// SPDX-License-Identifier: MIT
/// Clips updates that are too far from what was sent, by the L2 norm of the difference.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/held_walk.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/written_tensors.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/selection.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <vector>

namespace subfed::inline v0 {

/// What clipping did to an update.
struct clipped_update {
  double norm = 0;    ///< of the difference, before; infinite beyond the largest double
  double factor = 1;  ///< by which the difference was multiplied; 1: it was within the bound

  friend bool operator==(const clipped_update&, const clipped_update&) = default;
};

namespace detail {

/// The elements of a tensor in row-major order: in the tensor's own memory where it has that
/// order, else in a copy.
template <class T>
class row_major_elements {
 public:
  explicit row_major_elements(const tensor_view<T>& view) : data_(view.data_handle()) {
    if (view.is_row_major()) return;
    for_each_offset(view, [&](std::int64_t o) { copy_.push_back(view.data_handle()[o]); });
    data_ = copy_.data();
  }
  T* data() const noexcept { return data_; }
  /// The tensor gets what has been written to a copy.
  void write_back(const tensor_view<T>& view) const {
    std::size_t next = 0;
    if (copy_.empty()) return;
    for_each_offset(view, [&](std::int64_t o) { view.data_handle()[o] = copy_[next++]; });
  }

 private:
  std::vector<std::remove_const_t<T>> copy_;
  T* data_;
};

/// Calls f(offset, length) for the runs of elements of a row-major local tensor that take part.
template <class F>
void for_each_local_run(const selection& chosen, F&& f) {
  bool all = true;
  for (int r = 0; r < chosen.rank(); ++r) {
    const selected_dimension& d = chosen.dimension(r);
    std::int64_t taking_part = 0;
    for (const run& one : d.runs) taking_part += one.length;
    all = all && taking_part == d.local_extent;
  }
  const loop_nest walk(chosen);
  if (walk.outer_steps() == 0) return;
  if (all) return f(std::int64_t{0}, walk.outer_steps() * walk.elements_a_step());
  walk.for_each([&](std::int64_t, std::int64_t l, std::int64_t length) {
    const std::int64_t stride = walk.local_stride();
    if (stride == 1) return f(l, length);
    for (std::int64_t i = 0; i < length; ++i) f(l + i * stride, std::int64_t{1});
  });
}

/// Adds up the squares of differences, each times 2^-exponent, in double and in the order given.
class squared_differences {
 public:
  explicit squared_differences(std::int64_t exponent) noexcept : exponent_(exponent) {}

  template <class T>
  void add(const T* update, const T* sent, std::int64_t length) noexcept {
    std::array<double, 512> part;
    for (std::int64_t i = 0; i < length;) {
      const std::int64_t size = (std::min)(length - i, static_cast<std::int64_t>(part.size()));
      std::fill_n(part.begin(), size, -0.0);
      accumulate(update + i, 1, 1, part.data(), 1, size);
      accumulate(sent + i, 1, -1, part.data(), 1, size);
      for (std::int64_t k = 0; k < size; ++k) {
        largest_ = (std::max)(largest_, std::bit_cast<std::uint64_t>(part[std::size_t(k)]) << 1);
      }
      if (exponent_ != 0) scale(part.data(), size);
      for (std::int64_t k = 0; k < size; ++k) {
        sum_ += rounded_product(part[std::size_t(k)], part[std::size_t(k)]);
      }
      i += size;
    }
  }

  /// The size of the largest difference; infinite or NaN if any is.
  double largest() const noexcept { return std::bit_cast<double>(largest_ >> 1); }
  /// The root of the sum.
  wide_number norm() const noexcept { return {std::sqrt(sum_), exponent_}; }

 private:
  /// What is too small to matter becomes 0.
  void scale(double* d, std::int64_t length) const noexcept {
    for (std::int64_t k = 0; k < length; ++k) {
      const bool matters = d[k] != 0 && exponent_of(d[k]) >= exponent_ - 300;
      d[k] = matters ? scaled(d[k], -exponent_) : 0;
    }
  }

  std::int64_t exponent_;
  std::uint64_t largest_ = 0;  // bits without the sign, which order like the numbers
  double sum_ = 0;
};

/// Names the first difference that is not finite.
template <class T>
[[noreturn]] void refuse_difference(const submodel& sub, const tensor_views<const T>& sent,
                                    const tensor_views<const T>& update) {
  using traits = scalar_traits<T>;
  const model& net = sub.parent();
  for (std::size_t t = 0; t < update.size(); ++t) {
    const auto& info = net.tensors()[t];
    if (!info.is_parameter()) continue;
    const row_major_elements<const T> now(update[t]), then(sent[t]);
    for_each_held(sub, t, [&](std::int64_t g, std::int64_t l) {
      const double d = traits::load(now.data()[l]) - traits::load(then.data()[l]);
      if (is_finite_double(d)) return;
      fail("subfed: clip_update: " + client_text(sub) +
               " has a difference that is not finite in tensor '" + info.name +
               "', at global element " + index_text(g, info.extents),
           {.client = sub.origin().client, .tensor = info.name});
    });
  }
  fail("subfed: clip_update: a difference is not finite", {.client = sub.origin().client});
}

}  // namespace detail

/// Multiplies the difference between an update and what was sent by min(1, bound / its L2 norm), in
/// place. The norm is over the parameters that the client holds and that take part, all tensors
/// together:
///
///   u <- sent + (u - sent) min(1, bound / |u - sent|)
///
///   const auto did = clip_update(sub, sent, 2.0, update);
///   if (did.factor < 1) log(sub.origin().client, did.norm);
///
/// Statistics, counters and tensors that stay with the client are neither counted nor changed.
///
/// Shapes    tensor t of both is sub.extents(tensor_id(t)); any strides.
/// Post      An update within the bound keeps its bits.
/// Throws    error for wrong shapes, a bound that is not finite and over 0, a difference that is
///           not finite, or memory that tensors of the update share with each other or with what was
///           sent; nothing has been written then.
/// Numerics  Differences and their squares in double, added tensor by tensor in row-major order: the
///           same bits for any strides. Each element is rounded to T once.
/// Cost      Two or three passes over both; a copy of a tensor at a time whose view is not row-major.
template <averageable T>
clipped_update clip_update(const submodel& sub, const tensor_views<const T>& sent, double bound,
                           const tensor_views<T>& update) {
  using traits = scalar_traits<T>;
  const detail::float_mode mode;
  const model& net = sub.parent();
  const std::uint64_t client = sub.origin().client;
  if (!detail::is_finite_double(bound) || !(bound > 0)) {
    detail::fail("subfed: clip_update: the bound is " + detail::text(bound) +
                     ", expected a finite number over 0",
                 {.client = client});
  }
  std::vector<tensor_view<const T>> read;
  for (const auto& view : update) {
    read.emplace_back(view.data_handle(), view.extents(), view.strides());
  }
  const tensor_views<const T> before(read);
  detail::check_update<T>("clip_update", net, sub, before, 1);
  detail::check_update<T>("clip_update", net, sub, sent, 1);
  detail::written_tensors memory("clip_update");
  memory.writes_parameters("update", net, update);
  memory.reads_parameters("sent", net, sent);
  memory.check_apart();
  bool writes = false;
  // f(update, sent, length) for all runs of elements of parameters that take part.
  const auto for_each_run = [&](auto&& f) {
    for (std::size_t t = 0; t < update.size(); ++t) {
      if (!net.tensors()[t].is_parameter()) continue;
      const detail::row_major_elements<T> to(update[t]);
      const detail::row_major_elements<const T> from(sent[t]);
      detail::for_each_local_run(sub[tensor_id(t)], [&](std::int64_t first, std::int64_t length) {
        f(to.data() + first, from.data() + first, length);
      });
      if (writes) to.write_back(update[t]);
    }
  };
  const auto squares = [&](std::int64_t exponent) {
    detail::squared_differences out(exponent);
    for_each_run([&](const T* u, const T* s, std::int64_t length) { out.add(u, s, length); });
    return out;
  };
  clipped_update out;
  detail::squared_differences sum = squares(0);
  const double largest = sum.largest();
  if (!detail::is_finite_double(largest)) detail::refuse_difference<T>(sub, sent, before);
  constexpr std::int64_t no_overflow = 200;  // nor denormal squares that matter
  if (largest != 0 && std::abs(detail::exponent_of(largest)) > no_overflow) {
    sum = squares(detail::exponent_of(largest));
  }
  const detail::wide_number norm = sum.norm();
  out.norm = norm.value();
  if (out.norm <= bound) return out;
  out.factor = (detail::wide_number(bound) / norm).value();
  writes = true;
  for_each_run([&](T* u, const T* s, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i) {
      const double from = traits::load(s[i]);
      u[i] = traits::store(from + detail::rounded_product(out.factor, traits::load(u[i]) - from));
    }
  });
  return out;
}

}  // namespace subfed::inline v0
