// SPDX-License-Identifier: MIT
#include <subfed/cuda/detail/copy_checks.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

using subfed::index_set;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using subfed::cuda::detail::check_copies;
using subfed::cuda::detail::copy_part;

namespace {

template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const subfed::error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

struct fixture {
  subfed::model net;
  subfed::group_id hidden = net.group("hidden", 4);
  subfed::tensor_id weight = net.tensor("weight", {hidden, 3});
  submodel two{net, {index_set(4, {1, 3})}, {.client = 5}};
  submodel other_two{net, {index_set(4, {0, 1})}, {.client = 6}};
  float global[12] = {};
  float a[6] = {};
  float b[6] = {};

  std::string slice(const tensor_views<float>& first, const tensor_views<float>& second) {
    return message_of([&] {
      const std::vector<copy_part<float>> parts{{&two, &first}, {&other_two, &second}};
      check_copies<const float, float>("cuda::slice", {tensor_view<float>(global, {4, 3})},
                                       std::span(parts));
    });
  }
};

}  // namespace

TEST_CASE_FIXTURE(fixture, "tensors of the right shapes apart from each other are let through") {
  CHECK(slice({{a, {2, 3}}}, {{b, {2, 3}}}) == "nothing was thrown");
}

TEST_CASE_FIXTURE(fixture, "shapes and numbers of tensors are refused by name") {
  CHECK(slice({{a, {2, 3}}}, {{b, {3, 2}}}) ==
        "subfed: cuda::slice: the local tensor 'weight' has shape (3, 2), expected (2, 3)");
  CHECK(slice({{a, {2, 3}}}, {{b, {2, 3}}, {b, {2, 3}}}) ==
        "subfed: cuda::slice: 2 local tensors are given for a model of 1");
  const tensor_views<float> local{{a, {2, 3}}};
  const copy_part<float> part{&two, &local};
  CHECK(message_of([&] {
          check_copies<const float, float>("cuda::slice", {tensor_view<float>(global, {3, 4})},
                                           std::span(&part, 1));
        }) == "subfed: cuda::slice: the global tensor 'weight' has shape (3, 4), expected (4, 3)");
}

TEST_CASE_FIXTURE(fixture, "memory that is written by two, or read and written, is refused") {
  CHECK(slice({{a, {2, 3}}}, {{a, {2, 3}}}) ==
        "subfed: cuda::slice: the tensors 'weight of client 5' and 'weight of client 6' overlap in "
        "memory");
  CHECK(slice({{a, {2, 3}}}, {{global, {2, 3}}}) ==
        "subfed: cuda::slice: the tensors 'weight' and 'weight of client 6' overlap in memory");
  CHECK(slice({{a, {2, 3}, {0, 1}}}, {{b, {2, 3}}}) ==
        "subfed: cuda::slice: the local tensor 'weight' of shape (2, 3) and strides (0, 1) is "
        "written to, but has several indices for one element");
}

TEST_CASE_FIXTURE(fixture, "no client, and clients of two models, are refused") {
  CHECK(message_of([&] {
          check_copies<const float, float>("cuda::slice", {tensor_view<float>(global, {4, 3})},
                                           std::span<const copy_part<float>>());
        }) == "subfed: cuda::slice: there is no client");
  subfed::model wider;
  const auto group = wider.group("hidden", 5);
  wider.tensor("weight", {group, 3});
  const submodel foreign(wider, {index_set(5, {0, 1})});
  const tensor_views<float> local_a{{a, {2, 3}}};
  const tensor_views<float> local_b{{b, {2, 3}}};
  CHECK(message_of([&] {
          const std::vector<copy_part<float>> parts{{&two, &local_a}, {&foreign, &local_b}};
          check_copies<const float, float>("cuda::slice", {tensor_view<float>(global, {4, 3})},
                                           std::span(parts));
        }) == "subfed: cuda::slice: the submodels of two clients are of different models");
}
