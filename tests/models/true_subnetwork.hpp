// SPDX-License-Identifier: MIT
/// The true-sub-network test: a client's network computes what the global network computes with the
/// dropped nodes at zero. Torch comes first, and doctest with its long names, since both define CHECK.
#pragma once

#include <torch/torch.h>

#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>
#include <subfed/adapt/torch.hpp>
#include <subfed/subfed.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace support {

/// Parameters and buffers in the order of PyTorch's state_dict(), detached: same memory.
inline std::vector<std::pair<std::string, at::Tensor>> state_dict(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (const auto& part : module.named_modules("", true)) {
    const std::string path = part.key().empty() ? "" : part.key() + ".";
    for (const auto& p : part.value()->named_parameters(false)) {
      out.emplace_back(path + p.key(), p.value().detach());
    }
    for (const auto& b : part.value()->named_buffers(false)) {
      if (b.value().defined()) out.emplace_back(path + b.key(), b.value());
    }
  }
  return out;
}

inline std::vector<subfed::named_shape> shapes_of(const torch::nn::Module& module) {
  std::vector<subfed::named_shape> out;
  for (const auto& [name, tensor] : state_dict(module)) {
    out.push_back({name, tensor.sizes().vec()});
  }
  return out;
}

inline std::vector<at::Tensor> tensors_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> out;
  for (const auto& [name, tensor] : state_dict(module)) out.push_back(tensor);
  return out;
}

/// Values that no two nodes share and that no layer has by accident: variances stay positive,
/// counters whole.
inline void fill(torch::nn::Module& module) {
  for (auto& [name, tensor] : state_dict(module)) {
    if (tensor.scalar_type() == torch::kLong) {
      tensor.fill_(7);
    } else if (name.ends_with("running_var")) {
      tensor.uniform_(0.5, 2);
    } else if (tensor.dim() <= 1) {
      tensor.uniform_(-1, 1);
    } else {
      const double inputs = static_cast<double>(tensor.numel() / tensor.size(0));
      tensor.normal_(0, 1 / std::sqrt(inputs));
    }
  }
}

/// Who cuts how much: every scheme at every capacity of the papers and one that divides nothing.
template <class Call>
void for_every_submodel(const subfed::model& net, Call&& call) {
  using subfed::capacity;
  const std::vector<capacity> capacities = {1.0,
                                            capacity::ratio(1, 2),
                                            capacity::ratio(1, 4),
                                            capacity::ratio(1, 8),
                                            capacity::ratio(1, 16),
                                            0.3};
  std::uint64_t client = 0;
  for (const capacity& beta : capacities) {
    const subfed::draw_key key{.seed = 5, .round = 11, .client = ++client, .capacity = beta};
    const auto with = [&](const char* name, const auto& scheme) {
      DOCTEST_INFO(std::string(name), " at capacity ", beta.value());
      call(subfed::draw(net, scheme, key));
    };
    with("rolling", subfed::rolling{.phase = -3});  // wraps in narrow groups
    with("rolling, released", subfed::rolling::released());
    with("random", subfed::random_subset());
    with("prefix", subfed::prefix());
    with("ordered", subfed::prefix::ordered());
    bool divides = true;
    for (const auto& group : net.groups()) {
      divides = divides && group.extent % beta.of(group.extent) == 0;
    }
    if (divides) with("simple ensemble", subfed::simple_ensemble());
    with("own scheme, backwards", [](const subfed::draw_request& s) {
      std::vector<std::int64_t> nodes;
      for (std::int64_t n = 0; n < s.kept(); ++n) nodes.push_back(s.extent - 1 - n);
      return subfed::index_set(s.extent, nodes);
    });
  }
}

/// make(submodel) builds a network, run(network) computes something with it, mask(network, submodel)
/// tells a masked global network what its normalisations are to leave out.
template <class Make, class Run, class Mask>
void check_true_subnetwork(const subfed::model& net, Make&& make, Run&& run, Mask&& mask) {
  torch::NoGradGuard no_gradients;
  torch::manual_seed(1);
  DOCTEST_INFO(subfed::describe(net));
  const auto global = make(subfed::submodel::full(net));
  subfed::check_shapes(net, shapes_of(*global));
  fill(*global);
  for_every_submodel(net, [&](const subfed::submodel& part) {
    DOCTEST_INFO(subfed::describe(part));
    const auto client = make(part);
    const auto held = shapes_of(*client);
    DOCTEST_REQUIRE(held.size() == net.tensors().size());
    for (std::size_t t = 0; t < held.size(); ++t) {
      DOCTEST_INFO(held[t].name);
      DOCTEST_CHECK(held[t].extents == part.extents(subfed::tensor_id(t)));
    }
    const auto all = tensors_of(*global);
    const auto local = tensors_of(*client);
    subfed::slice<void>(all, part, local);

    const auto masked = make(subfed::submodel::full(net));
    const auto zeroed = tensors_of(*masked);
    for (const at::Tensor& t : zeroed) t.zero_();
    subfed::scatter<void>(local, part, zeroed);
    mask(*masked, part);

    client->eval();
    masked->eval();
    const at::Tensor found = run(*client);
    const at::Tensor expected = run(*masked);
    DOCTEST_REQUIRE(found.sizes() == expected.sizes());
    DOCTEST_CHECK(found.isfinite().all().item<bool>());
    const double scale = expected.abs().max().item<double>();
    const double difference = (found - expected).abs().max().item<double>();
    DOCTEST_CHECK(scale > 0);
    DOCTEST_CHECK(difference <= 2e-4 * scale);
  });
}
template <class Make, class Run>
void check_true_subnetwork(const subfed::model& net, Make&& make, Run&& run) {
  check_true_subnetwork(net, make, run, [](auto&, const subfed::submodel&) {});
}

/// 1 for each node that is held, 0 for others: what layer norms of a masked network normalise over.
inline at::Tensor kept_nodes(const subfed::submodel& part, subfed::group_id group) {
  const at::Tensor out = torch::zeros({part.parent()[group].extent});
  for (const std::int64_t node : part[group]) out[node] = 1;
  return out;
}

}  // namespace support
