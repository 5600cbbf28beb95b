// SPDX-License-Identifier: MIT
/// What operators that move elements say about axes: reshapes, transpositions, slices, concatenations.
#pragma once

#include <subfed/graph/detail/walk.hpp>
#include <subfed/graph/network_graph.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// The same elements in another shape. Axes are matched from the left where as many elements are before
/// them; in between, an axis that becomes several is their product, and several that become one are a
/// product.
inline bool reshaped(graph_walk& w, const traced_value& x, const std::vector<std::int64_t>& to,
                     std::vector<value_axis>& out) {
  std::int64_t all = 1, made = 1;
  for (const std::int64_t e : x.extents) all *= e;
  for (const std::int64_t e : to) {
    if (e < 1 || !multiply(made, e)) return false;
  }
  if (made != all) return false;
  std::size_t i = 0, j = 0;
  while (i < x.rank() || j < to.size()) {
    std::int64_t before = 1, after = 1;
    value_axis from = {{}};
    const std::size_t first = j;
    std::size_t axes = 0;  // of more than one element
    do {
      if (i < x.rank() && (before <= after || j == to.size())) {
        before *= x.extents[i];
        if (x.extents[i] != 1) {
          from = axes == 0 ? x.axes[i] : w.space.product(from, x.axes[i]);
          ++axes;
        }
        ++i;
      } else {
        after *= to[j++];
      }
    } while (before != after || (before == 1 && (i < x.rank() || j < to.size())));
    const auto is_long = [](std::int64_t e) { return e != 1; };
    const auto parts = std::count_if(to.begin() + static_cast<std::ptrdiff_t>(first),
                                     to.begin() + static_cast<std::ptrdiff_t>(j), is_long);
    value_axis joined = {{}};
    for (std::size_t k = first; k < j; ++k) {
      const value_axis own = to[k] == 1 ? value_axis{{}} : parts == 1 ? from : w.space.fresh(to[k]);
      if (parts != 1 && to[k] != 1) joined = w.space.product(joined, own);
      out.push_back(own);
    }
    if (parts > 1) w.space.unify(from, joined);
  }
  return true;
}
inline void set_reshaped(graph_walk& w, const graph_node& n, const std::vector<std::int64_t>& to) {
  const traced_value x = w.in(n, 0);
  std::vector<value_axis> out;
  if (!reshaped(w, x, to, out)) return w.opaque(n, "the shape does not fit");
  w.set(n, 0, std::move(out));
}
inline void reshape_rule(graph_walk& w, const graph_node& n) {
  const auto given = w.integers(n, "shape", 1);
  if (!given) return w.opaque(n, "its shape is not a constant");
  const auto& extents = w.in(n, 0).extents;
  std::vector<std::int64_t> to;
  std::int64_t all = 1, others = 1;
  for (const std::int64_t e : extents) all *= e;
  for (std::size_t r = 0; r < given->size(); ++r) {
    std::int64_t e = (*given)[r];
    if (e == 0 && n.integer("allowzero", 0) == 0 && r < extents.size()) e = extents[r];
    to.push_back(e);
    if (e != -1 && (e < 1 || !multiply(others, e))) return w.opaque(n, "the shape does not fit");
  }
  for (std::int64_t& e : to) {
    if (e == -1) e = all / others;
  }
  set_reshaped(w, n, to);
}
inline void flatten_rule(graph_walk& w, const graph_node& n) {
  const auto& extents = w.in(n, 0).extents;
  const auto rank = static_cast<std::int64_t>(extents.size());
  std::int64_t at = n.integer("axis", 1);
  if (at < 0) at += rank;
  if (at < 0 || at > rank) return w.opaque(n, "it has no such axis");
  std::int64_t first = 1, second = 1;
  for (std::int64_t r = 0; r < rank; ++r)
    (r < at ? first : second) *= extents[static_cast<std::size_t>(r)];
  set_reshaped(w, n, {first, second});
}

