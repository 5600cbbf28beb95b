// SPDX-License-Identifier: MIT
/// What a streaming average keeps of one tensor: sums, integers and counters, and a weight for
/// every element where the holders do not give it.
#pragma once

#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/counter_merge.hpp>
#include <subfed/average/detail/dense_row.hpp>
#include <subfed/average/detail/fixed_terms.hpp>
#include <subfed/average/detail/holder_list.hpp>
#include <subfed/average/detail/integer_merge.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/weight_scale.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/element_format.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/index_set.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace subfed::inline v0::detail {

/// The sums of one tensor from before.
struct tensor_state {
  const double* sums = nullptr;              ///< null where they are in fixed point
  const std::int64_t* fixed_sums = nullptr;  ///< null where they are doubles
  const double* weights = nullptr;           ///< null while the members have them
  const integer_merge* integers = nullptr;
  const counter_merge* counters = nullptr;
  std::int64_t exponent = 0;  ///< the sums are stored times 2 to its power
  double largest = 0;         ///< the largest number of the types of what was added
};

/// Allocates memory whose numbers have no value until they are written.
template <class Number>
struct unset_allocator : std::allocator<Number> {
  template <class Other>
  struct rebind {
    using other = unset_allocator<Other>;
  };
  template <class Other>
  void construct(Other*) noexcept {}
};
template <class Number>
using sum_memory = std::vector<Number, unset_allocator<Number>>;

/// Copies numbers of 8 bytes past the cache where that is possible.
template <class Number>
void copy_past_cache(const Number* from, std::int64_t length, Number* to) noexcept {
  std::int64_t i = 0;
#if defined(__SSE2__)
  for (; i < length && reinterpret_cast<std::uintptr_t>(to + i) % 16 != 0; ++i) to[i] = from[i];
  for (; i + 2 <= length; i += 2) {
    const void* const source = from + i;
    void* const target = to + i;
    _mm_stream_si128(static_cast<__m128i*>(target),
                     _mm_loadu_si128(static_cast<const __m128i*>(source)));
  }
  _mm_sfence();
#endif
  for (; i < length; ++i) to[i] = from[i];
}

/// An update's part in the sums of one tensor.
template <class U>
struct addend {
  selection held;
  const tensor_view<const U>* tensor;
  double weight;
  bool skips;  ///< it has elements that are not finite, which are left out
};

/// Empty until something is added.
struct tensor_sums {
  std::optional<element_format> format = {};
  sum_memory<double> sums = {};              ///< times 2 to the power of range.exponent
  sum_memory<std::int64_t> fixed_sums = {};  ///< instead of them, under options.sums
  std::vector<double> weights = {};          ///< empty, or one for every sum
  integer_merge integers = {};
  counter_merge counters = {};  ///< of a counter in floating point, which has no sums
  product_range range = {};
  double largest = 0;  ///< the largest number of the types that were added

  bool has_sums() const noexcept { return !sums.empty() || !fixed_sums.empty(); }
  void begin_fixed_sums(std::span<const std::int64_t> extents) {
    if (fixed_sums.empty()) fixed_sums.resize(memory_size<std::int64_t>(extents), 0);
  }
  void begin_sums_like(const tensor_sums& other) {
    if (sums.empty()) sums.resize(other.sums.size(), -0.0);
    if (fixed_sums.empty()) fixed_sums.resize(other.fixed_sums.size(), 0);
  }
  /// From now on every sum has its own weight. Pre: nothing has been added.
  void begin_weights(std::span<const std::int64_t> extents) {
    if (weights.empty()) weights.resize(memory_size<double>(extents), 0.0);
  }

  /// Takes the memory that adding will need, large as the tensor, before anything changes.
  void reserve_sums(std::span<const std::int64_t> extents, bool fixed, bool with_weights) {
    if (fixed) {
      fixed_sums.reserve(memory_size<std::int64_t>(extents));
    } else {
      sums.reserve(memory_size<double>(extents));
    }
    if (with_weights) weights.reserve(memory_size<double>(extents));
  }

  /// Multiplies sums by another power of two. Nothing is rounded.
  void move_to(const product_range& to) {
    const std::int64_t step = to.exponent - range.exponent;
    if (step != 0) {
      for (double& x : sums) x = scaled(x, step);
    }
    range = to;
  }

