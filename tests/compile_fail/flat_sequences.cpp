// SPDX-License-Identifier: MIT
/// Of sequences: temporaries that would dangle, const destinations, what is no number.
// bad 1: (conversion|no viable|could not convert)
// bad 2: subfed: the destination is a temporary that owns its elements
// bad 3: subfed: the destination is const
// bad 4: subfed: not a tensor that subfed knows
// bad 5: (no matching|conversion|no viable|could not convert)
#include <subfed/adapt/span.hpp>
#include <subfed/slice.hpp>

#include <span>
#include <string>
#include <vector>

void use(const std::vector<float>& global, std::vector<float>& local, std::vector<bool>& bits) {
  const subfed::selection chosen{subfed::index_set::full(3)};
#if SUBFED_BAD == 1
  const subfed::tensor_view<const float> view = std::vector<float>(3);
#elif SUBFED_BAD == 2
  subfed::slice(global, chosen, std::vector<float>(3));
#elif SUBFED_BAD == 3
  subfed::slice(local, chosen, std::span(global));
#elif SUBFED_BAD == 4
  subfed::slice(bits, chosen, bits);
#elif SUBFED_BAD == 5
  const subfed::tensor_view<float> view(local.data(), std::string("shape"), std::vector<double>(1));
#else
  subfed::slice(std::vector<float>(3), chosen, std::span(local));
  subfed::slice(global, chosen, local);
  const subfed::tensor_view<float> view(local.data(), std::vector<short>{3}, std::vector<long>{1});
  const subfed::tensor_view<const float> read = global;
  static_cast<void>(bits);
#endif
}