inline void transpose_rule(graph_walk& w, const graph_node& n) {
  const std::vector<value_axis> axes = w.in(n, 0).axes;
  std::vector<std::int64_t> order;
  if (const graph_attribute* a = n.find("perm")) {
    order = a->integers;
  } else {
    for (std::size_t r = axes.size(); r-- > 0;) order.push_back(static_cast<std::int64_t>(r));
  }
  std::vector<bool> used(axes.size(), false);
  std::vector<value_axis> out;
  for (const std::int64_t o : order) {
    const std::size_t r = graph_walk::axis_of(o, axes.size());
    if (r == axes.size() || used[r]) return w.opaque(n, "its order is none");
    used[r] = true;
    out.push_back(axes[r]);
  }
  if (out.size() != axes.size()) return w.opaque(n, "its order is none");
  w.set(n, 0, std::move(out));
}

inline void squeeze_rule(graph_walk& w, const graph_node& n) {
  const traced_value& x = w.in(n, 0);
  const auto given = w.integers(n, "axes", 1);
  if (!given && w.has(n, 1)) return w.opaque(n, "its axes are not a constant");
  std::vector<bool> goes;
  for (const std::int64_t e : x.extents) goes.push_back(!given && e == 1);
  if (given) {
    for (const std::int64_t a : *given) {
      const std::size_t r = graph_walk::axis_of(a, x.rank());
      if (r == x.rank() || x.extents[r] != 1) return w.opaque(n, "it has no such axis");
      goes[r] = true;
    }
  }
  std::vector<value_axis> out;
  for (std::size_t r = 0; r < x.rank(); ++r) {
    if (!goes[r]) out.push_back(x.axes[r]);
  }
  w.set(n, 0, std::move(out));
}
inline void unsqueeze_rule(graph_walk& w, const graph_node& n) {
  const std::vector<value_axis> axes = w.in(n, 0).axes;
  const auto given = w.integers(n, "axes", 1);
  if (!given) return w.opaque(n, "its axes are not a constant");
  const std::size_t rank = axes.size() + given->size();
  std::vector<bool> is_new(rank, false);
  for (const std::int64_t a : *given) {
    const std::size_t r = graph_walk::axis_of(a, rank);
    if (r == rank || is_new[r]) return w.opaque(n, "it has no such axis");
    is_new[r] = true;
  }
  std::vector<value_axis> out;
  std::size_t next = 0;
  for (std::size_t r = 0; r < rank; ++r) out.push_back(is_new[r] ? value_axis{{}} : axes[next++]);
  w.set(n, 0, std::move(out));
}

inline void concat_rule(graph_walk& w, const graph_node& n) {
  std::vector<value_axis> out = w.in(n, 0).axes;
  const auto first = w.in(n, 0).extents;
  const std::size_t at = graph_walk::axis_of(n.integer("axis", 1), out.size());
  if (at == out.size()) return w.opaque(n, "it has no such axis");
  for (std::size_t i = 1; i < n.inputs.size(); ++i) {
    if (!w.has(n, i)) return w.opaque(n, "it lacks an input");
    const traced_value& x = w.in(n, i);
    if (x.rank() != out.size()) return w.opaque(n, "the shapes do not fit");
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (r != at && x.extents[r] != first[r]) return w.opaque(n, "the shapes do not fit");
    }
  }
  // Constants beside what is computed: their number is written down in the network, as a padding's is.
  bool all_uniform = true;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    all_uniform = all_uniform && w.in(n, i).is_uniform;
  }
  for (std::size_t i = 0; !all_uniform && i < n.inputs.size(); ++i) {
    if (!w.in(n, i).is_uniform) continue;
    w.space.make_whole(w.in(n, i).axes[at], w.space.reason("it is of constants that " + w.text(n) +
                                                           " puts beside others"));
  }
  for (std::size_t i = 1; i < n.inputs.size(); ++i) {
    const traced_value& x = w.in(n, i);
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (r != at) w.space.unify(out[r], x.axes[r]);
    }
    out[at].insert(out[at].end(), x.axes[at].begin(), x.axes[at].end());
    if (out[at].size() > axis_space::most_parts) out[at] = w.space.leaves(out[at]);
  }
  w.set(n, 0, std::move(out));
}

