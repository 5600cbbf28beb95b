// SPDX-License-Identifier: MIT
/// subfed info, check, diff and cost: what is in files, whether it fits a model, what has changed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <common/failure.hpp>
#include <common/text.hpp>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <subfed/adapt/model_file.hpp>
#include <subfed/cost.hpp>
#include <subfed/proof/doubts.hpp>

#include "file_commands.hpp"

namespace tool {
namespace {

using common::failure;
using nlohmann::ordered_json;

/// Rows under a head, columns as wide as they have to be; numbers to the right.
void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = (std::max)(widths[c], row[c].size());
  }
  for (const auto& row : rows) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (std::size_t c = 1; c < row.size(); ++c) {
      line += fmt::format("  {:>{}}", row[c], widths[c]);
    }
    fmt::print("{}\n", line);
  }
}

/// How two tensors of one shape and type differ.
struct change {
  std::int64_t elements = 0;
  std::int64_t changed = 0;
  double largest = 0;  // |b - a|; NaN where one is not a number
  double root_mean_square = 0;
};

template <class E>
double number_of(E x) {
  if constexpr (subfed::averageable<E>) {
    return subfed::scalar_traits<E>::load(x);
  } else {
    return static_cast<double>(x);
  }
}

/// touched: of each row-major element whether its bytes differ, where it is not null.
change compare(const subfed::tensor_view<const void>& before,
               const subfed::tensor_view<const void>& after,
               const std::function<void(std::int64_t)>& touched) {
  change out;
  before.visit([&]<class E>(const subfed::tensor_view<const E>& a) {
    const E* const from = a.data_handle();
    const E* const to = static_cast<const E*>(after.data_handle());
    out.elements = a.size();
    double squares = 0;
    for (std::int64_t i = 0; i < out.elements; ++i) {
      if (std::memcmp(from + i, to + i, sizeof(E)) == 0) continue;
      ++out.changed;
      const double step = number_of(to[i]) - number_of(from[i]);
      out.largest = std::isnan(step) || std::isnan(out.largest)
                        ? std::nan("")
                        : (std::max)(out.largest, std::abs(step));
      squares += step * step;
      if (touched) touched(i);
    }
    if (out.elements > 0) {
      out.root_mean_square = std::sqrt(squares / static_cast<double>(out.elements));
    }
  });
  return out;
}

/// Of each group, which nodes have an element that changed.
class touched_nodes {
 public:
  explicit touched_nodes(const subfed::model& net) : net_(net) {
    for (const auto& group : net.groups()) {
      nodes_.emplace_back(static_cast<std::size_t>(group.extent), false);
    }
    for (const auto& info : net.tensors()) {
      places_.emplace_back();
      for (const subfed::dimension& d : info.dimensions) places_.back().push_back(places_of(d));
    }
  }
  void element(std::size_t tensor, std::int64_t number) {
    const auto& info = net_.tensors()[tensor];
    for (std::size_t r = info.extents.size(); r-- > 0;) {
      const std::int64_t index = number % info.extents[r];
      number /= info.extents[r];
      const auto& [group, node] = places_[tensor][r][static_cast<std::size_t>(index)];
      if (group < nodes_.size()) nodes_[group][static_cast<std::size_t>(node)] = true;
    }
  }
  std::int64_t count(std::size_t group) const {
    return std::count(nodes_[group].begin(), nodes_[group].end(), true);
  }

 private:
  using place = std::pair<std::size_t, std::int64_t>;  // group and node; no group: whole

  std::vector<place> places_of(const subfed::dimension& d) const {
    std::vector<place> out;
    for (const auto& part : d.parts()) {
      if (part.group >= net_.groups().size()) {
        out.insert(out.end(), static_cast<std::size_t>(part.whole), {net_.groups().size(), 0});
        continue;
      }
      const std::int64_t nodes = net_.groups()[part.group].extent;
      for (std::int64_t copy = 0; nodes != 0 && copy < part.repeat; ++copy) {
        for (std::int64_t node = 0; node < nodes; ++node) {
          out.insert(out.end(), static_cast<std::size_t>(part.block), {part.group, node});
        }
      }
    }
    return out;
  }

  const subfed::model& net_;
  std::vector<std::vector<bool>> nodes_;
  std::vector<std::vector<std::vector<place>>> places_;  // of tensor, dimension, index
};

}  // namespace

