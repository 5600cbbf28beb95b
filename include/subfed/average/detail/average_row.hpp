// SPDX-License-Identifier: MIT
/// What all ways of averaging a row share: the state, and how a result is written.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/copy_mean.hpp>
#include <subfed/average/detail/fixed_terms.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/layout.hpp>
#include <subfed/average/detail/stream.hpp>
#include <subfed/average/detail/terms.hpp>
#include <subfed/average/detail/variants.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/scalar.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace subfed::inline v0::detail {

/// A row is one index of all dimensions but the innermost. With very large or small doubles, a sum
/// or a product can leave the range of double. Weights have been scaled so that nothing gets too
/// small. Where a result is not finite, the element is averaged again, carefully, in numbers with
/// unbounded exponents.
template <class T, class From>
class average_row {
 protected:
  average_row(T* global, const average_layout<From>& layout, const average_terms& terms)
      : global_(global),
        layout_(layout),
        terms_(terms),
        holders_(layout.levels().size() * layout.participants().size()) {
    plain_ = terms.is_plain();
    double largest = terms.largest;
    for (const auto& p : layout.participants()) {
      if (!(p.data == nullptr)) largest = (std::max)(largest, largest_at(p.data));
    }
    if (terms.options.sums && !terms.has_sums()) {
      for (const auto& p : layout.participants()) {
        rules_.emplace_back(*terms.options.sums, p.weight);
      }
      fixed_.resize(static_cast<std::size_t>(tile));
    }
    largest = terms.largest_of_values(largest);
    checked_ = !plain_ || largest > largest_of<T>();
    mended_ = !checked_ && is_far_reaching(largest);
    lanes_ = std::is_same_v<T, From> && in_lanes<T>();
    const auto is_ordinary = [](const auto& p) {
      return p.weight > power_of_two(-420) && p.weight < power_of_two(420);
    };
    if (sizeof(T) <= 4 && !terms.has_sums() &&
        std::all_of(layout.participants().begin(), layout.participants().end(), is_ordinary)) {
      how_ = division::by_reciprocal;
    }
    if constexpr (std::is_same_v<T, From> && copies_as_mean<T>) {
      copies_ = how_ == division::by_reciprocal && layout.contiguous() && !checked_ && !mended_ &&
                !makes_terms() && !skips_elements() && !terms.wide;
    }
  }
  ~average_row() = default;

  static constexpr bool is_mixed = std::is_same_v<From, any_element>;
  /// 16-bit types are widened and narrowed in separate loops: compilers vectorise these, but not
  /// one loop that does everything. The same holds for types that are known at run time.
  static constexpr bool convert_apart = sizeof(T) == 2 || is_mixed;
  static constexpr std::int64_t tile = 1024;  // doubles: 8 KiB of sums and at most 8 KiB of weights

  struct holder {
    std::size_t participant;
    std::int64_t offset;  // into its data
  };

  const average_level& inner() const noexcept { return layout_.levels().back(); }
  /// Where the holders of a level are; as many as of_level_ says.
  holder* holders_at(std::size_t level) noexcept {
    return holders_.data() + level * layout_.participants().size();
  }
  std::span<const holder> row_holders() noexcept {
    const std::size_t last = layout_.levels().size() - 1;
    return {holders_at(last), of_level_[last]};
  }

  bool skips_elements() const noexcept {
    return terms_.options.on_non_finite == non_finite::skip_element && !terms_.has_sums();
  }
  /// Whether fixed-point sums are made here.
  bool makes_terms() const noexcept { return !rules_.empty(); }

  /// Nothing (-0), or the sums that were there before.
  void start_tile(std::int64_t sum_offset, std::int64_t length) {
    if (makes_terms()) std::fill_n(fixed_.data(), length, std::int64_t{0});
    if (!terms_.has_sums()) {
      std::fill_n(sums_.data(), length, -0.0);
      return;
    }
    for (std::int64_t i = 0; i < length; ++i) {
      sums_[static_cast<std::size_t>(i)] = terms_.sum_at(sum_offset + i * inner().sum_stride);
    }
  }

  /// Adds elements of a participant to the tile, from its element number `at` on.
  void add_to_tile(std::size_t participant, element_pointer_t<From> from, std::int64_t stride,
                   std::int64_t at, std::int64_t length) {
    if (makes_terms()) {
      add_terms(from, stride, rules_[participant], fixed_.data() + at, 1, length);
    } else {
      accumulate(from, stride, layout_.participants()[participant].weight, sums_.data() + at, 1,
                 length);
    }
  }

  /// After the last addition: the sums of a tile as doubles.
  void finish_tile(std::int64_t length) {
    if (!makes_terms()) return;
    for (std::int64_t i = 0; i < length; ++i) {
      const auto at = static_cast<std::size_t>(i);
      sums_[at] = value_of_sum(fixed_[at], terms_.quantum);
    }
  }

  /// Elements of the row from `first` on: new values from sums[i] and the holders' weight.
  void write(std::int64_t first, const double* sums, double weight, std::int64_t length) {
    using traits = scalar_traits<T>;
    const std::int64_t stride = inner().global_stride;
    T* const out = global_ + row_global_ + first * stride;
    if (checked_) {
      const bool takes = !plain_ && takes_old(terms_, weight);
      for (std::int64_t i = 0; i < length; ++i) {
        const double old = takes ? traits::load(out[i * stride]) : 0;
        const double value = plain_ ? sums[i] / weight : combined(terms_, sums[i], weight, old);
        if (!is_finite_double(value) || (!plain_ && loses_old(terms_, weight, old))) {
          again(first + i);
        } else {
          put(first + i, value);
        }
      }
    } else if (stride == 1) {
      if constexpr (has_lanes<T>) {
        if (in_lanes<T>()) {
          return mean_streams<T>(nullptr, 0, true, sums, divider(weight), division::by_instruction,
                                 out, length);
        }
      }
      for (std::int64_t i = 0; i < length; ++i) out[i] = traits::store(sums[i] / weight);
    } else {
      for (std::int64_t i = 0; i < length; ++i) out[i * stride] = traits::store(sums[i] / weight);
    }
  }

