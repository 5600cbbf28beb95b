// SPDX-License-Identifier: MIT
/// What every adaptor has to do alike: slice, scatter and average a foreign tensor of every layout
/// that its type can have, with the same logical result. Uses no test framework, so that it serves
/// programs whose libraries clash with one.
#pragma once

#include <subfed/average/cohort.hpp>
#include <subfed/model.hpp>
#include <subfed/scatter.hpp>
#include <subfed/slice.hpp>
#include <subfed/submodel.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

// A maker of foreign tensors, the argument of failures():
//
//   using element                 the element type
//   static constexpr writable     whether the foreign type can be a destination
//   static constexpr least        how many of the layouts it is to fit at least
//   static bool fits(layout)      whether the foreign type can have this layout
//   static void with(memory, f)   calls f(tensor) with a foreign tensor, an lvalue, that has the
//                                 elements of `memory`, a strided<element>; what f writes to it is
//                                 in `memory` afterwards
namespace conformance {

using support::layout;
using support::strided;

/// Shapes and strides that adaptors get wrong.
inline std::vector<layout> layouts() {
  using support::make_layout;
  std::vector<layout> out;
  out.push_back(support::row_major({}));
  out.push_back(support::row_major({0}));
  out.push_back(support::row_major({5}));
  out.push_back(support::row_major({3, 0, 2}));
  out.push_back(support::row_major({1, 1}));
  out.push_back(support::row_major({4, 3}));
  out.push_back(support::row_major({2, 1, 3}));
  out.push_back(support::column_major({4, 3}));
  out.push_back(support::column_major({2, 3, 2}));
  out.push_back(make_layout({5}, {0}, {2}, {1}));              // every other element
  out.push_back(make_layout({5}, {0}, {1}, {-1}));             // backwards
  out.push_back(make_layout({4, 3}, {0, 1}, {2, 1}, {1, 1}));  // rows with a gap
  out.push_back(make_layout({4, 3}, {0, 1}, {2, 3}, {1, 1}));  // gaps everywhere
  out.push_back(make_layout({4, 3}, {1, 0}, {1, 1}, {-1, 1}));
  out.push_back(make_layout({2, 3, 2}, {1, 2, 0}, {1, 2, 1}, {1, -1, -1}));
  out.push_back(make_layout({5}, {0}, {1}, {0}));  // a broadcast: five times one element
  out.push_back(make_layout({4, 3}, {0, 1}, {1, 1}, {0, 1}));
  layout odd = support::row_major({1, 4, 1});  // strides that mean nothing
  odd.strides = {99, 1, -77};
  out.push_back(odd);
  odd.strides = {0, 1, 0};
  out.push_back(odd);
  return out;
}

inline bool is_row_major(const layout& l) {
  return l.strides == support::row_major(l.extents).strides;
}
inline bool is_column_major(const layout& l) {
  return l.strides == support::column_major(l.extents).strides;
}
/// Of dimensions of extent 2 or more.
inline bool has_stride_zero(const layout& l) {
  for (std::size_t r = 0; r < l.extents.size(); ++r) {
    if (l.extents[r] > 1 && l.strides[r] == 0) return true;
  }
  return false;
}
inline bool has_negative_stride(const layout& l) {
  return std::any_of(l.strides.begin(), l.strides.end(), [](std::int64_t s) { return s < 0; });
}

/// Every second node, the last one first.
inline std::vector<std::int64_t> some_nodes(std::int64_t extent) {
  std::vector<std::int64_t> out;
  for (std::int64_t node = extent - 1; node >= 0; node -= 2) out.push_back(node);
  return out;
}

/// What a maker's foreign tensors are asked, without their type, so that the checks are compiled
/// once for an element type.
template <class T>
struct asked {
  using reader = std::function<void(const subfed::tensor_view<const T>&)>;
  using writer = std::function<void(const subfed::tensor_view<T>&)>;

