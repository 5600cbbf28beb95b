// SPDX-License-Identifier: MIT
/// Rows of random sets in vectors: each holder's elements are spread over a vector by a mask.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/fixed_terms.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/layout.hpp>
#include <subfed/average/detail/segment_row.hpp>
#include <subfed/average/detail/variants.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace subfed::inline v0::detail {

/// Used where the layout has masks, nothing has to be checked and options do not need the old values.
template <class T, class From>
class mask_row : protected segment_row<T, From> {
 protected:
  using base = segment_row<T, From>;
  ~mask_row() = default;
  using base::checked_;
  using base::finish_tile;
  using base::fixed_;
  using base::global_;
  using base::holders_are_new_;
  using base::how_;
  using base::inner;
  using base::is_mixed;
  using base::lanes_;
  using base::layout_;
  using base::makes_terms;
  using base::report_;
  using base::rules_;
  using base::skips_elements;
  using base::start_tile;
  using base::sums_;
  using base::terms_;
  using base::tile;
  using typename base::holder;

  mask_row(T* global, const average_layout<From>& layout, const average_terms& terms)
      : base(global, layout, terms) {
    ones_ = may_group<T>(layout.participants().size());
    for (const auto& p : layout.participants()) ones_ = ones_ && p.weight == 1;
  }

  /// For the nodes begin .. end-1 of a row. Parts of a row must not share a block of 16 elements.
  bool masks_apply(std::int64_t begin, std::int64_t end) const noexcept {
    const std::int64_t unit = inner().unit;
    return (lanes_ || is_mixed) && !layout_.masks().empty() && !checked_ && !skips_elements() &&
           begin * unit % 16 == 0 && (end == inner().extent || end * unit % 16 == 0);
  }

  /// Nodes begin .. end-1 of a row.
  ///
  /// Pre  masks_apply(begin, end)
  void masked_row_mean(std::span<const holder> holders, std::int64_t global_offset,
                       std::int64_t sum_offset, std::int64_t begin, std::int64_t end) {
    const std::int64_t unit = inner().unit;
    const std::int64_t first = begin * unit;
    if (holders_are_new_) find_masks(holders, first);
    holders_are_new_ = false;
    if (terms_.has_sums()) {
      divide_row(global_offset + first, sum_offset + first, end * unit - first);
      return;
    }
    for (std::size_t h = 0; h < holders.size(); ++h) {
      const auto& [data, size, dense_size] = data_[h];
      if constexpr (!is_mixed) masked_[h].data = data + holders[h].offset;
      masked_[h].limit = dense_size != 0 ? dense_size - holders[h].offset : size;
    }
    if (is_mixed || makes_terms()) {
      spread_mean(holders, global_offset + first, end * unit - first);
      return;
    }
    const bool looked_up = holders.size() < reciprocals_.size() && how_ == division::by_reciprocal;
    if constexpr (!is_mixed) {
      report_.held += masked_mean(masked_row<T>{
          masked_.data(), masked_.size(), full_, ones_, looked_up ? reciprocals_.data() : nullptr,
          global_ + global_offset + first, end * unit - first});
    }
  }

  bool ones_;  // all weights are 1, and the participants may_group

 private:
  /// What rows with the same holders share.
  void find_masks(std::span<const holder> holders, std::int64_t first) {
    masked_.clear();
    data_.clear();
    full_ = 0;
    for (const holder& h : holders) {
      const auto& p = layout_.participants()[h.participant];
      const element_masks& own = layout_.masks()[inner().shape_of[h.participant]];
      const bool has_all = own.size == inner().extent * inner().unit;
      full_ += has_all ? 1u : 0u;
      const bool has_data = !terms_.has_sums();
      data_.push_back({p.data, own.size, has_data ? layout_.dense_size(h.participant) : 0});
      masked_.push_back({nullptr, own.masks.data() + first / 16, own.starts.data() + first / 16,
                         own.size, p.weight, has_all});
    }
  }

  /// Elements of a row from the sums that are there, with the masks that have been found.
  void divide_row(std::int64_t global_offset, std::int64_t sum_offset, std::int64_t length) {
    if (terms_.sums != nullptr) {
      divide(terms_.sums + sum_offset, global_offset, length);
      return;
    }
    for_each_tile(length, [&](std::int64_t at, std::int64_t here) {
      start_tile(sum_offset + at, here);
      divide(sums_.data(), global_offset + at, here);
    });
  }

  /// The same from sums of each holder's elements as floats, in fixed point or in double.
  void spread_mean(std::span<const holder> holders, std::int64_t global_offset,
                   std::int64_t length) {
    dense_row_.resize(static_cast<std::size_t>(tile));
    for_each_tile(length, [&](std::int64_t at, std::int64_t here) {
      start_tile(0, here);
      for (std::size_t h = 0; h < holders.size(); ++h) {
        const auto& own = masked_[h];
        if constexpr (is_mixed) {
          spread(data_[h].all + holders[h].offset,
                 {nullptr, own.masks, own.starts, own.limit, own.weight, own.has_all}, here,
                 dense_row_.data());
        } else {
          spread_masked(own, here, dense_row_.data());
        }
        const float* const row = dense_row_.data();
        if (makes_terms()) {
          add_terms(row, 1, rules_[holders[h].participant], fixed_.data(), 1, here);
        } else {
          accumulate(row, 1, own.weight, sums_.data(), 1, here);
        }
      }
      finish_tile(here);
      divide(sums_.data(), global_offset + at, here);
    });
  }

  /// Calls f(first element, how many) for parts of a row, of which the masks are meanwhile.
  template <class F>
  void for_each_tile(std::int64_t length, F&& f) {
    const auto go_on = [&](std::int64_t elements) {
      for (auto& own : masked_) {
        own.masks += elements / 16;
        own.starts += elements / 16;
      }
    };
    for (std::int64_t at = 0; at < length; at += tile) {
      go_on(at);
      f(at, (std::min)(tile, length - at));
      go_on(-at);
    }
  }

  void divide(const double* sums, std::int64_t global_offset, std::int64_t length) {
    report_.held += divide_masked(masked_row<T>{masked_.data(), masked_.size(), full_, ones_,
                                                nullptr, global_ + global_offset, length},
                                  sums);
  }

  /// Of a holder, beside its masks.
  struct holder_data {
    element_pointer_t<From> all;
    std::int64_t size;        // in a row
    std::int64_t dense_size;  // of all rows; 0: there are gaps between them
  };
  static constexpr std::array<double, 16> reciprocals_ = [] {
    std::array<double, 16> out{1};
    for (std::size_t n = 1; n < out.size(); ++n) out[n] = 1 / static_cast<double>(n);
    return out;
  }();
  std::vector<masked_holder<T>> masked_;
  std::vector<holder_data> data_;
  std::size_t full_ = 0;  // holders of all elements of a row
  std::vector<float> dense_row_;
};

}  // namespace subfed::inline v0::detail
