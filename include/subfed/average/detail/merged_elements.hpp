// SPDX-License-Identifier: MIT
/// The elements of one tensor that are not averaged but merged by a rule (integers and counters):
/// the value of each so far, and whether anybody holds it.
#pragma once

#include <subfed/average/options.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace subfed::inline v0::detail {

/// Value: an element's value so far, with take(rule, more). Empty until something is added.
template <class Value>
class merged_elements {
 public:
  /// Takes the memory of all elements, which add() and merge() then need no more.
  void reserve(std::span<const std::int64_t> extents) { all_.reserve(memory_size<slot>(extents)); }

  /// Adds the elements of a client's tensor that take part; global extents as described.
  /// read(x, value) turns an element into a Value, or returns false to leave it out. Returns how
  /// many were left out.
  template <class E, class Read>
  std::int64_t add(integer_rule rule, const selection& chosen,
                   std::span<const std::int64_t> extents, const tensor_view<const E>& tensor,
                   Read&& read) {
    if (all_.empty()) all_.resize(memory_size<slot>(extents));
    const loop_nest walk(chosen, extents, tensor);
    const E* const data = tensor.data_handle();
    std::int64_t left_out = 0;
    walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        slot more{{}, true};
        if (read(data[l + i * walk.local_stride()], more.value)) {
          take(rule, all_[static_cast<std::size_t>(g + i * walk.global_stride())], more);
        } else {
          ++left_out;
        }
      }
    });
    return left_out;
  }

  /// Adds the values of another part of the cohort. Pre: the other is not this one.
  void merge(integer_rule rule, const merged_elements& other) {
    if (all_.size() < other.all_.size()) all_.resize(other.all_.size());
    for (std::size_t i = 0; i < other.all_.size(); ++i) {
      if (other.all_[i].held) take(rule, all_[i], other.all_[i]);
    }
  }

  /// f(whether somebody holds it, value) for every element, in order; for none before the first add.
  template <class F>
  void for_each(F&& f) const {
    for (const slot& s : all_) f(s.held, s.value);
  }
  /// Replaces all elements; read(value) says whether somebody holds the next one.
  template <class Read>
  void assign(std::size_t count, Read&& read) {
    all_.resize(count);
    for (slot& s : all_) s.held = read(s.value);
  }
  bool empty() const noexcept { return all_.empty(); }

  /// f(row-major number) for each element that somebody holds.
  template <class F>
  void for_each_held(F&& f) const {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].held) f(static_cast<std::int64_t>(i));
    }
  }

  /// f(row-major number, offset in the global tensor, value) for each element that somebody holds.
  template <class E, class F>
  void for_each_held(const tensor_view<E>& global, F&& f) const {
    if (all_.empty()) return;
    std::size_t i = 0;
    for_each_offset(global, [&](std::int64_t offset) {
      const slot& s = all_[i++];
      if (s.held) f(static_cast<std::int64_t>(i) - 1, offset, s.value);
    });
  }

 private:
  struct slot {
    Value value = {};
    bool held = false;
  };

  static void take(integer_rule rule, slot& own, const slot& more) {
    if (own.held) {
      own.value.take(rule, more.value);
    } else {
      own = more;
    }
  }

  std::vector<slot> all_;  // by row-major number
};

}  // namespace subfed::inline v0::detail
