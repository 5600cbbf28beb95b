// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include "configuration.hpp"
#include "failure.hpp"
#include "words.hpp"
#include "wrapped.hpp"

namespace trainer {
namespace {

/// The command line, then the configuration file.
class command_line {
 public:
  explicit command_line(const std::string& footer) {
    app_.get_formatter()->column_width(32);
    app_.footer(footer);
    app_.option_defaults()->always_capture_default();
  }

  /// The options that follow appear under this title in the help.
  void title(std::string text) { title_ = std::move(text); }
  /// An option that a file may set too.
  template <class T>
  CLI::Option* add(const std::string& name, T& variable, const std::string& about) {
    fields_.push_back({name, &variable});
    fields_.back().standard = variable;
    options_.push_back(add_typed_only(name, variable, about));
    return options_.back();
  }
  template <class T>
  CLI::Option* add_typed_only(const std::string& name, T& variable, const std::string& about) {
    if constexpr (std::is_same_v<T, bool>) {
      return app_.add_flag("--" + name, variable, about)->group(title_);
    } else {
      CLI::Option* option = app_.add_option("--" + name, variable, about)->group(title_);
      // CLI11 by itself reads numbers out of range as the nearest one, and -1 as 2^64 - 1.
      if constexpr (std::is_integral_v<T>) {
        option->check([](const std::string& text) -> std::string {
          if (common::number<T>(text)) return "";
          if (std::is_unsigned_v<T> && text.starts_with('-')) return text + " is negative";
          return text + " is not a whole number, or is out of range";
        });
      }
      return option;
    }
  }
  /// At most one of the two may be given.
  void exclude(std::string_view a, std::string_view b) {
    find(a).instead_of = b;
    find(b).instead_of = a;
  }

  /// False when it asked for help, which has then been printed.
  bool parse(int argc, const char* const* argv, const std::string& file) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      fmt::print("{}", wrapped(app_.help()));
      return false;
    } catch (const CLI::ParseError& error) {
      throw failure(fmt::format("{}; --help lists the options.", error.what()));
    }
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (options_[i]->count() > 0) fields_[i].from = origin::command_line;
    }
    if (!file.empty()) read_configuration(file, fields_);
    for (const field& f : fields_) {
      const auto* text = std::get_if<std::string*>(&f.variable);
      if (text == nullptr || is_utf8(**text)) continue;
      throw failure(fmt::format(
          "--{} is not UTF-8 text, so the configuration of the run cannot store it.", f.name));
    }
    for (const field& f : fields_) {
      if (!f.instead_of.empty() && f.is_given() && find(f.instead_of).is_given()) {
        throw failure(fmt::format("--{} and --{} cannot be used together.", f.name, f.instead_of));
      }
    }
    return true;
  }

  field& find(std::string_view name) {
    return *std::find_if(fields_.begin(), fields_.end(),
                         [&](const field& f) { return f.name == name; });
  }
  const std::vector<field>& fields() const { return fields_; }

 private:
  CLI::App app_{
      "Trains one model on clients of different capacity, by several methods, on Fashion-MNIST, "
      "and compares them in a table, in CSV files and in a picture.",
      "subfed_trainer"};
  std::string title_;
  std::vector<field> fields_;
  std::vector<CLI::Option*> options_;  // of the fields
};