  std::function<void(strided<T>&, const reader&)> read;
  std::function<void(strided<T>&, const subfed::selection&, const subfed::tensor_view<T>&)> slice;
  std::function<void(strided<T>&, const writer&)> write;  // empty for types that are only read
  std::function<void(const subfed::tensor_view<const T>&, const subfed::selection&, strided<T>&)>
      scatter;
};

template <class Maker>
asked<typename Maker::element> ask() {
  using T = typename Maker::element;
  asked<T> out;
  out.read = [](strided<T>& memory, const typename asked<T>::reader& f) {
    Maker::with(memory, [&](auto& foreign) {
      const subfed::tensor_views<const T> views{foreign};
      f(views[0]);
    });
  };
  out.slice = [](strided<T>& memory, const subfed::selection& chosen,
                 const subfed::tensor_view<T>& local) {
    Maker::with(memory, [&](auto& foreign) { subfed::slice<T>(foreign, chosen, local); });
  };
  if constexpr (Maker::writable) {
    out.write = [](strided<T>& memory, const typename asked<T>::writer& f) {
      Maker::with(memory, [&](auto& foreign) {
        const subfed::tensor_views<T> views{foreign};
        f(views[0]);
      });
    };
    out.scatter = [](const subfed::tensor_view<const T>& local, const subfed::selection& chosen,
                     strided<T>& memory) {
      Maker::with(memory, [&](auto& foreign) { subfed::scatter<T>(local, chosen, foreign); });
    };
  }
  return out;
}

/// Runs every check on one layout and keeps the sentences about what failed.
template <class T>
class run {
 public:
  run(const layout& where, const asked<T>& foreign) : layout_(where), foreign_(foreign) {
    for (const std::int64_t extent : where.extents) {
      nodes_.push_back(some_nodes(extent));
      local_extents_.push_back(static_cast<std::int64_t>(nodes_.back().size()));
    }
    for (const auto& index : support::all_indices(local_extents_)) {
      support::index_type global;
      for (std::size_t r = 0; r < index.size(); ++r) {
        global.push_back(nodes_[r][static_cast<std::size_t>(index[r])]);
      }
      numbers_.push_back(support::row_major_number(where.extents, global));
    }
  }

  std::vector<std::string> failures() {
    reads();
    if (foreign_.write) {
      if (has_stride_zero(layout_)) {
        refuses_to_write();
      } else {
        writes();
        is_sliced_into();
        refuses_overlap();
      }
    }
    if constexpr (subfed::averageable<T>) averages();
    return failures_;
  }

 private:
  void expect(bool holds, const std::string& what) {
    if (holds) return;
    std::ostringstream text;
    text << layout_ << ": " << what;
    failures_.push_back(text.str());
  }

  static T number(std::int64_t n) { return T(static_cast<float>(n)); }
  static double value(T x) { return static_cast<double>(x); }

  subfed::selection chosen() const {
    std::vector<subfed::selected_dimension> out;
    for (std::size_t r = 0; r < nodes_.size(); ++r) {
      out.emplace_back(subfed::index_set(layout_.extents[r], nodes_[r]));
    }
    return subfed::selection(out, "w");
  }

  /// The elements of the foreign tensor: 1, 2, 3 ..
  strided<T> memory() const {
    strided<T> out(layout_);
    out.fill([](std::int64_t n) { return number(n + 1); });
    return out;
  }
  /// A tensor of ours, with other numbers.
  static strided<T> ours(const support::extents_type& extents) {
    strided<T> out(support::row_major(extents));
    out.fill([](std::int64_t n) { return number(64 + n % 32); });
    return out;
  }

  void reads() {
    strided<T> from = memory();
    const std::vector<T> elements = from.elements();
    foreign_.read(from, [&](const subfed::tensor_view<const T>& view) {
      expect(std::equal(view.extents().begin(), view.extents().end(), layout_.extents.begin(),
                        layout_.extents.end()),
             "the view has another shape");
      std::vector<T> seen;
      subfed::detail::for_each_offset(
          view, [&](std::int64_t o) { seen.push_back(view.data_handle()[o]); });
      expect(support::same_bits(seen, elements), "the view has other elements");
    });

    strided<T> cut = ours(local_extents_);
    foreign_.slice(from, chosen(), cut.view());
    std::vector<T> expected;
    for (const std::size_t number : numbers_) expected.push_back(elements[number]);
    expect(support::same_bits(cut.elements(), expected), "slice gives other elements");
    expect(support::same_bits(from.elements(), elements), "reading changes the tensor");
  }

  void writes() {
    const strided<T> local = ours(local_extents_);
    strided<T> to = memory();
    std::vector<T> expected = to.elements();
    foreign_.scatter(local.view(), chosen(), to);
    for (std::size_t l = 0; l < numbers_.size(); ++l) expected[numbers_[l]] = local.elements()[l];
    expect(support::same_bits(to.elements(), expected), "scatter gives other elements");
    expect(to.rest_untouched(), "scatter writes beside the tensor");

    strided<T> sum = memory();
    expected = sum.elements();
    foreign_.write(sum, [&](const subfed::tensor_view<T>& view) {
      subfed::scatter_add(local.view(), chosen(), view);
    });
    for (std::size_t l = 0; l < numbers_.size(); ++l) {
      const double added = value(expected[numbers_[l]]) + value(local.elements()[l]);
      expected[numbers_[l]] = T(static_cast<float>(added));
    }
    expect(support::same_bits(sum.elements(), expected), "scatter_add gives other elements");
  }