inline void split_rule(graph_walk& w, const graph_node& n) {
  const std::vector<value_axis> axes = w.in(n, 0).axes;
  const std::size_t at = graph_walk::axis_of(n.integer("axis", 0), axes.size());
  if (at == axes.size() || n.outputs.empty()) return w.opaque(n, "it has no such axis");
  const std::int64_t extent = w.in(n, 0).extents[at];
  auto sizes = w.integers(n, "split", 1);
  if (!sizes && w.has(n, 1)) return w.opaque(n, "its sizes are not a constant");
  if (!sizes) {
    const auto count = static_cast<std::int64_t>(n.outputs.size());
    const std::int64_t each = (extent + count - 1) / count;
    sizes.emplace();
    std::int64_t left = extent;
    for (std::int64_t i = 0; i < count; ++i) {
      sizes->push_back((std::min)(each, left));
      left -= sizes->back();
    }
  }
  std::int64_t end = 0;
  for (const std::int64_t size : *sizes) {
    if (size < 0 || size > extent - end) return w.opaque(n, "its sizes do not fit");
    end += size;
  }
  if (end != extent || sizes->size() != n.outputs.size()) {
    return w.opaque(n, "its sizes do not fit");
  }
  end = 0;
  for (std::size_t o = 0; o < sizes->size(); ++o) {
    std::vector<value_axis> out = axes;
    out[at] = w.space.slice(axes[at], end, end + (*sizes)[o]);
    w.taken.push_back({n.inputs[0], at, end, out[at]});
    end += (*sizes)[o];
    w.set(n, o, std::move(out));
  }
}

/// Every step-th element, or those of a range.
inline bool sliced(graph_walk& w, value_axis& a, std::int64_t begin, std::int64_t end,
                   std::int64_t step) {
  const std::int64_t extent = w.space.extent(a);
  const auto range = sliced_range::of(begin, end, step, extent);
  if (!range) return false;
  const std::int64_t count = range->count;
  begin = range->begin;
  if (step == 1) {
    a = w.space.slice(a, begin, begin + count);
    return true;
  }
  if (step > 0 && extent % step == 0 && begin < step && count == extent / step) {
    const value_axis outer = w.space.fresh(extent / step);
    const std::size_t why =
        w.space.reason("every node in " + std::to_string(step) + " is taken of it");
    w.space.unify(a, w.space.product(outer, w.space.fresh_whole(step, why)));
    a = outer;
    return true;
  }
  const std::size_t why = w.space.reason("some of its nodes are taken, with a step");
  w.space.make_whole(a, why);
  a = w.space.fresh_whole(count, why);
  return true;
}
inline void slice_rule(graph_walk& w, const graph_node& n) {
  std::vector<value_axis> out = w.in(n, 0).axes;
  const auto starts = w.integers(n, "starts", 1), ends = w.integers(n, "ends", 2);
  auto axes = w.integers(n, "axes", 3), steps = w.integers(n, "steps", 4);
  const bool computed = !starts || !ends || (!axes && w.has(n, 3)) || (!steps && w.has(n, 4));
  if (computed) return w.opaque(n, "its bounds are not constants");
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<std::int64_t>(i));
  }
  if (!steps) steps.emplace(starts->size(), 1);
  if (ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size()) {
    return w.opaque(n, "its bounds do not fit");
  }
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::size_t r = graph_walk::axis_of((*axes)[i], out.size());
    if (r == out.size() || !sliced(w, out[r], (*starts)[i], (*ends)[i], (*steps)[i])) {
      return w.opaque(n, "its bounds do not fit");
    }
    if ((*steps)[i] == 1 && (*starts)[i] >= 0) {
      w.taken.push_back({n.inputs[0], r, (*starts)[i], out[r]});
    }
  }
  w.set(n, 0, std::move(out));
}

