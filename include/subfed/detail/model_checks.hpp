// SPDX-License-Identifier: MIT
/// What verbs check of all of a model's tensors: their number and their shapes.
#pragma once

#include <subfed/detail/tensor_checks.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// Throws unless there are as many tensors as the model has.
inline void check_count(const char* verb, const char* role, const model& net, std::size_t found,
                        error_subject about = {}) {
  if (found == net.tensors().size()) return;
  fail(std::string("subfed: ") + verb + ": " + std::to_string(found) + " " + role +
           " tensors are given for a model of " + std::to_string(net.tensors().size()),
       std::move(about));
}

/// Throws unless there is a tensor for each of the model's, of its global shape.
template <class T>
void check_all_globals(const char* verb, const char* role, const model& net,
                       const tensor_views<T>& tensors) {
  check_count(verb, role, net, tensors.size());
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const auto& info = net.tensors()[t];
    check_shape(verb, role, info.name, tensors[t].extents(), info.extents);
  }
}

/// Throws unless a list has a tensor for each of the model's, and each parameter has the shape of
/// its tensor in `expected`. The shapes of the others are not checked.
template <class T, class U>
void check_same_parameters(const char* verb, const char* role, const model& net,
                           const tensor_views<T>& expected, const tensor_views<U>& found) {
  check_count(verb, role, net, found.size());
  for (std::size_t t = 0; t < found.size(); ++t) {
    const auto& info = net.tensors()[t];
    if (!info.is_parameter()) continue;
    const std::vector<std::int64_t> extents(expected[t].extents().begin(),
                                            expected[t].extents().end());
    check_shape(verb, role, info.name, found[t].extents(), extents);
  }
}

/// Throws unless all submodels are of the model.
inline void check_parents(const char* verb, const model& net, std::span<const submodel> subs) {
  for (const submodel& sub : subs) {
    if (sub.parent() == net) continue;
    fail(std::string("subfed: ") + verb + ": the submodel of client " +
         std::to_string(sub.origin().client) + " is of another model");
  }
}

}  // namespace subfed::inline v0::detail
