// SPDX-License-Identifier: MIT
/// An aggregator over raw memory, for servers that keep a model as one flat block with a table of
/// names, offsets and shapes: no tensor library, updates averaged as they arrive.
#include <subfed/subfed.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

/// A row of the server's table; shapes in whatever integers the stack uses.
struct layer {
  std::string name;
  std::size_t offset;  // in elements
  std::vector<std::int32_t> shape;
};

std::vector<subfed::tensor_view<float>> views(float* block, const std::vector<layer>& table) {
  std::vector<subfed::tensor_view<float>> out;
  for (const layer& l : table) out.emplace_back(block + l.offset, l.shape);
  return out;
}

}  // namespace

int main() {
  subfed::model net;
  const auto hidden = net.group("hidden", 6);
  const auto fc1 = net.tensor("fc1.weight", {hidden, 2});
  const auto fc2 = net.tensor("fc2.weight", {3, hidden});
  const std::vector<layer> table = {{"fc1.weight", 0, {6, 2}}, {"fc2.weight", 12, {3, 6}}};
  std::vector<float> server(30, 0.0f);

  subfed::selective_average<float> mean(net);
  for (unsigned client = 0; client < 3; ++client) {
    // The client derives the same submodel from the same four numbers; no index travels.
    const auto sub = subfed::draw(net, subfed::rolling{.client_phase = 1},
                                  {.seed = 1, .round = 2, .client = client, .capacity = 0.5});
    const auto size1 = static_cast<std::size_t>(sub.extent(hidden)) * 2;
    std::vector<float> received(static_cast<std::size_t>(sub.size()),
                                1.0f + static_cast<float>(client));
    const subfed::tensor_view a(received.data(), sub.extents(fc1));
    const subfed::tensor_view b(received.data() + size1, sub.extents(fc2));
    mean.add(sub, {a, b}, /*examples=*/100.0 * (1 + client));
  }
  const auto report = mean.finish(views(server.data(), table));

  std::printf("%lld clients, %lld parameters averaged, %lld held by nobody\n",
              static_cast<long long>(report.clients), static_cast<long long>(report.held),
              static_cast<long long>(report.unheld));
  std::printf("fc2.weight[0]:");
  for (std::size_t n = 0; n < 6; ++n) std::printf(" %.3f", static_cast<double>(server[12 + n]));
  std::printf("\n");
  if (std::fflush(stdout) == 0) return 0;
  std::perror("The output could not be written");
  return 1;
}
