// SPDX-License-Identifier: MIT
/// The dumbest dense loops that say what slice, scatter and the average are to give: per element,
/// by definition, over global indices that are listed one by one. Nothing of the library is used
/// but its element types and options; networks and clients are plain lists here.
#pragma once

#include <subfed/average/options.hpp>
#include <subfed/scalar.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace oracle {

using node_list = std::vector<std::int64_t>;

/// Part of a dimension: `whole` elements, or the nodes of group number `group`.
struct part {
  int group;  ///< -1: none
  std::int64_t whole;
  std::int64_t repeat;
  std::int64_t block;
};
using dimension = std::vector<part>;
using tensor = std::vector<dimension>;

struct network {
  std::vector<std::int64_t> groups;  ///< nodes of each
  std::vector<tensor> tensors;
};

/// Which nodes a client holds, in its order, and which of them take part.
struct holding {
  std::vector<node_list> nodes;        ///< one list a group
  std::vector<node_list> taking_part;  ///< one list a group
};

struct position {
  std::int64_t global;
  bool takes_part;
};

/// The global index of each local position of a dimension, written out.
inline std::vector<position> positions(const network& net, const dimension& d, const holding& h) {
  std::vector<position> out;
  std::int64_t start = 0;
  for (const part& p : d) {
    const bool bound = p.group >= 0;
    const auto g = static_cast<std::size_t>(bound ? p.group : 0);
    const std::int64_t extent = bound ? net.groups[g] : p.whole;
    node_list nodes;
    if (bound) {
      nodes = h.nodes[g];
    } else {
      for (std::int64_t i = 0; i < p.whole; ++i) nodes.push_back(i);
    }
    std::vector<char> taking_part(static_cast<std::size_t>(extent), bound ? 0 : 1);
    if (bound) {
      for (const std::int64_t n : h.taking_part[g]) taking_part[static_cast<std::size_t>(n)] = 1;
    }
    for (std::int64_t copy = 0; copy < p.repeat; ++copy) {
      for (const std::int64_t node : nodes) {
        const bool takes_part = taking_part[static_cast<std::size_t>(node)] != 0;
        for (std::int64_t inner = 0; inner < p.block; ++inner) {
          out.push_back({start + (copy * extent + node) * p.block + inner, takes_part});
        }
      }
    }
    start += p.repeat * extent * p.block;
  }
  return out;
}

inline std::vector<std::int64_t> global_shape(const network& net, const tensor& t) {
  std::vector<std::int64_t> out;
  for (const dimension& d : t) {
    std::int64_t extent = 0;
    for (const part& p : d) {
      const std::int64_t nodes =
          p.group >= 0 ? net.groups[static_cast<std::size_t>(p.group)] : p.whole;
      extent += p.repeat * nodes * p.block;
    }
    out.push_back(extent);
  }
  return out;
}

inline std::vector<std::int64_t> local_shape(const network& net, const tensor& t,
                                             const holding& h) {
  std::vector<std::int64_t> out;
  for (const dimension& d : t) {
    out.push_back(static_cast<std::int64_t>(positions(net, d, h).size()));
  }
  return out;
}

/// For each element of a local tensor, row-major: its row-major number in the global one, or -1
/// where it takes part in nothing.
inline std::vector<std::int64_t> global_numbers(const network& net, const tensor& t,
                                                const holding& h) {
  const std::vector<std::int64_t> shape = global_shape(net, t);
  std::vector<std::int64_t> out{0};
  for (std::size_t r = 0; r < t.size(); ++r) {
    std::vector<std::int64_t> longer;
    const std::vector<position> along = positions(net, t[r], h);
    for (const std::int64_t head : out) {
      for (const position& p : along) {
        longer.push_back(head < 0 || !p.takes_part ? -1 : head * shape[r] + p.global);
      }
    }
    out = longer;
  }
  return out;
}

/// local(p) = global(s[p]); positions that take part in nothing keep what they have.
template <class T>
void slice(const std::vector<T>& global, const std::vector<std::int64_t>& numbers,
           std::vector<T>& local) {
  for (std::size_t l = 0; l < numbers.size(); ++l) {
    if (numbers[l] >= 0) local[l] = global[static_cast<std::size_t>(numbers[l])];
  }
}

