// SPDX-License-Identifier: MIT
/// Memory for all tensors of a model or of a submodel, in the order in which the model lists them.
#pragma once

#include <subfed/detail/memory_size.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace subfed::inline v0 {

/// Row-major tensors of one element type that own their elements, one for each tensor of a model. They
/// go wherever views of all tensors do: slice<float>(globals, sub, locals).
///
///   subfed::tensors<float> globals(net);  // of the model's shapes
///   subfed::tensors<float> locals(sub);   // of the client's
///   globals[fc1](3, 0) = 1;               // a tensor_view
///
/// Post  Elements are zero. Views stay valid while the object lives, even when it is moved.
/// Cost  One allocation for the elements.
template <class T>
class tensors {
  static_assert(!std::is_const_v<T> && !std::is_void_v<T>,
                "subfed: tensors<T> own elements of one type that can be written");

 public:
  /// Tensors of the model's own shapes.
  ///
  /// Throws  error when the machine cannot address as many elements.
  explicit tensors(const model& net) {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const model::tensor_info& info : net.tensors()) shapes.push_back(info.extents);
    allocate(shapes);
  }
  /// Tensors of the shapes that the client has.
  ///
  /// Throws  as above.
  explicit tensors(const submodel& sub) {
    std::vector<std::vector<std::int64_t>> shapes;
    for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
      shapes.push_back(sub.extents(tensor_id(t)));
    }
    allocate(shapes);
  }

  /// A copy has elements of its own.
  tensors(const tensors& other) {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const tensor_view<T>& v : other.views_) {
      shapes.emplace_back(v.extents().begin(), v.extents().end());
    }
    allocate(shapes);
    std::copy_n(other.elements_.get(), other.count_, elements_.get());
  }
  tensors(tensors&&) noexcept = default;
  tensors& operator=(const tensors& other) { return *this = tensors(other); }
  tensors& operator=(tensors&&) noexcept = default;
  ~tensors() = default;

  /// How many tensors.
  std::size_t size() const noexcept { return views_.size(); }
  /// Throws  error for a number that the model did not have.
  const tensor_view<T>& operator[](tensor_id tensor) { return views_[checked(tensor)]; }
  const tensor_view<const T>& operator[](tensor_id tensor) const {
    return read_only_[checked(tensor)];
  }

  /// The views, one after the other.
  auto begin() noexcept { return views_.cbegin(); }
  auto end() noexcept { return views_.cend(); }
  auto begin() const noexcept { return read_only_.cbegin(); }
  auto end() const noexcept { return read_only_.cend(); }

  /// All elements in a row, tensor by tensor.
  std::span<T> elements() noexcept { return {elements_.get(), count_}; }
  std::span<const T> elements() const noexcept { return {elements_.get(), count_}; }

 private:
  std::size_t checked(tensor_id tensor) const {
    if (tensor.number() >= views_.size()) {
      detail::fail("subfed: tensors: tensor number " + std::to_string(tensor.number()) +
                   " is asked of " + std::to_string(views_.size()));
    }
    return tensor.number();
  }

  void allocate(std::span<const std::vector<std::int64_t>> shapes) {
    // The elements of a model's tensors fit 64 bits together.
    std::int64_t count = 0;
    for (const auto& shape : shapes) count += elements_of(shape);
    count_ = detail::memory_size<T>(count);
    elements_ = std::make_unique<T[]>(count_);
    T* at = elements_.get();
    for (const auto& shape : shapes) {
      views_.emplace_back(at, std::span<const std::int64_t>(shape));
      read_only_.emplace_back(views_.back());
      at += elements_of(shape);
    }
  }
  static std::int64_t elements_of(std::span<const std::int64_t> shape) noexcept {
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n *= extent;
    return n;
  }

  std::size_t count_ = 0;
  std::unique_ptr<T[]> elements_;
  std::vector<tensor_view<T>> views_;
  std::vector<tensor_view<const T>> read_only_;
};

}  // namespace subfed::inline v0
