// SPDX-License-Identifier: MIT
/// at::Tensor (LibTorch, PyTorch extensions) on the CPU as tensor views, and a module's tensors in a model's
/// order. Includes nothing of torch.
#pragma once

#include <subfed/detail/element_format.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

template <class V>
concept torch_tensor = requires(const V& t) {
  { t.sizes().data() } -> std::convertible_to<const std::int64_t*>;
  { t.strides().data() } -> std::convertible_to<const std::int64_t*>;
  { t.dtype().template Match<float>() } -> std::convertible_to<bool>;
  { t.defined() } -> std::convertible_to<bool>;
  { t.is_cpu() } -> std::convertible_to<bool>;
  { t.requires_grad() } -> std::convertible_to<bool>;
  t.data_ptr();
};

[[noreturn]] inline void refuse_torch(const std::string& why) {
  fail("subfed: the torch tensor " + why);
}

/// The type of the elements; its kind is `other` for types that subfed does not have
/// (complex, quantised). It uses no type that some version of torch lacks, which would not link.
template <class V>
element_format torch_format(const V& t) {
  const auto type = t.dtype();
  const auto name = type.name();
  const std::string_view found(name.data(), name.size());
  if (found == "c10::Half") return format_of<half>();
  if (found == "c10::BFloat16") return format_of<bfloat16>();
  if (found.starts_with("c10::")) return {};
  if (type.template Match<float>()) return format_of<float>();
  if (type.template Match<double>()) return format_of<double>();
  if (type.template Match<bool>()) return format_of<bool>();
  return {t.is_signed() ? number_kind::signed_integer : number_kind::unsigned_integer,
          static_cast<int>(type.itemsize() * 8)};
}

/// Throws unless the elements are T. at::Half matches half, at::BFloat16 matches bfloat16.
template <class T, class V>
void check_torch_type(const V& t) {
  static_assert(format_of<T>().kind != number_kind::other,
                "subfed: no torch tensor that subfed can view has elements of this type");
  if (torch_format(t) == format_of<T>()) return;
  const auto type = t.dtype();
  const auto name = type.name();
  refuse_torch("has elements of type " + std::string(name.data(), name.size()) + ", expected " +
               format_text(format_of<T>()));
}

/// Tells autograd that the elements are about to be written, as torch's own operations do: a
/// backward pass that has kept the old ones then ends with torch's error, not with a gradient of
/// the new ones.
template <class V>
void raise_torch_version(const V& t) {
  if constexpr (requires { t.unsafeGetTensorImpl()->bump_version(); }) {
    if constexpr (requires { t.is_inference(); }) {
      if (t.is_inference()) return;  // has no version, and no backward pass
    }
    t.unsafeGetTensorImpl()->bump_version();
  }
}

/// The elements, wherever they are. Pre: t is defined.
template <class T, class V>
tensor_view<T> view_of_torch(const V& t) {
  using memory_layout = decltype(t.layout());
  if (t.layout() != memory_layout::Strided || t.is_quantized()) {
    refuse_torch("is not strided: it is sparse, quantised or in oneDNN's layout");
  }
  if (t.is_conj() || t.is_neg()) {
    refuse_torch("is lazily conjugated or negated: call resolve_conj() or resolve_neg()");
  }
  check_torch_type<std::remove_const_t<T>>(t);
  if (!std::is_const_v<T> && t.requires_grad()) {
    refuse_torch("is a destination, but requires gradients: pass its detach()");
  }
  const auto rank = static_cast<std::size_t>(t.dim());
  const tensor_view<T> out(static_cast<T*>(t.data_ptr()),
                           std::span<const std::int64_t>(t.sizes().data(), rank),
                           std::span<const std::int64_t>(t.strides().data(), rank));
  if constexpr (!std::is_const_v<T>) raise_torch_version(t);
  return out;
}

}  // namespace detail

/// The element type of an at::Tensor is known only at run time, so name it: slice<float>(...).
///
/// Post    The version of a tensor that is passed as a destination is raised, so that autograd's
///         backward pass refuses what it kept of the old elements. This happens as soon as the
///         tensor is viewed as a destination: also when the call then refuses something else, and
///         only once when a view is kept and written through repeatedly. So pass the tensors, not
///         views of them.
/// Throws  error for an undefined tensor, another element type than the requested one, a tensor
///         that is not on the CPU, not strided (sparse, quantised, oneDNN), lazily conjugated or
///         negated, and for a destination that requires gradients: autograd would not see the
///         write, so pass w.detach() instead.
template <detail::torch_tensor V>
struct view_traits<V> {
  using element_type = void;
  static constexpr bool owns = true;  // a handle; the last one frees the elements