/// global(s[p]) = local(p).
template <class T>
void scatter(const std::vector<T>& local, const std::vector<std::int64_t>& numbers,
             std::vector<T>& global) {
  for (std::size_t l = 0; l < numbers.size(); ++l) {
    if (numbers[l] >= 0) global[static_cast<std::size_t>(numbers[l])] = local[l];
  }
}

template <class T>
long double value_of(T x) {
  return static_cast<long double>(static_cast<double>(x));
}

/// Every finite number of a 16-bit type but -0, ascending.
template <class T>
const std::vector<T>& all_numbers() {
  static const std::vector<T> numbers = [] {
    std::vector<T> out;
    for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
      T x{};
      x.bits = static_cast<std::uint16_t>(bits);
      if (std::isfinite(value_of(x)) && bits != 0x8000u) out.push_back(x);
    }
    std::sort(out.begin(), out.end(), [](T a, T b) { return value_of(a) < value_of(b); });
    return out;
  }();
  return numbers;
}

/// The nearest T, ties to the even one. Of 16-bit types by looking it up; x is in their range.
template <class T>
T nearest(long double x) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(x);
  } else {
    const std::vector<T>& numbers = all_numbers<T>();
    const auto above = std::lower_bound(numbers.begin(), numbers.end(), x,
                                        [](T a, long double b) { return value_of(a) < b; });
    const auto below = above == numbers.begin() ? above : above - 1;
    const long double up = value_of(*above) - x;
    const long double down = x - value_of(*below);
    if (up == down) return (below->bits & 1) == 0 ? *below : *above;
    return up < down ? *above : *below;
  }
}

/// One client's update of one tensor.
template <class T>
struct update {
  std::vector<T> values;              ///< local tensor, row-major
  std::vector<std::int64_t> numbers;  ///< global_numbers() of it
  double weight;
};

struct element {
  long double value;  ///< before rounding to T; as it was when not held
  bool held;
};

/// The average of one tensor, for the updates that take part in it, over the clients' weights:
///
///   holders   new = sum over holders of w x / sum over holders of w
///   cohort    new = sum over all of w (x where held, else the old value) / sum over all of w
///
/// for deltas the same with old value + mean of (d where held, else 0); then
/// old + step (new - old). An element without a holder of positive weight is as it was.
template <class T>
std::vector<element> average(const std::vector<T>& old, const std::vector<update<T>>& updates,
                             const subfed::average_options& options) {
  const bool deltas = options.content == subfed::content::deltas;
  const bool cohort = options.divide_by == subfed::divisor::cohort;
  // What each client has of each global element; null: nothing.
  std::vector<std::vector<const T*>> have(updates.size());
  for (std::size_t u = 0; u < updates.size(); ++u) {
    have[u].assign(old.size(), nullptr);
    for (std::size_t l = 0; l < updates[u].numbers.size(); ++l) {
      const std::int64_t number = updates[u].numbers[l];
      if (number >= 0) have[u][static_cast<std::size_t>(number)] = &updates[u].values[l];
    }
  }
  std::vector<element> out;
  for (std::size_t g = 0; g < old.size(); ++g) {
    const long double before = value_of(old[g]);
    const long double of_absent = deltas ? 0 : before;
    long double sum = 0;
    long double total = 0;
    bool held = false;
    for (std::size_t u = 0; u < updates.size(); ++u) {
      const double weight = updates[u].weight;
      const T* found = have[u][g];
      if (found != nullptr && options.on_non_finite == subfed::non_finite::skip_element &&
          !std::isfinite(value_of(*found))) {
        found = nullptr;
      }
      if (found != nullptr && weight > 0) {
        held = true;
        sum += weight * value_of(*found);
        total += weight;
      } else if (cohort && weight > 0) {  // 0 times infinity is no number
        sum += weight * of_absent;
        total += weight;
      }
    }
    if (!held) {
      out.push_back({before, false});
      continue;
    }
    const long double mean = sum / total;
    const long double target = deltas ? before + mean : mean;
    const long double step = options.step;
    out.push_back({step == 1 ? target : before + step * (target - before), true});
  }
  return out;
}

}  // namespace oracle
