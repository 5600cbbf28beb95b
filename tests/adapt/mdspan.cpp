// SPDX-License-Identifier: MIT
// Whichever mdspan there is: of the standard library, of CUDA's, or the few lines below, which have
// what a view needs of one.
#include <doctest/doctest.h>
#include <adapt/conformance.hpp>
#include <subfed/adapt/mdspan.hpp>
#include <subfed/scatter.hpp>
#include <subfed/slice.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>
#include <version>

#if __cplusplus > 202002L && __has_include(<mdspan>)
#include <mdspan>
namespace md = std;
using std::array;
#elif __has_include(<cuda/std/mdspan>)
#include <cuda/std/array>
#include <cuda/std/mdspan>
namespace md = cuda::std;
using cuda::std::array;
#else
using std::array;
namespace md {

template <class Index, std::size_t Rank>
class dextents {
 public:
  using index_type = Index;
  using rank_type = std::size_t;
  template <class... Sizes>
  requires(sizeof...(Sizes) == Rank) dextents(Sizes... sizes)
      : sizes_{static_cast<Index>(sizes)...} {}
  dextents(const array<Index, Rank>& sizes) : sizes_(sizes) {}
  static constexpr std::size_t rank() { return Rank; }
  Index extent(std::size_t r) const { return sizes_[r]; }

 private:
  array<Index, Rank> sizes_;
};

template <class Extents>
class strided_mapping {
 public:
  using strides_type = array<typename Extents::index_type, Extents::rank()>;
  strided_mapping(const Extents& e, const strides_type& s) : extents_(e), strides_(s) {}
  explicit strided_mapping(const Extents& e, bool left = false) : extents_(e), strides_{} {
    typename Extents::index_type room = 1;
    for (std::size_t i = 0; i < Extents::rank(); ++i) {
      const std::size_t r = left ? i : Extents::rank() - 1 - i;
      strides_[r] = room;
      room = static_cast<typename Extents::index_type>(room * e.extent(r));
    }
  }
  static constexpr bool is_strided() { return true; }
  const Extents& extents() const { return extents_; }
  auto stride(std::size_t r) const { return strides_[r]; }
  template <class... Indices>
  auto operator()(Indices... indices) const {
    std::size_t r = 0;
    typename Extents::index_type out = 0;
    ((out = static_cast<decltype(out)>(out + indices * strides_[r++])), ...);
    return out;
  }

 private:
  Extents extents_;
  strides_type strides_;
};
struct layout_stride {
  template <class Extents>
  using mapping = strided_mapping<Extents>;
};
struct layout_right {
  template <class Extents>
  using mapping = strided_mapping<Extents>;
};
struct layout_left {
  template <class Extents>
  struct mapping : strided_mapping<Extents> {
    explicit mapping(const Extents& e) : strided_mapping<Extents>(e, true) {}
  };
};

template <class E>
struct default_accessor {
  using offset_policy = default_accessor;
  using element_type = E;
  using reference = E&;
  using data_handle_type = E*;
};

template <class E, class Extents, class Layout = layout_right, class Accessor = default_accessor<E>>
class mdspan {
 public:
  using extents_type = Extents;
  using layout_type = Layout;
  using accessor_type = Accessor;
  using mapping_type = typename Layout::template mapping<Extents>;
  using element_type = E;
  using index_type = typename Extents::index_type;
  using data_handle_type = typename Accessor::data_handle_type;
  using reference = typename Accessor::reference;
  mdspan(data_handle_type p, const mapping_type& m) : data_(p), mapping_(m) {}
  template <class... Sizes>
  requires(std::integral<Sizes>&&...) mdspan(data_handle_type p, Sizes... sizes)
      : data_(p), mapping_(Extents(sizes...)) {}
  static constexpr std::size_t rank() { return Extents::rank(); }
  const data_handle_type& data_handle() const { return data_; }
  const mapping_type& mapping() const { return mapping_; }
  const Extents& extents() const { return mapping_.extents(); }

 private:
  data_handle_type data_;
  mapping_type mapping_;
};

}  // namespace md
#endif

namespace {

using conformance::layout;
using conformance::strided;
using subfed::index_set;
using subfed::tensor_view;

template <class Index, std::size_t Rank>
array<Index, Rank> as_array(const std::vector<std::int64_t>& from) {
  array<Index, Rank> out{};
  for (std::size_t r = 0; r < Rank; ++r) out[r] = static_cast<Index>(from[r]);
  return out;
}

/// layout_stride with strides of its own; it cannot go backwards.
template <std::size_t Rank>
struct strided_spans {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 3;
  static bool fits(const layout& l) {
    // Of a broadcast, required_span_size() is not what some libraries assert on.
    return l.extents.size() == Rank && !conformance::has_negative_stride(l) &&
           !conformance::has_stride_zero(l) && l.strides != std::vector<std::int64_t>{0, 1, 0};
  }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    using extents = md::dextents<std::int64_t, Rank>;
    using mapping = typename md::layout_stride::template mapping<extents>;
    const layout& l = memory.where();
    const mapping map(extents(as_array<std::int64_t, Rank>(l.extents)),
                      as_array<std::int64_t, Rank>(l.strides));
    const md::mdspan<float, extents, md::layout_stride> span(memory.view().data_handle(), map);
    f(span);
  }
};

