// SPDX-License-Identifier: MIT
/// FedRolex [Rolex] on Fashion-MNIST with LibTorch, complete: a network, its description, clients that
/// train rolling windows of it, and the average of what they send back.
#include <torch/torch.h>
#include <zlib.h>

#include <CLI/CLI.hpp>
#include <subfed/adapt/torch.hpp>
#include <subfed/layers.hpp>
#include <subfed/subfed.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t clients = 100, clients_per_round = 10;
constexpr double capacities[] = {1.0, 0.5, 0.25, 0.125, 0.0625};  // of client c: number c mod 5

/// Two convolutions of stride 2 and two linear layers, of any width.
struct network : torch::nn::Module {
  torch::nn::Conv2d conv1, conv2;
  torch::nn::Linear fc1, fc2;
  network(std::int64_t width1, std::int64_t width2, std::int64_t hidden)
      : conv1(torch::nn::Conv2dOptions(1, width1, 5).stride(2)),
        conv2(torch::nn::Conv2dOptions(width1, width2, 5).stride(2)),
        fc1(width2 * 4 * 4, hidden),
        fc2(hidden, 10) {
    register_module("conv1", conv1), register_module("conv2", conv2);
    register_module("fc1", fc1), register_module("fc2", fc2);
  }
  /// A client with a share of the nodes trains with scale 1 / share, which keeps its sums as large
  /// as those of the whole network.
  at::Tensor forward(const at::Tensor& images, double scale) {
    const at::Tensor a = at::relu(conv1(images) * scale);
    const at::Tensor b = at::relu(conv2(a) * scale);
    return fc2(at::relu(fc1(b.flatten(1)) * scale));
  }
  /// The parameters without autograd: what subfed reads and writes.
  std::vector<at::Tensor> tensors() const {
    std::vector<at::Tensor> out;
    for (const at::Tensor& p : parameters()) out.push_back(p.detach());
    return out;
  }
};

/// The elements of a gzipped file in MNIST's format.
at::Tensor read_idx(const std::string& path, std::int64_t header, at::IntArrayRef shape) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  const at::Tensor out = at::empty(shape, at::kByte);
  const auto bytes = static_cast<int>(out.numel());
  if (!file || gzseek(file.get(), header, SEEK_SET) < 0 ||
      gzread(file.get(), out.data_ptr(), static_cast<unsigned>(bytes)) != bytes) {
    throw std::runtime_error(path + " cannot be read (Debian: dataset-fashion-mnist).");
  }
  return out;
}

struct samples {
  at::Tensor images, labels;
  samples(const std::string& prefix, std::int64_t n, at::Device device) {
    images = read_idx(prefix + "-images-idx3-ubyte.gz", 16, {n, 1, 28, 28}).to(device) / 255.0f;
    labels = read_idx(prefix + "-labels-idx1-ubyte.gz", 8, {n}).to(device, at::kLong);
  }
};

/// The images of each client: equal shares of five of the ten labels.
std::vector<at::Tensor> shares_of(const at::Tensor& labels) {
  std::vector<at::Tensor> out(clients, at::empty({0}, labels.options()));
  for (std::int64_t label = 0; label < 10; ++label) {
    const auto pieces = (labels == label).nonzero().flatten().chunk(clients / 2);
    for (std::size_t c = 0, next = 0; c < out.size(); ++c) {
      if ((static_cast<std::size_t>(label) + c) % 10 >= 5) continue;
      out[c] = at::cat({out[c], pieces.at(next++)});
    }
  }
  return out;
}

void train(network& net, const samples& data, const at::Tensor& own, double scale) {
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
  for (const at::Tensor& batch : own.index({at::randperm(own.size(0), own.options())}).split(24)) {
    sgd.zero_grad();
    const at::Tensor logits = net.forward(data.images.index({batch}), scale);
    at::cross_entropy_loss(logits, data.labels.index({batch})).backward();
    sgd.step();
  }
}

}  // namespace

int main(int argc, char** argv) try {
  unsigned rounds = 40;
  std::string where = "cpu", folder = "/usr/share/datasets/fashion-mnist";
  CLI::App app(
      "FedRolex on Fashion-MNIST: 100 clients of five capacities, 10 of them in each round.");
  app.add_option("--rounds", rounds, "Rounds of training")->capture_default_str();
  app.add_option("--device", where, "Where clients train: cpu, cuda")->capture_default_str();
  app.add_option("--data", folder, "Folder with Fashion-MNIST's files")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const at::Device device(where);
  const samples train_set(folder + "/train", 60000, device),
      test_set(folder + "/t10k", 10000, device);
  const std::vector<at::Tensor> shares = shares_of(train_set.labels);
  torch::manual_seed(1);

  network server(32, 64, 128);  // on the CPU, where subfed slices and averages
  subfed::model net;            // its description, in the order of tensors()
  const auto width1 = net.group("conv1", 32), width2 = net.group("conv2", 64);
  const auto hidden = net.group("fc1", 128);
  subfed::conv2d(net, "conv1", {1, width1, 5, 5});
  subfed::conv2d(net, "conv2", {width1, width2, 5, 5});
  subfed::linear(net, "fc1", {width2.block(4 * 4), hidden});  // a flatten: 16 inputs per channel
  subfed::linear(net, "fc2", {hidden, 10});

  for (unsigned round = 0; round < rounds; ++round) {
    std::vector<std::vector<at::Tensor>> trained;
    std::vector<subfed::update<float>> updates;  // views of the tensors in `trained`
    const at::Tensor cohort = at::randperm(clients).slice(0, 0, clients_per_round);
    for (std::int64_t i = 0; i < clients_per_round; ++i) {
      const auto c = static_cast<std::size_t>(cohort[i].item<std::int64_t>());
      const double capacity = capacities[c % std::size(capacities)];
      const auto sub =
          subfed::draw(net, subfed::rolling{}, {.round = round, .client = c, .capacity = capacity});
      network client(sub.extent(width1), sub.extent(width2), sub.extent(hidden));
      subfed::slice<float>(server.tensors(), sub, client.tensors());
      client.to(device);
      train(client, train_set, shares[c], 1 / capacity);
      client.to(at::kCPU);
      trained.push_back(client.tensors());
      updates.push_back({sub, trained.back()});
    }
    subfed::average_cohort<float>(net, updates, server.tensors());

    const at::NoGradGuard no_grad;
    server.to(device);
    const at::Tensor right = server.forward(test_set.images, 1).argmax(1) == test_set.labels;
    server.to(at::kCPU);
    const auto percent = 100 * right.to(at::kDouble).mean().item<double>();
    std::printf("round %2u of %u: accuracy %.1f %%\n", round + 1, rounds, percent);
    if (std::fflush(stdout) != 0) throw std::runtime_error("The output could not be written.");
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
