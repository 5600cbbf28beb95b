// SPDX-License-Identifier: MIT
/// What a run is: the command line and the configuration file.
#pragma once

#include <algorithm>
#include <common/text.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <subfed/average/options.hpp>
#include <subfed/capacity.hpp>
#include <subfed/coverage/cohort_model.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/systems/averaging_weights.hpp>
#include <subfed/systems/distillation.hpp>
#include <subfed/systems/ensemble.hpp>
#include <vector>

namespace trainer {

enum class lr_schedule { constant, step, cosine };
/// Logits of classes that a client lacks: 0, left out of the softmax, or trained like all others.
enum class absent_classes { zero, minus_infinity, trained };
enum class server_rule { none, sgd, adagrad, adam, yogi };
/// What an update counts for; by_method leaves it to the method.
enum class weight_rule { by_method, none, examples, kept_size, updates, both };
/// Whether FedDrop's thresholds change with the round or with every mini-batch.
enum class thresholds { round, batch };
/// The networks: for images a small pre-activation ResNet, the PreResNet18 of [Rolex], the LeNet of
/// [FedDrop], the convolutional network of [Cheng]; for texts the LSTM of [FedDrop], the Transformer
/// of [Rolex].
enum class model_kind { small, pre_resnet18, lenet, cnn, char_lstm, transformer };
/// What a network reads.
enum class data_kind { images, text };
constexpr data_kind data_of(model_kind model) {
  return model == model_kind::char_lstm || model == model_kind::transformer ? data_kind::text
                                                                            : data_kind::images;
}
/// What stands in front of each convolution; without batch norm convolutions have biases.
enum class norm_kind { batch, none };
/// Statistics of batch norm: measured when the model is evaluated; or tracked in training and
/// averaged.
enum class norm_statistics { measured, running };

/// What a client that lies does to its difference to what it was sent.
enum class lie { scaled, flipped };
/// What the server does about it.
enum class defense { none, clip, median, trimmed_mean };

/// One of several runs that differ in their seed alone: what options() has of it.
struct run_of_seed {
  std::uint64_t seed = 0;
  std::string out, config, identity;
};

struct options {
  // Which methods, by name, in this order.
  std::vector<std::string> methods;

  // Who takes part, and how much of the model each can hold.
  subfed::cohort_options cohort;  // its seed is the run's
  std::string mix = "uniform";    // as it was given
  double server_scale = 1;        // gamma: channels of the server's model over those of capacity 1

  // Who has which images, or how much of a text.
  std::int64_t labels = 2;
  std::optional<double> dirichlet;  // alpha; instead of labels
  bool split_by_class = false;      // by Dirichlet each label is split over the clients [FedDrop]
  std::int64_t samples = 64;

  // What is trained.
  model_kind model = model_kind::small;
  std::int64_t width = 1;          // channels of the network over those that it has by itself
  std::int64_t vocabulary = 1000;  // words of the Transformer
  norm_kind norm = norm_kind::batch;
  bool scaler = true;  // hidden layers' results times 1 / capacity in training [HeteroFL]

  // What a client does.
  std::int64_t rounds = 192;
  std::int64_t local_epochs = 1;
  std::int64_t batch = 16;
  double lr = 0.05;
  lr_schedule schedule = lr_schedule::step;
  std::vector<double> decay_at = {0.5, 0.75};
  double momentum = 0.9;
  double weight_decay = 5e-4;
  absent_classes absent = absent_classes::zero;

  // What the server does.
  std::optional<subfed::divisor> divide_by;  // empty: the method's
  double server_step = 1;
  bool fixed_sums = false;  // in 64-bit integers, which are added in any order to the same bits
  double sums_bound = 64;   // of the values' sizes
  weight_rule weights = weight_rule::by_method;
  bool weights_by_element = false;
  server_rule server = server_rule::none;
  double server_lr = 0;  // 0: the rule's own
  double server_momentum = 0.9;

