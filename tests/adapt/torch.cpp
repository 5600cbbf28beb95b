// SPDX-License-Identifier: MIT
// LibTorch and doctest both define CHECK, hence the order and the long names.
#include <ATen/ATen.h>
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>
#include <adapt/conformance.hpp>
#include <subfed/adapt/torch.hpp>
#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/scatter.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/slice.hpp>
#include <subfed/systems/server_optimizer.hpp>
#include <subfed/untyped_view.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using subfed::borrowed;
using subfed::index_set;
using subfed::selection;
using subfed::tensor_view;
using subfed::tensor_views;
using subfed::viewable;
using support::layout;
using support::strided;

namespace {

template <class T>
struct tensors {
  using element = T;
  static constexpr bool writable = true;
  static constexpr int least = 12;
  static at::ScalarType type() {
    if constexpr (std::is_same_v<T, subfed::half>) return at::kHalf;
    if constexpr (std::is_same_v<T, subfed::bfloat16>) return at::kBFloat16;
    if constexpr (std::is_same_v<T, float>) return at::kFloat;
    if constexpr (std::is_same_v<T, double>) return at::kDouble;
    if constexpr (std::is_same_v<T, std::uint8_t>) return at::kByte;
    return at::kLong;
  }
  static bool fits(const layout& l) { return !conformance::has_negative_stride(l); }
  template <class F>
  static void with(strided<T>& memory, F&& f) {
    const layout& l = memory.where();
    at::Tensor tensor =
        at::from_blob(memory.view().data_handle(), l.extents, l.strides, at::dtype(type()));
    f(tensor);
  }
};

template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const subfed::error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// What reading and what writing a tensor as T says.
template <class T>
std::string reading(const at::Tensor& tensor) {
  return message_of([&] { static_cast<void>(tensor_view<const T>(tensor)); });
}
template <class T>
std::string writing(const at::Tensor& tensor) {
  return message_of([&] { static_cast<void>(tensor_view<T>(tensor)); });
}

at::Tensor counting(at::IntArrayRef extents) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents) elements *= extent;
  return at::arange(elements, at::dtype(at::kFloat)).reshape(extents);
}

}  // namespace

DOCTEST_TEST_CASE("a tensor is a handle: a named one is seen, a temporary one is not kept") {
  static_assert(viewable<at::Tensor> && viewable<const at::Tensor&>);
  static_assert(borrowed<at::Tensor&> && !borrowed<at::Tensor>);
  static_assert(std::is_constructible_v<tensor_view<float>, at::Tensor&> &&
                std::is_constructible_v<tensor_view<float>, const at::Tensor&>);
  static_assert(!std::is_constructible_v<tensor_view<float>, at::Tensor> &&
                !std::is_constructible_v<tensor_view<const float>, at::Tensor>);
}

DOCTEST_TEST_CASE("tensors of every layout and type are sliced, scattered and averaged") {
  DOCTEST_CHECK(conformance::failures<tensors<float>>() == "");
  DOCTEST_CHECK(conformance::failures<tensors<double>>() == "");
  DOCTEST_CHECK(conformance::failures<tensors<std::int64_t>>() == "");
  DOCTEST_CHECK(conformance::failures<tensors<std::uint8_t>>() == "");
  DOCTEST_CHECK(conformance::failures<tensors<subfed::half>>() == "");
  DOCTEST_CHECK(conformance::failures<tensors<subfed::bfloat16>>() == "");
}

