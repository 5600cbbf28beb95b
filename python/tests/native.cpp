// SPDX-License-Identifier: MIT
/// The same work in C++, for comparison: rounds of PreResNet18 with five clients, and with ten.
///
///   native check <file>   writes the server's tensors after a round of each scheme, one after the other
///   native time           reads lines such as "slice rolling" or "average random", and answers with the
///                         processor's seconds that it took
#include <models/pre_resnet18.hpp>
#include <subfed/subfed.hpp>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace {

/// Tensors of given shapes, each in its own memory.
struct tensors {
  std::vector<std::vector<float>> data;
  std::vector<subfed::tensor_view<float>> views;

  explicit tensors(const std::vector<std::vector<std::int64_t>>& shapes) {
    for (const auto& shape : shapes) {
      std::int64_t size = 1;
      for (const std::int64_t e : shape) size *= e;
      data.emplace_back(static_cast<std::size_t>(size));
      views.emplace_back(data.back().data(), std::span<const std::int64_t>(shape));
    }
  }
};

tensors server_of(const subfed::model& net) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const auto& t : net.tensors()) shapes.push_back(t.extents);
  tensors out(shapes);
  for (std::size_t t = 0; t < out.data.size(); ++t) {
    for (std::size_t i = 0; i < out.data[t].size(); ++i) {
      out.data[t][i] = static_cast<float>((31 * i + 17 * t) % 1021) / 1024;
    }
  }
  return out;
}
tensors locals_of(const subfed::submodel& sub) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
    shapes.push_back(sub.extents(subfed::tensor_id(t)));
  }
  return tensors(shapes);
}

template <class Scheme>
std::vector<subfed::submodel> cohort_of(const subfed::model& net, const Scheme& scheme,
                                        std::uint64_t clients) {
  std::vector<subfed::submodel> out;
  for (std::uint64_t client = 0; client < clients; ++client) {
    const double share = 1.0 / static_cast<double>(1 << client % 5);
    out.push_back(
        subfed::draw(net, scheme, {.seed = 7, .round = 17, .client = client, .capacity = share}));
  }
  return out;
}

template <class Scheme>
bool write_round(const subfed::model& net, const Scheme& scheme, std::FILE* file) {
  tensors server = server_of(net);
  std::vector<tensors> locals;
  std::vector<subfed::update<float>> updates;
  for (const auto& sub : cohort_of(net, scheme, 5)) {
    locals.push_back(locals_of(sub));
    subfed::slice<float>(server.views, sub, locals.back().views);
    const float factor = 1 + static_cast<float>(sub.origin().client) / 8;
    for (auto& tensor : locals.back().data) {
      for (float& x : tensor) x *= factor;
    }
    updates.push_back({sub, locals.back().views, 1 + static_cast<double>(sub.origin().client) / 3});
  }
  subfed::average_cohort<float>(net, updates, server.views);
  for (const auto& tensor : server.data) {
    if (std::fwrite(tensor.data(), sizeof(float), tensor.size(), file) != tensor.size())
      return false;
  }
  return true;
}

/// A cohort with its tensors there already.
struct prepared {
  std::vector<subfed::submodel> cohort;
  std::vector<tensors> locals;
  std::vector<subfed::update<float>> updates;

  explicit prepared(std::vector<subfed::submodel> subs) : cohort(std::move(subs)) {
    for (const auto& sub : cohort) {
      locals.push_back(locals_of(sub));
      updates.push_back({sub, locals.back().views, 1.0});
    }
  }
};

/// For each line with a verb and a scheme: does it once, and prints the processor's seconds.
void answer(const subfed::model& net) {
  tensors server = server_of(net);
  prepared rolling(cohort_of(net, subfed::rolling{}, 10));
  prepared random(cohort_of(net, subfed::random_subset{}, 10));
  std::string verb, scheme;
  while (std::cin >> verb >> scheme) {
    prepared& clients = scheme == "random" ? random : rolling;
    const std::clock_t begin = std::clock();
    if (verb == "average") {
      subfed::average_cohort<float>(net, clients.updates, server.views);
    } else {
      for (std::size_t c = 0; c < clients.cohort.size(); ++c) {
        subfed::slice<float>(server.views, clients.cohort[c], clients.locals[c].views);
      }
    }
    std::cout << static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const subfed::model net = models::describe_pre_resnet18().net;
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "time") {
    answer(net);
    return 0;
  }
  if (what != "check" || argc != 3) return 2;
  std::FILE* const file = std::fopen(argv[2], "wb");
  if (file == nullptr) return 1;
  const bool written = write_round(net, subfed::rolling{}, file) &&
                       write_round(net, subfed::random_subset{}, file) &&
                       write_round(net, subfed::prefix::released(), file);
  return std::fclose(file) == 0 && written ? 0 : 1;
}