  /// The foreign tensor is cut out of a larger one, with the nodes reversed.
  void is_sliced_into() {
    support::extents_type larger = layout_.extents;
    std::vector<subfed::selected_dimension> reversed;
    for (auto& extent : larger) {
      std::vector<std::int64_t> nodes;
      for (std::int64_t node = extent; node >= 1; --node) nodes.push_back(node);
      ++extent;
      reversed.emplace_back(subfed::index_set(extent, nodes));
    }
    const strided<T> global = ours(larger);
    strided<T> cut = memory();
    foreign_.write(cut, [&](const subfed::tensor_view<T>& view) {
      subfed::slice(global.view(), subfed::selection(reversed), view);
    });
    bool same = true;
    for (const auto& index : support::all_indices(layout_.extents)) {
      support::index_type source = index;
      for (std::size_t r = 0; r < source.size(); ++r) source[r] = larger[r] - 1 - index[r];
      same = same && value(cut(index)) == value(global(source));
    }
    expect(same, "slice into the tensor gives other elements");
    expect(cut.rest_untouched(), "slice writes beside the tensor");
  }

  /// The call on the memory of a foreign tensor throws, and writes nothing.
  void expect_refusal(const std::string& what, const std::string& why,
                      const std::function<void(strided<T>&)>& call) {
    strided<T> kept = memory();
    const std::vector<T> before = kept.buffer();
    std::string message = "nothing";
    try {
      call(kept);
    } catch (const subfed::error& error) {
      message = error.what();
    }
    expect(message.find(why) != std::string::npos, what + " throws " + message);
    expect(support::same_bits(kept.buffer(), before), what + " was refused, but wrote");
  }

  void refuses_to_write() {
    expect_refusal(
        "scatter into a broadcast", "several indices for one element",
        [&](strided<T>& to) { foreign_.scatter(ours(local_extents_).view(), chosen(), to); });
  }

  void refuses_overlap() {
    if (support::elements_of(layout_.extents) == 0) return;
    std::vector<subfed::selected_dimension> all;
    for (const std::int64_t extent : layout_.extents) {
      all.emplace_back(subfed::index_set::full(extent));
    }
    expect_refusal("slice of a tensor into itself", "overlap in memory", [&](strided<T>& to) {
      foreign_.write(to, [&](const subfed::tensor_view<T>& view) {
        subfed::slice(view, subfed::selection(all), view);
      });
    });
    expect_refusal("scatter from another shape", "has shape", [&](strided<T>& to) {
      support::extents_type other = local_extents_;
      other.push_back(1);
      foreign_.scatter(ours(other).view(), chosen(), to);
    });
  }

  /// Two clients: one has everything, with the foreign tensor; one has some nodes. The result goes
  /// to a foreign tensor where it can be written.
  void averages() {
    subfed::model net;
    std::vector<subfed::dimension> dimensions;
    std::vector<subfed::index_set> held;
    for (std::size_t r = 0; r < nodes_.size(); ++r) {
      dimensions.emplace_back(net.group("group " + std::to_string(r), layout_.extents[r]));
      held.emplace_back(layout_.extents[r], nodes_[r]);
    }
    net.tensor("w", dimensions);
    strided<T> whole = memory();
    const strided<T> part = ours(local_extents_);

    std::vector<T> expected = whole.elements();
    for (std::size_t l = 0; l < numbers_.size(); ++l) {
      const double sum = value(expected[numbers_[l]]) + 3 * value(part.elements()[l]);
      expected[numbers_[l]] = subfed::scalar_traits<T>::store(sum / 4);
    }
    const auto average_into = [&](const subfed::tensor_view<T>& global) {
      foreign_.read(whole, [&](const subfed::tensor_view<const T>& view) {
        const subfed::update<T> updates[] = {{subfed::submodel::full(net), {view}, 1},
                                             {subfed::submodel(net, held), {part.view()}, 3}};
        subfed::average_cohort<T>(net, updates, {global});
      });
    };
    const bool into_foreign = foreign_.write && !has_stride_zero(layout_);
    strided<T> global(into_foreign ? layout_ : support::row_major(layout_.extents));
    global.fill([](std::int64_t) { return number(1); });
    if (into_foreign) {
      foreign_.write(global, average_into);
    } else {
      average_into(global.view());
    }
    expect(support::same_bits(global.elements(), expected), "the average is another");
    expect(global.rest_untouched(), "the average writes beside the tensor");
  }

  layout layout_;
  const asked<T>& foreign_;
  std::vector<std::vector<std::int64_t>> nodes_;
  support::extents_type local_extents_;
  std::vector<std::size_t> numbers_;
  std::vector<std::string> failures_;
};

/// Sentences about what an adaptor does wrong, a line each; empty when all is well.
template <class Maker>
std::string failures() {
  using T = typename Maker::element;
  const asked<T> foreign = ask<Maker>();
  std::string out;
  int fitting = 0;
  for (const layout& l : layouts()) {
    if (!Maker::fits(l)) continue;
    ++fitting;
    for (const std::string& f : run<T>(l, foreign).failures()) out += f + '\n';
  }
  if (fitting < Maker::least) {
    out += "only " + std::to_string(fitting) + " layouts fit the type, expected " +
           std::to_string(Maker::least) + '\n';
  }
  return out;
}

}  // namespace conformance