DOCTEST_TEST_CASE("slicing agrees with index_select, whatever the strides") {
  const std::vector<std::int64_t> rows{5, 0, 3};
  const std::vector<std::int64_t> columns{1, 2};
  const selection chosen{index_set(6, rows), index_set(4, columns), index_set::full(3)};
  const at::Tensor packed = counting({6, 4, 3});
  for (const at::Tensor& global :
       {packed, packed.permute({2, 1, 0}).contiguous().permute({2, 1, 0}),
        at::cat({packed, packed}, 2).narrow(2, 3, 3), counting({1, 4, 1}).expand({6, 4, 3})}) {
    at::Tensor local = at::full({3, 2, 3}, -1, at::dtype(at::kFloat));
    subfed::slice<float>(global, chosen, local);
    const at::Tensor expected =
        global.index_select(0, at::tensor(rows)).index_select(1, at::tensor(columns));
    DOCTEST_CHECK(local.equal(expected));

    at::Tensor back = at::zeros({6, 4, 3});
    subfed::scatter<float>(local, chosen, back);
    DOCTEST_CHECK(back.sum().item<float>() == expected.sum().item<float>());
    DOCTEST_CHECK(back[5][1].equal(global[5][1]));
    DOCTEST_CHECK(back[1].abs().sum().item<float>() == 0);
  }
}

DOCTEST_TEST_CASE("rank 0 and shape (0,) go through") {
  const at::Tensor steps = at::scalar_tensor(7, at::dtype(at::kLong));
  at::Tensor local = at::scalar_tensor(0, at::dtype(at::kLong));
  subfed::slice<std::int64_t>(steps, selection(), local);
  DOCTEST_CHECK(local.item<std::int64_t>() == 7);
  DOCTEST_CHECK(local.dim() == 0);
  const at::Tensor none = at::empty({0});
  at::Tensor nothing = at::empty({0});
  subfed::slice<float>(none, {index_set()}, nothing);
  DOCTEST_CHECK(nothing.sizes() == at::IntArrayRef({0}));
}

DOCTEST_TEST_CASE("the tensors of a model are given as a vector") {
  const std::vector<at::Tensor> parameters{counting({2, 3}), counting({4})};
  const tensor_views<const float> views = parameters;
  DOCTEST_CHECK(views.size() == 2);
  DOCTEST_CHECK(views[0](1, 2) == 5);
  DOCTEST_CHECK(views[1].data_handle() == parameters[1].data_ptr<float>());
}

DOCTEST_TEST_CASE("a parameter that requires gradients is read, and written to by its detach()") {
  const at::Tensor parameter = counting({3}).set_requires_grad(true);
  DOCTEST_CHECK(reading<float>(parameter) == "nothing was thrown");
  DOCTEST_CHECK(writing<float>(parameter) ==
                "subfed: the torch tensor is a destination, but requires gradients: pass its "
                "detach()");
  const at::Tensor local = at::full({1}, 9, at::dtype(at::kFloat));
  DOCTEST_CHECK(message_of([&] {
                  subfed::scatter<float>(local, {index_set(3, {1})}, parameter);
                }) != "nothing was thrown");
  DOCTEST_CHECK(parameter[1].item<float>() == 1);
  const at::Tensor detached = parameter.detach();
  subfed::scatter<float>(local, {index_set(3, {1})}, detached);
  DOCTEST_CHECK(parameter[1].item<float>() == 9);
}

DOCTEST_TEST_CASE("a tensor of another element type is refused by both names") {
  const at::Tensor numbers = at::zeros({2}, at::dtype(at::kLong));
  DOCTEST_CHECK(reading<float>(numbers) ==
                "subfed: the torch tensor has elements of type long int, expected float");
  DOCTEST_CHECK(reading<std::int32_t>(numbers) ==
                "subfed: the torch tensor has elements of type long int, expected int32");
  DOCTEST_CHECK(reading<float>(at::zeros({2}, at::dtype(at::kDouble))) ==
                "subfed: the torch tensor has elements of type double, expected float");
  DOCTEST_CHECK(reading<subfed::half>(at::zeros({2}, at::dtype(at::kBFloat16))) ==
                "subfed: the torch tensor has elements of type c10::BFloat16, expected half");
  DOCTEST_CHECK(reading<at::Half>(at::zeros({2}, at::dtype(at::kHalf))) == "nothing was thrown");
  DOCTEST_CHECK(reading<at::BFloat16>(at::zeros({2}, at::dtype(at::kBFloat16))) ==
                "nothing was thrown");
  at::Tensor untouched = at::full({2}, 3, at::dtype(at::kDouble));
  DOCTEST_CHECK(message_of([&] {
                  subfed::slice<float>(counting({2}), {index_set::full(2)}, untouched);
                }) == "subfed: the torch tensor has elements of type double, expected float");
  DOCTEST_CHECK(untouched.sum().item<double>() == 6);
}