void add_clients(command_line& line, options& o, words& w, double& dirichlet) {
  line.title("Clients");
  line.add("clients", o.cohort.clients, "The number of clients.");
  line.add("participation", o.cohort.participation,
           "The share of the clients that takes part in a round.");
  line.add("cohort-rounds", o.cohort.cohort_rounds,
           "For how many rounds in a row the same clients take part; 2 in [FedDrop, F.5], where "
           "each trains once with the probabilities that its own updates have given.");
  line.add("capacity-mix", w.mix,
           "The shares of the channels that clients can hold: uniform, with equal numbers of "
           "clients of 1, 1/2, 1/4, 1/8 and 1/16; income, with the same capacities by U.S. "
           "household incomes; two-class:RHO, where a share RHO of the clients has 1 and the "
           "rest 1/16; or a list such as 1:0.1,1/16:0.9 with a weight for each.");
  line.add("redraw-capacities", w.redrawn,
           "Every client draws a new capacity in every round; otherwise it keeps its capacity, "
           "and the shares of the mix are exact.");
  line.add("server-scale", o.server_scale,
           "How many times as many channels the server's model has as that of a client of "
           "capacity 1; no effect where all clients hold all of the server's model.");
  line.add("labels", o.labels,
           "How many of the 10 labels each client has: with 2 the clients differ strongly, with "
           "5 less, with 10 not at all.");
  line.add("dirichlet", dirichlet,
           "Instead of --labels: each client's proportions of labels are drawn from the "
           "Dirichlet distribution with this alpha. With small values the clients differ "
           "strongly.")
      ->default_str("");
  line.add("dirichlet-split", w.split,
           "client: as above, and all clients have the same number of images. class: each label "
           "is split over the clients by proportions from the distribution, as in [FedDrop], so "
           "that clients have different numbers of images, --samples on average.");
  line.add("samples", o.samples, "The maximum number of training images of a client.");
  line.exclude("labels", "dirichlet");
}

void add_training(command_line& line, options& o, words& w) {
  line.title("Training");
  line.add("norm", w.norm,
           "batch: the network has batch norm. none: it has no norm, but biases in its "
           "convolutions; this shows what batch norm hides, such as factors on activations and "
           "the size of initial weights.");
  line.add("rounds", o.rounds, "The number of training rounds.");
  line.add("local-epochs", o.local_epochs,
           "How often a client goes through its images in a round.");
  line.add("batch", o.batch, "The number of images in a mini-batch.");
  line.add("lr", o.lr, "The learning rate of the first rounds.");
  line.add("lr-schedule", w.schedule,
           "How the learning rate changes: constant, step (see --decay-at), or cosine, which "
           "lowers it to 0 along half a wave.");
  line.add("decay-at", w.decay_at,
           "After which shares of the rounds the step schedule multiplies the learning rate by "
           "0.1; rolex stands for 0.32,0.6 [Rolex, Table 8].");
  line.add("momentum", o.momentum, "The momentum of a client's SGD.");
  line.add("weight-decay", o.weight_decay, "The weight decay of a client's SGD.");
  line.add("absent-logits", w.absent,
           "How the loss treats the logits of labels that a client lacks: as zero, as "
           "minus-infinity, which leaves them out of the softmax, or trained, like all others.");
}

void add_server(command_line& line, options& o, words& w) {
  line.title("Server");
  line.add("average", w.average,
           "What the sum of the updates of a parameter is divided by: the weights of its holders, "
           "those of the whole cohort, or by-method, which leaves it to the method.");
  line.add("server-step", o.server_step,
           "How far the server moves from its old parameters to the average; 1 is the whole way.");
  line.add("weighting", w.weighting,
           "What the weight of an update is proportional to: none, examples, kept-size, updates, "
           "both (of the last two), or by-method, which leaves it to the method.");
  line.add("weight-each", w.weight_each,
           "Whether a client has one weight, or one for each element of its parameters: client "
           "or element.");
  line.add("server-optimizer", w.server,
           "What the server does with the averaged change: none, which just adds it, sgd, "
           "adagrad, adam or yogi.");
  line.add("server-lr", o.server_lr,
           "The learning rate of the server's optimizer; 0 selects its default.");
  line.add("server-momentum", o.server_momentum,
           "The momentum of the server's sgd, and beta1 of its adam and yogi.");
}

