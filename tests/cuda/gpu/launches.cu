// SPDX-License-Identifier: MIT
/// The CUDA headers on a device, beside what the host headers give: bit for bit.
#include <doctest/doctest.h>

#include <cuda/gpu/device_memory.cuh>
#include <subfed/cuda.cuh>
#include <subfed/draw.hpp>
#include <subfed/scatter.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/slice.hpp>
#include <support/cohorts.hpp>
#include <support/failing_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using subfed::average_options;
using subfed::tensor_view;
using subfed::tensor_views;
using support::seeded;

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

/// Host tensors of any layout, copied to the device with their layout and guards.
template <class T>
class twins {
 public:
  void add(const support::strided<T>& host) {
    where_.push_back(host.where());
    memory_.emplace_back(host.buffer());
  }
  std::vector<tensor_view<T>> views() const {
    std::vector<tensor_view<T>> out;
    for (std::size_t t = 0; t < where_.size(); ++t) {
      out.emplace_back(memory_[t].data() + where_[t].origin, where_[t].extents, where_[t].strides);
    }
    return out;
  }
  /// Whether every byte, gaps and guards too, is the host's.
  bool equals(std::size_t t, const support::strided<T>& host) const {
    return support::same_bits(memory_[t].fetched(), host.buffer());
  }

 private:
  std::vector<support::layout> where_;
  std::vector<gpu::memory<T>> memory_;
};

template <class T>
support::cohort<T> random_cohort(seeded& random, std::int64_t clients, bool large) {
  const auto value = [](seeded& r) {
    return T((r.unit() - 0.5) * std::ldexp(1.0, static_cast<int>(r.between(-12, 12))));
  };
  const auto weight = [](seeded& r) { return r.one_in(7) ? 0.0 : r.unit() + 0.01; };
  return {random, large ? support::large_network(random) : support::random_network(random), clients,
          value, weight};
}

template <class T>
twins<T> twins_of(const std::vector<support::strided<T>>& hosts) {
  twins<T> out;
  for (const auto& h : hosts) out.add(h);
  return out;
}

template <class T>
std::vector<subfed::update<T>> device_updates(const support::cohort<T>& group,
                                              const std::vector<twins<T>>& clients) {
  std::vector<subfed::update<T>> out;
  for (std::size_t c = 0; c < clients.size(); ++c) {
    out.push_back(
        {group.clients[c].sub, tensor_views<const T>(clients[c].views()), group.clients[c].weight});
  }
  return out;
}

average_options device_options(std::uint64_t n) {
  average_options out;
  if (n % 3 == 1) out.divide_by = subfed::divisor::cohort;
  if (n % 4 == 2) out.content = subfed::content::deltas;
  if (n % 5 == 3) out.step = 0.7;
  if (n % 6 == 5) out.on_non_finite = subfed::non_finite::skip_element;
  return out;
}

constexpr std::size_t room = std::size_t{8} << 20;

}  // namespace

TEST_CASE_TEMPLATE("a cohort is sliced in one launch, in any layouts, as on the host", T, float,
                   subfed::half) {
  gpu::stream stream;
  subfed::cuda::workspace memory(room);
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    auto group = random_cohort<T>(random, 4, seed % 5 == 4);
    const twins<T> globals = twins_of(group.globals);
    std::vector<twins<T>> locals;
    std::vector<subfed::cuda::client_tensors<T>> clients;
    for (auto& c : group.clients) {  // destinations have one element an index
      for (auto& t : c.tensors) {
        t = support::strided<T>(support::random_layout(random, t.extents()));
        t.fill([](std::int64_t) { return T(-1.0); });
      }
      locals.push_back(twins_of(c.tensors));
      clients.push_back({c.sub, tensor_views<T>(locals.back().views())});
    }
    auto cut = subfed::cuda::prepare_slice<T>(globals.views(), clients);
    cut.upload(memory, stream);
    cut.launch(stream);
    stream.wait();
    memory.reset();
    for (std::size_t c = 0; c < clients.size(); ++c) {
      for (std::size_t t = 0; t < group.globals.size(); ++t) {
        auto& host = group.clients[c].tensors[t];
        subfed::slice<T>(group.globals[t].view(), clients[c].sub[subfed::tensor_id(t)],
                         host.view());
        CHECK(locals[c].equals(t, host));
      }
    }
  }
}

