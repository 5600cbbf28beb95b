// SPDX-License-Identifier: MIT
/// The whole round trip on a small network, with nothing but the library: describe, slice, train,
/// average, and see how evenly the global model was trained under three schemes.
#include <subfed/subfed.hpp>

#include <cstdio>
#include <vector>

int main() {
  subfed::model net;  // described once: which tensors share which nodes
  const auto hidden = net.group("hidden", 8);
  const auto w1 = net.tensor("fc1.weight", {hidden, 4});
  const auto w2 = net.tensor("fc2.weight", {3, hidden});

  // A scheme of your own is a function from a draw request to an index set: here, every other node.
  const auto alternate = [](const subfed::draw_request& s) {
    std::vector<std::int64_t> nodes;
    for (auto n = static_cast<std::int64_t>(s.round % 2); n < s.extent; n += 2) nodes.push_back(n);
    return subfed::index_set(s.extent, nodes);
  };

  const auto run = [&](const char* name, const auto& scheme) {
    std::vector<float> global1(8 * 4, 0.0f), global2(3 * 8, 0.0f);
    const subfed::tensor_view g1(global1.data(), {8, 4}), g2(global2.data(), {3, 8});
    subfed::coverage seen(net);
    for (unsigned round = 0; round < 8; ++round) {
      subfed::selective_average<float> mean(net);
      for (unsigned client = 0; client < 2; ++client) {
        const auto sub = subfed::draw(
            net, scheme, {.seed = 7, .round = round, .client = client, .capacity = 0.5});
        const auto kept = sub.extent(hidden);
        std::vector<float> a(static_cast<std::size_t>(kept * 4)),
            b(static_cast<std::size_t>(3 * kept));
        const subfed::tensor_view va(a.data(), {kept, 4}), vb(b.data(), {3, kept});
        subfed::slice(g1, sub[w1], va);
        subfed::slice(g2, sub[w2], vb);
        for (float& x : a) x += (1 - x) / 2;  // "training": half the way to 1
        for (float& x : b) x += (1 - x) / 2;
        mean.add(sub, {va, vb}, /*weight=*/1.0 + client);
        seen.record(sub);
      }
      mean.finish({g1, g2});  // parameters that nobody held keep their bits
      seen.end_round();
    }
    std::printf("%-10s first row", name);
    for (int n = 0; n < 8; ++n) std::printf(" %.3f", static_cast<double>(g2(0, n)));
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
