// SPDX-License-Identifier: MIT
/// Whether the tensors of one call share memory that the call writes to. All of them are compared,
/// not only those of the same name.
#pragma once

#include <subfed/detail/tensor_checks.hpp>
#include <subfed/detail/view_overlap.hpp>
#include <subfed/error.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// What a call does with a tensor.
enum class access { reads, writes };

/// A tensor of a call without its type: where its elements begin, in bytes, and how long they are.
struct placed_tensor {
  tensor_view<const std::byte> starts;
  std::int64_t width;
  const std::string* name;
  access used;
  const std::byte* first;  ///< lowest byte
  const std::byte* last;   ///< after the highest one
};

/// The tensors of one call.
class placed_tensors {
 public:
  template <class T>
  void add(const tensor_view<T>& tensor, const std::string& name, access used) {
    if (tensor.size() == 0) return;
    std::int64_t width = 0;
    if constexpr (std::is_void_v<T>) {
      width = tensor.format().bits / 8;
    } else {
      width = static_cast<std::int64_t>(sizeof(T));
    }
    const auto starts = byte_starts(tensor, width);
    const auto [low, high] = offset_range(starts);
    all_.push_back({starts, width, &name, used, starts.data_handle() + low,
                    starts.data_handle() + high + width});
  }

  /// Throws  error that names two tensors with an element in the same place when one of them is
  ///         written to.
  ///
  /// Cost  O(n log n) for n tensors; where the address range of one that is written to meets that
  ///       of another, as overlap_in_memory(). Tensors that are only read are not compared with
  ///       each other.
  void check_apart(const char* verb) {
    const std::less<const std::byte*> before;
    std::sort(all_.begin(), all_.end(), [&](const placed_tensor& a, const placed_tensor& b) {
      return before(a.first, b.first);
    });
    open_tensors read;
    open_tensors written;
    for (const placed_tensor& next : all_) {
      written.close(next.first);
      check(verb, written, next);
      if (next.used == access::writes) {
        read.close(next.first);
        check(verb, read, next);
      }
      (next.used == access::writes ? written : read).open(next);
    }
  }

 private:
  /// Tensors that extend beyond an address, which moves upwards: a heap with the first to end on
  /// top.
  class open_tensors {
   public:
    void open(const placed_tensor& tensor) {
      heap_.push_back(&tensor);
      std::push_heap(heap_.begin(), heap_.end(), ends_later);
    }
    void close(const std::byte* address) {
      const std::less<const std::byte*> before;
      while (!heap_.empty() && !before(address, heap_.front()->last)) {
        std::pop_heap(heap_.begin(), heap_.end(), ends_later);
        heap_.pop_back();
      }
    }
    auto begin() const noexcept { return heap_.begin(); }
    auto end() const noexcept { return heap_.end(); }

   private:
    static bool ends_later(const placed_tensor* a, const placed_tensor* b) noexcept {
      return std::less<const std::byte*>()(b->last, a->last);
    }
    std::vector<const placed_tensor*> heap_;
  };

  static void check(const char* verb, const open_tensors& open, const placed_tensor& next) {
    for (const placed_tensor* p : open) {
      if (overlap_in_memory(p->starts, p->width, next.starts, next.width)) refuse(verb, *p, next);
    }
  }

  [[noreturn]] static void refuse(const char* verb, const placed_tensor& a,
                                  const placed_tensor& b) {
    const std::string start = std::string("subfed: ") + verb + ": ";
    if (*a.name == *b.name) {
      fail(start + "the global and the local tensor '" + *a.name + "' overlap in memory");
    }
    const auto [first, second] = std::minmax(*a.name, *b.name);
    fail(start + "the tensors '" + first + "' and '" + second + "' overlap in memory");
  }

  std::vector<placed_tensor> all_;
};

}  // namespace subfed::inline v0::detail