void print_json(const ordered_json& value) {
  fmt::print("{}\n", value.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

int info(const std::vector<std::string>& files, bool json) {
  ordered_json all = ordered_json::array();
  for (const std::string& path : files) {
    const checkpoint file(path);
    std::int64_t parameters = 0;
    std::vector<std::vector<std::string>> rows = {{"tensor", "type", "shape", "bytes"}};
    ordered_json tensors = ordered_json::array();
    for (const stored_tensor& t : file.tensors()) {
      const auto extents = t.tensor.extents();
      std::int64_t elements = 1;
      for (const std::int64_t extent : extents) elements *= extent;
      parameters += elements;
      rows.push_back({t.name, dtype_of(t.tensor), shape_text(extents),
                      bytes_text(static_cast<double>(t.tensor.size_bytes()))});
      tensors.push_back({{"name", t.name},
                         {"dtype", dtype_of(t.tensor)},
                         {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
                         {"bytes", t.tensor.size_bytes()}});
    }
    if (json) {
      ordered_json metadata = ordered_json::object();
      if (!file.parts().empty()) {
        for (const auto& [key, value] : file.parts()[0].view.metadata()) metadata[key] = value;
      }
      all.push_back({{"file", path},
                     {"bytes", file.bytes()},
                     {"elements", parameters},
                     {"metadata", metadata},
                     {"tensors", tensors}});
      continue;
    }
    fmt::print("{}: {} tensors in {} file{}, {} elements, {}\n", path, file.tensors().size(),
               file.parts().size(), file.parts().size() == 1 ? "" : "s", parameters,
               bytes_text(static_cast<double>(file.bytes())));
    print_table(rows);
    if (!file.parts().empty()) {
      for (const auto& [key, value] : file.parts()[0].view.metadata()) {
        fmt::print("{}: {}\n", key, value);
      }
    }
  }
  if (json) print_json(all);
  return 0;
}

int check(const file_options& options, const std::vector<std::string>& files) {
  const subfed::model net = common::about_file(
      options.model, [&] { return subfed::read_model(common::read_file(options.model)); });
  std::vector<std::string> wrong;
  for (const subfed::doubt& d : subfed::find_doubts(net)) {
    wrong.push_back(fmt::format("{}: {}", options.model, d.text));
  }
  for (const std::string& path : files) {
    const checkpoint file(path);
    for (const auto& info : net.tensors()) {
      const stored_tensor* const found = file.find(info.name);
      if (found == nullptr) {
        wrong.push_back(fmt::format("{}: there is no tensor \"{}\"", path, info.name));
        continue;
      }
      const auto extents = found->tensor.extents();
      if (!std::equal(extents.begin(), extents.end(), info.extents.begin(), info.extents.end())) {
        wrong.push_back(fmt::format("{}: tensor \"{}\" has the shape {}, expected {}", path,
                                    info.name, shape_text(extents), shape_text(info.extents)));
      } else if (!found->tensor.has_elements()) {
        wrong.push_back(
            fmt::format("{}: tensor \"{}\" has elements of type {}, which cannot be "
                        "averaged",
                        path, info.name, found->tensor.element_type()));
      }
    }
    for (const stored_tensor& t : file.tensors()) {
      const auto& tensors = net.tensors();
      const bool described = std::any_of(tensors.begin(), tensors.end(),
                                         [&](const auto& info) { return info.name == t.name; });
      if (!described) {
        fmt::print("{}: tensor \"{}\" is not described: it is whole for every client\n", path,
                   t.name);
      }
    }
  }
  for (const std::string& text : wrong) fmt::print("{}\n", text);
  fmt::print("{} tensors in {} groups: {}\n", net.tensors().size(), net.groups().size(),
             wrong.empty() ? "nothing wrong" : fmt::format("{} wrong", wrong.size()));
  return wrong.empty() ? 0 : 2;
}

int diff(const std::string& before_path, const std::string& after_path, const std::string& model,
         bool json) {
  const checkpoint before(before_path);
  const checkpoint after(after_path);
  std::optional<subfed::model> net;
  std::optional<touched_nodes> nodes;
  if (!model.empty()) {
    net = common::about_file(model, [&] { return subfed::read_model(common::read_file(model)); });
    nodes.emplace(*net);
  }
  aligned_views aligned;
  bool same = true;
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "elements", "changed", "largest change", "root mean square"}};
  std::vector<std::string> notes;
  ordered_json out = {{"tensors", ordered_json::array()}, {"notes", ordered_json::array()}};
  for (const stored_tensor& a : before.tensors()) {
    const stored_tensor* const b = after.find(a.name);
    if (b == nullptr) {
      notes.push_back(fmt::format("\"{}\" is only in {}", a.name, before_path));
      continue;
    }
    const auto extents = a.tensor.extents();
    const auto others = b->tensor.extents();
    if (!std::equal(extents.begin(), extents.end(), others.begin(), others.end()) ||
        dtype_of(a.tensor) != dtype_of(b->tensor)) {
      notes.push_back(fmt::format("\"{}\" is {} of type {} in the one, {} of type {} in the other",
                                  a.name, shape_text(extents), dtype_of(a.tensor),
                                  shape_text(others), dtype_of(b->tensor)));
      continue;
    }
    const auto size = static_cast<std::size_t>(a.tensor.size_bytes());
    if (size == 0 || std::memcmp(a.tensor.data(), b->tensor.data(), size) == 0) continue;
    same = false;
    if (!a.tensor.has_elements() || a.tensor.rank() > subfed::max_rank) {
      notes.push_back(fmt::format("\"{}\" has other bytes", a.name));
      continue;
    }
    std::function<void(std::int64_t)> touched;
    if (net) {
      const auto& tensors = net->tensors();
      const auto at = std::find_if(tensors.begin(), tensors.end(),
                                   [&](const auto& info) { return info.name == a.name; });
      if (at != tensors.end() &&
          std::equal(extents.begin(), extents.end(), at->extents.begin(), at->extents.end())) {
        const auto t = static_cast<std::size_t>(at - tensors.begin());
        touched = [&nodes, t](std::int64_t i) { nodes->element(t, i); };
      }
    }
    const change found = compare(aligned.view(before, a), aligned.view(after, *b), touched);
    rows.push_back({a.name, std::to_string(found.elements), std::to_string(found.changed),
                    fmt::format("{:.3g}", found.largest),
                    fmt::format("{:.3g}", found.root_mean_square)});
    out["tensors"].push_back({{"name", a.name},
                              {"elements", found.elements},
                              {"changed", found.changed},
                              {"largest_change", found.largest},
                              {"root_mean_square", found.root_mean_square}});
  }
  for (const stored_tensor& b : after.tensors()) {
    if (before.find(b.name) == nullptr) {
      notes.push_back(fmt::format("\"{}\" is only in {}", b.name, after_path));
    }
  }
  same = same && notes.empty();
  for (const std::string& note : notes) out["notes"].push_back(note);
  std::vector<std::vector<std::string>> groups = {{"group", "nodes", "changed"}};
  if (net) {
    out["groups"] = ordered_json::array();
    for (std::size_t g = 0; g < net->groups().size(); ++g) {
      const auto& group = net->groups()[g];
      groups.push_back({group.name, std::to_string(group.extent), std::to_string(nodes->count(g))});
      out["groups"].push_back(
          {{"name", group.name}, {"nodes", group.extent}, {"changed", nodes->count(g)}});
    }
  }
  if (json) {
    print_json(out);
    return same ? 0 : 2;
  }
  if (rows.size() > 1) print_table(rows);
  for (const std::string& note : notes) fmt::print("{}\n", note);
  if (net && rows.size() > 1) {
    fmt::print("\n");
    print_table(groups);
  }
  if (same) fmt::print("no difference\n");
  return same ? 0 : 2;
}

int cost(const file_options& options, const std::vector<std::string>& capacities) {
  const subfed::model net = common::about_file(
      options.model, [&] { return subfed::read_model(common::read_file(options.model)); });
  std::vector<std::int64_t> sizes;
  if (!options.server.empty()) {
    const checkpoint server(options.server);
    for (const auto& info : net.tensors()) {
      sizes.push_back(server.at(info.name).tensor.format().bits / 8);
    }
  }
  const submodels drawn(net, options.scheme);
  const std::int64_t all = subfed::parameters(subfed::submodel::full(net));
  std::vector<std::vector<std::string>> rows = {{"capacity", "parameters", "share", "down", "up"}};
  ordered_json out = ordered_json::array();
  for (const std::string& text : capacities) {
    client_entry client;
    client.key = {.seed = options.seed,
                  .round = options.round,
                  .client = 0,
                  .capacity = common::parse_capacity(text)};
    const subfed::submodel sub = drawn.of(client);
    const std::int64_t held = subfed::parameters(sub);
    const auto bytes = subfed::traffic(sub, {.tensor_element_bytes = sizes});
    const double share = all > 0 ? static_cast<double>(held) / static_cast<double>(all) : 0;
    rows.push_back({text, std::to_string(held), fmt::format("{:.2f} %", 100 * share),
                    bytes_text(static_cast<double>(bytes.down)),
                    bytes_text(static_cast<double>(bytes.up))});
    out.push_back({{"capacity", text},
                   {"parameters", held},
                   {"share", share},
                   {"bytes_down", bytes.down},
                   {"bytes_up", bytes.up}});
  }
  if (options.json) {
    print_json(out);
  } else {
    print_table(rows);
  }
  return 0;
}

}  // namespace tool
