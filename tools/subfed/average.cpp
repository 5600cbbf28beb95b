// SPDX-License-Identifier: MIT
/// subfed average: the clients' files into the server's model.
#include <fmt/format.h>

#include <algorithm>
#include <common/failure.hpp>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <subfed/average/cohort.hpp>

#include "file_commands.hpp"
#include "progress.hpp"

namespace tool {
namespace {

using common::failure;

/// The files named, and those in the folders named, by name.
std::vector<std::filesystem::path> files_of(const std::vector<std::string>& given) {
  std::vector<std::filesystem::path> out;
  for (const std::string& path : given) {
    if (!std::filesystem::is_directory(path)) {
      out.emplace_back(path);
      continue;
    }
    std::vector<std::filesystem::path> found;
    std::error_code error;
    for (std::filesystem::directory_iterator at(path, error), end; at != end; at.increment(error)) {
      const auto kind = at->path().extension();
      if (kind == ".safetensors" || kind == ".npz") found.push_back(at->path());
    }
    if (error) throw common::detail::cannot("read", path, error.value());
    std::sort(found.begin(), found.end());
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

/// One client's file, opened and found to fit.
struct opened_update {
  checkpoint file;
  aligned_views aligned;
  subfed::submodel sub;
  subfed::tensor_views<const void> views;
  double weight;
};

struct left_out_file {
  std::string file, why;
};

const char* fate_text(subfed::fate fate) {
  switch (fate) {
    case subfed::fate::taken:
      return "taken";
    case subfed::fate::late:
      return "of an earlier round";
    case subfed::fate::early:
      return "of a later round";
    case subfed::fate::repeated:
      return "a second one of its client";
    case subfed::fate::out_of_bound:
      return "beyond the bound of the sums";
    case subfed::fate::non_finite:
      break;
  }
  return "not finite";
}

nlohmann::ordered_json json_of(const subfed::average_report& report,
                               const std::vector<left_out_file>& bad,
                               const std::vector<std::string>& opaque) {
  nlohmann::ordered_json out = {{"clients", report.clients},
                                {"held_elements", report.held},
                                {"unheld_elements", report.unheld},
                                {"kept_elements", report.kept},
                                {"skipped_elements", report.skipped_elements},
                                {"overflowed_elements", report.overflowed},
                                {"kept_tensors", opaque},
                                {"left_out", nlohmann::ordered_json::array()},
                                {"bad_files", nlohmann::ordered_json::array()}};
  for (const subfed::update_outcome& o : report.left_out) {
    out["left_out"].push_back({{"client", o.client},
                               {"round", o.round},
                               {"why", fate_text(o.fate)},
                               {"tensor", o.tensor},
                               {"element", o.element}});
  }
  for (const left_out_file& b : bad) out["bad_files"].push_back({{"file", b.file}, {"why", b.why}});
  return out;
}

/// The updates' files with what each client holds; clients named in a list, or by the files themselves.
std::list<opened_update> open_updates(const file_options& options, const subfed::model& net,
                                      const subfed::tensor_views<const void>& globals,
                                      std::vector<left_out_file>& bad) {
  std::vector<client_entry> clients;
  if (!options.clients.empty()) {
    clients = read_clients(options.clients, options.round, options.seed);
    for (const client_entry& c : clients) {
      if (c.file.empty()) {
        throw failure(fmt::format("{}: client {} has no file.", options.clients, c.key.client));
      }
    }
    if (!options.updates.empty()) {
      throw failure("Either --clients lists the updates, or they are named; not both.");
    }
  } else {
    for (auto& file : files_of(options.updates)) clients.push_back({{}, {}, 1, file});
  }
  if (clients.empty()) throw failure("No updates are named.");

  std::map<std::string, submodels> schemes;
  schemes.try_emplace(options.scheme, net, options.scheme);
  std::list<opened_update> out;
  for (client_entry entry : clients) {
    try {
      checkpoint file(entry.file);
      std::string scheme = options.scheme;
      if (options.clients.empty()) {
        entry = client_of(file);
        if (const std::string* const said = file.metadata("scheme")) scheme = *said;
      }
      const auto sub = common::about_file(entry.file, [&] {
        return schemes.try_emplace(scheme, net, scheme).first->second.of(entry);
      });
      aligned_views aligned;
      auto views = client_views(sub, file, globals, aligned, options.averaging.content);
      out.push_back({std::move(file), std::move(aligned), sub, std::move(views), entry.weight});
    } catch (const failure& wrong) {
      if (!options.skip_bad) throw;
      bad.push_back({entry.file.string(), wrong.what()});
    }
  }
  return out;
}

/// The tensors of which every element gets a new value that does not depend on the old one, sorted:
/// one client with a weight holds all of them.
std::vector<std::string> rewritten_tensors(const subfed::model& net,
                                           const subfed::tensor_views<const void>& globals,
                                           const std::vector<subfed::update<void>>& updates,
                                           const subfed::average_options& how) {
  std::vector<std::string> out;
  const bool from_scratch = how.divide_by == subfed::divisor::holders &&
                            how.content == subfed::content::parameters && how.step == 1 &&
                            (how.on_non_finite == subfed::non_finite::propagate ||
                             how.on_non_finite == subfed::non_finite::refuse) &&
                            how.on_late == subfed::late_update::refuse &&
                            how.on_repeated == subfed::repeated_update::refuse;
  if (!from_scratch) return out;
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    const auto& info = net.tensors()[t];
    if (info.role != subfed::role::parameter && info.role != subfed::role::statistic) continue;
    const subfed::number_kind kind = globals[t].format().kind;
    if (kind != subfed::number_kind::floating && kind != subfed::number_kind::brain) continue;
    const auto holds_all = [&](const subfed::update<void>& u) {
      return u.weight > 0 && u.sub.extents(subfed::tensor_id(t)) == info.extents;
    };
    if (std::any_of(updates.begin(), updates.end(), holds_all)) out.push_back(info.name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

int average(const file_options& options) {
  const checkpoint server(options.server);
  const subfed::model net = whole_model(options.model, server);
  const std::vector<std::string> opaque = opaque_tensors(server);
  aligned_views aligned;
  const auto olds = server_views(net, server, aligned);
  std::vector<left_out_file> bad;
  const auto opened = open_updates(options, net, olds, bad);

  double update_bytes = 0;
  std::vector<subfed::update<void>> updates;
  for (const opened_update& u : opened) {
    update_bytes += static_cast<double>(u.file.bytes());
    updates.push_back({u.sub, u.views, u.weight});
  }
  const double model_bytes = static_cast<double>(server.bytes());
  if (options.dry_run) {
    fmt::print(
        "{} updates of {} would be read and {} be averaged into {} tensors; {} would be written "
        "to {}. Memory: pages of these files, which the system takes back when it needs them.\n",
        updates.size() + bad.size(), bytes_text(update_bytes), updates.size(), net.tensors().size(),
        bytes_text(model_bytes), options.out);
    for (const left_out_file& b : bad) fmt::print("left out: {}\n", b.why);
    return 0;
  }

  checkpoint_copy out(server, options.out,
                      rewritten_tensors(net, olds, updates, options.averaging));
  progress line(static_cast<double>(out.bytes()) + model_bytes + update_bytes);
  while (const std::size_t copied = out.copy_some(std::size_t{1} << 24)) {
    line.add(static_cast<double>(copied));
    line.show("copying the old model");
  }
  std::vector<subfed::tensor_view<void>> globals;
  for (const auto& info : net.tensors()) globals.push_back(out.view(server.at(info.name)));
  subfed::average_options how = options.averaging;
  if (options.one_round) how.round = options.round;
  const auto report = subfed::average_cohort<void>(
      net, updates, subfed::tensor_views<void>(globals), how,
      shown_executor(line, "averaging", model_bytes + update_bytes, options.threads));
  line.show("writing to the disk");
  out.finish();

  if (options.json) {
    auto text = json_of(report, bad, opaque);
    text["seconds"] = line.elapsed();
    print_json(text);
    return 0;
  }
  for (const left_out_file& b : bad) fmt::print("left out: {}\n", b.why);
  for (const subfed::update_outcome& o : report.left_out) {
    fmt::print("left out: client {} of round {}: {}{}\n", o.client, o.round, fate_text(o.fate),
               o.tensor.empty() ? "" : fmt::format(" in \"{}\", element {}", o.tensor, o.element));
  }
  const std::int64_t left_out =
      report.skipped_clients + report.late_clients + report.repeated_clients;
  const auto listed = static_cast<std::int64_t>(report.left_out.size());
  if (left_out > listed) fmt::print("left out: {} more\n", left_out - listed);
  if (report.skipped_elements > 0) {
    fmt::print("left out: {} values that are not finite\n", report.skipped_elements);
  }
  if (report.overflowed > 0) {
    fmt::print("infinite: {} results that are too large for the type of their tensor\n",
               report.overflowed);
  }
  for (const std::string& name : opaque)
    fmt::print("kept: \"{}\", of a type without numbers\n", name);
  fmt::print(
      "{} updates, {} elements averaged, {} held by nobody, {} kept; {} in {:.1f} s; wrote {}\n",
      report.clients, report.held, report.unheld, report.kept,
      bytes_text(model_bytes + update_bytes), line.elapsed(), options.out);
  return 0;
}

}  // namespace tool
