// SPDX-License-Identifier: MIT
/// The coupling of a network's tensors as data: groups of nodes that are kept or dropped together,
/// and which dimension of which tensor they are.
#pragma once

#include <subfed/detail/sizes.hpp>
#include <subfed/dimension.hpp>
#include <subfed/error.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

class dimension;
namespace detail {
struct model_undo;
}

/// Who decides which nodes of a group a client holds: the scheme, or nobody (input pixels, classes:
/// all of them always, unless a submodel says otherwise by hand).
enum class cut { by_scheme, never };

/// What a tensor is to training. This decides what may be done with it:
///
///   parameter  what gradients train: averaged, and the only tensors on which optimisers, momentum,
///              weight decay, control variates and proximal terms act
///   statistic  a running mean or variance: averaged as it is, and nothing else
///   counter    steps seen, of any type: merged by the rule for integers, and nothing else
///   local      what stays with its client, a norm or a head of its own: no client sends it, so the
///              server's value keeps its bits; a client starts from it as from any other
///
/// Layer helpers set the role; without one a tensor is a parameter.
enum class role { parameter, statistic, counter, local };

/// "parameter", "statistic", "counter", "local".
constexpr std::string_view role_text(role r) noexcept {
  constexpr std::string_view names[] = {"parameter", "statistic", "counter", "local"};
  return names[static_cast<std::size_t>(r)];
}

/// A network as subfed sees it: groups, tensors, and how each dimension uses a group. Using a group
/// twice ties the dimensions, so a residual addition cannot be cut inconsistently.
///
/// A cheap handle: copies share the description until one of them is extended.
class model {
 public:
  struct group_info {
    std::string name;
    std::int64_t extent;
    subfed::cut cut;

    friend bool operator==(const group_info&, const group_info&) = default;
  };
  struct tensor_info {
    std::string name;
    std::vector<dimension> dimensions;
    std::vector<std::int64_t> extents;  ///< shape of the global tensor
    subfed::role role = subfed::role::parameter;

    /// Whether optimisers and their kin act on it.
    bool is_parameter() const noexcept { return role == subfed::role::parameter; }
    /// Whether no client sends it.
    bool is_local() const noexcept { return role == subfed::role::local; }

    friend bool operator==(const tensor_info&, const tensor_info&) = default;
  };

  model() : data_(std::make_shared<description>()) {}

  /// Declares a group of `extent` nodes. The name selects the random streams: a renamed group gets
  /// other random sets.
  ///
  /// Throws  error for a name that is empty or already in use, or a negative extent.
  group_id group(std::string name, std::int64_t extent, subfed::cut decides = cut::by_scheme) {
    check_name("group", name, data_->group_numbers);
    if (extent < 0) {
      detail::fail(
          "subfed: model: group '" + name + "' has the negative extent " + std::to_string(extent),
          {.group = name});
    }
    description& to = own();
    append({std::move(name), extent, decides}, to.groups, to.group_numbers);
    return group_id(to.groups.size() - 1);
  }

  /// Describes a tensor by its dimensions, net.tensor("fc1.weight", {hidden, 20}), and its role,
  /// net.tensor("bn1.running_var", {hidden}, role::statistic).
  ///
  /// Throws  error for a name that is empty or already in use, a rank over 8, an unknown group, or
  ///         more than 2^63 - 1 elements of the tensor or of all tensors together, where an extent
  ///         of 0 counts as 1.
  /// Cost    O(log n) for n tensors, and a copy of the description where it is shared.
  tensor_id tensor(std::string name, std::span<const dimension> dimensions,
                   subfed::role is = role::parameter) {
    check_name("tensor", name, data_->tensor_numbers);
    if (dimensions.size() > static_cast<std::size_t>(max_rank)) {
      detail::fail("subfed: model: tensor '" + name + "' has the rank " +
                       std::to_string(dimensions.size()) + ", which is over 8",
                   {.tensor = name});
    }
    tensor_info info{std::move(name), {dimensions.begin(), dimensions.end()}, {}, is};
    const std::string what = "tensor '" + info.name + "'";
    for (const dimension& d : dimensions) info.extents.push_back(extent_of(d, what));
    std::int64_t sizes = data_->sizes;
    if (!detail::add(sizes, size_of(info))) {
      detail::fail("subfed: model: with " + what + " the model has more than 2^63 - 1 elements",
                   {.tensor = info.name});
    }
    description& to = own();
    append(std::move(info), to.tensors, to.tensor_numbers);
    to.sizes = sizes;
    return tensor_id(to.tensors.size() - 1);
  }
  tensor_id tensor(std::string name, std::initializer_list<dimension> dimensions,
                   subfed::role is = role::parameter) {
    return tensor(std::move(name),
                  std::span<const dimension>(dimensions.begin(), dimensions.size()), is);
  }