void add_methods(command_line& line, options& o, words& w, double& overlap) {
  line.title("Single methods");
  line.add("step", o.window_step, "FedRolex: by how many channels the window rolls per round.");
  line.add("overlap", overlap,
           "Instead of --step: the share of a window that the next one has in common with it.")
      ->default_str("");
  line.exclude("step", "overlap");
  line.add("seed-policy", w.seeds,
           "Federated Dropout: who draws new channels: client-and-round; client, which keeps "
           "them for the whole run; pool:S, which keeps one of S sets; pool-per-round:S, which "
           "picks one of S sets in each round; or shared:E, one set for all that changes every E "
           "rounds.");
  line.add("untied-skips", o.untied_skips,
           "Federated Dropout: the two ends of an identity skip draw their channels separately, "
           "so that unrelated ones are added, as in released code for [Rolex].");
  line.add("member-by", w.member_by,
           "The ensemble: which member a client trains: round, one that it draws in each round; "
           "client, one that it draws once for the run [Cheng, 4.1]; or number, the one given by "
           "its number.");
  line.add("members", o.members,
           "The ensemble: the number of members; 0 means as many as the smallest capacity "
           "implies.");
  line.add("widths", w.widths,
           "FjORD: the widths that are trained, ascending, separated by commas; without it, the "
           "capacities of the mix.");
  line.add("distillation", o.distillation,
           "FjORD: narrow widths also learn from the widest that the client holds.");
  line.add("alpha", o.distilled.alpha,
           "FjORD: the weight of the widest width against the labels in the distillation.");
  line.add("temperature", o.distilled.temperature,
           "FjORD: the temperature of the distillation's softmax.");
  line.add("flops-ratio", o.flops_ratio,
           "FedDrop and UniDrop: the share of the model's multiply-adds that a client performs.");
  line.add("thresholds", w.thresholds,
           "FedDrop and UniDrop: whether channels are drawn for each mini-batch, as in the "
           "paper, or once in each round, so that clients are sent only what they keep: batch or "
           "round.");
  line.add("proximal", o.proximal,
           "FedProx: mu, the weight of the distance to the server's model.");
}

void add_run(command_line& line, options& o, std::string& file) {
  line.title("The run");
  line.add("eval-every", o.eval_every,
           "After how many rounds the model is evaluated; it always is after the last.");
  line.add("checkpoint-every", o.checkpoint_every,
           "After how many rounds a checkpoint is written; 0 writes none.");
  line.add_typed_only(
      "resume", o.resume,
      "Continue from the checkpoints in the folder of --out, if there are any. --eval-every "
      "may change, and so may --rounds where the learning rates of the finished rounds stay "
      "the same (--lr-schedule constant).");
  line.add_typed_only(
      "overwrite", o.overwrite,
      "Remove an earlier run from the folder of --out and start over; without this or "
      "--resume such a folder is refused.");
  line.add("seed", o.cohort.seed,
           "The seed of everything random; results depend on it and on the options above, but "
           "not on --threads.");
  line.add("threads", o.threads, "How many clients are trained at a time.");
  line.add("device", o.device, "Where clients are trained: cpu or cuda.");
  line.add("data", o.data, "The folder with the four gzipped files of Fashion-MNIST.");
  line.add("out", o.out, "The folder for the CSV files and the picture.");
  line.add_typed_only(
          "config", file,
          "A JSON file with options, without dashes, as a run writes it; options on the command "
          "line take precedence.")
      ->default_str("");
}

/// Why an option has no effect beside the others, whatever the methods are; empty where it has.
std::string why_out_of_force(std::string_view name, const options& o) {
  if (name == "decay-at" && o.schedule != lr_schedule::step) {
    return "it needs --lr-schedule step";
  }
  if (name == "server-lr" && o.server == server_rule::none) {
    return "it needs a --server-optimizer";
  }
  if (name == "server-momentum" &&
      (o.server == server_rule::none || o.server == server_rule::adagrad)) {
    return "it needs --server-optimizer sgd, adam or yogi";
  }
  if (name == "redraw-capacities" && o.cohort.mix.classes.size() == 1) {
    return "the mix has one capacity";
  }
  if (name == "dirichlet-split" && !o.dirichlet) return "it needs --dirichlet";
  if (name == "absent-logits" && !o.dirichlet && o.labels == 10) {
    return "with --labels 10 no client lacks a label";
  }
  return "";
}

