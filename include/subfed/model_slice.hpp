// SPDX-License-Identifier: MIT
/// Slice, scatter and scatter_add of all tensors of a submodel in one call.
#pragma once

#include <subfed/detail/copy_rows.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/memory_overlap.hpp>
#include <subfed/detail/model_checks.hpp>
#include <subfed/detail/staged_rows.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/executor.hpp>
#include <subfed/scatter.hpp>
#include <subfed/slice.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

/// An element of N bytes that is moved as it is, whatever its type: byte arrays may alias anything.
template <std::size_t N>
struct element_bytes {
  std::byte bytes[N];
};

/// What is done to a run of elements of the global and of the local tensor. moves: elements of the same
/// type are copied as they are.
struct copy_out {
  static constexpr bool moves = true;
  template <class G, class L>
  static void run(const G* global, std::int64_t global_stride, L* local, std::int64_t local_stride,
                  std::int64_t n, placement where) noexcept {
    copy_run(global, global_stride, local, local_stride, n, where);
  }
  static void row(const row_units& units, const void* global, void* local) noexcept {
    units.copy_out(bytes_at(global), bytes_at(local));
  }
};
struct copy_in {
  static constexpr bool moves = true;
  template <class G, class L>
  static void run(G* global, std::int64_t global_stride, const L* local, std::int64_t local_stride,
                  std::int64_t n, placement where) noexcept {
    copy_run(local, local_stride, global, global_stride, n, where);
  }
  static void row(const row_units& units, void* global, const void* local) noexcept {
    units.copy_in(bytes_at(local), bytes_at(global));
  }
};
struct add_in {
  static constexpr bool moves = false;
  template <class G, class L>
  static void run(G* global, std::int64_t global_stride, const L* local, std::int64_t local_stride,
                  std::int64_t n, placement) {
    add_run(local, local_stride, global, global_stride, n);
  }
};

/// The global and the local tensors of a call, checked and ready to be processed in parts.
template <class T, class U>
class model_walk {
 public:
  /// Throws  whatever slice and scatter of one tensor throw, for any of them, and error for memory
  ///         that two tensors share when one of them is written.
  model_walk(const char* verb, const submodel& sub, const tensor_views<T>& globals,
             const tensor_views<U>& locals)
      : globals_(globals), locals_(locals), plans_(internals::plans(sub)) {
    check_count(verb, "global", sub.parent(), globals.size());
    check_count(verb, "local", sub.parent(), locals.size());
    placed_tensors places;
    places.reserve(2 * globals.size());
    parts_.reserve(globals.size());
    for (std::size_t t = 0; t < globals.size(); ++t) {
      const std::string& name = sub.parent().tensors()[t].name;
      places.add(globals[t], name, std::is_const_v<T> ? access::reads : access::writes);
      places.add(locals[t], name, std::is_const_v<U> ? access::reads : access::writes);
      if (plans_.empty()) {
        prepare(verb, t, sub[tensor_id(t)], nullptr);
      } else {
        prepare(verb, t, plans_[t].chosen, &plans_[t].row_major);
      }
    }
    places.check_apart(verb);
    for (std::size_t t = 0; t < locals.size(); ++t) {
      std::size_t element_size = 0;
      if constexpr (std::is_void_v<T>) {
        element_size = static_cast<std::size_t>(locals[t].format().bits) / 8;
      } else {
        element_size = sizeof(T);
      }
      bytes_ =
          (std::min)(bytes_ + bytes_to_place(locals[t].size(), element_size), past_cache_bytes);
    }
  }

  /// Does Verb to all selected elements, run by run.
  template <class Verb, class Executor>
  void run(Executor& run_by) const {
    run_parts(run_by, static_cast<std::int64_t>(parts_.size()), [&](std::int64_t i) {
      const part& p = parts_[static_cast<std::size_t>(i)];
      const loop_nest& walk = *p.walk;
      const float_mode mode;
      const auto& global = globals_[p.tensor];
      const auto& local = locals_[p.tensor];
      if constexpr (std::is_void_v<T> && std::is_void_v<U>) {
        untyped_part<Verb>(walk, p, global, local);
      } else {
        with_type(global, [&]<class E>(const tensor_view<E>& typed_global) {
          with_type(local, [&]<class L>(const tensor_view<L>& typed_local) {
            if constexpr (can_be_paired<E, L>) {
              typed_part<Verb>(walk, p, typed_global.data_handle(), typed_local.data_handle(),
                               where_to(local.size(), sizeof(E)));
            }
          });
        });
      }
    });
  }

