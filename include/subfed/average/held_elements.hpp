// SPDX-License-Identifier: MIT
/// Which elements of a model's tensors were held by a client that took part in an average.
#pragma once

#include <subfed/detail/internals.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// One bit for each element of each tensor: set when somebody held it and it has a new value. It is
/// not set for what nobody held, or for what was held only with weight 0 or only as a value that
/// was left out. An average returns it:
///
///   held_elements held = mean.held();
///   average_cohort<float>(net, updates, globals, held, options);
///
/// Cost  One bit per element.
class held_elements {
 public:
  /// Of no model.
  held_elements() = default;
  /// Nothing is held.
  explicit held_elements(model net) : model_(std::move(net)) {
    for (const auto& tensor : model_.tensors()) {
      std::size_t elements = 1;
      for (const std::int64_t e : tensor.extents) elements *= static_cast<std::size_t>(e);
      bits_.push_back({elements, std::vector<std::uint64_t>((elements + 63) / 64, 0)});
    }
  }
  /// What at least one of the submodels holds, except nodes that do not take part.
  ///
  /// Throws  error for a submodel of another model.
  held_elements(const model& net, std::span<const submodel> subs) : held_elements(net) {
    for (std::size_t s = 0; s < subs.size(); ++s) {
      if (!(subs[s].parent() == net)) {
        const std::uint64_t client = subs[s].origin().client;
        detail::fail("subfed: held_elements: the submodel of client " + std::to_string(client) +
                         " is of another model",
                     {.client = client});
      }
      for (std::size_t t = 0; t < bits_.size(); ++t) add(subs[s], t);
    }
  }

  /// The model whose elements these are.
  const model& parent() const noexcept { return model_; }

  /// Whether an element is held, by its row-major number in the global tensor.
  ///
  /// Throws  error for a number outside the tensor.
  bool test(tensor_id tensor, std::int64_t element) const {
    const of_tensor& of = at(tensor);
    if (element < 0 || static_cast<std::size_t>(element) >= of.elements) {
      const std::string& name = model_[tensor].name;
      detail::fail("subfed: held_elements: tensor '" + name + "' has no element " +
                       std::to_string(element) + ", it has " + std::to_string(of.elements),
                   {.tensor = name});
    }
    const auto i = static_cast<std::size_t>(element);
    return (of.words[i / 64] >> (i % 64) & 1) != 0;
  }

  /// Held elements of a tensor.
  std::int64_t count(tensor_id tensor) const {
    std::int64_t n = 0;
    for (const std::uint64_t word : at(tensor).words) n += std::popcount(word);
    return n;
  }
  /// Held elements of all tensors.
  std::int64_t count() const {
    std::int64_t n = 0;
    for (std::size_t t = 0; t < bits_.size(); ++t) n += count(tensor_id(t));
    return n;
  }

  /// Element number i, row-major, is bit i % 64 of word i / 64; bits after the last element are 0.
  std::span<const std::uint64_t> words(tensor_id tensor) const { return at(tensor).words; }

  friend bool operator==(const held_elements&, const held_elements&) = default;

 private:
  friend struct detail::internals;

  /// Elements first + i stride of tensor number t, i = 0 .. length-1.
  void add(std::size_t t, std::int64_t first, std::int64_t stride, std::int64_t length) noexcept {
    std::vector<std::uint64_t>& words = bits_[t].words;
    auto i = static_cast<std::size_t>(first);
    if (stride != 1) {
      for (std::int64_t n = 0; n < length; ++n, first += stride) {
        i = static_cast<std::size_t>(first);
        words[i / 64] |= std::uint64_t{1} << (i % 64);
      }
      return;
    }
    for (auto left = static_cast<std::size_t>(length); left != 0;) {
      const std::size_t here = (std::min)(left, 64 - i % 64);
      words[i / 64] |= (~std::uint64_t{0} >> (64 - here)) << (i % 64);
      i += here;
      left -= here;
    }
  }
  /// All that a submodel holds of tensor number t.
  void add(const submodel& sub, std::size_t t) {
    const detail::loop_nest walk(sub[tensor_id(t)]);
    walk.for_each([&](std::int64_t g, std::int64_t, std::int64_t length) {
      add(t, g, walk.global_stride(), length);
    });
  }

  struct of_tensor {
    std::size_t elements;
    std::vector<std::uint64_t> words;
    friend bool operator==(const of_tensor&, const of_tensor&) = default;
  };
  const of_tensor& at(tensor_id tensor) const {
    static_cast<void>(model_[tensor]);  // refuses a foreign tensor
    return bits_[tensor.number()];
  }

  model model_;
  std::vector<of_tensor> bits_;
};

}  // namespace subfed::inline v0