TEST_CASE_TEMPLATE("scatter and scatter_add give the host's bits", T, float, subfed::half) {
  gpu::stream stream;
  subfed::cuda::workspace memory(room);
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    INFO("seed ", seed);
    seeded random(100 + seed);
    auto group = random_cohort<T>(random, 1, seed % 5 == 4);
    const twins<T> globals = twins_of(group.globals);
    const auto& client = group.clients[0];
    const twins<T> local = twins_of(client.tensors);
    if (seed % 2 == 0) {
      subfed::cuda::scatter<T>(local.views(), client.sub, globals.views(), memory, stream);
    } else {
      subfed::cuda::scatter_add<T>(local.views(), client.sub, globals.views(), memory, stream);
    }
    stream.wait();
    memory.reset();
    for (std::size_t t = 0; t < group.globals.size(); ++t) {
      const auto chosen = client.sub[subfed::tensor_id(t)];
      if (seed % 2 == 0) {
        subfed::scatter<T>(client.tensors[t].view(), chosen, group.globals[t].view());
      } else {
        subfed::scatter_add<T>(client.tensors[t].view(), chosen, group.globals[t].view());
      }
      CHECK(globals.equals(t, group.globals[t]));
    }
  }
}

TEST_CASE_TEMPLATE("an average has the bits of average_cohort, and its report", T, float,
                   subfed::half) {
  gpu::stream stream;
  subfed::cuda::workspace memory(room);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed ", seed);
    seeded random(200 + seed);
    auto group = random_cohort<T>(random, random.between(1, 9), seed % 5 == 4);
    const auto options = device_options(seed);
    const twins<T> globals = twins_of(group.globals);
    std::vector<twins<T>> clients;
    for (const auto& c : group.clients) clients.push_back(twins_of(c.tensors));
    const auto call = subfed::cuda::average_cohort<T>(group.net, device_updates(group, clients),
                                                      globals.views(), options, memory, stream);
    const auto report = call.report(stream);
    memory.reset();
    const auto expected =
        support::at_once(group.net, group.updates(), group.global_views(), options);
    CHECK(report == expected);
    for (std::size_t t = 0; t < group.globals.size(); ++t) {
      CHECK(globals.equals(t, group.globals[t]));
    }
  }
}

TEST_CASE("one update after the other gives the bits of the host's selective_average") {
  gpu::stream stream;
  subfed::cuda::workspace memory(room);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed ", seed);
    seeded random(300 + seed);
    auto group = random_cohort<float>(random, 6, seed % 5 == 4);
    auto options = device_options(seed);
    options.on_non_finite = subfed::non_finite::propagate;
    const twins<float> globals = twins_of(group.globals);
    gpu::memory<double> sums(static_cast<std::size_t>(group.net.size()));
    subfed::cuda::selective_average<float> mean(
        group.net, tensor_view<double>(sums.data(), {group.net.size()}), options);
    std::vector<twins<float>> clients;
    mean.clear(stream);
    for (const auto& c : group.clients) {
      clients.push_back(twins_of(c.tensors));
      mean.add(c.sub, clients.back().views(), c.weight, memory, stream);
    }
    const auto report = mean.finish(globals.views(), memory, stream).report(stream);
    memory.reset();
    CHECK(report == support::streamed(group.net, group.updates(), group.global_views(), options));
    for (std::size_t t = 0; t < group.globals.size(); ++t) {
      CHECK(globals.equals(t, group.globals[t]));
    }
  }
}