  /// Gives a tensor another role, after a layer helper has described it: a head that stays with the
  /// client is net.mark(fc.weight, role::local).
  ///
  /// Throws  error when the tensor is not of this model.
  model& mark(tensor_id tensor, subfed::role is) {
    static_cast<void>((*this)[tensor]);
    own().tensors[tensor.number()].role = is;
    return *this;
  }
  /// Gives a role to all tensors for which the predicate is true; [FedBN] is
  ///   net.mark_if([](const model::tensor_info& t) { return t.name.starts_with("bn"); },
  ///               role::local);
  ///
  /// Throws  error when it is true for none, so that a misspelt name does not send what should stay
  ///         with the client.
  template <std::predicate<const tensor_info&> Predicate>
  model& mark_if(Predicate&& chosen, subfed::role is) {
    std::vector<std::size_t> found;
    for (std::size_t t = 0; t < data_->tensors.size(); ++t) {
      if (chosen(std::as_const(data_->tensors[t]))) found.push_back(t);
    }
    if (found.empty()) {
      detail::fail("subfed: model: no tensor is chosen for the role " + std::string(role_text(is)));
    }
    description& to = own();
    for (const std::size_t t : found) to.tensors[t].role = is;
    return *this;
  }

  std::span<const group_info> groups() const noexcept { return data_->groups; }
  std::span<const tensor_info> tensors() const noexcept { return data_->tensors; }
  const group_info& operator[](group_id g) const { return at("group", data_->groups, g.number()); }
  const tensor_info& operator[](tensor_id t) const {
    return at("tensor", data_->tensors, t.number());
  }

  /// Throws  error when there is no such name.
  /// Cost    O(log n) for n names.
  group_id find_group(std::string_view name) const {
    return group_id(find("group", data_->group_numbers, name));
  }
  tensor_id find_tensor(std::string_view name) const {
    return tensor_id(find("tensor", data_->tensor_numbers, name));
  }

  /// Elements of a dimension: those of its parts together.
  ///
  /// Throws  error for a group that this model does not have, or more than 2^63 - 1 elements.
  std::int64_t extent(const dimension& d) const { return extent_of(d, "a dimension"); }

  /// Parameters of the whole model.
  std::int64_t size() const {
    std::int64_t n = 0;
    for (const tensor_info& t : data_->tensors) {
      std::int64_t elements = 1;
      for (const std::int64_t e : t.extents) elements *= e;
      n += elements;
    }
    return n;
  }

  /// The same groups and tensors, roles included, in the same order.
  friend bool operator==(const model& a, const model& b) {
    return a.data_ == b.data_ ||
           (a.data_->groups == b.data_->groups && a.data_->tensors == b.data_->tensors);
  }

 private:
  friend struct detail::model_undo;

  using numbers = std::map<std::string, std::size_t, std::less<>>;  // by name

  struct description {
    std::vector<group_info> groups;
    std::vector<tensor_info> tensors;
    numbers group_numbers;
    numbers tensor_numbers;
    std::int64_t sizes = 0;  // sum of size_of the tensors
  };

  /// The description to write to: copied first when another model or a submodel shares it.
  description& own() {
    if (data_.use_count() != 1) {
      data_ = std::make_shared<description>(*data_);
    } else {
      // A thread that had a copy may have let go of it just now. use_count() does not wait for what it read;
      // one more owner that goes does.
      std::shared_ptr<description>(data_).reset();
    }
    return *data_;
  }