/// Why no method of the run reads an option; empty where one does.
std::string why_unread(std::string_view name, const options& o,
                       std::span<const method_name> known) {
  const auto is_run = [&](const method_name& m) {
    return std::find(o.methods.begin(), o.methods.end(), m.name) != o.methods.end();
  };
  std::vector<std::string_view> readers;
  for (const method_name& m : known) {
    const bool reads =
        name == "redraw-capacities" || name == "server-scale" ? m.cuts : m.reads(name);
    if (reads && is_run(m)) return "";
    if (reads) readers.emplace_back(m.name);
  }
  if (readers.empty()) return "";  // no option for single methods
  return fmt::format("it is for {}, and --method is {}", fmt::join(readers, ", "),
                     fmt::join(o.methods, ","));
}

}  // namespace

std::optional<options> parse_options(int argc, const char* const* argv,
                                     std::span<const method_name> known) {
  options o;
  o.cohort.seed = 1;
  o.threads = (std::max)(1u, std::thread::hardware_concurrency());
  words w;
  double dirichlet = 0, overlap = 0;
  std::string file, footer = "The methods, with a star those that run unless --method is given:\n";
  for (const method_name& m : known) {
    if (m.by_default) w.methods += (w.methods.empty() ? "" : ",") + m.name;
    footer += fmt::format("  {} {:<27} {}\n", m.by_default ? '*' : ' ', m.name, m.about);
  }

  command_line line(footer);
  line.title("Methods");
  line.add("method", w.methods,
           "Which methods to run, separated by commas, in this order; see below.")
      ->default_str("");
  add_clients(line, o, w, dirichlet);
  add_training(line, o, w);
  add_server(line, o, w);
  add_methods(line, o, w, overlap);
  add_run(line, o, file);
  if (!line.parse(argc, argv, file)) return std::nullopt;

  if (line.find("dirichlet").is_given()) o.dirichlet = dirichlet;
  if (line.find("overlap").is_given()) o.overlap = overlap;
  if (o.resume && o.overwrite) throw failure("--resume and --overwrite cannot be used together.");
  if (!o.distillation) {
    const origin off = line.find("distillation").from;
    for (const char* name : {"alpha", "temperature"}) {
      // --distillation=false switches off what a file says of it.
      const origin from = line.find(name).from;
      if (from == origin::standard || (from == origin::file && off == origin::command_line))
        continue;
      throw failure(fmt::format("--{} needs --distillation.", name));
    }
    o.distilled = {};
  }
  settle(o, w, known);

  for (const field& f : line.fields()) {
    std::string why = why_out_of_force(f.name, o);
    if (why.empty()) why = why_unread(f.name, o, known);
    if (!f.is_given() || why.empty()) continue;
    if (f.from == origin::command_line) {
      throw failure(fmt::format("--{} would have no effect: {}.", f.name, why));
    }
    if (f.name == "alpha" || f.name == "temperature" || is_standard(f)) continue;
    o.notes.push_back(fmt::format("{}: \"{}\" has no effect: {}.", file, f.name, why));
  }

  const auto in_force = [&](std::string_view name) {
    if (name == "labels" || name == "dirichlet")
      return (name == "dirichlet") == o.dirichlet.has_value();
    if (name == "step" || name == "overlap") return (name == "overlap") == o.overlap.has_value();
    if (!o.distillation && (name == "alpha" || name == "temperature")) return false;
    return why_out_of_force(name, o).empty();
  };
  const auto is_read = [&](std::string_view name) {
    return in_force(name) && why_unread(name, o, known).empty();
  };
  const auto decides = [&](std::string_view name) {
    constexpr std::string_view others[] = {"method",  "eval-every", "checkpoint-every",
                                           "threads", "data",       "out"};
    return in_force(name) &&
           std::find(std::begin(others), std::end(others), name) == std::end(others);
  };
  o.config = write_configuration(line.fields(), layout::pretty, is_read);
  o.identity = write_configuration(line.fields(), layout::compact, decides);
  return o;
}

}  // namespace trainer