 private:
  template <class E, class L>
  static constexpr bool can_be_paired =
      std::is_same_v<std::remove_const_t<E>, std::remove_const_t<L>> ||
      (averageable<std::remove_const_t<E>> && averageable<std::remove_const_t<L>>);

  /// Steps begin .. end-1 of a tensor's walk.
  struct part {
    std::size_t tensor;
    const loop_nest* walk;
    std::int64_t begin, end;
  };
  static constexpr std::int64_t part_elements = 1 << 18;

  placement where_to(std::int64_t elements, std::size_t element_size) const noexcept {
    return placement_of(bytes_to_place(elements, element_size), bytes_);
  }

  template <class Verb, class E, class L>
  static void typed_part(const loop_nest& walk, const part& p, E* global, L* local,
                         placement where) {
    if constexpr (Verb::moves && std::is_same_v<std::remove_const_t<E>, std::remove_const_t<L>>) {
      if constexpr (std::is_same_v<Verb, copy_out>) {
        if (copy_staged_rows(walk, p.begin, p.end, global, local, where)) return;
      }
      const auto copy = [&](const row_units& units, std::int64_t g, std::int64_t l) {
        Verb::row(units, global + g, local + l);
      };
      if (for_each_row_of_units(walk, p.begin, p.end, sizeof(E), copy)) return;
    }
    walk.for_each(p.begin, p.end, [&](std::int64_t g, std::int64_t l, std::int64_t length) {
      Verb::run(global + g, walk.global_stride(), local + l, walk.local_stride(), length, where);
    });
    end_of_copies(where);
  }

  /// Elements of the same type are copied by their size. Others go through one loop for all pairs of
  /// types, which calls a function of the pair: a loop for every pair would take seconds to compile.
  template <class Verb>
  void untyped_part(const loop_nest& walk, const part& p, const tensor_view<T>& global,
                    const tensor_view<U>& local) const {
    const auto by_size = [&]<std::size_t N>() {
      typed_part<Verb>(walk, p, static_cast<like<T, element_bytes<N>>*>(global.data_handle()),
                       static_cast<like<U, element_bytes<N>>*>(local.data_handle()),
                       where_to(local.size(), N));
    };
    if constexpr (Verb::moves) {
      if (global.format() == local.format()) {
        switch (global.format().bits) {
          case 8:
            return by_size.template operator()<1>();
          case 16:
            return by_size.template operator()<2>();
          case 32:
            return by_size.template operator()<4>();
          default:
            return by_size.template operator()<8>();
        }
      }
    }
    const std::int64_t global_size = global.format().bits / 8, local_size = local.format().bits / 8;
    auto* const to_global = static_cast<like<T, std::byte>*>(global.data_handle());
    auto* const to_local = static_cast<like<U, std::byte>*>(local.data_handle());
    const auto run_of_pair = pair_of<Verb>(global.format(), local.format());
    walk.for_each(p.begin, p.end, [&](std::int64_t g, std::int64_t l, std::int64_t length) {
      run_of_pair(to_global + g * global_size, walk.global_stride(), to_local + l * local_size,
                  walk.local_stride(), length);
    });
  }

  template <class Void, class E>
  using like = std::conditional_t<std::is_const_v<Void>, const E, E>;
  using run_function = void (*)(T*, std::int64_t, U*, std::int64_t, std::int64_t);

  template <class Verb>
  static run_function pair_of(element_format global, element_format local) {
    return with_format(global, [local]<class E>() -> run_function {
      return with_format(local, []<class L>() -> run_function {
        if constexpr (can_be_paired<E, L> && !(Verb::moves && std::is_same_v<E, L>)) {
          return [](T* g, std::int64_t global_stride, U* l, std::int64_t local_stride,
                    std::int64_t n) {
            Verb::run(static_cast<like<T, E>*>(g), global_stride, static_cast<like<U, L>*>(l),
                      local_stride, n, placement::cached);
          };
        } else {
          return nullptr;  // refused by check_convertible, or copied by size
        }
      });
    });
  }

