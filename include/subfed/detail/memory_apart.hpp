// SPDX-License-Identifier: MIT
/// Whether the tensors of one call share memory that the call writes to: over all of them, not only
/// those of one name.
#pragma once

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

/// A tensor of a call, its type forgotten: where its elements begin, in bytes, and how long they are.
struct placed_tensor {
  tensor_view<const std::byte> starts;
  std::int64_t width;
  const std::string* name;
  access used;

  const std::byte* first() const noexcept {
    return starts.data_handle() + offset_range(starts).first;
  }
  const std::byte* last() const noexcept {
    return starts.data_handle() + offset_range(starts).second + width;
  }
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
    all_.push_back({byte_starts(tensor, width), width, &name, used});
  }

  /// Throws  error that names two tensors with an element in the same place, one of them written to.
  ///
  /// Cost  O(n log n) for n tensors; where address ranges meet, as overlap().
  void check_apart(const char* verb) {
    const std::less<const std::byte*> before;
    std::sort(all_.begin(), all_.end(), [&](const placed_tensor& a, const placed_tensor& b) {
      return before(a.first(), b.first());
    });
    std::vector<const placed_tensor*> open;  // those that reach behind the beginning of the next
    for (const placed_tensor& next : all_) {
      std::erase_if(open, [&](const placed_tensor* p) { return !before(next.first(), p->last()); });
      for (const placed_tensor* p : open) {
        if (p->used == access::reads && next.used == access::reads) continue;
        if (overlap(p->starts, p->width, next.starts, next.width)) refuse(verb, *p, next);
      }
      open.push_back(&next);
    }
  }

 private:
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
