// SPDX-License-Identifier: MIT
/// Wrong argument types of the operators stop with one of our sentences.
// bad 1: subfed: the destination is const
// bad 2: subfed: the destination is const
// bad 3: subfed: the destination is a temporary that owns its elements
// bad 4: subfed: the tensors of one call differ in element type
// bad 5: subfed: not a tensor that subfed knows
// bad 6: subfed: the element type is known only at run time
// bad 7: subfed: the destination is const
// bad 8: subfed: one tensor is not of mixed types
#include <subfed/scatter.hpp>
#include <subfed/slice.hpp>

#include <cstdint>
#include <vector>

/// Owns its elements.
struct owner {
  std::vector<float> elements = std::vector<float>(3);
};
/// Owns elements of a type that is known only at run time.
struct untyped {
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
template <>
struct subfed::view_traits<untyped> {
  using element_type = void;
  static constexpr bool owns = true;
  template <class T>
  static tensor_view<T> view(const untyped& o) {
    return {const_cast<T*>(o.elements.data()), {std::ssize(o.elements)}};
  }
};

void use(const owner& global, owner& local, const untyped& unknown) {
  const auto all = subfed::index_set::full(3);
  const subfed::selection chosen{all};
  const subfed::tensor_view<float> writes = local;
  const subfed::tensor_view<const float> reads = global;
  std::vector<double> doubles(3);
  std::vector<int> integers(3);
  const subfed::tensor_view<int> other(integers.data(), {3});
#if SUBFED_BAD == 1
  subfed::slice(global, chosen, reads);
#elif SUBFED_BAD == 2
  subfed::slice(local, chosen, global);
#elif SUBFED_BAD == 3
  subfed::slice(global, chosen, owner());
#elif SUBFED_BAD == 4
  subfed::slice(global, chosen, other);
#elif SUBFED_BAD == 5
  subfed::slice(doubles, chosen, local);
#elif SUBFED_BAD == 6
  subfed::slice(unknown, chosen, untyped());
#elif SUBFED_BAD == 7
  subfed::scatter_add(local, chosen, reads);
#elif SUBFED_BAD == 8
  subfed::slice<void>(reads, chosen, writes);
#else
  subfed::slice(global, chosen, local);
  subfed::slice(reads, chosen, writes);
  subfed::slice(owner(), chosen, local);
  subfed::slice<float>(unknown, chosen, local);
  subfed::scatter(reads, chosen, writes);
  subfed::scatter_add(local, chosen, writes);
  subfed::scatter(other, chosen, other);
  subfed::scatter(reads, chosen, subfed::tensor_view<double>(doubles.data(), {3}));
#endif
}
