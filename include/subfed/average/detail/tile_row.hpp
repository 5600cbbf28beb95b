// SPDX-License-Identifier: MIT
/// Rows whose holders change from node to node, through a tile.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/layout.hpp>
#include <subfed/average/detail/node_row.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/index_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// Clients are added one after the other to a tile of sums that stays in the L1 cache, and there is
/// one weight per unit: the elements of a merged inner dimension (the kernel of a convolution)
/// share it. Clients' elements of other types (From: any_element) are converted on their way into
/// the tile.
template <class T, class From>
class tile_row : protected node_row<T, From> {
 protected:
  using base = node_row<T, From>;
  using base::add_to_tile;
  using base::base;
  using base::finish_tile;
  using base::fixed_;
  using base::makes_terms;
  using base::rules_;
  ~tile_row() = default;
  using base::checked_;
  using base::global_;
  using base::inner;
  using base::layout_;
  using base::mend;
  using base::plain_;
  using base::report_;
  using base::skips_elements;
  using base::start_tile;
  using base::sums_;
  using base::terms_;
  using base::weights_;
  using base::write;
  using typename base::holder;

  /// Nodes begin .. end-1 of a row whose holders change from node to node.
  void scattered_mean(std::span<const holder> holders, std::int64_t global_offset,
                      std::int64_t sum_offset, std::int64_t begin, std::int64_t end) {
    const std::int64_t unit = inner().unit;
    const bool by_element = skips_elements();
    const bool fast = plain_ && !by_element && layout_.contiguous() && !makes_terms();
    const double* sums = sums_.data();
    if (fast && terms_.sums != nullptr) {
      sums = terms_.sums + sum_offset + begin * unit;
    } else {
      start_tile(sum_offset + begin * unit * inner().sum_stride, (end - begin) * unit);
    }
    // There is one weight per unit, or per element where single elements may be left out.
    const std::int64_t weight_unit = by_element ? std::int64_t{1} : unit;
    std::fill_n(weights_.data(), (end - begin) * unit / weight_unit, 0.0);

    if (fast && unit == 1) {
      add_holders<1>(holders, begin, end);
    } else if (fast && unit == 9) {
      add_holders<9>(holders, begin, end);
    } else {
      add_holders<0>(holders, begin, end);
      finish_tile((end - begin) * unit);
    }

    T* const out = global_ + global_offset + begin * unit * inner().global_stride;
    if (fast && !checked_ && unit == 1) {
      report_.held += divide_each(sums, weights_.data(), out, end - begin);
    } else if (fast && !checked_ && unit == 9) {
      divide_units<9>(sums, out, end - begin);
    } else {
      if (sums != sums_.data()) std::copy_n(sums, (end - begin) * unit, sums_.data());
      write_units(begin * unit, weight_unit, (end - begin) * unit);
    }
    mend(begin * unit, end * unit);
  }

  /// Adds what the holders have of the nodes begin .. end-1 to the tile. U: the unit of a contiguous
  /// layout of which all elements take part, or 0.
  template <std::int64_t U>
  void add_holders(std::span<const holder> holders, std::int64_t begin, std::int64_t end) {
    const std::int64_t unit = U != 0 ? U : inner().unit;
    const bool by_element = skips_elements();
    for (const holder& h : holders) {
      const auto& p = layout_.participants()[h.participant];
      const std::int64_t stride = inner().strides[h.participant];
      const std::span<const subfed::run> runs = inner().runs_of(h.participant);
      auto r = std::partition_point(runs.begin(), runs.end(), [begin](const subfed::run& x) {
        return x.first + x.length <= begin;
      });
      for (; r != runs.end() && r->first < end; ++r) {
        const std::int64_t from = (std::max)(r->first, begin);
        const std::int64_t length = (std::min)(r->first + r->length, end) - from;
        element_pointer_t<From> data{};
        if (!(p.data == nullptr)) {
          data = p.data + (h.offset + (r->position + from - r->first) * unit * stride);
        }
        if (U == 0 && skips_elements()) {
          add_finite(h.participant, data, stride, (from - begin) * unit, length * unit);
          continue;
        }
        if (!(data == nullptr)) {
          if constexpr (U != 0) {
            accumulate_units<U>(data, p.weight, sums_.data() + (from - begin) * unit, length);
          } else {
            add_to_tile(h.participant, data, stride, (from - begin) * unit, length * unit);
          }
        }
        const std::int64_t repeat = by_element ? unit : 1;
        double* const weights = weights_.data() + (from - begin) * repeat;
        for (std::int64_t i = 0; i < length * repeat; ++i) weights[i] += p.weight;
      }
    }
  }

  /// Writes units of U elements from the tile; those without weight keep their bits.
  template <std::int64_t U>
  void divide_units(const double* sums, T* out, std::int64_t units) {
    if constexpr (has_lanes<T>) {
      if (in_lanes<T>()) {
        for (std::int64_t n = units; n-- > 0;) {  // a weight for each element
          const double weight = weights_[static_cast<std::size_t>(n)];
          std::fill_n(weights_.data() + n * U, U, weight);
        }
        report_.held += divide_each(sums, weights_.data(), out, units * U);
        return;
      }
    }
    divider by(1);
    for (std::int64_t n = 0; n < units; ++n) {
      const double weight = weights_[static_cast<std::size_t>(n)];
      if (!(weight > 0)) continue;
      if (weight != by.weight) by = divider(weight);
      divide_unit<U>(sums + n * U, by, out + n * U);
      report_.held += U;
    }
  }

  void add_finite(std::size_t participant, element_pointer_t<From> data, std::int64_t stride,
                  std::int64_t at, std::int64_t length) {
    const double weight = layout_.participants()[participant].weight;
    for (std::int64_t i = 0; i < length; ++i) {
      const double x = load_at(data + i * stride);
      if (!is_finite_double(x)) {
        ++report_.skipped;
        continue;
      }
      const auto to = static_cast<std::size_t>(at + i);
      if (makes_terms()) {
        fixed_[to] += rules_[participant](x);
      } else {
        sums_[to] += rounded_product(weight, x);
      }
      weights_[to] += weight;
    }
  }

  /// Elements of the row from `first` on, with one weight for each unit, in the tile; those without
  /// weight keep their bits.
  void write_units(std::int64_t first, std::int64_t unit, std::int64_t length) {
    for (std::int64_t i = 0; i < length; i += unit) {
      const double weight = weights_[static_cast<std::size_t>(i / unit)];
      if (!(weight > 0)) continue;
      report_.held += unit;
      write(first + i, sums_.data() + i, weight, unit);
    }
  }
};

}  // namespace subfed::inline v0::detail
