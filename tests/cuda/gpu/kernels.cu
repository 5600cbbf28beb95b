// SPDX-License-Identifier: MIT
/// Every kernel for every element type, compiled for all architectures, and the verbs for one type of
/// CUDA's own.
#include <subfed/cuda/selective_average.cuh>

#include <cuda_fp16.h>

#include <vector>

namespace subfed::inline v0::cuda::detail {

#define SUBFED_KERNELS_OF(E)                                                                      \
  template __global__ void copy_kernel<E, E, assign>(const copy_call, const assign);              \
  template __global__ void copy_kernel<E, E, add>(const copy_call, const add);                    \
  template __global__ void copy_kernel<E, double, accumulate>(const copy_call, const accumulate); \
  template __global__ void average_kernel<E>(const average_call, unsigned long long*)

SUBFED_KERNELS_OF(float);
SUBFED_KERNELS_OF(double);
SUBFED_KERNELS_OF(stored16<10>);
SUBFED_KERNELS_OF(stored16<7>);

}  // namespace subfed::inline v0::cuda::detail

std::int64_t subfed_verbs(const subfed::submodel& sub, const subfed::tensor_view<double>& sums,
                          subfed::cuda::workspace& memory, cudaStream_t stream) {
  const subfed::tensor_views<__half> none({});
  subfed::cuda::slice<__half>(none, sub, none, memory, stream);
  subfed::cuda::scatter<__half>(none, sub, none, memory, stream);
  subfed::cuda::scatter_add<__half>(none, sub, none, memory, stream);
  const std::vector<subfed::update<__half>> updates;
  subfed::cuda::average_cohort<__half>(sub.parent(), updates, none, {}, memory, stream);
  subfed::cuda::selective_average<__half> mean(sub.parent(), sums);
  mean.clear(stream);
  mean.add(sub, none, 1, memory, stream);
  return mean.finish(none, memory, stream).report(stream).held;
}
