// SPDX-License-Identifier: MIT
/// at::Tensor (LibTorch, PyTorch extensions) on the CPU as tensor views. Includes nothing of torch.
#pragma once

#include <subfed/tensor_view.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace subfed::inline v0 {

namespace detail {

template <class V>
concept torch_tensor = requires(const V& t) {
  { t.sizes().data() } -> std::convertible_to<const std::int64_t*>;
  { t.strides().data() } -> std::convertible_to<const std::int64_t*>;
  { t.dtype().template Match<float>() } -> std::convertible_to<bool>;
  { t.defined() } -> std::convertible_to<bool>;
  { t.is_cpu() } -> std::convertible_to<bool>;
  { t.requires_grad() } -> std::convertible_to<bool>;
  t.data_ptr();
};

[[noreturn]] inline void refuse_torch(const std::string& why) {
  fail("subfed: the torch tensor " + why);
}

}  // namespace detail

/// The element type of an at::Tensor is known at run time only, so name it: slice<float>(...).
///
/// Throws  error for an undefined tensor, another element type than the one asked for, a tensor
/// that
///         is not on the CPU, not strided (sparse, quantised, oneDNN), lazily conjugated or
///         negated, and for a destination that requires gradients: autograd would not see the
///         write, so pass w.detach() in its place.
template <detail::torch_tensor V>
struct view_traits<V> {
  using element_type = void;
  static constexpr bool owns = true;  // a handle; the last one frees the elements

  template <class T>
  static tensor_view<T> view(const V& t) {
    using element = std::remove_const_t<T>;
    if (!t.defined()) detail::refuse_torch("is undefined");
    if (!t.is_cpu()) detail::refuse_torch("is not on the CPU");
    if (t.is_sparse() || t.is_quantized() || t.is_mkldnn()) {
      detail::refuse_torch("is not strided: it is sparse, quantised or in oneDNN's layout");
    }
    if (t.is_conj() || t.is_neg()) {
      detail::refuse_torch("is lazily conjugated or negated: call resolve_conj() or resolve_neg()");
    }
    if (!t.dtype().template Match<element>()) {
      const auto name = t.dtype().name();
      detail::refuse_torch("has elements of type " + std::string(name.data(), name.size()) +
                           ", expected " + std::string(detail::type_name<element>()));
    }
    if (!std::is_const_v<T> && t.requires_grad()) {
      detail::refuse_torch("is to be written to, but requires gradients: pass its detach()");
    }
    const auto rank = static_cast<std::size_t>(t.dim());
    return {static_cast<T*>(t.data_ptr()), std::span<const std::int64_t>(t.sizes().data(), rank),
            std::span<const std::int64_t>(t.strides().data(), rank)};
  }
};

}  // namespace subfed::inline v0