TEST_CASE("the streaming average refuses what it cannot do, and nothing is added then") {
  gpu::stream stream;
  subfed::cuda::workspace memory(room);
  subfed::model net;
  const auto nodes = net.group("nodes", 4);
  net.tensor("x", {nodes});
  const subfed::submodel sub(net, {subfed::index_set(4, {0, 3})});
  const gpu::memory<double> sums(4);
  const tensor_view<double> seen(sums.data(), {4});
  using mean_type = subfed::cuda::selective_average<float>;
  CHECK(message_of([&] { mean_type(net, tensor_view<double>(sums.data(), {3})); }) ==
        "subfed: cuda: the sums of an average are 3 doubles, expected 4 without gaps");
  CHECK(message_of([&] { mean_type(net, tensor_view<double>(sums.data(), {4}, {2})); }) ==
        "subfed: cuda: the sums of an average are 4 doubles, expected 4 without gaps");
  double on_host[4] = {};
  CHECK(message_of([&] { mean_type(net, tensor_view<double>(on_host, {4})); }) ==
        "subfed: cuda::average: the sums' tensor 'sums' is in host memory, expected on CUDA device "
        "0");
  CHECK(message_of(
            [&] { mean_type(net, seen, {.on_non_finite = subfed::non_finite::skip_element}); }) ==
        "subfed: cuda: selective_average does not offer non_finite::skip_element on a device; "
        "prepare_average does");
  for (const auto policy : {subfed::non_finite::refuse, subfed::non_finite::skip_client}) {
    CHECK(message_of([&] {
            mean_type(net, seen, {.on_non_finite = policy});
          }).starts_with("subfed: cuda: non_finite::refuse and skip_client need the elements"));
  }

  mean_type mean(net, seen);
  const gpu::memory<float> local(std::vector<float>{1, 2}), global(std::vector<float>{7, 7, 7, 7});
  std::vector<float> elsewhere{5, 6};
  const tensor_views<const float> update{tensor_view<const float>(local.data(), {2})};
  CHECK(message_of([&] { mean.add(sub, update, 1, memory, stream); }) ==
        "subfed: cuda: an average is added to before clear()");
  mean.clear(stream);
  CHECK(message_of([&] {
          mean.add(sub, {tensor_view<const float>(elsewhere.data(), {2})}, 1, memory, stream);
        }) ==
        "subfed: cuda::average: the client tensor 'x' is in host memory, expected on CUDA device "
        "0");
  CHECK(message_of([&] {
          mean.add(sub, {tensor_view<const float>(local.data(), {1})}, 1, memory, stream);
        }).find("has shape (1,), expected (2,)") != std::string::npos);
  mean.add(sub, update, 3, memory, stream);
  const tensor_views<float> globals{tensor_view<float>(global.data(), {4})};
  CHECK(mean.finish(globals, memory, stream).report(stream).clients == 1);
  CHECK(global.fetched() == std::vector<float>{1, 7, 7, 2});
}

TEST_CASE("where memory runs out on the host, the streaming average is as it was") {
  gpu::stream stream;
  subfed::cuda::workspace memory(room);
  subfed::model net;
  const auto nodes = net.group("nodes", 4);
  net.tensor("x", {nodes});
  const subfed::submodel first(net, {subfed::index_set(4, {0, 3})}, {.client = 1});
  const subfed::submodel second(net, {subfed::index_set(4, {2, 3})}, {.client = 2});
  const gpu::memory<double> sums(4);
  const gpu::memory<float> local(std::vector<float>{1, 2});
  const tensor_views<const float> update{tensor_view<const float>(local.data(), {2})};
  std::int64_t failed = 0;
  for (bool ends = false; !ends; ++failed) {
    memory.reset();
    subfed::cuda::selective_average<float> mean(net, tensor_view<double>(sums.data(), {4}),
                                                {.round = 0});
    mean.clear(stream);
    mean.add(first, update, 3, memory, stream);
    const auto add = [&] { return mean.add(second, update, 1, memory, stream); };
    ends = support::ends_with({failed}, add);
    if (!ends) REQUIRE(add());
    const gpu::memory<float> global(std::vector<float>{7, 7, 7, 7});
    const tensor_views<float> globals{tensor_view<float>(global.data(), {4})};
    REQUIRE(mean.finish(globals, memory, stream).report(stream).clients == 2);
    REQUIRE(global.fetched() == std::vector<float>{1, 7, 1, 2});
  }
  CHECK(failed > 10);
}

