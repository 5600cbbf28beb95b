// SPDX-License-Identifier: MIT
/// at::Tensor and DLPack tensors in device memory as tensor views for the CUDA headers. Includes
/// nothing of torch, dlpack.h or CUDA.
#pragma once

#include <subfed/adapt/dlpack.hpp>
#include <subfed/adapt/torch.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

namespace subfed::inline v0::cuda {

namespace detail {

template <class V>
inline constexpr bool is_dlpack_owner = false;
template <class M>
inline constexpr bool is_dlpack_owner<dlpack_tensor<M>> = true;

template <class V>
concept device_viewable =
    (subfed::detail::torch_tensor<V> &&
     requires(const V& t) {
       { t.is_cuda() } -> std::convertible_to<bool>;
     }) ||
    subfed::detail::dlpack_struct<V> || subfed::detail::dlpack_managed<V> || is_dlpack_owner<V>;

template <class T, class D>
tensor_view<T> device_elements(const D& t) {
  const int type = static_cast<int>(t.device.device_type);
  constexpr int cuda_memory = 2;
  constexpr int cuda_managed = 13;
  if (type != cuda_memory && type != cuda_managed) {
    subfed::detail::refuse_dlpack("is on " + subfed::detail::dlpack_device_text(type) +
                                  ", expected a CUDA device");
  }
  return subfed::detail::dlpack_elements<T>(t);
}

}  // namespace detail

/// The elements of a tensor in device memory: device_view<float>(tensor), for at::Tensor, DLTensor,
/// the managed ones and dlpack_tensor. Only the caller knows on which stream the tensor was
/// written: pass that stream to the call (c10::cuda::getCurrentCUDAStream(), or the one given to
/// __dlpack__).
///
/// Throws  as the adaptors of host tensors, and error for memory elsewhere.
template <class T, class V>
tensor_view<T> device_view(V&& tensor) {
  using tensor_type = std::remove_cvref_t<V>;
  static_assert(detail::device_viewable<tensor_type>,
                "subfed: not a tensor in device memory that subfed knows");
  static_assert(borrowed<V>,
                "subfed: a temporary that owns its elements would leave the view dangling");
  const tensor_type& t = tensor;
  if constexpr (detail::is_dlpack_owner<tensor_type>) {
    return device_view<T>(t.get());
  } else if constexpr (subfed::detail::dlpack_managed<tensor_type>) {
    subfed::detail::check_managed<T>(t);
    return detail::device_elements<T>(t.dl_tensor);
  } else if constexpr (subfed::detail::dlpack_struct<tensor_type>) {
    return detail::device_elements<T>(t);
  } else {
    if (!t.defined()) subfed::detail::refuse_torch("is undefined");
    if (!t.is_cuda()) subfed::detail::refuse_torch("is not on a CUDA device");
    return subfed::detail::view_of_torch<T>(t);
  }
}

/// All tensors of a list: device_views<float>(module->parameters()).
///
/// Throws  as device_view.
template <class T, class Range>
tensor_views<T> device_views(const Range& tensors) {
  std::vector<tensor_view<T>> out;
  for (const auto& tensor : tensors) out.push_back(device_view<T>(tensor));
  return tensor_views<T>(out);
}

}  // namespace subfed::inline v0::cuda
