// SPDX-License-Identifier: MIT
/// CUDA's own half and bfloat16 as elements. Their headers need not be included.
#pragma once

#include <subfed/cuda/detail/device_math.hpp>

struct __half;
struct __nv_bfloat16;

namespace subfed::inline v0::cuda::detail {

template <>
inline constexpr int mantissa_bits_of<::__half> = 10;
template <>
inline constexpr int mantissa_bits_of<::__nv_bfloat16> = 7;

}  // namespace subfed::inline v0::cuda::detail