TEST_CASE("1000 clients with the same three nodes: the host's bits, five times") {
  gpu::stream stream;
  subfed::model net;
  const auto nodes = net.group("nodes", 5);
  net.tensor("x", {nodes});
  const std::vector<float> value(3000, 0.1f);
  const gpu::memory<float> values(value);
  std::vector<subfed::update<float>> updates;
  for (std::uint64_t c = 0; c < 1000; ++c) {
    updates.push_back({subfed::submodel(net, {subfed::index_set(5, {1, 3, 4})}, {.client = c}),
                       {tensor_view<const float>(values.data() + 3 * c, {3})},
                       1});
  }
  const gpu::memory<float> global(std::vector<float>(5, 7.0f));
  subfed::cuda::workspace memory(room);
  for (int again = 0; again < 5; ++again) {
    const auto call = subfed::cuda::average_cohort<float>(
        net, updates, {tensor_view<float>(global.data(), {5})}, {}, memory, stream);
    CHECK(call.report(stream).held == 3);
    const auto found = global.fetched();
    for (const std::size_t n : {1u, 3u, 4u}) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &found[n], 4);
      CHECK(bits == 0x3DCCCCCDu);
    }
    CHECK(found[0] == 7.0f);
    CHECK(found[2] == 7.0f);
  }
}

TEST_CASE("tensors in host memory are refused before any launch, and the next call succeeds") {
  gpu::stream stream;
  subfed::cuda::workspace memory(room);
  subfed::model net;
  const auto nodes = net.group("nodes", 4);
  net.tensor("x", {nodes});
  const subfed::submodel sub(net, {subfed::index_set(4, {0, 3})});
  std::vector<float> host{1, 2, 3, 4};
  const gpu::memory<float> global(host);
  const gpu::memory<float> local(std::vector<float>(2));
  const tensor_views<float> on_device{{local.data(), {2}}};
  CHECK(message_of([&] {
          subfed::cuda::slice<float>({tensor_view<const float>(host.data(), {4})}, sub, on_device,
                                     memory, stream);
        }) ==
        "subfed: cuda::slice: the global tensor 'x' is in host memory, expected on CUDA device 0");
  CHECK(message_of([&] {
          subfed::cuda::slice<float>({tensor_view<const float>(global.data(), {3})}, sub, on_device,
                                     memory, stream);
        }) == "subfed: cuda::slice: the global tensor 'x' has shape (3,), expected (4,)");
  subfed::cuda::slice<float>({tensor_view<const float>(global.data(), {4})}, sub, on_device, memory,
                             stream);
  stream.wait();
  CHECK(local.fetched() == std::vector<float>{1, 4});
}