/// layout_right or layout_left, of rank 2 with a narrow index type.
template <class Layout>
struct packed_spans {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 1;
  static bool fits(const layout& l) {
    return l.extents.size() == 2 &&
           (std::is_same_v<Layout, md::layout_right> ? conformance::is_row_major(l)
                                                     : conformance::is_column_major(l));
  }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const auto& e = memory.extents();
    const md::mdspan<float, md::dextents<std::uint16_t, 2>, Layout> span(
        memory.view().data_handle(), static_cast<std::uint16_t>(e[0]),
        static_cast<std::uint16_t>(e[1]));
    f(span);
  }
};

struct scalar_spans {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 1;
  static bool fits(const layout& l) { return l.extents.empty(); }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const md::mdspan<float, md::dextents<int, 0>> span(memory.view().data_handle());
    f(span);
  }
};

/// A layout whose first element is not at offset 0, as that of a reversed view.
struct reversed_layout {
  template <class Extents>
  class mapping {
   public:
    using extents_type = Extents;
    using index_type = typename Extents::index_type;
    using rank_type = typename Extents::rank_type;
    using size_type = std::make_unsigned_t<index_type>;
    using layout_type = reversed_layout;
    explicit mapping(const Extents& e) : extents_(e) {}
    static constexpr bool is_always_unique() { return true; }
    static constexpr bool is_always_exhaustive() { return true; }
    static constexpr bool is_always_strided() { return true; }
    static constexpr bool is_unique() { return true; }
    static constexpr bool is_row_major() { return true; }
    static constexpr bool is_strided() { return true; }
    const Extents& extents() const { return extents_; }
    index_type required_span_size() const { return extents_.extent(0); }
    index_type stride(rank_type) const { return -1; }
    template <class I>
    index_type operator()(I i) const {
      return extents_.extent(0) - 1 - static_cast<index_type>(i);
    }
    friend bool operator==(const mapping& a, const mapping& b) {
      return a.extents_.extent(0) == b.extents_.extent(0);
    }

   private:
    Extents extents_;
  };
};

}  // namespace

TEST_CASE("mdspans conform") {
  CHECK(conformance::failures<strided_spans<1>>() == "");
  CHECK(conformance::failures<strided_spans<2>>() == "");
  CHECK(conformance::failures<strided_spans<3>>() == "");
  CHECK(conformance::failures<packed_spans<md::layout_right>>() == "");
  CHECK(conformance::failures<packed_spans<md::layout_left>>() == "");
  CHECK(conformance::failures<scalar_spans>() == "");
}

TEST_CASE("a part of a matrix is seen by its own strides, not as if it were packed") {
  std::vector<float> data(12);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  using extents = md::dextents<int, 2>;
  // Rows 1..2 and columns 2..3 of the (3, 4) matrix: 6 elements from the first to the last.
  const typename md::layout_stride::template mapping<extents> map(extents(2, 2),
                                                                  array<int, 2>{4, 1});
  const md::mdspan<float, extents, md::layout_stride> part(data.data() + 6, map);
  const tensor_view<float> view(part);
  CHECK(view(0, 0) == 6);
  CHECK(view(0, 1) == 7);
  CHECK(view(1, 0) == 10);
  CHECK(view(1, 1) == 11);
  CHECK(subfed::detail::offset_range(view).second == 5);

  std::vector<float> local(2);
  subfed::slice(part, {index_set(2, {1, 0}), index_set(2, {0})},
                tensor_view<float>(local.data(), {2, 1}));
  CHECK(local == std::vector<float>{10, 6});
}

TEST_CASE("the first element is where the mapping says") {
  std::vector<float> data{1, 2, 3, 4};
  using extents = md::dextents<int, 1>;
  const md::mdspan<float, extents, reversed_layout> span(
      data.data(), reversed_layout::mapping<extents>(extents(4)));
  const tensor_view<float> view(span);
  CHECK(view(0) == 4);
  CHECK(view(3) == 1);
  float local[2] = {};
  subfed::slice(span, {index_set(4, {0, 2})}, tensor_view<float>(local, {2}));
  CHECK(local[0] == 4);
  CHECK(local[1] == 2);
  subfed::scatter(tensor_view<float>(local, {2}), {index_set(4, {3, 1})}, span);
  CHECK(data == std::vector<float>{4, 2, 2, 4});
}

TEST_CASE("an mdspan owns nothing, of const it is only read") {
  using writes = md::mdspan<float, md::dextents<int, 2>>;
  using reads = md::mdspan<const float, md::dextents<int, 2>>;
  static_assert(subfed::viewable<writes> && subfed::borrowed<writes>);
  static_assert(subfed::viewable_as<const writes, float>);
  static_assert(subfed::viewable_as<reads, const float> && !subfed::viewable_as<reads, float>);
  static_assert(!subfed::viewable_as<writes, double>);

  float data[] = {1, 2};
  const float local[] = {7};
  subfed::scatter(reads(local, 1, 1), {index_set(1, {0}), index_set(2, {1})}, writes(data, 1, 2));
  CHECK(data[1] == 7);
}

TEST_CASE("accessors that do more than to index are no view") {
  using plain = md::default_accessor<float>;
  struct scaled : plain {
    double factor = 2;
  };
  static_assert(subfed::detail::is_plain_accessor<plain, float>);
  static_assert(!subfed::detail::is_plain_accessor<plain, double>);
  static_assert(!subfed::detail::is_plain_accessor<scaled, float>);
}