  void prepare(const char* verb, std::size_t t, const selection& chosen,
               const loop_nest* row_major) {
    const auto& global = globals_[t];
    const auto& local = locals_[t];
    check_extents(verb, "global", chosen, global, &selected_dimension::global_extent);
    check_extents(verb, "local", chosen, local, &selected_dimension::local_extent);
    check_convertible(verb, chosen.name(), global, local);
    const bool plain = global.is_row_major() && local.is_row_major();
    if (!plain) {  // row-major tensors are unique
      with_type(global, [&]<class E>(const tensor_view<E>& typed_global) {
        if constexpr (!std::is_const_v<T>) {
          check_unique(verb, "global", chosen.name(), typed_global);
        }
      });
      with_type(local, [&]<class L>(const tensor_view<L>& typed_local) {
        if constexpr (!std::is_const_v<U>) {
          check_unique(verb, "local", chosen.name(), typed_local);
        }
      });
    }
    const bool planned = plain && row_major != nullptr;
    if (!planned) {
      own_.reserve(globals_.size());  // they must not move
      own_.emplace_back(chosen, global.strides().data(), local.strides().data());
    }
    const loop_nest& walk = planned ? *row_major : own_.back();
    const std::int64_t steps = walk.outer_steps();
    const std::int64_t each = (std::max)(
        part_elements / (std::max)(walk.elements_a_step(), std::int64_t{1}), std::int64_t{1});
    for (std::int64_t s = 0; s < steps; s += each) {
      parts_.push_back({t, &walk, s, (std::min)(s + each, steps)});
    }
  }

  template <class V>
  static void check_extents(const char* verb, const char* role, const selection& chosen,
                            const tensor_view<V>& view, std::int64_t selected_dimension::*extent) {
    bool same = view.rank() == chosen.rank();
    for (int r = 0; same && r < chosen.rank(); ++r) {
      same = view.extent(r) == chosen.dimension(r).*extent;
    }
    if (same) return;
    check_shape(verb, role, chosen.name(), view.extents(),
                extent == &selected_dimension::global_extent ? chosen.global_extents()
                                                             : chosen.local_extents());
  }

  const tensor_views<T>& globals_;
  const tensor_views<U>& locals_;
  std::span<const tensor_plan> plans_;
  std::vector<loop_nest> own_;  // of tensors that the plan does not cover
  std::vector<part> parts_;
  std::int64_t bytes_ = 0;  // of all local tensors, in bytes_to_place()
};

}  // namespace detail

/// Copies all tensors of a submodel out of the global model: slice<float>(globals, sub, locals),
/// both lists in the order in which the model describes its tensors.
///
/// Throws    as slice of one tensor, for any of them, before the first write; with void also for
///           tensors that hold integers on one side only, or different integers.
/// Cost      Work is cut into parts of about 2^18 elements, which the executor runs.
template <class T, executor Executor = serial>
void slice(const tensor_views<std::type_identity_t<const T>>& globals, const submodel& sub,
           const tensor_views<std::type_identity_t<T>>& locals, Executor&& run_by = {}) {
  const detail::model_walk<const T, T> walk("slice", sub, globals, locals);
  walk.template run<detail::copy_out>(run_by);
}

/// Puts all tensors of a submodel back into the global model: scatter<float>(locals, sub, globals).
///
/// Throws    as scatter of one tensor, for any of them, before the first write.
/// Cost      as slice.
template <class T, executor Executor = serial>
void scatter(const tensor_views<std::type_identity_t<const T>>& locals, const submodel& sub,
             const tensor_views<std::type_identity_t<T>>& globals, Executor&& run_by = {}) {
  const detail::model_walk<T, const T> walk("scatter", sub, globals, locals);
  walk.template run<detail::copy_in>(run_by);
}

/// Adds all tensors of a submodel to the global model: scatter_add<float>(locals, sub, globals).
///
/// Throws    as scatter_add of one tensor, for any of them, before the first write.
/// Cost      as slice.
template <class T, executor Executor = serial>
void scatter_add(const tensor_views<std::type_identity_t<const T>>& locals, const submodel& sub,
                 const tensor_views<std::type_identity_t<T>>& globals, Executor&& run_by = {}) {
  const detail::model_walk<T, const T> walk("scatter_add", sub, globals, locals);
  walk.template run<detail::add_in>(run_by);
}

}  // namespace subfed::inline v0
