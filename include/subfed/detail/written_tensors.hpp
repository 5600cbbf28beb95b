// SPDX-License-Identifier: MIT
/// What a call writes shares no memory with itself or with what the call reads, whatever the tensors
/// are to each other.
#pragma once

#include <subfed/detail/memory_overlap.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/model.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <cstddef>
#include <deque>
#include <string>

namespace subfed::inline v0::detail {

/// The tensors of one call and what they are to it, as in "gradient".
class written_tensors {
 public:
  explicit written_tensors(const char* verb) : verb_(verb) {}

  /// Throws  error for several indices of one element.
  template <class T>
  void writes(const char* role, const std::string& name, const tensor_view<T>& tensor) {
    check_unique(verb_, role, name, tensor);
    add(role, name, tensor, access::writes);
  }
  template <class T>
  void reads(const char* role, const std::string& name, const tensor_view<T>& tensor) {
    add(role, name, tensor, access::reads);
  }
  /// All tensors of a model.
  template <class T>
  void writes(const char* role, const model& net, const tensor_views<T>& tensors) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      writes(role, net.tensors()[t].name, tensors[t]);
    }
  }
  /// Its parameters: the other tensors are neither written nor read, and may be anything, as one
  /// tensor in place of all gradients that there are not.
  template <class T>
  void writes_parameters(const char* role, const model& net, const tensor_views<T>& tensors) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (net.tensors()[t].is_parameter()) writes(role, net.tensors()[t].name, tensors[t]);
    }
  }
  template <class T>
  void reads_parameters(const char* role, const model& net, const tensor_views<T>& tensors) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (net.tensors()[t].is_parameter()) reads(role, net.tensors()[t].name, tensors[t]);
    }
  }

  /// Throws  error that names two tensors with an element in the same place, of which one is written.
  void check_apart() { places_.check_apart(verb_); }

 private:
  template <class T>
  void add(const char* role, const std::string& name, const tensor_view<T>& tensor, access used) {
    names_.push_back(name.empty() ? role : role + (" " + name));
    places_.add(tensor, names_.back(), used);
  }

  const char* verb_;
  std::deque<std::string> names_;  // they must not move
  placed_tensors places_;
};

}  // namespace subfed::inline v0::detail