  static void check_name(const char* kind, const std::string& name, const numbers& taken) {
    if (name.empty()) detail::fail(std::string("subfed: model: a ") + kind + " without a name");
    if (taken.find(name) == taken.end()) return;
    detail::fail(std::string("subfed: model: the ") + kind + " name '" + name + "' is taken");
  }
  /// All or nothing, in case memory runs out.
  template <class Item>
  static void append(Item item, std::vector<Item>& items, numbers& by_name) {
    if (items.size() == items.capacity()) items.reserve(2 * items.size() + 1);
    by_name.emplace(item.name, items.size());
    items.push_back(std::move(item));
  }
  template <class Item>
  static const Item& at(const char* kind, const std::vector<Item>& items, std::size_t number) {
    if (number >= items.size()) {
      detail::fail(std::string("subfed: model: ") + kind + " number " + std::to_string(number) +
                   " is not of this model, which has " + std::to_string(items.size()));
    }
    return items[number];
  }
  static std::size_t find(const char* kind, const numbers& by_name, std::string_view name) {
    const auto at = by_name.find(name);
    if (at != by_name.end()) return at->second;
    detail::fail(std::string("subfed: model: there is no ") + kind + " '" + std::string(name) +
                 "'");
  }

  std::int64_t extent_of(const dimension& d, const std::string& what) const {
    std::int64_t extent = 0;
    for (const dimension::part& p : d.parts()) {
      if (p.group != dimension::no_group && p.group >= data_->groups.size()) {
        detail::fail("subfed: model: " + what + " uses group number " + std::to_string(p.group) +
                     ", but this model has " + std::to_string(data_->groups.size()) + " groups");
      }
      const std::int64_t nodes =
          p.group == dimension::no_group ? p.whole : data_->groups[p.group].extent;
      std::int64_t elements = p.repeat * p.block;  // fits in a dimension
      if (!detail::multiply(elements, nodes) || !detail::add(extent, elements)) {
        detail::fail("subfed: model: " + what + " has more than 2^63 - 1 elements");
      }
    }
    return extent;
  }

  /// Elements of a tensor, where an empty group, or one of no elements, counts as one node: what is
  /// multiplied and added in any order fits in 64 bits whenever this does.
  std::int64_t size_of(const tensor_info& info) const {
    std::int64_t n = 1;
    for (std::size_t r = 0; r < info.extents.size(); ++r) {
      std::int64_t along = 0;
      bool fits = true;
      for (const dimension::part& p : info.dimensions[r].parts()) {
        const std::int64_t nodes =
            p.group == dimension::no_group ? p.whole : data_->groups[p.group].extent;
        std::int64_t elements = p.repeat * p.block;
        fits = fits && detail::multiply(elements, (std::max)(nodes, std::int64_t{1})) &&
               detail::add(along, elements);
      }
      if (fits && detail::multiply(n, (std::max)(along, std::int64_t{1}))) continue;
      detail::fail("subfed: model: tensor '" + info.name + "' has more than 2^63 - 1 elements" +
                       (is_empty(info) ? ", where an extent of 0 counts as 1" : ""),
                   {.tensor = info.name});
    }
    return n;
  }
  static bool is_empty(const tensor_info& info) {
    return std::find(info.extents.begin(), info.extents.end(), 0) != info.extents.end();
  }

  std::shared_ptr<description> data_;
};

namespace detail {

/// Undoes what was described since, unless it is kept.
struct model_undo {
  explicit model_undo(model& described)
      : net(described),
        groups(net.data_->groups.size()),
        tensors(net.data_->tensors.size()),
        sizes(net.data_->sizes) {}
  model_undo(const model_undo&) = delete;
  model_undo& operator=(const model_undo&) = delete;
  ~model_undo() {
    if (kept) return;
    // Nobody else has seen what is removed, so nobody shares it.
    cut(net.data_->groups, net.data_->group_numbers, groups);
    cut(net.data_->tensors, net.data_->tensor_numbers, tensors);
    net.data_->sizes = sizes;
  }

  model& net;
  std::size_t groups;
  std::size_t tensors;
  std::int64_t sizes;
  bool kept = false;

 private:
  template <class Items, class Numbers>
  static void cut(Items& items, Numbers& by_name, std::size_t size) noexcept {
    while (items.size() > size) {
      by_name.erase(by_name.find(items.back().name));
      items.pop_back();
    }
  }
};

}  // namespace detail

}  // namespace subfed::inline v0
