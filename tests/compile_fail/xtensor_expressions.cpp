// SPDX-License-Identifier: MIT
/// What of xtensor has no elements in memory, is const or would dangle is refused.
// bad 1: subfed: not a tensor that subfed knows
// bad 2: subfed: not a tensor that subfed knows
// bad 3: subfed: the destination is a temporary that owns its elements
// bad 4: (conversion|no viable|could not convert)
// bad 5: subfed: the destination is const
#include <subfed/adapt/xtensor.hpp>
#include <subfed/slice.hpp>

#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xarray.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xarray.hpp>
#include <xtensor/xview.hpp>
#endif

void use(const xt::xarray<float>& global, xt::xarray<float>& local) {
  const subfed::selection chosen{subfed::index_set::full(2), subfed::index_set::full(3)};
#if SUBFED_BAD == 1
  subfed::slice(global + global, chosen, local);
#elif SUBFED_BAD == 2
  subfed::slice(xt::view(global, xt::keep(0, 1), xt::all()), chosen, local);
#elif SUBFED_BAD == 3
  subfed::slice(global, chosen, xt::view(xt::xarray<float>(local), xt::all(), xt::all()));
#elif SUBFED_BAD == 4
  const subfed::tensor_view<const float> view = xt::xarray<float>(global);
#elif SUBFED_BAD == 5
  subfed::slice(local, chosen, xt::view(global, xt::all(), xt::all()));
#else
  subfed::slice(global, chosen, local);
  subfed::slice(xt::eval(global + global), chosen, local);
  subfed::slice(global, chosen, xt::view(local, xt::range(0, 2), xt::all()));
  const subfed::tensor_view<const float> view = global;
#endif
}
