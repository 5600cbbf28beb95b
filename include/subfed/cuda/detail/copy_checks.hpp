// SPDX-License-Identifier: MIT
/// What slices and scatters on a device check before anything is uploaded. Reads addresses, never
/// elements.
#pragma once

#include <subfed/detail/memory_overlap.hpp>
#include <subfed/detail/model_checks.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/error.hpp>
#include <subfed/selection.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <type_traits>

namespace subfed::inline v0::cuda::detail {

/// One client of a call.
template <class T>
struct copy_part {
  const submodel* sub;
  const tensor_views<T>* tensors;
};

/// Throws  error unless all tensors have their shapes, those that are written one element per
///         index, and no two of them share memory that is written.
template <class Global, class Local>
void check_copies(const char* verb, const tensor_views<Global>& globals,
                  std::span<const copy_part<Local>> parts) {
  using subfed::detail::access;
  if (parts.empty()) {
    subfed::detail::fail(std::string("subfed: ") + verb + ": there is no client");
  }
  const model& net = parts.front().sub->parent();
  subfed::detail::check_count(verb, "global", net, globals.size());
  subfed::detail::placed_tensors places;
  for (std::size_t t = 0; t < globals.size(); ++t) {
    const auto& info = net.tensors()[t];
    subfed::detail::check_shape(verb, "global", info.name, globals[t].extents(), info.extents);
    if constexpr (!std::is_const_v<Global>) {
      subfed::detail::check_unique(verb, "global", info.name, globals[t]);
    }
    places.add(globals[t], info.name, std::is_const_v<Global> ? access::reads : access::writes);
  }
  std::deque<std::string> names;  // elements keep their addresses
  for (const copy_part<Local>& p : parts) {
    if (!(p.sub->parent() == net)) {
      subfed::detail::fail(std::string("subfed: ") + verb +
                           ": the submodels of two clients are of different models");
    }
    subfed::detail::check_count(verb, "local", net, p.tensors->size());
    for (std::size_t t = 0; t < p.tensors->size(); ++t) {
      const auto& local = (*p.tensors)[t];
      const std::string& name = net.tensors()[t].name;
      const auto expected = p.sub->extents(tensor_id(t));
      subfed::detail::check_shape(verb, "local", name, local.extents(), expected);
      if constexpr (!std::is_const_v<Local>) {
        subfed::detail::check_unique(verb, "local", name, local);
      }
      names.push_back(
          parts.size() == 1 ? name : name + " of client " + std::to_string(p.sub->origin().client));
      places.add(local, names.back(), std::is_const_v<Local> ? access::reads : access::writes);
    }
  }
  places.check_apart(verb);
}

}  // namespace subfed::inline v0::cuda::detail