DOCTEST_TEST_CASE("what has no elements in memory by strides is refused") {
  DOCTEST_CHECK(reading<float>(at::Tensor()) == "subfed: the torch tensor is undefined");
  DOCTEST_CHECK(reading<float>(at::empty({2}, at::device(at::kMeta))) ==
                "subfed: the torch tensor is not on the CPU");
  const std::string not_strided =
      "subfed: the torch tensor is not strided: it is sparse, quantised or in oneDNN's layout";
  DOCTEST_CHECK(reading<float>(at::eye(2).to_sparse()) == not_strided);
  DOCTEST_CHECK(reading<float>(at::quantize_per_tensor(at::ones({2}), 0.1, 0, at::kQInt8)) ==
                not_strided);
  DOCTEST_CHECK(reading<float>(at::eye(2).to_sparse_csr()) == not_strided);
  DOCTEST_CHECK(reading<float>(at::ones({2, 2}).to_mkldnn()) == not_strided);
  const std::string lazy =
      "subfed: the torch tensor is lazily conjugated or negated: call resolve_conj() or "
      "resolve_neg()";
  const at::Tensor complex = at::zeros({2}, at::dtype(at::kComplexFloat));
  const at::Tensor negated = at::imag(at::conj(complex));
  DOCTEST_CHECK(reading<float>(negated) == lazy);
  DOCTEST_CHECK(reading<float>(negated.resolve_neg()) == "nothing was thrown");
}

DOCTEST_TEST_CASE("a wrong shape, a broadcast destination and overlap are refused") {
  const at::Tensor global = counting({4, 3});
  at::Tensor local = at::full({2, 3}, 9, at::dtype(at::kFloat));
  DOCTEST_CHECK(
      message_of([&] {
        subfed::slice<float>(global, {index_set::prefix(4, 2), index_set::prefix(3, 2)}, local);
      }) == "subfed: slice: the local tensor has shape (2, 3), expected (2, 2)");
  DOCTEST_CHECK(local.sum().item<float>() == 54);
  at::Tensor one = at::full({1, 3}, 9, at::dtype(at::kFloat));
  at::Tensor expanded = one.expand({2, 3});
  DOCTEST_CHECK(
      message_of([&] {
        subfed::slice<float>(global, {index_set::prefix(4, 2), index_set::full(3)}, expanded);
      }) ==
      "subfed: slice: the local tensor of shape (2, 3) and strides (0, 1) is written to, "
      "but has several indices for one element");
  DOCTEST_CHECK(one.sum().item<float>() == 27);
  at::Tensor part = global.narrow(0, 1, 2);
  DOCTEST_CHECK(message_of([&] {
                  subfed::slice<float>(global, {index_set::prefix(4, 2), index_set::full(3)}, part);
                }) == "subfed: slice: the global and the local tensor overlap in memory");
  DOCTEST_CHECK(global.equal(counting({4, 3})));
}

namespace {

/// Whether a call raises the versions of the tensors that it writes to, and of those alone.
void check_versions(const char* verb, const std::vector<at::Tensor>& read,
                    const std::vector<at::Tensor>& written, const std::function<void()>& call) {
  DOCTEST_CAPTURE(verb);
  std::vector<std::int64_t> before;
  for (const at::Tensor& t : read) before.push_back(t._version());
  for (const at::Tensor& t : written) before.push_back(t._version());
  call();
  std::size_t i = 0;
  for (const at::Tensor& t : read) DOCTEST_CHECK(t._version() == before[i++]);
  for (const at::Tensor& t : written) DOCTEST_CHECK(t._version() > before[i++]);
}

}  // namespace

