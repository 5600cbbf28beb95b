// SPDX-License-Identifier: MIT
/// For programs of several files: the engine of averages and slices is compiled once, not in each of
/// them. Files that include this header leave the engine to one file of the program, which has
///
///   #define SUBFED_INSTANTIATE  // before the first header of subfed
///   #include <subfed/extern_templates.hpp>
///
/// Without that file the program does not link. Results have the same bits as without this header.
///
/// Covers  average_cohort, selective_average, slice, scatter and scatter_add of models, for float, double, half,
///         bfloat16 and mixed types. Other types are compiled where they are used, as always; so is what
///         depends on an executor.
/// Cost    A file that averages compiles in half to two thirds of the time; the one file takes as long
///         as three of them.
#pragma once

#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/executor.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/scalar.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#if defined(SUBFED_INSTANTIATE)
#define SUBFED_EXTERN
#else
#define SUBFED_EXTERN extern
#endif

namespace subfed::inline v0 {

/// The average of a tensor of E, of updates with elements of type U.
#define SUBFED_EXTERN_JOB(E, U)                                               \
  SUBFED_EXTERN template detail::tensor_job detail::averaging_job<E, U>(      \
      const tensor_view<E>&, std::size_t, std::span<const detail::member<U>>, \
      const detail::distinct_submodels&, const detail::average_terms&);

/// What there is for tensors of mixed types too.
#define SUBFED_EXTERN_FOR_ANY(T)                                                                \
  SUBFED_EXTERN_JOB(float, T)                                                                   \
  SUBFED_EXTERN_JOB(double, T)                                                                  \
  SUBFED_EXTERN_JOB(half, T)                                                                    \
  SUBFED_EXTERN_JOB(bfloat16, T)                                                                \
  SUBFED_EXTERN template average_report detail::average_updates<T, T, serial&>(                 \
      const model&, std::span<const update<T>>, const tensor_views<T>&, held_elements*,         \
      const average_options&, serial&);                                                         \
  SUBFED_EXTERN template void detail::tensor_sums::add<T>(std::span<const detail::addend<T>>,   \
                                                          std::span<const std::int64_t>);       \
  SUBFED_EXTERN template void detail::tensor_sums::add<T>(                                      \
      std::span<const detail::addend<T>>, std::span<const std::int64_t>,                        \
      std::span<const detail::term_rule>, std::span<std::int64_t>);                             \
  SUBFED_EXTERN template class selective_average<T>;                                            \
  SUBFED_EXTERN template std::vector<update_outcome> selective_average<T>::add_all<T>(          \
      std::span<const detail::member<T>>);                                                      \
  SUBFED_EXTERN template average_report selective_average<T>::finish<serial>(                   \
      const tensor_views<T>&, serial&&) const;                                                  \
  SUBFED_EXTERN template void slice<T, serial>(const tensor_views<const T>&, const submodel&,   \
                                               const tensor_views<T>&, serial&&);               \
  SUBFED_EXTERN template void scatter<T, serial>(const tensor_views<const T>&, const submodel&, \
                                                 const tensor_views<T>&, serial&&);             \
  SUBFED_EXTERN template void scatter_add<T, serial>(                                           \
      const tensor_views<const T>&, const submodel&, const tensor_views<T>&, serial&&);

SUBFED_EXTERN_FOR_ANY(float)
SUBFED_EXTERN_FOR_ANY(double)
SUBFED_EXTERN_FOR_ANY(half)
SUBFED_EXTERN_FOR_ANY(bfloat16)
SUBFED_EXTERN_FOR_ANY(void)

#undef SUBFED_EXTERN_FOR_ANY
#undef SUBFED_EXTERN_JOB
#undef SUBFED_EXTERN

}  // namespace subfed::inline v0