/// An embedding, or elements at fixed places.
inline void gather_rule(graph_walk& w, const graph_node& n) {
  if (!w.has(n, 1)) return w.opaque(n, "it has not two inputs");
  const std::vector<value_axis> axes = w.in(n, 0).axes;
  const traced_value& indices = w.in(n, 1);
  const std::size_t at = graph_walk::axis_of(n.integer("axis", 0), axes.size());
  if (at == axes.size()) return w.opaque(n, "it has no such axis");
  w.space.make_whole(axes[at],
                     w.space.reason((indices.is_constant ? "fixed nodes are taken of it by "
                                                         : "it is looked up by ") +
                                    w.text(n)));
  for (std::size_t r = 0; r < axes.size(); ++r) {
    if (r != at) w.written(n.inputs[0], r);
  }
  std::vector<value_axis> out(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(at));
  out.insert(out.end(), indices.axes.begin(), indices.axes.end());
  out.insert(out.end(), axes.begin() + static_cast<std::ptrdiff_t>(at) + 1, axes.end());
  w.set(n, 0, std::move(out));
}
/// Elements are written or read at computed places: nothing is cut, the shape is known.
inline void scatter_rule(graph_walk& w, const graph_node& n) {
  const std::size_t why = w.space.reason("its nodes are numbered by " + w.text(n));
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (!w.has(n, i)) continue;
    for (const value_axis& a : w.in(n, i).axes) w.space.make_whole(a, why);
  }
  const bool of_indices = n.op == "GatherElements";
  if (of_indices && !w.has(n, 1)) return w.opaque(n, "it has no indices");
  std::vector<value_axis> out;
  for (const std::int64_t e : w.in(n, of_indices ? 1 : 0).extents) {
    out.push_back(w.space.fresh_whole(e, why));
  }
  w.set(n, 0, std::move(out));
}

inline void expand_rule(graph_walk& w, const graph_node& n) {
  const auto to = w.integers(n, "shape", 1);
  if (!to) return w.opaque(n, "its shape is not a constant");
  traced_value shape;
  for (const std::int64_t e : *to) {
    if (e < 0) return w.opaque(n, "the shape does not fit");
    shape.extents.push_back(e);
    shape.axes.push_back(w.space.fresh(e));
  }
  std::vector<value_axis> out;
  traced_value x = w.in(n, 0);
  if (!w.broadcast({&shape, &x}, out)) return w.opaque(n, "the shapes do not broadcast");
  w.set(n, 0, std::move(out));
}
inline void tile_rule(graph_walk& w, const graph_node& n) {
  const auto times = w.integers(n, "repeats", 1);
  const traced_value x = w.in(n, 0);
  if (!times || times->size() != x.rank()) return w.opaque(n, "its repeats are not constants");
  std::vector<value_axis> out;
  for (std::size_t r = 0; r < x.rank(); ++r) {
    std::int64_t extent = x.extents[r];
    if ((*times)[r] < 1 || !multiply(extent, (*times)[r])) {
      return w.opaque(n, "its repeats do not fit");
    }
    out.push_back(w.space.product(w.space.fresh((*times)[r]), x.axes[r]));
  }
  w.set(n, 0, std::move(out));
}

inline void pad_rule(graph_walk& w, const graph_node& n) {
  const traced_value x = w.in(n, 0);
  const auto pads = w.integers(n, "pads", 1);
  const auto given = w.integers(n, "axes", 3);
  const graph_attribute* mode = n.find("mode");
  if (!pads) return w.opaque(n, "its sizes are not constants");
  std::vector<std::int64_t> axes;
  for (std::size_t r = 0; r < x.rank(); ++r) axes.push_back(static_cast<std::int64_t>(r));
  if (given) axes = *given;
  if (pads->size() != 2 * axes.size()) return w.opaque(n, "its sizes do not fit");
  const bool constant = mode == nullptr || mode->text == "constant";
  std::vector<value_axis> out = x.axes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t r = graph_walk::axis_of(axes[i], x.rank());
    const std::int64_t before = (*pads)[i], after = (*pads)[axes.size() + i];
    if (r == x.rank()) return w.opaque(n, "it has no such axis");
    if (before == 0 && after == 0) continue;
    constexpr std::int64_t most = std::int64_t{1} << 40;
    if (before < -most || after < -most || before > most || after > most ||
        x.extents[r] + before + after < 0 || x.extents[r] > most) {
      return w.opaque(n, "its sizes do not fit");
    }
    const std::size_t why = constant ? w.image : w.space.reason("it is padded by " + w.text(n));
    if (!constant) w.space.make_whole(x.axes[r], why);
    value_axis padded;
    if (before > 0) padded.push_back(w.space.fresh_whole(before, why)[0]);
    const value_axis inner = w.space.slice(x.axes[r], (std::max)(-before, std::int64_t{0}),
                                           x.extents[r] + (std::min)(after, std::int64_t{0}));
    padded.insert(padded.end(), inner.begin(), inner.end());
    if (after > 0) padded.push_back(w.space.fresh_whole(after, why)[0]);
    out[r] =
        w.space.is_whole(padded) ? w.space.fresh_whole(x.extents[r] + before + after, why) : padded;
  }
  w.set(n, 0, std::move(out));
}