TEST_CASE("a workspace refuses what does not fit, other streams, and launches after a reset") {
  gpu::stream stream, other;
  subfed::model net;
  net.tensor("x", {4});
  const auto sub = subfed::submodel::full(net);
  const gpu::memory<float> global(std::vector<float>{1, 2, 3, 4}), local(std::vector<float>(4));
  const std::vector<subfed::cuda::client_tensors<float>> clients{
      {sub, tensor_views<float>{{local.data(), {4}}}}};
  auto call =
      subfed::cuda::prepare_slice<float>({tensor_view<const float>(global.data(), {4})}, clients);
  CHECK(message_of([&] { call.launch(stream); }) ==
        "subfed: cuda: a call is launched before its upload");
  subfed::cuda::workspace none(0);
  CHECK(message_of([&] { call.upload(none, stream); }).find("of the workspace's 0 bytes only 0") !=
        std::string::npos);
  subfed::cuda::workspace memory(4096);
  call.upload(memory, stream);
  CHECK(message_of([&] { call.upload(memory, other); }) ==
        "subfed: cuda: the workspace is in use on another stream: reset it");
  call.launch(stream);
  stream.wait();
  memory.reset();
  CHECK(message_of([&] { call.launch(stream); }) ==
        "subfed: cuda: a call is launched after its workspace was reset");
  CHECK(local.fetched() == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("launches are captured in a graph and replayed on new contents; uploads are refused") {
  gpu::stream stream;
  subfed::model net;
  const auto nodes = net.group("nodes", 4);
  net.tensor("x", {nodes});
  const subfed::submodel sub(net, {subfed::index_set(4, {2, 0})});
  gpu::memory<float> global(std::vector<float>{1, 2, 3, 4});
  const gpu::memory<float> local(std::vector<float>(2));
  const std::vector<subfed::cuda::client_tensors<float>> clients{
      {sub, tensor_views<float>{{local.data(), {2}}}}};
  const std::vector<subfed::update<float>> updates{
      {sub, {tensor_view<const float>(local.data(), {2})}, 3}};
  auto cut =
      subfed::cuda::prepare_slice<float>({tensor_view<const float>(global.data(), {4})}, clients);
  auto mean =
      subfed::cuda::prepare_average<float>(net, updates, {tensor_view<float>(global.data(), {4})});
  subfed::cuda::workspace memory(room);
  cut.upload(memory, stream);
  mean.upload(memory, stream);
  stream.wait();

  gpu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cut.launch(stream);
  mean.launch(stream);
  const std::string refusal = message_of([&] { cut.upload(memory, stream); });
  cudaGraph_t graph = nullptr;
  gpu::check(cudaStreamEndCapture(stream, &graph));
  CHECK(refusal ==
        "subfed: cuda: a plan is uploaded while the stream is captured: upload first, capture the "
        "launch");
  cudaGraphExec_t ready = nullptr;
  gpu::check(cudaGraphInstantiate(&ready, graph, 0));
  for (const float first : {10.0f, 20.0f}) {
    global.copy_from({first, 2, first + 2, 4});
    gpu::check(cudaGraphLaunch(ready, stream));
    stream.wait();
    CHECK(local.fetched() == std::vector<float>{first + 2, first});
    CHECK(global.fetched() == std::vector<float>{first, 2, first + 2, 4});
    CHECK(mean.report(stream).held == 2);
  }
  gpu::check(cudaGraphExecDestroy(ready));
  gpu::check(cudaGraphDestroy(graph));
}

TEST_CASE("tensors of more than 2^31 elements are addressed with 64 bits") {
  std::size_t free = 0, total = 0;
  gpu::check(cudaMemGetInfo(&free, &total));
  const std::int64_t length = (std::int64_t{1} << 31) + 4096;
  if (free < static_cast<std::size_t>(length) * 2 + (std::size_t{1} << 30)) {
    MESSAGE("left out: this device has not enough memory");
    return;
  }
  gpu::stream stream;
  subfed::model net;
  const auto columns = net.group("columns", 4096);
  net.tensor("x", {length / 4096, columns});
  const gpu::memory<subfed::bfloat16> global(static_cast<std::size_t>(length));
  gpu::check(cudaMemset(global.data(), 0, static_cast<std::size_t>(length) * 2));
  std::vector<subfed::bfloat16> row(4096);
  for (std::size_t i = 0; i < 4096; ++i) row[i] = subfed::bfloat16(static_cast<double>(i % 256));
  gpu::check(cudaMemcpy(global.data() + length - 4096, row.data(), 8192, cudaMemcpyHostToDevice));
  const subfed::submodel sub(net, {subfed::index_set::window(4096, 4000, 128)});
  const gpu::memory<subfed::bfloat16> local(static_cast<std::size_t>(length / 4096 * 128));
  subfed::cuda::workspace memory(std::size_t{64} << 20);
  const tensor_views<subfed::bfloat16> locals{{local.data(), {length / 4096, 128}}};
  subfed::cuda::slice<subfed::bfloat16>(
      {tensor_view<const subfed::bfloat16>(global.data(), {length / 4096, 4096})}, sub, locals,
      memory, stream);
  stream.wait();
  const auto found = local.fetched();
  bool right = true;
  for (std::size_t i = 0; i < 128; ++i) {
    right = right && found[found.size() - 128 + i] == row[(4000 + i) % 4096];
  }
  CHECK(right);
}

TEST_CASE("a failed call of the runtime is a cuda_error with the call's name and CUDA's text") {
  CHECK(message_of([] { subfed::cuda::detail::check(cudaErrorInvalidValue, "cudaMemcpyAsync"); }) ==
        "subfed: cuda: cudaMemcpyAsync: invalid argument (1)");
  try {
    subfed::cuda::detail::check(cudaErrorInvalidValue, "cudaMemcpyAsync");
  } catch (const subfed::cuda_error& error) {
    CHECK(error.code() == cudaErrorInvalidValue);
  }
}
