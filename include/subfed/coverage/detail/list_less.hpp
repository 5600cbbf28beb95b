// SPDX-License-Identifier: MIT
/// An order of lists of numbers, for the keys of maps.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

namespace subfed::inline v0::detail {

/// As operator<, which is wrong in libstdc++ before 12.4 for unsigned numbers on big-endian
/// machines: it compares only as many bytes as there are numbers (GCC bug 113960).
struct list_less {
  template <class T>
  bool operator()(const std::vector<T>& a, const std::vector<T>& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), std::less<>());
  }
};

}  // namespace subfed::inline v0::detail
