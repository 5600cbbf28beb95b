// SPDX-License-Identifier: MIT
/// A view of a temporary that owns its elements would dangle; so would one that writes to const.
// bad 1: (conversion|no viable|could not convert)
// bad 2: (conversion|no viable|could not convert)
// bad 3: (no matching|conversion|no viable|could not convert)
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <vector>

struct owner {
  std::vector<float> elements = std::vector<float>(3);
};

template <>
struct subfed::view_traits<owner> {
  using element_type = float;
  static constexpr bool owns = true;
  template <class T>
  requires(std::same_as<T, float>) static tensor_view<T> view(owner& o) {
    return {o.elements.data(), {std::ssize(o.elements)}};
  }
  template <class T>
  requires(std::same_as<T, const float>) static tensor_view<T> view(const owner& o) {
    return {o.elements.data(), {std::ssize(o.elements)}};
  }
};

void use(owner& lvalue, const owner& constant) {
#if SUBFED_BAD == 1
  const subfed::tensor_view<const float> view = owner();
#elif SUBFED_BAD == 2
  const subfed::tensor_view<float> view = constant;
#elif SUBFED_BAD == 3
  const subfed::tensor_views<float> views{lvalue, owner()};
#else
  const subfed::tensor_view<const float> view = lvalue;
  const subfed::tensor_view<const float> also = constant;
  const subfed::tensor_view<float> writes = lvalue;
  const subfed::tensor_views<const float> views{lvalue, view, constant};
#endif
}
