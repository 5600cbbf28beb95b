// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <common/mix.hpp>
#include <common/text.hpp>
#include <filesystem>
#include <string_view>
#include <thread>

#include "check_options.hpp"
#include "command_line.hpp"
#include "configuration.hpp"
#include "failure.hpp"
#include "ranks.hpp"

namespace trainer {
namespace {

using common::number;
using common::pieces;

const choices<lr_schedule> lr_schedules = {{"constant", lr_schedule::constant},
                                           {"step", lr_schedule::step},
                                           {"cosine", lr_schedule::cosine}};

/// A list as it is typed.
template <class T>
std::string joined(const std::vector<T>& list) {
  return fmt::format("{}", fmt::join(list, ","));
}

std::vector<std::string> parse_methods(const std::string& text,
                                       std::span<const method_name> known) {
  std::vector<std::string> out;
  for (const std::string& name : pieces(text)) {
    const auto is_it = [&](const method_name& m) { return m.name == name; };
    if (std::none_of(known.begin(), known.end(), is_it)) {
      std::vector<std::string_view> names;
      for (const method_name& m : known) names.emplace_back(m.name);
      throw failure(fmt::format("There is no method \"{}\"; the methods are {}.", name,
                                fmt::join(names, ", ")));
    }
    if (std::find(out.begin(), out.end(), name) != out.end()) {
      throw failure(fmt::format("The method \"{}\" is given twice.", name));
    }
    out.push_back(name);
  }
  return out;
}

subfed::seed_policy parse_seed_policy(const std::string& text) {
  if (text == "client-and-round") return subfed::seed_policy::per_client_and_round();
  if (text == "client") return subfed::seed_policy::per_client();
  const auto words = pieces(text, ':');
  const auto count = words.size() == 2 ? number<std::int64_t>(words[1]) : std::nullopt;
  if (count && *count >= 1 && words[0] == "pool") return subfed::seed_policy::pool(*count);
  if (count && *count >= 1 && words[0] == "pool-per-round") {
    return subfed::seed_policy::pool_per_round(*count);
  }
  if (count && *count >= 1 && words[0] == "shared") return subfed::seed_policy::shared(*count);
  throw failure(
      fmt::format("--seed-policy is \"{}\", but client-and-round, client, or pool:, "
                  "pool-per-round: or shared: with a number of at least 1 is expected.",
                  text));
}

void add_clients(command_line& line, options& o) {
  line.title("Clients");
  line.add("clients", o.cohort.clients, "The number of clients.");
  line.add("participation", o.cohort.participation,
           "The share of the clients that takes part in a round.");
  line.add("cohort-rounds", o.cohort.cohort_rounds,
           "For how many rounds in a row the same clients take part; 2 in [FedDrop, F.5], where "
           "each trains once with the probabilities that its own updates have given.");
  line.add_as<std::string>(
      "capacity-mix", o.mix,
      "The shares of the channels that clients can hold: uniform, with equal numbers of "
      "clients of 1, 1/2, 1/4, 1/8 and 1/16; income, with the same capacities by U.S. "
      "household incomes; two-class:RHO, where a share RHO of the clients has 1 and the "
      "rest 1/16; or a list such as 1:0.1,1/16:0.9 with a weight for each.",
      [&o](std::string& text) {
        const common::named_mix mixed = common::parse_mix(text);
        o.cohort.mix = mixed.mix;
        o.mix = text = mixed.text;
      });
  using assignment = subfed::capacity_assignment;
  line.add_as<bool>(
      "redraw-capacities", false,
      "Every client draws a new capacity in every round; otherwise it keeps its capacity, "
      "and the shares of the mix are exact.",
      [&o](bool& redrawn) {
        o.cohort.capacities = redrawn ? assignment::redrawn : assignment::fixed;
      });
  line.add("server-scale", o.server_scale,
           "How many times as many channels the server's model has as that of a client of "
           "capacity 1; no effect where all clients hold all of the server's model.");
  line.add("labels", o.labels,
           "How many of the 10 labels each client has: with 2 the clients differ strongly, with "
           "5 less, with 10 not at all.");
  line.add_optional("dirichlet", o.dirichlet,
                    "Instead of --labels: each client's proportions of labels are drawn from the "
                    "Dirichlet distribution with this alpha. With small values the clients differ "
                    "strongly.");
  line.add_choice(
      "dirichlet-split", o.split_by_class, {{"client", false}, {"class", true}},
      "client: as above, and all clients have the same number of images. class: each label "
      "is split over the clients by proportions from the distribution, as in [FedDrop], so "
      "that clients have different numbers of images, --samples on average.");
  line.add("samples", o.samples,
           "The maximum number of training images of a client, or of sequences: of 64 characters "
           "or 20 words.");
  line.exclude("labels", "dirichlet");
}

void add_training(command_line& line, options& o) {
  line.title("Training");
  line.add_choice("model", o.model,
                  {{"small", model_kind::small},
                   {"pre-resnet18", model_kind::pre_resnet18},
                   {"lenet", model_kind::lenet},
                   {"cnn", model_kind::cnn},
                   {"char-lstm", model_kind::char_lstm},
                   {"transformer", model_kind::transformer}},
                  "The network. For images: small, a pre-activation ResNet of two blocks; "
                  "pre-resnet18, the network of [Rolex], some 200 times as much work; or, without "
                  "batch norm, lenet, that of [FedDrop], and cnn, that of [Cheng] in its size S; "
                  "--width 4 and 8 make it M and L. For a text, of which each client "
                  "has a book or a part of one: char-lstm, the LSTM of [FedDrop], which guesses "
                  "the next character; or transformer, that of [Rolex], which guesses the next "
                  "word.");
  line.add("vocabulary", o.vocabulary,
           "How many words the transformer knows, the most frequent ones; all others are one that "
           "it reads and never has to guess.");
  line.add("width", o.width, "How many times the channels that the network has by itself.");
  line.add_choice(
      "norm", o.norm, {{"batch", norm_kind::batch}, {"none", norm_kind::none}},
      "batch: the network has batch norm. none: it has no norm, but biases in its "
      "convolutions; this shows what batch norm hides, such as factors on activations and "
      "the size of initial weights.");
  line.add_choice(
      "scaler", o.scaler, {{"width", true}, {"none", false}},
      "width: in training each hidden layer's result is multiplied by 1 / capacity, so "
      "that activations are as large as in the whole model [HeteroFL]; none: it is not.");
  line.add("rounds", o.rounds, "The number of training rounds.");
  line.add("local-epochs", o.local_epochs,
           "How often a client goes through its images in a round.");
  line.add("batch", o.batch, "The number of images in a mini-batch.");
  line.add("lr", o.lr, "The learning rate of the first rounds.");
  line.add_choice(
      "lr-schedule", o.schedule, lr_schedules,
      "How the learning rate changes: constant, step (see --decay-at), or cosine, which "
      "lowers it to 0 along half a wave.");
  line.add_as<std::string>(
      "decay-at", joined(o.decay_at),
      "After which shares of the rounds the step schedule multiplies the learning rate by "
      "0.1; rolex stands for 0.32,0.6 [Rolex, Table 8].",
      [&o](std::string& text) {
        o.decay_at = parse_decay_at(text);
        text = joined(o.decay_at);
      });
  line.add("momentum", o.momentum, "The momentum of a client's SGD.");
  line.add("weight-decay", o.weight_decay, "The weight decay of a client's SGD.");
  line.add_choice(
      "absent-logits", o.absent,
      {{"zero", absent_classes::zero},
       {"minus-infinity", absent_classes::minus_infinity},
       {"trained", absent_classes::trained}},
      "How the loss treats the logits of labels that a client lacks: as zero, as "
      "minus-infinity, which leaves them out of the softmax, or trained, like all others.");
}

void add_server(command_line& line, options& o) {
  line.title("Server");
  line.add_choice(
      "average", o.divide_by,
      {{"by-method", std::nullopt},
       {"holders", subfed::divisor::holders},
       {"cohort", subfed::divisor::cohort}},
      "What the sum of the updates of a parameter is divided by: the weights of its holders, "
      "those of the whole cohort, or by-method, which leaves it to the method.");
  line.add("server-step", o.server_step,
           "How far the server moves from its old parameters to the average; 1 is the whole way.");
  line.add_choice(
      "weighting", o.weights,
      {{"by-method", weight_rule::by_method},
       {"none", weight_rule::none},
       {"examples", weight_rule::examples},
       {"kept-size", weight_rule::kept_size},
       {"updates", weight_rule::updates},
       {"both", weight_rule::both}},
      "What the weight of an update is proportional to: none, examples, kept-size, updates, "
      "both (of the last two), or by-method, which leaves it to the method.");
  line.add_choice(
      "weight-each", o.weights_by_element, {{"client", false}, {"element", true}},
      "Whether a client has one weight, or one for each element of its parameters: client "
      "or element.");
  line.add_choice(
      "sums", o.fixed_sums, {{"double", false}, {"fixed-point", true}},
      "What updates are added in: double, or fixed-point, 64-bit integers whose sums do "
      "not depend on the order. With fixed-point the ranks of mpirun add up their own "
      "clients; otherwise they send each other all trained networks.");
  line.add(
      "sums-bound", o.sums_bound,
      "The largest size of a parameter or statistic with --sums fixed-point; an update beyond it "
      "ends the run.");
  line.add_choice("server-optimizer", o.server,
                  {{"none", server_rule::none},
                   {"sgd", server_rule::sgd},
                   {"adagrad", server_rule::adagrad},
                   {"adam", server_rule::adam},
                   {"yogi", server_rule::yogi}},
                  "What the server does with the averaged change: none, which just adds it, sgd, "
                  "adagrad, adam or yogi.");
  line.add("server-lr", o.server_lr,
           "The learning rate of the server's optimizer; 0 selects its default.");
  line.add("server-momentum", o.server_momentum,
           "The momentum of the server's sgd, and beta1 of its adam and yogi.");
}

void add_liars(command_line& line, options& o) {
  line.title("Clients that lie");
  line.add("liars", o.liars, "The share of clients that send something else than they trained.");
  line.add_choice("lie", o.told, {{"scaled", lie::scaled}, {"flipped", lie::flipped}},
                  "What they send instead of their difference to what they were sent: scaled, that "
                  "times --lie-factor, or flipped, minus that.");
  line.add("lie-factor", o.lie_factor, "The factor of a lie.");
  line.add_choice("defense", o.against,
                  {{"none", defense::none},
                   {"clip", defense::clip},
                   {"median", defense::median},
                   {"trimmed-mean", defense::trimmed_mean}},
                  "What the server does about it: none; clip every client's difference to an L2 "
                  "norm; or clip it and give each parameter the median or the trimmed-mean of its "
                  "holders, without weights, the mean where they are fewer than three.");
  line.add("clip-bound", o.clip_bound, "The L2 norm to which a --defense clips.");
  line.add("trim", o.trim,
           "The share of values that --defense trimmed-mean leaves out at each end.");
}

void add_methods(command_line& line, options& o) {
  line.title("Single methods");
  line.add("step", o.window_step, "FedRolex: by how many channels the window rolls per round.");
  line.add_optional(
      "overlap", o.overlap,
      "Instead of --step: the share of a window that the next one has in common with it.");
  line.exclude("step", "overlap");
  line.add(
      "client-phase", o.client_phase,
      "FedRolex: by how many channels a client's window starts after that of the client before "
      "it; 0: all clients of a round start at the same one.");
  line.add("layer-phases", o.layer_phases,
           "FedRolex: each client draws, once for each layer, where its window starts, so that the "
           "windows of two layers do not move alike.");
  line.exclude("client-phase", "layer-phases");
  line.add_as<std::string>(
      "seed-policy", "client-and-round",
      "Federated Dropout: who draws new channels: client-and-round; client, which keeps "
      "them for the whole run; pool:S, which keeps one of S sets; pool-per-round:S, which "
      "picks one of S sets in each round; or shared:E, one set for all that changes every E "
      "rounds.",
      [&o](std::string& text) { o.seeds = parse_seed_policy(text); });
  line.add("untied-skips", o.untied_skips,
           "Federated Dropout: the two ends of an identity skip draw their channels separately, "
           "so that unrelated ones are added, as in released code for [Rolex].");
  using assignment = subfed::ensemble_members::assignment;
  line.add_choice(
      "member-by", o.member_by,
      {{"round", assignment::per_round},
       {"client", assignment::per_client},
       {"number", assignment::by_number}},
      "The ensemble: which member a client trains: round, one that it draws in each round; "
      "client, one that it draws once for the run [Cheng, 4.1]; or number, the one given by "
      "its number.");
  line.add("members", o.members,
           "The ensemble: the number of members; 0 means as many as the smallest capacity "
           "implies.");
  line.add_as<std::string>(
      "widths", "",
      "FjORD: the widths that are trained, ascending, separated by commas; without it, the "
      "capacities of the mix.",
      [&o](std::string& text) {
        const auto widths = text.empty() ? std::vector<std::string>() : pieces(text);
        for (const std::string& width : widths) o.widths.push_back(parse_capacity(width));
        text = joined(widths);
      });
  line.add("distillation", o.distillation,
           "FjORD: narrow widths also learn from the widest that the client holds.");
  line.add("alpha", o.distilled.alpha,
           "FjORD: the weight of the widest width against the labels in the distillation.");
  line.add("temperature", o.distilled.temperature,
           "FjORD: the temperature of the distillation's softmax.");
  line.add("flops-ratio", o.flops_ratio,
           "FedDrop and UniDrop: the share of the model's multiply-adds that a client performs.");
  line.add_choice(
      "thresholds", o.drop_by, {{"round", thresholds::round}, {"batch", thresholds::batch}},
      "FedDrop and UniDrop: whether channels are drawn for each mini-batch, as in the "
      "paper, or once in each round, so that clients are sent only what they keep: batch or "
      "round.");
  line.add_choice(
      "synchronization", o.synchronised, {{"all", true}, {"none", false}},
      "FedDrop and UniDrop: all: all clients compare their keep probabilities with the same "
      "thresholds. none: each client draws thresholds of its own [FedDrop, Fig. 7].");
  line.add_choice(
      "dropout-scaling", o.dropout_scaling, {{"inverse", true}, {"none", false}},
      "FedDrop and UniDrop: inverse: a channel that is kept with probability p is multiplied by "
      "1 / p in training; none: it is not [FedDrop, Fig. 7].");
  line.add_choice(
      "initialization", o.fixed_start, {{"fixed", true}, {"he", false}},
      "FedDrop and UniDrop: the variance of the first weights of a node with N inputs. fixed: "
      "2 p / N, with the keep probability p that all channels start with [FedDrop, Theorem 1]; "
      "he: 2 / N, as without dropout.");
  line.add_choice(
      "batch-norm", o.statistics,
      {{"static", norm_statistics::measured}, {"running", norm_statistics::running}},
      "HeteroFL: static: statistics of batch norm are measured when a model is evaluated, and "
      "training tracks none [HeteroFL]. running: clients track them as PyTorch does, and the "
      "server's are the mean over the clients that hold a channel.");
  line.add("proximal", o.proximal,
           "FedProx: mu, the weight of the distance to the server's model.");
}

void add_run(command_line& line, options& o, std::vector<std::uint64_t>& seeds, std::string& file) {
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
  line.add_as<std::string>(
          "seeds", "",
          "Instead of --seed: several, such as 1..5 or 1,2,7. Their runs follow one another, each "
          "in "
          "a folder of its own in that of --out, and the table has means and how far they spread.",
          [&seeds](std::string& text) {
            if (!text.empty()) seeds = parse_seeds(text);
          })
      ->default_str("");
  line.exclude("seed", "seeds");
  line.add("threads", o.threads, "How many clients are trained at a time.");
  line.add_choice("device", o.device, {{"cpu", "cpu"}, {"cuda", "cuda"}},
                  "Where clients are trained: cpu or cuda.");
  line.add("data", o.data,
           "The folder with the four gzipped files of Fashion-MNIST; for a text the file with it, "
           "lines such as \"Gen1:1 In the beginning\", or /usr/lib/bible.data, which is used where "
           "there is no other.");
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
  if (name == "norm" && o.model != model_kind::small) return "it needs --model small";
  if (name == "untied-skips" && o.model != model_kind::small) return "it needs --model small";
  const bool has_batch_norm = o.model == model_kind::small ? o.norm == norm_kind::batch
                                                           : o.model == model_kind::pre_resnet18;
  if (name == "batch-norm" && !has_batch_norm) return "the network has no batch norm";
  constexpr std::string_view of_labels[] = {"labels", "dirichlet", "dirichlet-split",
                                            "absent-logits"};
  if (data_of(o.model) == data_kind::text &&
      std::find(std::begin(of_labels), std::end(of_labels), name) != std::end(of_labels)) {
    return "clients of a text have no labels, and lack no character or word";
  }
  if (name == "vocabulary" && o.model != model_kind::transformer) {
    return "it needs --model transformer";
  }
  if (name == "sums-bound" && !o.fixed_sums) return "it needs --sums fixed-point";
  if (name == "server-lr" && o.server == server_rule::none) {
    return "it needs a --server-optimizer";
  }
  if (name == "server-momentum" &&
      (o.server == server_rule::none || o.server == server_rule::adagrad)) {
    return "it needs --server-optimizer sgd, adam or yogi";
  }
  if ((name == "lie" || name == "lie-factor") && o.liars == 0) return "it needs --liars";
  if (name == "clip-bound" && o.against == defense::none) return "it needs a --defense";
  if (name == "trim" && o.against != defense::trimmed_mean) {
    return "it needs --defense trimmed-mean";
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
    const bool reads = name == "redraw-capacities" || name == "server-scale" || name == "scaler"
                           ? m.cuts
                           : m.reads(name);
    if (reads && is_run(m)) return "";
    if (reads) readers.emplace_back(m.name);
  }
  if (readers.empty()) return "";  // no option for single methods
  return fmt::format("it is for {}, and --method is {}", fmt::join(readers, ", "),
                     joined(o.methods));
}

/// Throws where a method of the run cannot work with the network.
void check_networks(const options& o, std::span<const method_name> known) {
  if (data_of(o.model) == data_kind::images) return;
  for (const method_name& m : known) {
    const bool is_run = std::find(o.methods.begin(), o.methods.end(), m.name) != o.methods.end();
    if (!is_run || m.cuts_texts) continue;
    throw failure(fmt::format(
        "{} scales channels of the networks for images: it needs --model small, pre-resnet18, "
        "lenet or cnn.",
        m.name));
  }
}

}  // namespace

lr_schedule parse_lr_schedule(const std::string& name) {
  return chosen("lr-schedule", name, lr_schedules);
}

std::vector<double> parse_decay_at(const std::string& text) {
  if (text == "rolex") return {0.32, 0.6};  // 800 and 1500 of 2500 rounds
  std::vector<double> out;
  for (const std::string& piece : pieces(text)) {
    if (piece.empty()) continue;
    const auto at = number<double>(piece);
    if (!at) throw failure(fmt::format("--decay-at: \"{}\" is not a number.", piece));
    out.push_back(*at);
  }
  return out;
}

std::vector<std::uint64_t> parse_seeds(const std::string& text) {
  constexpr std::uint64_t most = 1000;
  const auto refusal = [&](std::string_view why) {
    return failure(fmt::format("--seeds is \"{}\", but {}.", text, why));
  };
  std::vector<std::uint64_t> out;
  for (const std::string& piece : pieces(text)) {
    const std::size_t dots = piece.find("..");
    const auto first = number<std::uint64_t>(piece.substr(0, dots));
    const auto last =
        dots == std::string::npos ? first : number<std::uint64_t>(piece.substr(dots + 2));
    if (!first || !last || *last < *first) {
      throw refusal("numbers and ascending ranges such as 1..5 are expected, separated by commas");
    }
    if (*last - *first >= most || out.size() + (*last - *first) >= most) {
      throw refusal(fmt::format("at most {} seeds are expected", most));
    }
    for (std::uint64_t i = 0; i <= *last - *first; ++i) out.push_back(*first + i);
  }
  std::vector<std::uint64_t> sorted = out;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) throw refusal(fmt::format("{} is in it twice", *twice));
  return out;
}