  static element_format format(const V& t) {
    if (!t.defined()) detail::refuse_torch("is undefined");
    const element_format found = detail::torch_format(t);
    if (found.kind == number_kind::other) {
      const auto name = t.dtype().name();
      detail::refuse_torch("has elements of type " + std::string(name.data(), name.size()) +
                           ", which subfed does not know");
    }
    return found;
  }

  template <class T>
  static tensor_view<T> view(const V& t) {
    if (!t.defined()) detail::refuse_torch("is undefined");
    if (!t.is_cpu()) detail::refuse_torch("is not on the CPU");
    return detail::view_of_torch<T>(t);
  }
};

namespace detail {

/// torch::OrderedDict<std::string, at::Tensor>, and whatever else has items of a key and a tensor.
template <class D>
concept torch_dictionary = requires(const D& all) {
  { std::begin(all)->key() } -> std::convertible_to<std::string>;
  requires torch_tensor<std::remove_cvref_t<decltype(std::begin(all)->value())>>;
  { std::begin(all)->value().detach() } -> torch_tensor;
  std::end(all);
};
template <class D>
using torch_value = std::remove_cvref_t<decltype(std::begin(std::declval<const D&>())->value())>;

/// The tensors of a model in its order, each of the shape that shape_of(t) says.
template <class V>
class named_tensors {
 public:
  template <class D>
  void add(const D& dictionary) {
    for (const auto& item : dictionary) {
      if (!item.value().defined()) continue;  // a buffer that was registered without one
      const auto [at, is_new] = found_.emplace(item.key(), item.value().detach());
      if (!is_new) complain("'" + at->first + "' is there twice");
    }
  }

  template <class ShapeOf>
  std::vector<V> in_order(const model& net, const ShapeOf& shape_of) {
    std::vector<V> out;
    std::set<const void*> described;
    for (std::size_t t = 0; t < net.tensors().size(); ++t) {
      const std::string& name = net.tensors()[t].name;
      const auto at = found_.find(name);
      if (at == found_.end()) {
        complain("'" + name + "' is missing");
        continue;
      }
      const std::vector<std::int64_t> expected = shape_of(tensor_id(t));
      const V& tensor = at->second;
      const std::span<const std::int64_t> shape(tensor.sizes().data(),
                                                static_cast<std::size_t>(tensor.dim()));
      if (!std::equal(shape.begin(), shape.end(), expected.begin(), expected.end())) {
        complain("'" + name + "' has shape " + shape_text(shape) + ", expected " +
                 shape_text(expected));
      }
      described.insert(tensor.data_ptr());
      out.push_back(tensor);
      found_.erase(at);
    }
    for (const auto& [name, tensor] : found_) {
      // A shared parameter is listed under both names.
      if (tensor.numel() > 0 && described.count(tensor.data_ptr()) != 0) continue;
      complain("'" + name + "' is not described");
    }
    if (complaints_ == 0) return out;
    fail("subfed: by_name: " + text_ +
         (complaints_ > most_told ? "; and " + std::to_string(complaints_ - most_told) + " more"
                                  : ""));
  }

 private:
  static constexpr std::size_t most_told = 8;

  void complain(const std::string& what) {
    if (complaints_++ < most_told) text_ += (text_.empty() ? "" : "; ") + what;
  }

  std::map<std::string, V> found_;
  std::string text_;
  std::size_t complaints_ = 0;
};

}  // namespace detail

/// A module's tensors in the order of the model, whatever the module's own order: detached, so that they
/// can be written to, in the same memory.
///
///   const auto w = by_name(net, module->named_parameters(), module->named_buffers());
///   const auto own = by_name(sub, client->named_parameters());  // of the client's shapes
///
/// Throws  error that names what is missing, what is not described, and what has another shape, up to
///         eight of them. A parameter that two layers share may be listed under both names.
template <detail::torch_dictionary First, detail::torch_dictionary... More>
std::vector<detail::torch_value<First>> by_name(const model& net, const First& first,
                                                const More&... more) {
  detail::named_tensors<detail::torch_value<First>> all;
  all.add(first);
  (all.add(more), ...);
  return all.in_order(net, [&](tensor_id t) { return net[t].extents; });
}
template <detail::torch_dictionary First, detail::torch_dictionary... More>
std::vector<detail::torch_value<First>> by_name(const submodel& sub, const First& first,
                                                const More&... more) {
  detail::named_tensors<detail::torch_value<First>> all;
  all.add(first);
  (all.add(more), ...);
  return all.in_order(sub.parent(), [&](tensor_id t) { return sub.extents(t); });
}

}  // namespace subfed::inline v0
