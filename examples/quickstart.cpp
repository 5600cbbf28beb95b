// SPDX-License-Identifier: MIT
/// The whole round trip on a small network, with nothing but the library: describe, slice, train,
/// average, and see how evenly the global model was trained under three schemes.
#include <subfed/subfed.hpp>

#include <cstdio>
#include <vector>

int main() {
  subfed::model net;  // described once: which tensors share which nodes
  const auto hidden = net.group("hidden", 8);
  net.tensor("fc1.weight", {hidden, 4});
  const auto w2 = net.tensor("fc2.weight", {3, hidden});

  // A scheme of your own is a function from a draw request to an index set: here, every other node.
  const auto alternate = [](const subfed::draw_request& s) {
    std::vector<std::int64_t> nodes;
    for (auto n = static_cast<std::int64_t>(s.round % 2); n < s.extent; n += 2) nodes.push_back(n);
    return subfed::index_set(s.extent, nodes);
  };

  const auto run = [&](const char* name, const auto& scheme) {
    subfed::tensors<float> globals(net);  // zeros of the model's shapes
    subfed::coverage seen(net);
    for (unsigned round = 0; round < 8; ++round) {
      subfed::selective_average<float> mean(net);
      for (unsigned client = 0; client < 2; ++client) {
        const auto sub = subfed::draw(
            net, scheme, {.seed = 7, .round = round, .client = client, .capacity = 0.5});
        subfed::tensors<float> locals(sub);  // of the client's
        subfed::slice<float>(globals, sub, locals);
        for (float& x : locals.elements()) x += (1 - x) / 2;  // "training": half of the way to 1
        mean.add(sub, locals, /*weight=*/1.0 + client);
        seen.record(sub);
      }
      mean.finish(globals);  // parameters that nobody held keep their bits
      seen.end_round();
    }
    std::printf("%-10s first row", name);
    for (int n = 0; n < 8; ++n) std::printf(" %.3f", static_cast<double>(globals[w2](0, n)));
    const auto even = seen.summary();
    std::printf("   held %lld to %lld times, Gini %.2f\n", static_cast<long long>(even.min),
                static_cast<long long>(even.max), even.gini);
  };
  run("rolling", subfed::rolling{});       // FedRolex
  run("random", subfed::random_subset{});  // Federated Dropout
  run("prefix", subfed::prefix{});         // HeteroFL
  run("alternate", alternate);             // yours
  if (std::fflush(stdout) == 0) return 0;
  std::perror("The output could not be written");
  return 1;
}
