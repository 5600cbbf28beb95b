// SPDX-License-Identifier: MIT
/// HeteroFL's static batch norm: mean and variance of every channel, collected after training in
/// one pass over the clients' data, and merged.
#pragma once

#include <subfed/average/detail/wide_number.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/scalar.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// Number, mean and sum of squared distances of the values of each channel. In training no
/// statistics are tracked, so narrow models do not mix theirs. Afterwards each client adds the
/// values of its data in the server's model, and the server merges. [HeteroFL] (Only these numbers
/// travel, no data.)
///
/// Numerics  In double; a batch in two passes, batches and clients by the update of Chan, Golub and
///           LeVeque, which stays accurate where the mean is large. The order of merges affects
///           only the last bits. A mean is finite where the values are; a sum of squared distances
///           beyond the largest double is infinite, and so is its variance.
/// Cost      16 bytes per channel.
class channel_moments {
 public:
  /// Throws  error for a negative number of channels.
  explicit channel_moments(std::int64_t channels) {
    if (channels < 0) {
      detail::fail("subfed: channel_moments: " + std::to_string(channels) + " channels");
    }
    mean_.assign(detail::memory_size<double>(channels), 0.0);
    squares_.assign(mean_.size(), 0.0);
  }

  /// Adds a batch of a layer's inputs.
  ///
  /// Shapes  (samples, channels, ..) as in PyTorch; any strides.
  /// Throws  error for a rank below 2 or another number of channels; nothing is added then.
  template <averageable T>
  void add(const tensor_view<const T>& batch) {
    const detail::float_mode mode;
    if (batch.rank() < 2 || batch.extent(1) != static_cast<std::int64_t>(mean_.size())) {
      detail::fail("subfed: channel_moments: a batch of shape " +
                   detail::shape_text(batch.extents()) + " is given for " +
                   std::to_string(mean_.size()) + " channels, expected (samples, channels, ..)");
    }
    if (batch.size() == 0) return;
    const std::size_t channels = mean_.size();
    const std::int64_t inner = batch.size() / batch.extent(0) / batch.extent(1);
    channel_moments own(static_cast<std::int64_t>(channels));
    own.count_ = batch.extent(0) * inner;
    const auto for_each = [&](auto&& f) {
      std::int64_t n = 0;
      detail::for_each_offset(batch, [&](std::int64_t o) {
        const auto channel = static_cast<std::size_t>(n++ / inner) % channels;
        f(channel, scalar_traits<T>::load(batch.data_handle()[o]));
      });
    };
    for_each([&](std::size_t c, double x) { own.mean_[c] += x; });
    bool any_large = false;
    for (double& m : own.mean_) {
      m /= static_cast<double>(own.count_);
      any_large = any_large || is_large(m);
    }
    if (any_large) own.find_large_means(for_each);
    for_each([&](std::size_t c, double x) {
      const double apart = x - own.mean_[c];
      own.squares_[c] += detail::rounded_product(apart, apart);
    });
    merge(own);
  }

  /// Adds what another object has seen.
  ///
  /// Throws  error for another number of channels.
  void merge(const channel_moments& other) {
    const detail::float_mode mode;
    if (other.mean_.size() != mean_.size()) {
      detail::fail("subfed: channel_moments: moments of " + std::to_string(other.mean_.size()) +
                   " channels are merged into those of " + std::to_string(mean_.size()));
    }
    if (other.count_ == 0) return;
    if (count_ == 0) {
      *this = other;  // of equal sizes: takes no memory
      return;
    }
    const auto own = static_cast<double>(count_), theirs = static_cast<double>(other.count_);
    const double all = own + theirs;
    for (std::size_t c = 0; c < mean_.size(); ++c) {
      const double apart = other.mean_[c] - mean_[c];
      squares_[c] += other.squares_[c] + detail::rounded_product(own / all * theirs, apart * apart);
      const double mean = mean_[c] + detail::rounded_product(theirs / all, apart);
      mean_[c] = detail::within_range(mean, {mean_[c], other.mean_[c]}, [&] {
        using wide = detail::wide_number;
        return wide(mean_[c]) + wide(theirs / all) * (wide(other.mean_[c]) - wide(mean_[c]));
      });
    }
    count_ += other.count_;
  }

  /// Number of values seen of each channel.
  std::int64_t count() const noexcept { return count_; }
  const std::vector<double>& mean() const noexcept { return mean_; }
  /// Mean squared distance from the mean, which a batch norm divides by; 0 before anything is
  /// added.
  std::vector<double> variance() const { return divided_by(count_); }
  /// With count - 1 as divisor: PyTorch's running_var.
  ///
  /// Throws  error when fewer than two values were added.
  std::vector<double> unbiased_variance() const {
    if (count_ < 2) {
      detail::fail("subfed: channel_moments: an unbiased variance of " + std::to_string(count_) +
                   " values");
    }
    return divided_by(count_ - 1);
  }

 private:
  /// Whether the square of a mean's last digit may be too large, or the sum was.
  static bool is_large(double mean) noexcept {
    return !detail::is_finite_double(mean) || mean > 0x1p400 || mean < -0x1p400;
  }
  /// The means of such channels again. Equal values have theirs to the last digit: they would seem far
  /// apart without it.
  template <class ForEach>
  void find_large_means(ForEach&& for_each) {
    constexpr double down = 0x1p-64;  // 2^63 values have a sum then
    constexpr double largest = (std::numeric_limits<double>::max)();
    const auto count = static_cast<double>(count_);
    const auto to_double = [](double scaled) {
      const double out = scaled / down;
      if (detail::is_finite_double(out) || !detail::is_finite_double(scaled)) return out;
      return scaled < 0 ? -largest : largest;
    };
    std::vector<double> sums(mean_.size(), 0.0), rest(mean_.size(), 0.0);
    for_each([&](std::size_t c, double x) { sums[c] += x * down; });
    for (double& s : sums) s /= count;
    for_each([&](std::size_t c, double x) { rest[c] += x * down - sums[c]; });
    for (std::size_t c = 0; c < sums.size(); ++c) {
      if (is_large(mean_[c])) mean_[c] = to_double(sums[c] + rest[c] / count);
    }
  }

  std::vector<double> divided_by(std::int64_t divisor) const {
    const detail::float_mode mode;
    std::vector<double> out = squares_;
    for (double& s : out) s = divisor == 0 ? 0 : s / static_cast<double>(divisor);
    return out;
  }

  std::int64_t count_ = 0;
  std::vector<double> mean_, squares_;
};

}  // namespace subfed::inline v0