  // Clients that send something else than what they trained, and what is done against it.
  double liars = 0;  // the share of the clients
  lie told = lie::flipped;
  double lie_factor = 10;
  defense against = defense::none;
  double clip_bound = 0.5;  // the L2 norm of a client's difference
  double trim = 0.25;       // of the values of a parameter, at each end

  // What single methods ask for.
  std::int64_t window_step = 1;
  std::optional<double> overlap;
  std::int64_t client_phase = 0;  // by how many channels windows of clients are apart
  bool layer_phases = false;      // each client's window of each layer has a start of its own
  subfed::seed_policy seeds = subfed::seed_policy::per_client_and_round();
  bool untied_skips = false;  // the two ends of an identity skip draw channels of their own
  subfed::ensemble_members::assignment member_by = subfed::ensemble_members::assignment::per_round;
  std::int64_t members = 0;  // of an ensemble; 0: as many as the smallest capacity asks for
  std::vector<subfed::capacity> widths;  // of FjORD; empty: the capacities of the mix
  bool distillation = false;
  subfed::distillation_options distilled;
  double flops_ratio = 0.5;  // r of FedDrop and UniDrop
  thresholds drop_by = thresholds::batch;
  bool synchronised = true;     // all clients have the same thresholds [FedDrop, Fig. 7]
  bool dropout_scaling = true;  // 1 / p for what is kept
  bool fixed_start = true;      // first weights of variance 2 p / N; otherwise 2 / N
  norm_statistics statistics = norm_statistics::measured;  // of HeteroFL
  double proximal = 0.1;                                   // mu of FedProx

  // How the program runs. The device changes results in their last digits, the data more.
  std::int64_t eval_every = 16;        // but in which rounds there is one
  std::int64_t checkpoint_every = 16;  // 0: never
  bool resume = false;
  bool overwrite = false;  // an earlier run in the folder of `out` is removed
  std::int64_t threads = 2;
  std::string device = "cpu";
  std::string data = "/usr/share/datasets/fashion-mnist";  // texts: /usr/lib/bible.data
  std::string out = "out";

  /// The run as a JSON object, one member per option, from which --config repeats it.
  std::string config;
  /// The same without methods and without what changes no result: two runs of a method with the
  /// same text give the same results.
  std::string identity;

  /// With --seeds: the runs, each as if it were alone, with a folder of its own below `out`.
  std::vector<run_of_seed> runs;

  /// What is to be said of the options beside: sentences.
  std::vector<std::string> notes;

  std::uint64_t seed() const { return cohort.seed; }
  /// The options of one of the runs.
  options of(const run_of_seed& run) const {
    options one = *this;
    one.cohort.seed = run.seed;
    one.out = run.out;
    one.config = run.config;
    one.identity = run.identity;
    one.runs.clear();
    return one;
  }
};

using common::parse_capacity;

/// The value of --lr-schedule, and that of --decay-at: shares of the rounds.
///
/// Throws  failure that names the option.
lr_schedule parse_lr_schedule(const std::string& name);
std::vector<double> parse_decay_at(const std::string& text);

/// The value of --seeds: numbers and ranges such as 1..5, separated by commas.
///
/// Throws  failure that names the option, also for a seed that is given twice.
std::vector<std::uint64_t> parse_seeds(const std::string& text);

/// A method as --help has it.
struct method_name {
  std::string name;                       // on the command line, in tables and in file names
  std::string about;                      // one sentence
  bool by_default = true;                 // run where --method does not say which
  bool cuts = true;                       // clients hold parts of the model by their capacity
  std::vector<std::string> options = {};  // of those for single methods, the ones that it reads
  bool cuts_texts = true;                 // it works with networks for texts, too

  bool reads(std::string_view option) const {
    return std::find(options.begin(), options.end(), option) != options.end();
  }
};

/// Reads the command line, after the file of --config where there is one; empty when it asks for
/// help, which has then been printed. Without --method those of `known` are run that are
/// by_default.
///
/// Throws  failure for invalid values, and for an option on the command line that would have no
///         effect; it names the option.
std::optional<options> parse_options(int argc, const char* const* argv,
                                     std::span<const method_name> known);

}  // namespace trainer