std::optional<options> parse_options(int argc, const char* const* argv,
                                     std::span<const method_name> known) {
  options o;
  o.cohort.seed = 1;
  o.threads = (std::max)(
      1, static_cast<int>(std::thread::hardware_concurrency()) / ranks::count_on_this_machine());
  std::string file, by_default,
      footer = "The methods, with a star those that run unless --method is given:\n";
  for (const method_name& m : known) {
    if (m.by_default) by_default += (by_default.empty() ? "" : ",") + m.name;
    footer += fmt::format("  {} {:<27} {}\n", m.by_default ? '*' : ' ', m.name, m.about);
  }

  command_line line(footer);
  line.title("Methods");
  line.add_as<std::string>("method", by_default,
                           "Which methods to run, separated by commas, in this order; see below.",
                           [&](std::string& text) {
                             o.methods = parse_methods(text, known);
                             text = joined(o.methods);
                           })
      ->default_str("");
  add_clients(line, o);
  add_training(line, o);
  add_server(line, o);
  add_liars(line, o);
  add_methods(line, o);
  std::vector<std::uint64_t> seeds;
  add_run(line, o, seeds, file);
  if (!line.parse(argc, argv, file)) return std::nullopt;

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
  if (data_of(o.model) == data_kind::text && !line.find("data").is_given()) {
    o.data = "/usr/lib/bible.data";
  }
  check_options(o);
  check_networks(o, known);

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

  bool is_one_run = seeds.empty();
  const auto in_force = [&](std::string_view name) {
    if (!why_out_of_force(name, o).empty()) return false;
    if (name == "seed" || name == "seeds") return (name == "seed") == is_one_run;
    if (name == "labels" || name == "dirichlet")
      return (name == "dirichlet") == o.dirichlet.has_value();
    if (name == "step" || name == "overlap") return (name == "overlap") == o.overlap.has_value();
    if (name == "client-phase" || name == "layer-phases") {
      return (name == "layer-phases") == o.layer_phases;
    }
    return o.distillation || (name != "alpha" && name != "temperature");
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

  is_one_run = true;
  const std::uint64_t seed = o.cohort.seed;
  const std::string out = o.out;
  for (const std::uint64_t own : seeds) {
    o.cohort.seed = own;  // what is written is read from the options
    o.out = (std::filesystem::path(out) / fmt::format("seed-{}", own)).string();
    o.runs.push_back({own, o.out, write_configuration(line.fields(), layout::pretty, is_read),
                      write_configuration(line.fields(), layout::compact, decides)});
  }
  o.cohort.seed = seed;
  o.out = out;
  return o;
}

}  // namespace trainer
