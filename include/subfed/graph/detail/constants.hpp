// SPDX-License-Identifier: MIT
/// Evaluates operators on small constants: shapes, bounds and sizes are computed by operators.
#pragma once

#include <subfed/graph/detail/walk.hpp>
#include <subfed/graph/network_graph.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

inline constexpr std::size_t most_evaluated = 4096;  // elements

/// The elements of a node's first output, where it is one of these operators and they can be evaluated.
class constant_evaluator {
 public:
  constant_evaluator(graph_walk& walk, const graph_node& node) : w_(walk), n_(node) {}

  /// Whether `out` has been made.
  bool evaluate(traced_value& out) {
    const std::string_view op = n_.op;
    if (op == "Shape") return shape(out);
    if (op == "Size") return size(out);
    for (std::size_t i = 0; i < n_.inputs.size(); ++i) {
      if (!w_.has(n_, i) || !w_.in(n_, i).is_constant) return false;
    }
    if (n_.inputs.empty()) return false;
    const traced_value& first = w_.in(n_, 0);
    if (op == "Concat") return concat(out);
    if (op == "Gather") return gather(out);
    if (op == "Slice") return slice(out);
    if (op == "ConstantOfShape") return constant_of_shape(out);
    if (op == "Range") return range(out);
    if (op == "Cast") return cast(out);
    if (op == "Where") return where(out);
    if (op == "NonZero") return non_zero(out);
    if (op == "Transpose") return transpose(out);
    if (op == "Identity" || op == "Squeeze" || op == "Unsqueeze" || op == "Reshape" ||
        op == "Flatten" || op == "Expand") {
      // The shape comes from the operator's own rule.
      if (op == "Expand" && first.elements.size() != 1) return false;
      out.elements = first.elements;
      out.is_integer = first.is_integer;
      return true;
    }
    if (op == "ReduceProd" || op == "ReduceSum" || op == "ReduceMax" || op == "ReduceMin") {
      return reduce(out);
    }
    if (first.rank() > 1 && n_.inputs.size() > 1 && w_.in(n_, 1).elements.size() != 1) return false;
    return n_.inputs.size() == 1 ? unary(out) : n_.inputs.size() == 2 && binary(out);
  }

 private:
  static bool is_row(const traced_value& v) { return v.rank() == 1; }