/// Upsampling: axes of an unchanged extent stay what they are.
inline void resize_rule(graph_walk& w, const graph_node& n) {
  const traced_value x = w.in(n, 0);
  const std::size_t scales = n.op == "Upsample" || n.inputs.size() == 2 ? 1 : 2;
  std::vector<std::int64_t> to;
  if (w.has(n, 3) && w.in(n, 3).is_constant && !w.in(n, 3).elements.empty()) {
    for (const double e : w.in(n, 3).elements) to.push_back(graph_walk::as_integer(e));
  } else if (w.has(n, scales) && w.in(n, scales).is_constant) {
    const auto& by = w.in(n, scales).elements;
    for (std::size_t r = 0; r < (std::min)(by.size(), x.rank()); ++r) {
      to.push_back(graph_walk::as_integer(std::floor(static_cast<double>(x.extents[r]) * by[r])));
    }
  }
  if (to.size() != x.rank()) return w.opaque(n, "its sizes are not constants");
  std::vector<value_axis> out = x.axes;
  for (std::size_t r = 0; r < x.rank(); ++r) {
    if (to[r] < 1) return w.opaque(n, "its sizes do not fit");
    if (r < 2 && to[r] == x.extents[r]) continue;
    w.space.make_whole(x.axes[r], w.image);
    out[r] = w.space.fresh_whole(to[r], w.image);
  }
  w.set(n, 0, std::move(out));
}

/// Channels become positions, or positions channels.
inline void depth_rule(graph_walk& w, const graph_node& n) {
  const traced_value x = w.in(n, 0);
  const std::int64_t size = n.integer("blocksize", 0);
  const graph_attribute* mode = n.find("mode");
  const bool to_space = n.op == "DepthToSpace";
  if (x.rank() != 4 || size < 1 || size > 65536) return w.opaque(n, "the shape does not fit");
  w.space.make_whole(x.axes[2], w.image);
  w.space.make_whole(x.axes[3], w.image);
  const value_axis inner = w.space.fresh_whole(size * size, w.image);
  if (to_space) {
    if (x.extents[1] % (size * size) != 0) return w.opaque(n, "the shape does not fit");
    const value_axis channels = w.space.fresh(x.extents[1] / (size * size));
    const bool first = mode != nullptr && mode->text == "CRD";
    w.space.unify(x.axes[1],
                  first ? w.space.product(channels, inner) : w.space.product(inner, channels));
    w.set(n, 0,
          {x.axes[0], channels, w.space.fresh_whole(x.extents[2] * size, w.image),
           w.space.fresh_whole(x.extents[3] * size, w.image)});
    return;
  }
  if (x.extents[2] % size != 0 || x.extents[3] % size != 0) {
    return w.opaque(n, "the shape does not fit");
  }
  w.set(n, 0,
        {x.axes[0], w.space.product(inner, x.axes[1]),
         w.space.fresh_whole(x.extents[2] / size, w.image),
         w.space.fresh_whole(x.extents[3] / size, w.image)});
}

}  // namespace subfed::inline v0::detail
