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

/// A tensor of a call without its type: where its elements begin, and how long they are.
struct placed_tensor {
  const std::byte* data;
  int dimensions;
  std::int64_t extents[max_rank];
  std::int64_t strides[max_rank];  ///< in elements
  std::int64_t width;              ///< of an element, in bytes
  const std::string* name;
  access used;
  const std::byte* first;  ///< lowest byte
  const std::byte* last;   ///< after the highest one

  const std::byte* data_handle() const noexcept { return data; }
  int rank() const noexcept { return dimensions; }
  std::int64_t extent(int r) const noexcept { return extents[r]; }
  std::int64_t stride(int r) const noexcept { return strides[r]; }
};

/// The tensors of one call.
class placed_tensors {
 public:
  void reserve(std::size_t tensors) { all_.reserve(tensors); }

  template <class T>
  void add(const tensor_view<T>& tensor, const std::string& name, access used) {
    if (tensor.size() == 0) return;
    std::int64_t width = 0;
    if constexpr (std::is_void_v<T>) {
      width = tensor.format().bits / 8;
    } else {
      width = static_cast<std::int64_t>(sizeof(T));
    }
    placed_tensor& own = all_.emplace_back();
    own.data = reinterpret_cast<const std::byte*>(tensor.data_handle());
    own.dimensions = tensor.rank();
    own.width = width;
    own.name = &name;
    own.used = used;
    own.first = own.data;
    own.last = own.data + width;
    for (int r = 0; r < tensor.rank(); ++r) {
      own.extents[r] = tensor.extent(r);
      own.strides[r] = tensor.stride(r);
      // A stride of a single index may be anything.
      const std::int64_t reach = own.extents[r] == 1 ? 0 : (own.extents[r] - 1) * own.strides[r];
      (reach < 0 ? own.first : own.last) += reach * width;
    }
  }

  /// Throws  error that names two tensors with an element in the same place when one of them is
  ///         written to.
  ///
  /// Cost  O(n log n) for n tensors; where the address range of one that is written to meets that
  ///       of another, as overlap_in_memory(). Tensors that are only read are not compared with
  ///       each other.
  void check_apart(const char* verb) {
    const std::less<const std::byte*> before;  // also of addresses in different arrays
    std::vector<std::pair<const std::byte*, const placed_tensor*>> by_address;
    by_address.reserve(all_.size());
    for (const placed_tensor& each : all_) by_address.emplace_back(each.first, &each);
    std::sort(by_address.begin(), by_address.end(),
              [&](const auto& a, const auto& b) { return before(a.first, b.first); });
    open_tensors read;
    open_tensors written;
    for (const auto& [address, next] : by_address) {
      written.close(address);
      check(verb, written, *next);
      if (next->used == access::writes) {
        read.close(address);
        check(verb, read, *next);
      }
      (next->used == access::writes ? written : read).open(*next);
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
      if (overlap_in_memory(byte_starts(*p, p->width), p->width, byte_starts(next, next.width),
                            next.width)) {
        refuse(verb, *p, next);
      }
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
