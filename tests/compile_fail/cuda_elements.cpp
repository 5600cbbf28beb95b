// SPDX-License-Identifier: MIT
/// The CUDA kernels are compiled for floating-point elements alone.
// bad 1: subfed: the CUDA kernels know float, double, half and bfloat16 elements
// bad 2: subfed: the CUDA kernels know float, double, half and bfloat16 elements
#include <subfed/cuda/detail/device_math.hpp>

#if SUBFED_BAD == 1
using element = int;
#elif SUBFED_BAD == 2
using element = void;  // models of mixed types
#else
using element = subfed::half;
#endif

using seen = subfed::cuda::detail::kernel_element_t<element>;
seen use(seen x) { return x; }