// pytorch/pytorch#96852, pytorch/pytorch#14571: the gradient was 5.
DOCTEST_TEST_CASE("a backward that kept what was then written to is torch's error") {
  subfed::model net;
  net.tensor("w", {3});
  const auto all = subfed::draw(net, subfed::prefix{}, {.capacity = 1});
  for (const bool write : {false, true}) {
    const at::Tensor p = at::ones({3}).set_requires_grad(true);
    const at::Tensor kept = at::ones({3}), fives = at::full({3}, 5.0f);
    const at::Tensor y = (p * kept).sum();
    subfed::selective_average<float> mean(net);
    mean.add(all, {fives});
    if (write) mean.finish({kept});
    std::string said = "nothing was thrown";
    try {
      y.backward();
    } catch (const c10::Error& error) {
      said = error.what_without_backtrace();
    }
    if (write) {
      DOCTEST_CHECK(said.find("modified by an inplace operation") != std::string::npos);
      DOCTEST_CHECK(!p.grad().defined());
    } else {
      DOCTEST_CHECK(said == "nothing was thrown");
      DOCTEST_CHECK(p.grad().equal(at::ones({3})));
    }
  }
}

DOCTEST_TEST_CASE("every verb raises the version of what it writes to, and of nothing else") {
  subfed::model net;
  const auto g = net.group("g", 4);
  const auto w = net.tensor("w", {g, 2});
  const auto half_of_it = subfed::draw(net, subfed::prefix{}, {.capacity = 0.5});
  const at::Tensor global = at::zeros({4, 2}), local = at::ones({2, 2});
  check_versions("slice", {global}, {local},
                 [&] { subfed::slice<float>(global, half_of_it[w], local); });
  check_versions("slice of a model", {global}, {local}, [&] {
    subfed::slice<float>(std::vector<at::Tensor>{global}, half_of_it,
                         std::vector<at::Tensor>{local});
  });
  check_versions("slice of any type", {global}, {local}, [&] {
    subfed::slice<void>(std::vector<at::Tensor>{global}, half_of_it,
                        std::vector<at::Tensor>{local});
  });
  check_versions("scatter", {local}, {global},
                 [&] { subfed::scatter<float>(local, half_of_it[w], global); });
  check_versions("scatter_add", {local}, {global},
                 [&] { subfed::scatter_add<float>(local, half_of_it[w], global); });
  check_versions("selective_average", {local}, {global}, [&] {
    subfed::selective_average<float> mean(net);
    mean.add(half_of_it, {local});
    mean.finish({global});
  });
  check_versions("selective_average of any type", {local}, {global}, [&] {
    subfed::selective_average<void> mean(net);
    mean.add(half_of_it, {local});
    mean.finish({global});
  });
  check_versions("average_cohort", {local}, {global}, [&] {
    const std::vector<subfed::update<float>> updates = {{half_of_it, {local}}};
    subfed::average_cohort<float>(net, updates, {global});
  });
  check_versions("average_cohort of any type", {local}, {global}, [&] {
    const std::vector<subfed::update<void>> updates = {{half_of_it, {local}}};
    subfed::average_cohort<void>(net, updates, {global});
  });
  subfed::server_optimizer<float, subfed::server_adam> adam(net, {});
  check_versions("server_optimizer, before", {global}, {}, [&] { adam.begin({global}); });
  check_versions("server_optimizer", {}, {global}, [&] {
    const subfed::held_elements held(net, {&half_of_it, 1});
    adam.finish(held, {global});
  });
}

