// SPDX-License-Identifier: MIT
/// subfed cut and scatter: what clients hold of the server's model, into files and back.
#include <fmt/format.h>

#include <algorithm>
#include <common/failure.hpp>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <subfed/scatter.hpp>
#include <subfed/slice.hpp>
#include <system_error>
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

/// Some first indices of a tensor of a client; `begin` in bytes of the client's tensor.
struct piece {
  std::size_t tensor;
  std::int64_t first, last;
  std::size_t begin;
};

/// A client's tensors in pieces that stay in a cache, except of rows that are larger themselves.
std::vector<piece> pieces_of(const subfed::submodel& sub,
                             const subfed::tensor_views<const void>& globals) {
  constexpr std::int64_t most = std::int64_t{1} << 19;
  std::vector<piece> out;
  const auto& infos = sub.parent().tensors();
  for (std::size_t t = 0; t < infos.size(); ++t) {
    if (infos[t].role == subfed::role::local) continue;
    const auto extents = sub.extents(subfed::tensor_id(t));
    const std::int64_t rows = extents.empty() ? 1 : extents[0];
    std::int64_t row = globals[t].format().bits / 8;
    for (std::size_t r = 1; r < extents.size(); ++r) row *= extents[r];
    const std::int64_t step = (std::max)(std::int64_t{1}, most / (std::max)(std::int64_t{1}, row));
    for (std::int64_t first = 0; first < rows; first += step) {
      out.push_back({t, first, (std::min)(rows, first + step),
                     static_cast<std::size_t>(first) * static_cast<std::size_t>(row)});
    }
  }
  return out;
}

/// A selection's local indices `first` to `last` - 1 in the first dimension.
subfed::selection rows_of(const subfed::selection& all, std::int64_t first, std::int64_t last) {
  std::vector<subfed::selected_dimension> dimensions;
  for (int r = 0; r < all.rank(); ++r) dimensions.push_back(all.dimension(r));
  std::vector<subfed::run> runs;
  for (const subfed::run& r : dimensions[0].runs) {
    const std::int64_t begin = (std::max)(first, r.position);
    const std::int64_t end = (std::min)(last, r.position + r.length);
    if (begin < end) runs.push_back({begin - first, r.first + (begin - r.position), end - begin});
  }
  dimensions[0] = subfed::selected_dimension(dimensions[0].global_extent, last - first, runs);
  return subfed::selection(std::move(dimensions));
}

/// A piece's elements, in a buffer of this thread.
std::span<const std::byte> sliced(const subfed::submodel& sub,
                                  const subfed::tensor_views<const void>& globals, const piece& p) {
  static thread_local std::vector<std::max_align_t> buffer;
  const subfed::tensor_id tensor(p.tensor);
  auto extents = sub.extents(tensor);
  if (!extents.empty()) extents[0] = p.last - p.first;
  std::size_t bytes = static_cast<std::size_t>(globals[p.tensor].format().bits) / 8;
  for (const std::int64_t extent : extents) bytes *= static_cast<std::size_t>(extent);
  buffer.resize((std::max)(buffer.size(), bytes / sizeof(std::max_align_t) + 1));
  globals[p.tensor].visit([&]<class E>(const subfed::tensor_view<const E>& global) {
    const subfed::tensor_view<E> local(reinterpret_cast<E*>(buffer.data()), extents);
    if (extents.empty()) {
      subfed::slice<E>(global, sub[tensor], local);
    } else {
      subfed::slice<E>(global, rows_of(sub[tensor], p.first, p.last), local);
    }
  });
  return std::as_bytes(std::span(buffer)).first(bytes);
}

/// Throws where a client's file is one that is being read.
void refuse_inputs(const std::vector<std::filesystem::path>& names, const file_options& options,
                   const checkpoint& server) {
  std::vector<std::filesystem::path> inputs{options.server, options.model, options.clients};
  for (const checkpoint_part& part : server.parts()) inputs.push_back(part.file.path());
  for (const std::filesystem::path& name : names) {
    for (const std::filesystem::path& input : inputs) {
      std::error_code error;  // what is not there yet is no input
      if (!std::filesystem::equivalent(name, input, error)) continue;
      throw failure(fmt::format("{}: a client has the file {}, which is read; nothing is written.",
                                options.clients, input.string()));
    }
  }
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
  refuse_inputs(names, options, server);

  progress line(bytes);
  std::future<void> finishing;  // a file goes to the disk while the next one is cut
  for (std::size_t c = 0; c < clients.size(); ++c) {
    auto file = std::make_unique<output_file>(file_of(clients[c]), plans[c].bytes);
    file->write(0, std::as_bytes(std::span(plans[c].header)));
    const std::vector<piece> pieces = pieces_of(subs[c], globals);
    shown_executor(line, fmt::format("client {}", clients[c].key.client),
                   static_cast<double>(plans[c].bytes), options.threads)
        .parallel_for(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t i) {
          const piece& p = pieces[static_cast<std::size_t>(i)];
          file->write(plans[c].offsets[p.tensor] + p.begin, sliced(subs[c], globals, p));
        });
    for (std::size_t o = 0; o < opaque.size(); ++o) {
      const subfed::byte_tensor& tensor = server.at(opaque[o]).tensor;
      file->write(plans[c].offsets[net.tensors().size() + o],
                  {tensor.data(), static_cast<std::size_t>(tensor.size_bytes())});
    }
    if (finishing.valid()) finishing.get();
    finishing = std::async(std::launch::async, [f = std::move(file)] { f->finish(); });
  }
  finishing.get();
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
  const auto locals = client_views(sub, file, olds, aligned, subfed::content::parameters);
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
