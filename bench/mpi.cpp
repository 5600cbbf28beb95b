// SPDX-License-Identifier: MIT
/// subfed_mpi_bench [parameters] [clients of each rank] [bytes at once]: what the average of many ranks costs. Under
/// mpirun. docs/scale.md has the results.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <subfed/adapt/mpi.hpp>
#include <subfed/adapt/span.hpp>
#include <subfed/draw.hpp>
#include <subfed/messages/partial_average.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <vector>

namespace {

namespace mpi = subfed::mpi;
using subfed::average_options;
using subfed::selective_average;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;

/// Layers of a perceptron, each 1024 wide: about so many parameters.
subfed::model layers(std::int64_t parameters) {
  subfed::model net;
  constexpr std::int64_t width = 1024;
  subfed::dimension before = width;
  for (std::int64_t at = 0, layer = 0; at < parameters; at += width * width, ++layer) {
    const auto nodes = net.group("h" + std::to_string(layer), width);
    const std::int64_t rows = std::min(width, (parameters - at + width - 1) / width);
    const subfed::dimension out =
        rows == width ? subfed::dimension(nodes) : subfed::dimension(rows);
    net.tensor("w" + std::to_string(layer), {out, before});
    before = nodes;
  }
  return net;
}

std::vector<std::vector<float>> tensors_of(const submodel& sub, float value) {
  std::vector<std::vector<float>> out;
  for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
    std::int64_t elements = 1;
    for (const std::int64_t e : sub.extents(subfed::tensor_id(t))) elements *= e;
    out.emplace_back(static_cast<std::size_t>(elements), value);
  }
  return out;
}
template <class T>
tensor_views<T> views_of(const submodel& sub, std::vector<std::vector<float>>& tensors) {
  std::vector<tensor_view<T>> out;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    out.emplace_back(tensors[t].data(), sub.extents(subfed::tensor_id(t)));
  }
  return {out};
}

/// Seconds on the slowest rank, the least of five runs. `before` is not timed.
template <class Before, class F>
double seconds(const mpi::communicator& world, Before&& before, F&& f) {
  double best = 1e300;
  for (int i = 0; i < 5; ++i) {
    before();
    MPI_Barrier(world.handle());
    const double start = MPI_Wtime();
    f();
    double own = MPI_Wtime() - start, slowest = 0;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, world.handle());
    best = std::min(best, slowest);
  }
  return best;
}

double peak_megabytes() {
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

void measure(std::int64_t parameters, std::int64_t clients, std::int64_t bytes_at_once) {
  const mpi::communicator world(MPI_COMM_WORLD, bytes_at_once);
  const bool prints = world.rank() == 0;
  const subfed::model net = layers(parameters);
  const auto size = static_cast<double>(net.size());
  const auto first = static_cast<std::uint64_t>(world.rank()) * static_cast<std::uint64_t>(clients);
  const average_options options{
      .round = 0, .sums = subfed::fixed_point{.bound = 4, .clients = (clients + 1) * world.size()}};
  const auto say = [&](const char* what, double value, const char* unit) {
    if (prints) std::printf("%-58s %12.4g %s\n", what, value, unit);
  };
  say("ranks", world.size(), "");
  say("parameters", size, "");

  selective_average<float> mean(net, options);
  const auto key = [&](std::uint64_t client) {
    return subfed::draw_key{.seed = 1, .round = 0, .client = client, .capacity = 0.25};
  };
  const submodel some = subfed::draw(net, subfed::rolling{}, key(first));
  auto update = tensors_of(some, 0.5f);
  const auto held = static_cast<double>(some.size());
  const auto add_all = [&] {
    mean.clear();
    for (std::int64_t c = 0; c < clients; ++c) {
      const submodel sub =
          subfed::draw(net, subfed::rolling{}, key(first + static_cast<std::uint64_t>(c)));
      mean.add(sub, views_of<const float>(sub, update));
    }
  };
  say("bytes of an update of capacity 1/4", 4 * held, "B");
  say("peak memory before the first update", peak_megabytes(), "MB");
  const double adding = seconds(
      world, [] {}, add_all);
  say("add: updates of all ranks a second", static_cast<double>(clients) * world.size() / adding,
      "/s");
  say("add: bytes of updates of one rank a second",
      static_cast<double>(clients) * 4 * held / adding, "B/s");
  say("peak memory with all updates added", peak_megabytes(), "MB");

  // Now one client of each rank holds all.
  const submodel full = submodel::full(net);
  auto globals = tensors_of(full, 0.25f);
  const auto whole = views_of<float>(full, globals);
  const auto add_full = [&] {
    add_all();
    const submodel own =
        subfed::draw(net, subfed::rolling{},
                     {.seed = 1, .round = 0, .client = first + (1u << 30), .capacity = 1});
    mean.add(own, views_of<const float>(own, globals));
  };
  say("peak memory with the whole model", peak_megabytes(), "MB");
  const double all = seconds(world, add_full, [&] { mpi::all_reduce(mean, world); });
  say("all_reduce", all, "s");
  say("all_reduce: bytes of sums a second", 8 * size / all, "B/s");
  const double one = seconds(world, add_full, [&] { mpi::reduce(mean, 0, world); });
  say("reduce", one, "s");
  const double spread = seconds(world, add_full, [&] { mpi::reduce_scatter(mean, world); });
  say("reduce_scatter", spread, "s");
  add_full();
  const double finish = seconds(
      world, [] {}, [&] { mean.finish(whole); });
  say("finish", finish, "s");
  const auto part = mpi::reduce_scatter(mean, world);
  const double together = seconds(
      world, [] {}, [&] { mpi::finish(part, whole, world); });
  say("finish of shares, with the broadcasts", together, "s");
  say("broadcast of the model",
      seconds(
          world, [] {}, [&] { mpi::broadcast(net, whole, 0, world); }),
      "s");
  say("peak memory", peak_megabytes(), "MB");

  // What is sent besides sums: small tensors, many clients.
  subfed::model small;
  const auto h = small.group("h", 1024);
  small.tensor("b", {h});
  selective_average<float> none(small, options);
  say("all_reduce of 1024 parameters, no client",
      seconds(
          world, [] {}, [&] { mpi::all_reduce(none, world); }),
      "s");
  for (const std::int64_t many : {1000, 100000}) {
    average_options of_many = options;
    of_many.sums->clients = many * world.size();
    selective_average<float> counted(small, of_many);
    const auto record = [&] {
      counted.clear();
      for (std::int64_t c = 0; c < many; ++c) {
        const submodel sub = subfed::draw(
            small, subfed::rolling{},
            key(static_cast<std::uint64_t>(world.rank()) * static_cast<std::uint64_t>(many) +
                static_cast<std::uint64_t>(c)));
        counted.add(sub, {tensor_view<const float>(update[0].data(), {sub.extent(h)})});
      }
    };
    record();
    const std::string of = " with " + std::to_string(many) + " clients a rank";
    say(("bytes besides sums," + of).c_str(),
        static_cast<double>(
            subfed::detail::write_average(counted, subfed::detail::sums_are::elsewhere).size()),
        "B");
    say(("all_reduce of 1024 parameters" + of).c_str(),
        seconds(world, record, [&] { mpi::all_reduce(counted, world); }), "s");
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    measure(argc > 1 ? std::atoll(argv[1]) : 10'000'000, argc > 2 ? std::atoll(argv[2]) : 16,
            argc > 3 ? std::atoll(argv[3]) : std::int64_t{1} << 22);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "subfed_mpi_bench: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
