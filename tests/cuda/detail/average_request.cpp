// SPDX-License-Identifier: MIT
#include <subfed/cuda/detail/average_request.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

using subfed::index_set;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using subfed::update;
using subfed::cuda::detail::request_average;

namespace {

struct fixture {
  subfed::model net;
  subfed::group_id hidden = net.group("hidden", 4);
  subfed::tensor_id weight = net.tensor("weight", {hidden});
  float global[4] = {};
  float values[3][2] = {};
  std::vector<update<float>> updates;

  fixture() {
    for (const std::uint64_t client : {7u, 3u, 5u}) {
      const submodel sub(net, {index_set(4, {0, 2})}, {.client = client});
      updates.push_back({sub,
                         {tensor_view<const float>(values[updates.size()], {2})},
                         static_cast<double>(client)});
    }
  }
  auto request(const subfed::average_options& options = {}) {
    return request_average<float>(net, std::span<const update<float>>(updates),
                                  {tensor_view<float>(global, {4})}, options);
  }
  std::string refusal(const subfed::average_options& options = {}) {
    try {
      request(options);
    } catch (const subfed::error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
};

}  // namespace

TEST_CASE_FIXTURE(fixture, "clients take part in the order of their numbers, without weight 0") {
  updates[2].weight = 0;
  const auto found = request();
  REQUIRE(found.members.size() == 2);
  CHECK(found.members[0].weight == 3);
  CHECK(found.members[1].weight == 7);
  CHECK(found.cohort_weight == 10);
  CHECK(found.report.clients == 3);
}

TEST_CASE_FIXTURE(fixture, "options that need elements before the launch are refused") {
  subfed::average_options options;
  for (const auto policy : {subfed::non_finite::refuse, subfed::non_finite::skip_client}) {
    options.on_non_finite = policy;
    CHECK(refusal(options) ==
          "subfed: cuda: non_finite::refuse and skip_client need the elements of an update before "
          "the launch; on a device there are propagate and skip_element");
  }
  options.on_non_finite = subfed::non_finite::skip_element;
  CHECK(refusal(options) == "nothing was thrown");
  options.sums = subfed::fixed_point{.bound = 4, .clients = 4};
  CHECK(refusal(options) == "subfed: cuda: on a device sums are doubles, not in fixed point");
}

TEST_CASE_FIXTURE(fixture, "weights that the host would scale are refused by the client's name") {
  for (const double heavy : {1e300, 1e-310}) {
    updates[1].weight = heavy;
    CHECK(refusal().find("subfed: cuda: the weight of client 3 of round 0 is 1e") == 0);
    CHECK(refusal().find("expected 0 or 2^-400 to 2^400 on a device") != std::string::npos);
  }
  for (const double heavy : {0.0, 1e-120, 1e120}) {
    updates[1].weight = heavy;
    CHECK(refusal() == "nothing was thrown");
  }
}

TEST_CASE_FIXTURE(fixture, "what average_cohort refuses is refused") {
  updates[1].weight = -1;
  CHECK(
      refusal() ==
      "subfed: average: the weight of client 3 of round 0 is -1, expected a finite number that is "
      "not negative");
  updates[1].weight = 1;
  subfed::average_options options;
  options.round = 4;
  CHECK(refusal(options) == "subfed: average: the update of client 3 of round 0 is not of round 4");
  updates[1].tensors = tensor_views<const float>{{global + 2, {2}}};
  CHECK(refusal() == "subfed: average: the global and the local tensor 'weight' overlap in memory");
  updates.clear();
  CHECK(refusal() == "nothing was thrown");  // as average_cohort: everything keeps its bits
}

TEST_CASE_FIXTURE(fixture, "late and repeated updates follow the policies of average_cohort") {
  for (std::size_t u = 0; u < updates.size(); ++u) {
    updates[u].sub = submodel(net, {index_set(4, {0, 2})},
                              {.round = u == 0 ? std::uint64_t{2} : 4, .client = 3});
  }
  subfed::average_options options{.round = 4,
                                  .on_late = subfed::late_update::skip,
                                  .on_repeated = subfed::repeated_update::skip};
  const auto skipped = request(options);
  REQUIRE(skipped.members.size() == 1);
  CHECK(skipped.members[0].weight == 3);  // of the two, the one of less weight comes first
  CHECK(skipped.report.late_clients == 1);
  CHECK(skipped.report.repeated_clients == 1);
  CHECK(skipped.report.left_out.size() == 2);

  options.on_late = subfed::late_update::weigh;
  options.late_weight = [](std::uint64_t passed) { return 1.0 / static_cast<double>(passed); };
  const auto weighed = request(options);
  REQUIRE(weighed.members.size() == 2);
  CHECK(weighed.members[0].weight == 3.5);  // 7 / 2
  CHECK(weighed.cohort_weight == 6.5);
  options.late_weight = nullptr;
  CHECK(refusal(options) == "subfed: average: on_late is weigh, but no late_weight is given");
}

TEST_CASE("local tensors of clients are not looked at, and are reported as kept") {
  subfed::model net;
  const auto g = net.group("g", 4);
  net.tensor("w", {g});
  net.tensor("own", {g, 3}, subfed::role::local);
  float w[4] = {}, own[12] = {};
  const float value[4] = {};
  const tensor_view<const float> given(value, {4});
  // Memory of the server's, of another shape, or none at all.
  for (const auto& there : {tensor_view<const float>(own, {12}), tensor_view<const float>(own, {5}),
                            tensor_view<const float>(nullptr, {0})}) {
    const std::vector<update<float>> updates{{submodel::full(net), {given, there}}};
    const auto found =
        request_average<float>(net, std::span<const update<float>>(updates),
                               {tensor_view<float>(w, {4}), tensor_view<float>(own, {4, 3})}, {});
    CHECK(found.report.kept == 12);
    const auto sent = subfed::cuda::detail::sent_views(net, updates[0].tensors);
    CHECK(sent[0].data_handle() == value);
    CHECK(sent[1].size() == 0);
  }
}

TEST_CASE("a step is refused where a tensor takes none, by name") {
  subfed::model net;
  net.tensor("w", {4});
  subfed::cuda::detail::check_device_options(net, {.step = 2});
  net.tensor("own", {4}, subfed::role::local);
  subfed::cuda::detail::check_device_options(net, {.step = 2});
  net.tensor("running_var", {4}, subfed::role::statistic);
  subfed::cuda::detail::check_device_options(net, {});
  std::string message = "nothing was thrown";
  try {
    subfed::cuda::detail::check_device_options(net, {.step = 2});
  } catch (const subfed::error& error) {
    message = error.what();
    CHECK(error.tensor() == "running_var");
  }
  CHECK(message ==
        "subfed: cuda: the step is 2, but tensor 'running_var' is a statistic, which takes steps "
        "of 1 "
        "alone; on a device there is one for all");
}

TEST_CASE("counters stay as they are on a device, and another rule for them is refused by name") {
  subfed::model net;
  net.tensor("w", {4});
  net.tensor("steps", {2}, subfed::role::counter);
  subfed::cuda::detail::check_device_options(net, {.step = 2});
  for (const auto rule : {subfed::integer_rule::max, subfed::integer_rule::sum}) {
    std::string message = "nothing was thrown";
    try {
      subfed::cuda::detail::check_device_options(net, {.integers = rule});
    } catch (const subfed::error& error) {
      message = error.what();
      CHECK(error.tensor() == "steps");
    }
    CHECK(message ==
          "subfed: cuda: tensor 'steps' is a counter, of which a device knows integer_rule::keep "
          "alone");
  }
  const float values[4] = {};
  const float counted[2] = {};
  const std::vector<subfed::update<float>> updates{
      {subfed::submodel::full(net),
       {subfed::tensor_view<const float>(values, {4}),
        subfed::tensor_view<const float>(counted, {2})}}};
  CHECK(subfed::cuda::detail::sent_views(net, updates[0].tensors)[1].size() == 0);
  float global[6] = {};
  const subfed::tensor_views<float> globals{subfed::tensor_view<float>(global, {4}),
                                            subfed::tensor_view<float>(global + 4, {2})};
  CHECK(subfed::cuda::detail::request_average<float>(net, updates, globals, {}).report.kept == 2);
}