  /// Writes a result from finite values, or counts that it is too large for its type.
  void put(std::int64_t i, double value) {
    using traits = scalar_traits<T>;
    const T stored = traits::store(value);
    if (!traits::is_finite(stored)) {
      report_.count_overflow(row_sum_ + i * inner().sum_stride);
    }
    if (terms_.does == pass::writes) {
      global_[row_global_ + i * inner().global_stride] = stored;
    }
  }

  /// Elements first .. last-1 of the row have been written: averages those again that are not finite.
  void mend(std::int64_t first, std::int64_t last) {
    if constexpr (is_far_reaching(largest_of<T>())) {
      if (!mended_) return;
      const std::int64_t stride = inner().global_stride;
      const T* const out = global_ + row_global_;
      // An exponent of all ones overflows into the sign.
      constexpr std::uint64_t exponent = 0x7FF0000000000000u;
      std::uint64_t any = 0;
      const auto look = [&](T element) {
        const double x = scalar_traits<T>::load(element);
        any |= (std::bit_cast<std::uint64_t>(x) & exponent) + (std::uint64_t{1} << 52);
      };
      if (stride == 1) {
        for (std::int64_t i = first; i < last; ++i) look(out[i]);
      } else {
        for (std::int64_t i = first; i < last; ++i) look(out[i * stride]);
      }
      if (any >> 63 == 0) return;
      for (std::int64_t i = first; i < last; ++i) {
        if (!scalar_traits<T>::is_finite(out[i * stride])) again(i);
      }
    }
  }

  /// careful() for an element that has been counted.
  void again(std::int64_t i) {
    const std::int64_t skipped = report_.skipped;
    careful(i);
    report_.skipped = skipped;
  }

  /// Element i of the row in numbers with unbounded exponents. False: nobody holds it.
  bool careful(std::int64_t i) {
    using traits = scalar_traits<T>;
    const std::int64_t unit = inner().unit;
    const std::int64_t node = i / unit;
    const std::int64_t sum_offset = row_sum_ + i * inner().sum_stride;
    wide_number sum, weight;
    double odd = 0;  // what is not finite
    const auto add = [&](double factor, double x) {
      if (is_finite_double(x)) {
        sum = sum + wide_number(factor) * wide_number(x);
      } else {
        odd += x;
      }
    };
    if (terms_.has_sums()) add(1, terms_.sum_at(sum_offset));
    std::int64_t fixed_sum = 0;
    for (const holder& h : row_holders()) {
      const std::span<const subfed::run> runs = inner().runs_of(h.participant);
      const auto r = std::partition_point(runs.begin(), runs.end(), [node](const subfed::run& x) {
        return x.first + x.length <= node;
      });
      if (r == runs.end() || r->first > node) continue;
      const auto& p = layout_.participants()[h.participant];
      if (!(p.data == nullptr)) {
        const std::int64_t position = (r->position + node - r->first) * unit + i % unit;
        const double x = load_at(p.data + (h.offset + position * inner().strides[h.participant]));
        if (skips_elements() && !is_finite_double(x)) {
          ++report_.skipped;
          continue;
        }
        if (makes_terms()) {
          fixed_sum += rules_[h.participant](x);
        } else {
          add(p.weight, x);
        }
      }
      weight = weight + wide_number(p.weight);
    }
    if (weight.is_zero()) return false;
    if (makes_terms()) sum = wide_number(value_of_sum(fixed_sum, terms_.quantum));
    T& element = global_[row_global_ + i * inner().global_stride];
    const double old = plain_ || !takes_old(terms_, weight.value()) ? 0 : traits::load(element);
    if (is_finite_double(odd) && is_finite_double(old)) {
      put(i, careful_value(terms_, sum, weight, old));
    } else if (terms_.does == pass::writes) {
      odd += is_finite_double(old) ? 0 : sum.value();
      element = traits::store(plain_ ? odd : combined(terms_, odd, weight.value(), old));
    }
    return true;
  }

  T* global_;
  const average_layout<From>& layout_;
  average_terms terms_;
  bool plain_;
  bool checked_;         // results may be too large for T
  bool mended_;          // sums may be too large
  bool lanes_ = false;   // vector loops are in use
  bool copies_ = false;  // elements with one holder are copied
  division how_ = division::by_instruction;
  std::int64_t row_global_ = 0;  // offsets of the row in the global tensor and its sums
  std::int64_t row_sum_ = 0;
  std::vector<holder> holders_;                   // of each level; the last: of the row
  std::array<std::size_t, max_rank> of_level_{};  // how many they are
  bool holders_are_new_ = true;                   // since a row was cut into segments
  // Without values at first: 16 KiB, of which many rows need nothing.
  std::array<double, tile> sums_;
  std::array<double, tile> weights_;
  std::vector<term_rule> rules_;     // of each participant, where fixed-point sums are made here
  std::vector<std::int64_t> fixed_;  // a tile of them
  part_report report_;
};

}  // namespace subfed::inline v0::detail