  /// Adds a weight at the elements that a selection holds.
  void add_weight(const selection& held, double weight) {
    const loop_nest walk(held);
    walk.for_each([&](std::int64_t g, std::int64_t, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) weights[at(g + i * walk.global_stride())] += weight;
    });
  }

  /// From now on every sum has its own weight: that of the holders so far.
  void keep_weights(tensor_id id, const holder_list& holders) {
    if (!weights.empty() || !has_sums()) return;
    weights.resize((std::max)(sums.size(), fixed_sums.size()), 0.0);
    for (const auto& e : holders.entries()) add_weight(e.sub[id], e.weight);
  }

  /// The same for those that are finite.
  template <class E>
  void add_finite_weights(const selection& held, std::span<const std::int64_t> extents,
                          const tensor_view<const E>& tensor, double weight) {
    const loop_nest walk(held, extents, tensor);
    walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        if (!scalar_traits<E>::is_finite(tensor.data_handle()[l + i * walk.local_stride()]))
          continue;
        weights[at(g + i * walk.global_stride())] += weight;
      }
    });
  }

  /// The weight of an update, where weights are kept; partly: elements that are not finite were left out.
  template <class E>
  void add_weights(const selection& held, std::span<const std::int64_t> extents,
                   const tensor_view<const E>& tensor, double weight, bool partly) {
    if (weights.empty()) return;
    if constexpr (averageable<E>) {
      if (partly) return add_finite_weights(held, extents, tensor, weight);
    }
    add_weight(held, weight);
  }

  /// Adds updates' tensors, in their order, which have the same power of two; weights too where they
  /// are kept.
  template <class U>
  void add(std::span<const addend<U>> updates, std::span<const std::int64_t> extents) {
    const bool is_new = sums.empty();
    if (is_new) sums.resize(memory_size<double>(extents));
    std::vector<double> factors;
    for (const addend<U>& a : updates) {
      factors.push_back(factor_of(a.weight));
      with_type(*a.tensor, [&]<class E>(const tensor_view<const E>&) {
        if constexpr (averageable<E>) largest = (std::max)(largest, largest_of<E>());
      });
    }
    add_in_tiles(updates, extents, is_new, sums, -0.0, [&](std::size_t number) {
      return [factor = factors[number]](const auto* from, std::int64_t stride, double* to,
                                        std::int64_t sum_stride, std::int64_t length) {
        accumulate(from, stride, factor, to, sum_stride, length);
      };
    });
  }

  /// Adds them to fixed-point sums. With negated rules the updates are taken back, to the bit. beyond: how
  /// many values of each are beyond the bound.
  template <class U>
  void add(std::span<const addend<U>> updates, std::span<const std::int64_t> extents,
           std::span<const term_rule> rules, std::span<std::int64_t> beyond) {
    const bool is_new = fixed_sums.empty();
    if (is_new) fixed_sums.resize(memory_size<std::int64_t>(extents));
    add_in_tiles(updates, extents, is_new, fixed_sums, std::int64_t{0}, [&](std::size_t number) {
      return [rule = rules[number], &count = beyond[number]](
                 const auto* from, std::int64_t stride, std::int64_t* to, std::int64_t sum_stride,
                 std::int64_t length) {
        count += add_terms(from, stride, rule, to, sum_stride, length);
      };
    });
  }

  /// Adds the sums and weights of another average.
  ///
  /// Pre  begin_sums_like(more); the range holds the products of both; weights are kept where more
  ///      keeps them.
  void merge_sums(const tensor_sums& more) {
    largest = (std::max)(largest, more.largest);
    const std::int64_t step = range.exponent - more.range.exponent;
    for (std::size_t i = 0; i < more.sums.size(); ++i) {
      sums[i] += step == 0 ? more.sums[i] : scaled(more.sums[i], step);
    }
    for (std::size_t i = 0; i < more.fixed_sums.size(); ++i) fixed_sums[i] += more.fixed_sums[i];
    for (std::size_t i = 0; i < more.weights.size(); ++i) weights[i] += more.weights[i];
  }

  tensor_state state() const {
    return {sums.empty() ? nullptr : sums.data(),
            fixed_sums.empty() ? nullptr : fixed_sums.data(),
            weights.empty() ? nullptr : weights.data(),
            &integers,
            &counters,
            range.exponent,
            largest};
  }

  /// As before the first addition; the memory for the sums is kept.
  void forget_sums() {
    sums.clear();
    fixed_sums.clear();
    weights.clear();
  }

  /// Forgets what was added; the memory for the sums is kept.
  void clear() {
    forget_sums();
    format.reset();
    range = {};
    largest = 0;
    integers = {};
    counters = {};
  }

 private:
  /// Calls make_put(number of an update)(elements, their stride, sums, stride of the sums, length) for all
  /// runs of the updates, tile by tile: a tile's sums stay in the cache until all updates are in them. New
  /// sums begin with `nothing` in a tile of their own, from where they go past the cache.
  template <class U, class Number, class MakePut>
  void add_in_tiles(std::span<const addend<U>> updates, std::span<const std::int64_t> extents,
                    bool is_new, sum_memory<Number>& all, Number nothing, MakePut&& make_put) {
    std::vector<loop_nest> walks;
    std::vector<row_spread> spreads;
    for (const addend<U>& a : updates) {
      with_type(*a.tensor, [&]<class E>(const tensor_view<const E>& tensor) {
        const loop_nest& walk = walks.emplace_back(a.held, extents, tensor);
        spreads.push_back(a.skips ? row_spread() : row_spread::of<E>(walk));
      });
    }
    bool any = false;
    const auto add_between = [&](std::int64_t begin, std::int64_t end, Number* into) {
      for (std::size_t number = 0; number < updates.size(); ++number) {
        const addend<U>& a = updates[number];
        const loop_nest& walk = walks[number];
        const std::int64_t to = walk.global_stride();
        const std::int64_t step = walk.local_stride();
        const auto put = make_put(number);
        with_type(*a.tensor, [&]<class E>(const tensor_view<const E>& tensor) {
          if constexpr (averageable<E>) {
            const E* const data = tensor.data_handle();
            if (spreads[number].applies()) {
              dense_row<E> dense(spreads[number]);
              const E* const data_end = tensor.is_row_major() ? data + tensor.size() : nullptr;
              walk.for_each_row_between(begin, end, [&](std::int64_t g, std::int64_t l) {
                any = true;
                const E* const row_end = data + l + walk.elements_a_row();
                dense(data + l, data_end != nullptr ? data_end : row_end,
                      [&](const auto* row, std::int64_t length) {
                        put(row, 1, into + (g - begin), 1, length);
                      });
                if (weights.empty()) return;
                for (const run& r : walk.row_runs()) {
                  double* const own = weights.data() + (g + r.first);
                  for (std::int64_t i = 0; i < r.length; ++i) own[i] += a.weight;
                }
              });
              return;
            }
            if (!a.skips && weights.empty()) {
              walk.for_each_between(begin, end,
                                    [&](std::int64_t g, std::int64_t l, std::int64_t n) {
                                      any = true;
                                      put(data + l, step, into + (g - begin), to, n);
                                    });
              return;
            }
            const auto add_run = [&](const E* from, std::int64_t g, std::int64_t length) {
              put(from, step, into + (g - begin), to, length);
              if (weights.empty()) return;
              for (std::int64_t i = 0; i < length; ++i) weights[at(g + i * to)] += a.weight;
            };
            walk.for_each_between(begin, end, [&](std::int64_t g, std::int64_t l, std::int64_t n) {
              any = true;
              const E* const from = data + l;
              if (!a.skips) return add_run(from, g, n);
              for (std::int64_t i = 0; i < n; ++i) {
                if (!scalar_traits<E>::is_finite(from[i * step])) continue;
                add_run(from + i * step, g + i * to, 1);
              }
            });
          }
        });
      }
    };
    const std::int64_t size = static_cast<std::int64_t>(all.size());
    std::int64_t unit = 0;  // what an index of the first dimension of several indices spans
    for (std::size_t r = 0; unit == 0 && r < extents.size(); ++r) {
      if (extents[r] > 1) unit = size / extents[r];
    }
    constexpr std::int64_t tile_sums = 1 << 14;
    std::int64_t tile = size;
    if (unit != 0 && (is_new || updates.size() > 1)) {
      tile = (std::max)(tile_sums / unit, std::int64_t{1}) * unit;
    }
    constexpr std::int64_t longest = 1 << 17;
    const bool apart = is_new && tile <= longest;
    if (is_new && !apart) std::fill(all.begin(), all.end(), nothing);
    sum_memory<Number> own;
    if (apart) own.resize(at((std::min)(tile, size)), nothing);
    for (std::int64_t begin = 0; begin < size; begin += tile) {
      const std::int64_t end = (std::min)(begin + tile, size);
      if (!apart) {
        add_between(begin, end, all.data() + begin);
        continue;
      }
      any = false;
      add_between(begin, end, own.data());
      copy_past_cache(own.data(), end - begin, all.data() + begin);
      if (any) std::fill(own.begin(), own.end(), nothing);
    }
  }

  /// The factor for values.
  double factor_of(double weight) const noexcept { return scaled(weight, range.exponent); }
  static std::size_t at(std::int64_t i) noexcept { return static_cast<std::size_t>(i); }
};

}  // namespace subfed::inline v0::detail