  bool shape(traced_value& out) {
    if (n_.inputs.empty() || !w_.has(n_, 0) || !w_.in(n_, 0).is_known) return false;
    const auto& extents = w_.in(n_, 0).extents;
    const auto rank = static_cast<std::int64_t>(extents.size());
    const auto bound = [&](const char* name, std::int64_t otherwise) {
      std::int64_t at = n_.integer(name, otherwise);
      if (at < 0) at += rank;
      return (std::min)((std::max)(at, std::int64_t{0}), rank);
    };
    for (std::int64_t r = bound("start", 0); r < bound("end", rank); ++r) {
      out.elements.push_back(static_cast<double>(extents[static_cast<std::size_t>(r)]));
    }
    out.extents = {static_cast<std::int64_t>(out.elements.size())};
    return out.is_integer = true;
  }
  bool size(traced_value& out) {
    if (n_.inputs.empty() || !w_.has(n_, 0) || !w_.in(n_, 0).is_known) return false;
    double count = 1;
    for (const std::int64_t e : w_.in(n_, 0).extents) count *= static_cast<double>(e);
    out.elements = {count};
    return out.is_integer = true;
  }
  bool concat(traced_value& out) {
    for (std::size_t i = 0; i < n_.inputs.size(); ++i) {
      const traced_value& v = w_.in(n_, i);
      if (!is_row(v) || out.elements.size() + v.elements.size() > most_evaluated) return false;
      out.elements.insert(out.elements.end(), v.elements.begin(), v.elements.end());
    }
    out.is_integer = w_.in(n_, 0).is_integer;
    out.extents = {static_cast<std::int64_t>(out.elements.size())};
    return true;
  }
  bool gather(traced_value& out) {
    if (n_.inputs.size() != 2) return false;
    const traced_value& data = w_.in(n_, 0);
    const traced_value& at = w_.in(n_, 1);
    if (!is_row(data)) return false;
    for (const double e : at.elements) {
      const std::size_t i = graph_walk::axis_of(graph_walk::as_integer(e), data.elements.size());
      if (i == data.elements.size()) return false;
      out.elements.push_back(data.elements[i]);
    }
    out.extents = at.extents;
    out.is_integer = data.is_integer;
    return true;
  }
  /// Elements at first + i[0] steps[0] + .., for all i below the extents.
  static std::vector<double> strided(const std::vector<double>& from, std::int64_t first,
                                     const std::vector<std::int64_t>& extents,
                                     const std::vector<std::int64_t>& steps) {
    std::vector<double> out;
    std::int64_t count = 1;
    for (const std::int64_t e : extents) count *= e;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t at = first, left = i;
      for (std::size_t r = extents.size(); r-- > 0;) {
        at += left % extents[r] * steps[r];
        left /= extents[r];
      }
      out.push_back(from[static_cast<std::size_t>(at)]);
    }
    return out;
  }
  static std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& extents) {
    std::vector<std::int64_t> out(extents.size(), 1);
    for (std::size_t r = extents.size(); r-- > 1;) out[r - 1] = out[r] * extents[r];
    return out;
  }
  bool transpose(traced_value& out) {
    const traced_value& data = w_.in(n_, 0);
    const graph_attribute* order = n_.find("perm");
    const auto steps = row_major(data.extents);
    std::vector<std::int64_t> extents, turned;
    for (std::size_t r = 0; r < data.rank(); ++r) {
      std::size_t from = data.rank() - 1 - r;
      if (order != nullptr) {
        if (order->integers.size() != data.rank()) return false;
        from = graph_walk::axis_of(order->integers[r], data.rank());
        if (from == data.rank()) return false;
      }
      extents.push_back(data.extents[from]);
      turned.push_back(steps[from]);
    }
    std::int64_t count = 1;
    for (const std::int64_t e : extents) count *= e;
    if (count != static_cast<std::int64_t>(data.elements.size())) return false;
    out.elements = strided(data.elements, 0, extents, turned);
    out.is_integer = data.is_integer;
    return true;
  }
  bool slice(traced_value& out) {
    const traced_value& data = w_.in(n_, 0);
    const auto starts = w_.integers(n_, "starts", 1), ends = w_.integers(n_, "ends", 2);
    const auto axes = w_.integers(n_, "axes", 3), steps = w_.integers(n_, "steps", 4);
    if (!starts || !ends || ends->size() != starts->size() ||
        (axes && axes->size() != starts->size()) || (steps && steps->size() != starts->size())) {
      return false;
    }
    auto extents = data.extents;
    auto strides = row_major(extents);
    std::int64_t first = 0;
    for (std::size_t i = 0; i < starts->size(); ++i) {
      const std::size_t r =
          graph_walk::axis_of(axes ? (*axes)[i] : static_cast<std::int64_t>(i), data.rank());
      if (r == data.rank() || extents[r] != data.extents[r]) return false;
      const std::int64_t step = steps ? (*steps)[i] : 1;
      const auto range = sliced_range::of((*starts)[i], (*ends)[i], step, extents[r]);
      if (!range) return false;
      first += range->begin * strides[r];
      strides[r] *= range->count > 1 ? step : 1;
      extents[r] = range->count;
    }
    out.elements = strided(data.elements, first, extents, strides);
    out.is_integer = data.is_integer;
    return true;
  }
  bool constant_of_shape(traced_value& out) {
    std::int64_t count = 1;
    for (const double e : w_.in(n_, 0).elements) {
      out.extents.push_back(graph_walk::as_integer(e));
      if (out.extents.back() < 0 || !multiply(count, out.extents.back()) ||
          count > static_cast<std::int64_t>(most_evaluated)) {
        return false;
      }
    }
    const graph_attribute* value = n_.find("value");
    out.is_integer = value != nullptr && !value->integers.empty();
    const double element = value == nullptr ? 0
                           : out.is_integer ? static_cast<double>(value->integers[0])
                                            : value->real;
    out.elements.assign(static_cast<std::size_t>(count), element);
    return true;
  }
  bool range(traced_value& out) {
    if (n_.inputs.size() != 3) return false;
    double v[3];
    for (std::size_t i = 0; i < 3; ++i) {
      if (w_.in(n_, i).elements.size() != 1) return false;
      v[i] = w_.in(n_, i).elements[0];
    }
    const double count = std::ceil((v[1] - v[0]) / v[2]);
    if (!(count <= static_cast<double>(most_evaluated))) return false;
    for (double i = 0; i < count; ++i) out.elements.push_back(v[0] + i * v[2]);
    out.extents = {static_cast<std::int64_t>(out.elements.size())};
    out.is_integer = w_.in(n_, 0).is_integer;
    return true;
  }
  bool cast(traced_value& out) {
    const std::int64_t to = n_.integer("to", 0);
    out.is_integer = to >= 2 && to <= 9;
    out.extents = w_.in(n_, 0).extents;
    for (const double e : w_.in(n_, 0).elements) {
      const bool is_truth = to == 9;
      out.elements.push_back(is_truth ? (e != 0 ? 1 : 0) : out.is_integer ? std::trunc(e) : e);
    }
    return true;
  }
  bool where(traced_value& out) {
    if (n_.inputs.size() != 3) return false;
    std::size_t count = 1;
    for (std::size_t i = 0; i < 3; ++i) {
      const traced_value& v = w_.in(n_, i);
      if (v.rank() > 1 || v.elements.empty()) return false;
      if (v.rank() == 1 && count == 1) out.extents = v.extents;
      if (v.elements.size() == 1) continue;
      if (count != 1 && v.elements.size() != count) return false;
      count = v.elements.size();
    }
    const auto at = [&](std::size_t input, std::size_t i) {
      const auto& elements = w_.in(n_, input).elements;
      return elements[elements.size() == 1 ? 0 : i];
    };
    for (std::size_t i = 0; i < count; ++i) {
      out.elements.push_back(at(0, i) != 0 ? at(1, i) : at(2, i));
    }
    out.is_integer = w_.in(n_, 1).is_integer;
    return true;
  }
  /// The places of a row, as older exporters count.
  bool non_zero(traced_value& out) {
    const traced_value& data = w_.in(n_, 0);
    if (!is_row(data)) return false;
    for (std::size_t i = 0; i < data.elements.size(); ++i) {
      if (data.elements[i] != 0) out.elements.push_back(static_cast<double>(i));
    }
    out.extents = {1, static_cast<std::int64_t>(out.elements.size())};
    return out.is_integer = true;
  }
  bool reduce(traced_value& out) {
    const traced_value& data = w_.in(n_, 0);
    if (!is_row(data) || data.elements.empty()) return false;
    const auto axes = w_.integers(n_, "axes", 1);
    if ((!axes || axes->empty()) && n_.integer("noop_with_empty_axes", 0) != 0) return false;
    double all = data.elements[0];
    for (std::size_t i = 1; i < data.elements.size(); ++i) {
      const double e = data.elements[i];
      all = n_.op == "ReduceProd"  ? all * e
            : n_.op == "ReduceSum" ? all + e
            : n_.op == "ReduceMax" ? (std::max)(all, e)
                                   : (std::min)(all, e);
    }
    out.elements = {all};
    if (n_.integer("keepdims", 1) != 0) out.extents = {1};
    out.is_integer = data.is_integer;
    return true;
  }
  bool unary(traced_value& out) {
    const std::string_view op = n_.op;
    const traced_value& data = w_.in(n_, 0);
    double (*f)(double) = nullptr;
    if (op == "Neg") f = [](double x) { return -x; };
    if (op == "Abs") f = [](double x) { return std::fabs(x); };
    if (op == "Floor") f = [](double x) { return std::floor(x); };
    if (op == "Ceil") f = [](double x) { return std::ceil(x); };
    if (op == "Round") f = [](double x) { return std::nearbyint(x); };
    if (op == "Sqrt") f = [](double x) { return std::sqrt(x); };
    if (op == "Not") f = [](double x) { return x == 0 ? 1.0 : 0.0; };
    if (f == nullptr) return false;
    for (const double e : data.elements) out.elements.push_back(f(e));
    out.extents = data.extents;
    out.is_integer = data.is_integer;
    return true;
  }
  bool binary(traced_value& out) {
    const std::string_view op = n_.op;
    const traced_value& a = w_.in(n_, 0);
    const traced_value& b = w_.in(n_, 1);
    const bool integer = a.is_integer && b.is_integer;
    double (*f)(double, double) = nullptr;
    if (op == "Add") f = [](double x, double y) { return x + y; };
    if (op == "Sub") f = [](double x, double y) { return x - y; };
    if (op == "Mul") f = [](double x, double y) { return x * y; };
    if (op == "Div") f = [](double x, double y) { return x / y; };
    if (op == "Pow") f = [](double x, double y) { return std::pow(x, y); };
    if (op == "Mod") f = [](double x, double y) { return x - std::floor(x / y) * y; };
    if (op == "Mod" && n_.integer("fmod", 0) != 0) {
      f = [](double x, double y) { return std::fmod(x, y); };
    }
    if (op == "Min") f = [](double x, double y) { return (std::min)(x, y); };
    if (op == "Max") f = [](double x, double y) { return (std::max)(x, y); };
    if (op == "Equal") f = [](double x, double y) { return x == y ? 1.0 : 0.0; };
    if (op == "Greater") f = [](double x, double y) { return x > y ? 1.0 : 0.0; };
    if (op == "Less") f = [](double x, double y) { return x < y ? 1.0 : 0.0; };
    if (f == nullptr) return false;
    const std::size_t size_a = a.elements.size(), size_b = b.elements.size();
    if (size_a != size_b && size_a != 1 && size_b != 1) return false;
    if (size_a == 0 || size_b == 0) return false;
    if (size_a == size_b && a.rank() == b.rank() && a.extents != b.extents) return false;
    if (size_a == size_b && size_a != 1 && a.rank() != b.rank()) return false;
    const std::size_t count = (std::max)(size_a, size_b);
    for (std::size_t i = 0; i < count; ++i) {
      const double v = f(a.elements[size_a == 1 ? 0 : i], b.elements[size_b == 1 ? 0 : i]);
      out.elements.push_back(integer && op == "Div" ? std::trunc(v) : v);
    }
    if (size_a == size_b) {
      out.extents = a.rank() >= b.rank() ? a.extents : b.extents;
    } else {
      out.extents = size_a > size_b ? a.extents : b.extents;
      if ((size_a > size_b ? b : a).rank() > out.extents.size()) return false;
    }
    out.is_integer = integer;
    return true;
  }

  graph_walk& w_;
  const graph_node& n_;
};

/// Evaluates a node of one output.
///
/// Post  true: its value has its elements, and a shape unless the rule of its operator is to give that.
inline bool evaluate_constant(graph_walk& w, const graph_node& n, traced_value& out) {
  if (n.outputs.size() != 1 || n.outputs[0] == network_graph::no_value) return false;
  if (!constant_evaluator(w, n).evaluate(out) || out.elements.size() > most_evaluated) return false;
  out.is_constant = true;
  out.is_uniform = true;
  for (const double e : out.elements) out.is_uniform = out.is_uniform && e == out.elements[0];
  return true;
}

}  // namespace subfed::inline v0::detail