DOCTEST_TEST_CASE("a detached tensor has the version of the one that it comes from") {
  const at::Tensor parameter = counting({3}).set_requires_grad(true);
  const at::Tensor detached = parameter.detach(), nine = at::full({1}, 9.0f);
  const auto before = parameter._version();
  subfed::scatter<float>(nine, {index_set(3, {1})}, detached);
  DOCTEST_CHECK(parameter._version() > before);
}

DOCTEST_TEST_CASE(
    "a tensor that is refused keeps its version, and one made for inference has none") {
  const at::Tensor numbers = at::zeros({2}, at::dtype(at::kLong));
  const auto before = numbers._version();
  DOCTEST_CHECK(writing<float>(numbers) != "nothing was thrown");
  DOCTEST_CHECK(numbers._version() == before);
  at::Tensor made;
  {
    const c10::InferenceMode inference;
    made = at::zeros({2});
  }
  DOCTEST_CHECK(writing<float>(made) == "nothing was thrown");
}

namespace {

/// As torch::OrderedDict has them.
class named_item {
 public:
  named_item(std::string key, at::Tensor value) : key_(std::move(key)), value_(std::move(value)) {}
  const std::string& key() const { return key_; }
  const at::Tensor& value() const { return value_; }

 private:
  std::string key_;
  at::Tensor value_;
};
using dictionary = std::vector<named_item>;

}  // namespace

DOCTEST_TEST_CASE("a module's tensors come in the model's order, in the same memory") {
  subfed::model net;
  const auto hidden = net.group("hidden", 4);
  net.tensor("fc1.weight", {hidden, 3});
  net.tensor("bn.running_var", {hidden}, subfed::role::statistic);
  net.tensor("fc2.weight", {2, hidden});
  const at::Tensor w2 = at::ones({2, 4}).requires_grad_(), w1 = at::ones({4, 3}),
                   var = at::ones({4});
  const dictionary parameters = {{"fc2.weight", w2}, {"fc1.weight", w1}, {"tied", w1}};
  const dictionary buffers = {{"nothing", at::Tensor()}, {"bn.running_var", var}};
  const auto found = by_name(net, parameters, buffers);
  DOCTEST_REQUIRE(found.size() == 3);
  DOCTEST_CHECK(found[0].data_ptr() == w1.data_ptr());
  DOCTEST_CHECK(found[1].data_ptr() == var.data_ptr());
  DOCTEST_CHECK(found[2].data_ptr() == w2.data_ptr());
  DOCTEST_CHECK(!found[2].requires_grad());
  const tensor_views<float> views(found);
  DOCTEST_CHECK(views[2].extent(1) == 4);

  const auto sub = subfed::draw(net, subfed::prefix{}, {.capacity = 0.5});
  const dictionary own = {{"fc2.weight", at::ones({2, 2})},
                          {"bn.running_var", at::ones({2})},
                          {"fc1.weight", at::ones({2, 3})}};
  DOCTEST_CHECK(by_name(sub, own)[2].size(1) == 2);
}

DOCTEST_TEST_CASE("what is missing, not described, of another shape or there twice is named") {
  subfed::model net;
  for (const char* name : {"a", "b", "c"}) net.tensor(name, {2});
  const dictionary first = {{"a", at::ones({2})}, {"x", at::ones({2})}, {"c", at::ones({3, 1})}};
  const dictionary second = {{"a", at::ones({2})}};
  std::string message;
  try {
    by_name(net, first, second);
  } catch (const subfed::error& error) {
    message = error.what();
  }
  DOCTEST_CHECK(message ==
                "subfed: by_name: 'a' is there twice; 'b' is missing; 'c' has shape (3, 1), "
                "expected (2,); 'x' is not described");
  for (int i = 0; i < 20; ++i) net.tensor("more" + std::to_string(i), {1});
  try {
    by_name(net, first, second);
  } catch (const subfed::error& error) {
    message = error.what();
  }
  DOCTEST_CHECK(message.ends_with("'more3' is missing; 'more4' is missing; and 16 more"));
}
