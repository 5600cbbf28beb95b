// SPDX-License-Identifier: MIT
/// The reference trainer's server on a device beside the host's slice and average_cohort. No nvcc.
#include <doctest/doctest.h>

#include <cuda/gpu/device_memory.cuh>
#include <subfed/average/cohort.hpp>
#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <support/views.hpp>
#include <trainer/device_cuda.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

using subfed::submodel;
using subfed::tensor_id;
using subfed::tensor_view;
using subfed::tensor_views;

namespace {

/// Tensors of the same values on the host and on the device.
class twins {
 public:
  twins(const submodel& sub, float first) {
    for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
      shapes_.push_back(sub.extents(tensor_id(t)));
      std::size_t size = 1;
      for (const std::int64_t extent : shapes_.back()) size *= static_cast<std::size_t>(extent);
      host_.emplace_back(size);
      for (float& x : host_.back()) x = first += 0.37f;
      device_.emplace_back(host_.back());
    }
  }
  tensor_views<float> on_host() {
    std::vector<tensor_view<float>> out;
    for (std::size_t t = 0; t < host_.size(); ++t) out.emplace_back(host_[t].data(), shapes_[t]);
    return tensor_views<float>(out);
  }
  tensor_views<float> on_device() const {
    std::vector<tensor_view<float>> out;
    for (std::size_t t = 0; t < host_.size(); ++t) {
      out.emplace_back(device_[t].data(), shapes_[t]);
    }
    return tensor_views<float>(out);
  }
  bool are_equal() const {
    for (std::size_t t = 0; t < host_.size(); ++t) {
      if (!support::same_bits(host_[t], device_[t].fetched())) return false;
    }
    return true;
  }

 private:
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<std::vector<float>> host_;
  std::vector<gpu::memory<float>> device_;
};

subfed::model small_model() {
  subfed::model net;
  const auto channels = net.group("channels", 48);
  const auto hidden = net.group("hidden", 21);
  net.tensor("kernel", {channels, 3, 3, 3});
  net.tensor("weight", {hidden, channels});
  net.tensor("bias", {hidden});
  net.tensor("steps", {5});
  return net;
}

template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const subfed::error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("rounds of the trainer's server on a device have the host's bits") {
  const subfed::model net = small_model();
  twins globals(submodel::full(net), 0);
  trainer::cuda_server first(net);
  trainer::cuda_server server = std::move(first);
  for (std::uint64_t round = 0; round < 6; ++round) {
    INFO("round ", round);
    // Few clients, then so many that the workspace has to grow.
    const std::uint64_t clients = round % 3 == 2 ? 300 : 3;
    std::vector<submodel> subs;
    std::vector<twins> locals;
    std::vector<tensor_views<float>> views;
    for (std::uint64_t c = 0; c < clients; ++c) {
      const subfed::capacity capacity = c % 2 == 0 ? 0.5 : 0.25;
      subs.push_back(subfed::draw(net, subfed::random_subset{},
                                  {.seed = 4, .round = round, .client = c, .capacity = capacity}));
      locals.emplace_back(subs.back(), -1000.0f * static_cast<float>(c));
      views.push_back(locals.back().on_device());
    }
    if (round != 3) {  // or what the clients have is what they were filled with
      server.slice(tensor_views<const float>(globals.on_device()), subs, views);
      for (std::size_t c = 0; c < clients; ++c) {
        subfed::slice<float>(tensor_views<const float>(globals.on_host()), subs[c],
                             locals[c].on_host());
      }
    }
    bool equal = true;
    for (const twins& l : locals) equal = equal && l.are_equal();
    CHECK(equal);

    subfed::average_options options;
    if (round == 1) options.step = 0.7;
    if (round == 3) options.divide_by = subfed::divisor::cohort;
    if (round == 4) options.content = subfed::content::deltas;
    if (round == 5) options.round = round;
    std::vector<subfed::update<float>> on_host, on_device;
    for (std::size_t c = 0; c < clients; ++c) {
      const double weight = 1.0 + static_cast<double>(c % 7) / 3;
      on_host.push_back({subs[c], tensor_views<const float>(locals[c].on_host()), weight});
      on_device.push_back({subs[c], tensor_views<const float>(views[c]), weight});
    }
    const auto report = server.average(on_device, globals.on_device(), options);
    CHECK(report == subfed::average_cohort<float>(net, on_host, globals.on_host(), options));
    CHECK(report.held > 0);
    CHECK(globals.are_equal());
  }
}

TEST_CASE("many slices of the trainer's server need no average in between") {
  const subfed::model net = small_model();
  twins globals(submodel::full(net), 0);
  trainer::cuda_server server(net);
  for (std::uint64_t round = 0; round < 3; ++round) {
    const std::vector<submodel> subs{
        subfed::draw(net, subfed::random_subset{}, {.seed = 5, .round = round, .capacity = 0.75})};
    twins local(subs[0], -1);
    const std::vector<tensor_views<float>> views{local.on_device()};
    for (int again = 0; again < 100; ++again) {
      server.slice(tensor_views<const float>(globals.on_device()), subs, views);
    }
    subfed::slice<float>(tensor_views<const float>(globals.on_host()), subs[0], local.on_host());
    CHECK(local.are_equal());
  }
}

TEST_CASE("the trainer's server refuses wrong data and continues") {
  const subfed::model net = small_model();
  twins globals(submodel::full(net), 0);
  const std::vector<submodel> subs{subfed::draw(net, subfed::random_subset{}, {.capacity = 0.5})};
  twins local(subs[0], 1);
  trainer::cuda_server server(net);
  const std::vector<tensor_views<float>> views{local.on_device()}, none, elsewhere{local.on_host()};
  const auto seen = tensor_views<const float>(globals.on_device());
  CHECK(message_of([&] { server.slice(seen, subs, none); }) ==
        "trainer: 0 lists of tensors are given for 1 clients");
  CHECK(message_of([&] { server.slice(seen, {}, none); }) ==
        "subfed: cuda::slice: there is no client");
  CHECK(message_of([&] { server.slice(seen, subs, elsewhere); }) ==
        "subfed: cuda::slice: the local tensor 'kernel' is in host memory, expected on CUDA device "
        "0");
  const std::vector<subfed::update<float>> updates{
      {subs[0], tensor_views<const float>(local.on_device()), 2}};
  const auto refusal = message_of([&] {
    server.average(updates, globals.on_device(),
                   {.on_non_finite = subfed::non_finite::skip_client});
  });
  CHECK(refusal.find("non_finite::refuse and skip_client") != std::string::npos);
  CHECK(globals.are_equal());
  CHECK(local.are_equal());
  server.slice(seen, subs, views);
  subfed::slice<float>(tensor_views<const float>(globals.on_host()), subs[0], local.on_host());
  CHECK(local.are_equal());
}
