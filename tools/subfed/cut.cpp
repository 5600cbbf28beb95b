// SPDX-License-Identifier: MIT
/// subfed cut and scatter: what clients hold of the server's model, into files and back.
#include <fmt/format.h>

#include <algorithm>
#include <common/failure.hpp>
#include <cstring>
#include <subfed/scatter.hpp>
#include <subfed/slice.hpp>
#include <type_traits>

#include "file_commands.hpp"
#include "npz.hpp"
#include "progress.hpp"

namespace tool {
namespace {

using common::failure;

/// A client's file, planned. Local tensors stay with the client; others of the server's that cannot be
/// cut are passed on as they are.
planned_file plan_client(const subfed::submodel& sub, const checkpoint& server,
                         const std::vector<std::string>& opaque, const client_entry& client,
                         const std::string& scheme) {
  std::vector<planned_tensor> tensors;
  const auto& infos = sub.parent().tensors();
  for (std::size_t t = 0; t < infos.size(); ++t) {
    const subfed::byte_tensor& tensor = server.at(infos[t].name).tensor;
    const bool sent = infos[t].role != subfed::role::local;
    std::vector<std::int64_t> extents;
    if (sent) extents = sub.extents(subfed::tensor_id(t));
    std::size_t bytes = sent ? static_cast<std::size_t>(tensor.format().bits) / 8 : 0;
    for (const std::int64_t extent : extents) bytes *= static_cast<std::size_t>(extent);
    tensors.push_back({infos[t].name, dtype_of(tensor), extents, bytes, tensor.format().bits});
  }
  for (const std::string& name : opaque) {
    const subfed::byte_tensor& tensor = server.at(name).tensor;
    tensors.push_back({name,
                       dtype_of(tensor),
                       {tensor.extents().begin(), tensor.extents().end()},
                       static_cast<std::size_t>(tensor.size_bytes()),
                       tensor.has_elements() ? tensor.format().bits : 0});
  }
  std::vector<planned_tensor> sent;
  std::vector<std::size_t> places;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (t < infos.size() && infos[t].role == subfed::role::local) continue;
    places.push_back(t);
    sent.push_back(tensors[t]);
  }
  const std::pair<std::string, std::string> metadata[] = {
      {"client", std::to_string(client.key.client)}, {"round", std::to_string(client.key.round)},
      {"seed", std::to_string(client.key.seed)},     {"capacity", client.capacity},
      {"weight", fmt::format("{}", client.weight)},  {"scheme", scheme}};
  planned_file planned = plan_file(sent, metadata);
  std::vector<std::size_t> offsets(tensors.size(), 0);
  for (std::size_t i = 0; i < places.size(); ++i) offsets[places[i]] = planned.offsets[i];
  planned.offsets = std::move(offsets);
  return planned;
}

}  // namespace

int cut(const file_options& options) {
  const checkpoint server(options.server);
  const subfed::model net = whole_model(options.model, server);
  const std::vector<std::string> opaque = opaque_tensors(server);
  const submodels drawn(net, options.scheme);
  std::vector<client_entry> clients = read_clients(options.clients, options.round, options.seed);
  aligned_views aligned;
  const auto globals = server_views(net, server, aligned);

  double bytes = 0;
  std::vector<planned_file> plans;
  std::vector<subfed::submodel> subs;
  for (const client_entry& client : clients) {
    subs.push_back(drawn.of(client));
    plans.push_back(plan_client(subs.back(), server, opaque, client, drawn.scheme()));
    bytes += static_cast<double>(plans.back().bytes);
  }
  const auto file_of = [&](const client_entry& client) -> std::filesystem::path {
    const std::filesystem::path folder = options.out;
    if (!client.file.empty()) return folder / client.file.filename();
    const char* const kind = is_npz(options.server) ? "npz" : "safetensors";
    return folder / fmt::format("client-{}.{}", client.key.client, kind);
  };
  if (options.dry_run) {
    fmt::print("{} would be written to {} files in {}.\n", bytes_text(bytes), clients.size(),
               options.out);
    return 0;
  }
  std::vector<std::filesystem::path> names;
  for (const client_entry& client : clients) names.push_back(file_of(client));
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    throw failure(fmt::format("{}: two clients have the file {}.", options.clients,
                              twice->filename().string()));
  }
  common::prepare_folder(options.out);

  progress line(bytes);
  for (std::size_t c = 0; c < clients.size(); ++c) {
    mapped_output file(file_of(clients[c]), plans[c].bytes);
    std::byte* const to = file.bytes().data();
    std::memcpy(to, plans[c].header.data(), plans[c].header.size());
    std::vector<std::size_t> chosen;
    for (std::size_t t = 0; t < net.tensors().size(); ++t) {
      if (net.tensors()[t].role != subfed::role::local) chosen.push_back(t);
    }
    shown_executor(line, fmt::format("client {}", clients[c].key.client),
                   static_cast<double>(plans[c].bytes), options.threads)
        .parallel_for(static_cast<std::int64_t>(chosen.size()), [&](std::int64_t i) {
          const std::size_t t = chosen[static_cast<std::size_t>(i)];
          globals[t].visit([&]<class E>(const subfed::tensor_view<const E>& global) {
            const subfed::tensor_view<E> local(reinterpret_cast<E*>(to + plans[c].offsets[t]),
                                               subs[c].extents(subfed::tensor_id(t)));
            subfed::slice<E>(global, subs[c][subfed::tensor_id(t)], local);
          });
        });
    for (std::size_t o = 0; o < opaque.size(); ++o) {
      const subfed::byte_tensor& tensor = server.at(opaque[o]).tensor;
      std::memcpy(to + plans[c].offsets[net.tensors().size() + o], tensor.data(),
                  static_cast<std::size_t>(tensor.size_bytes()));
    }
    file.finish();
  }
  fmt::print("wrote {} files, {}, to {}\n", clients.size(), bytes_text(bytes), options.out);
  return 0;
}

int put_back(const file_options& options) {
  const checkpoint server(options.server);
  const subfed::model net = whole_model(options.model, server);
  if (options.updates.size() != 1) throw failure("One client's file is put back at a time.");
  const checkpoint file(options.updates[0]);
  const client_entry client = client_of(file);
  const std::string* const said = file.metadata("scheme");
  const submodels drawn(net, said != nullptr ? *said : options.scheme);
  const auto sub = drawn.of(client);
  aligned_views aligned;
  const auto olds = server_views(net, server, aligned);
  const auto locals = client_views(sub, file, olds, aligned);
  checkpoint_copy out(server, options.out);
  while (out.copy_some(std::size_t{1} << 24) > 0) {
  }
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    if (net.tensors()[t].role == subfed::role::local) continue;
    const auto to = out.view(server.at(net.tensors()[t].name));
    locals[t].visit([&]<class L>(const subfed::tensor_view<const L>& local) {
      to.visit([&]<class E>(const subfed::tensor_view<E>& global) {
        constexpr bool converts = subfed::averageable<L> && subfed::averageable<E>;
        if constexpr (std::is_same_v<L, E> || converts) {  // client_views lets no others pass
          subfed::scatter(local, sub[subfed::tensor_id(t)], global);
        }
      });
    });
  }
  out.finish();
  fmt::print("put client {} of round {} into {}\n", client.key.client, client.key.round,
             options.out);
  return 0;
}

}  // namespace tool
