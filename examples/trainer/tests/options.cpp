// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <subfed/scheme.hpp>
#include <vector>

#include <common/tests/message_of.hpp>
#include <common/tests/temporary_folder.hpp>

namespace {

const trainer::method_name known[] = {
    {"fedrolex", "Rolls.", true, true, {"step", "overlap", "members", "member-by"}},
    {"heterofl",
     "Stays.",
     true,
     true,
     {"seed-policy", "untied-skips", "flops-ratio", "thresholds", "synchronization",
      "dropout-scaling", "initialization", "batch-norm", "proximal"}},
    {"fjord", "Nests.", true, true, {"widths", "distillation", "alpha", "temperature"}},
    {"fedavg", "Cuts nothing.", false, false},
    {"dropping", "Scales channels.", false, false, {}, false}};

trainer::options parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "subfed_trainer");
  return trainer::parse_options(static_cast<int>(arguments.size()), arguments.data(), known)
      .value();
}
std::string refused(std::vector<const char*> arguments) {
  return message_of([&] { parsed(std::move(arguments)); });
}

/// A configuration in a file of its own.
class configuration {
 public:
  explicit configuration(const std::string& text) : path_((folder_.path() / "run.json").string()) {
    std::ofstream(path_) << text;
  }
  const char* path() const { return path_.c_str(); }

 private:
  temporary_folder folder_;
  std::string path_;
};

/// What a file alone is refused for, without its path.
std::string file_refused(const std::string& text) {
  const configuration file(text);
  std::string message = refused({"--config", file.path()});
  const std::size_t at = message.find(file.path());
  if (at != std::string::npos) message.replace(at, std::string(file.path()).size(), "FILE");
  return message;
}

/// Each option, none with its standard value.
const std::vector<const char*> all_options = {"--method",
                                              "fjord, heterofl, fedrolex",
                                              "--clients",
                                              "40",
                                              "--participation",
                                              "0.3",
                                              "--capacity-mix",
                                              "1:0.1, 1/16:0.9",
                                              "--redraw-capacities",
                                              "--cohort-rounds",
                                              "2",
                                              "--server-scale",
                                              "1.25",
                                              "--dirichlet",
                                              "0.1",
                                              "--dirichlet-split",
                                              "class",
                                              "--samples",
                                              "33",
                                              "--model",
                                              "small",
                                              "--width",
                                              "3",
                                              "--norm",
                                              "none",
                                              "--scaler",
                                              "none",
                                              "--rounds",
                                              "7",
                                              "--local-epochs",
                                              "3",
                                              "--batch",
                                              "9",
                                              "--lr",
                                              "0.012345678901234567",
                                              "--decay-at",
                                              "0.1, 0.30000000000000004",
                                              "--momentum",
                                              "0.5",
                                              "--weight-decay",
                                              "1e-7",
                                              "--absent-logits",
                                              "minus-infinity",
                                              "--average",
                                              "cohort",
                                              "--server-step",
                                              "0.75",
                                              "--weighting",
                                              "both",
                                              "--weight-each",
                                              "client",
                                              "--server-optimizer",
                                              "yogi",
                                              "--server-lr",
                                              "0.02",
                                              "--server-momentum",
                                              "0.8",
                                              "--overlap",
                                              "0.25",
                                              "--seed-policy",
                                              "pool:12",
                                              "--untied-skips",
                                              "--member-by",
                                              "client",
                                              "--members",
                                              "5",
                                              "--widths",
                                              "1/8, 0.5,1",
                                              "--distillation",
                                              "--alpha",
                                              "0.5",
                                              "--temperature",
                                              "3",
                                              "--flops-ratio",
                                              "0.625",
                                              "--thresholds",
                                              "round",
                                              "--synchronization",
                                              "none",
                                              "--dropout-scaling",
                                              "none",
                                              "--initialization",
                                              "he",
                                              "--proximal",
                                              "0.01",
                                              "--eval-every",
                                              "4",
                                              "--checkpoint-every",
                                              "0",
                                              "--resume",
                                              "--seed",
                                              "18446744073709551615",
                                              "--threads",
                                              "3",
                                              "--device",
                                              "cuda",
                                              "--data",
                                              "some where",
                                              "--out",
                                              "else \"where\""};

}  // namespace

TEST_CASE("capacities are fractions or decimal numbers") {
  CHECK(trainer::parse_capacity("1").of(64) == 64);
  CHECK(trainer::parse_capacity("1/16").of(64) == 4);
  CHECK(trainer::parse_capacity("0.3").of(10) == 3);
  CHECK(trainer::parse_capacity("3/10").of(10) == 3);
}

TEST_CASE("what is no capacity is refused in words") {
  for (const char* text : {"0", "1.5", "-1/2", "1/0", "3/2", "nan", "inf", "-0.0", "1e-400"}) {
    CAPTURE(text);
    const std::string message = message_of([&] { trainer::parse_capacity(text); });
    CHECK(message.find(text) != std::string::npos);
    CHECK(message.find("more than 0 and at most 1") != std::string::npos);
  }
  for (const char* text : {"", "half", "1/", "/2", "1/2/3", "1 2", "0,5x"}) {
    CAPTURE(text);
    CHECK(message_of([&] { trainer::parse_capacity(text); }).find("is not a ") !=
          std::string::npos);
  }
}

TEST_CASE("the defaults are the protocol of the paper") {
  const trainer::options o = parsed({});
  CHECK(o.cohort.clients == 100);
  CHECK(o.cohort.participation == 0.1);
  CHECK(o.cohort.mix.classes.size() == 5);
  CHECK(o.cohort.capacities == subfed::capacity_assignment::fixed);
  CHECK(o.mix == "uniform");
  CHECK(o.labels == 2);
  CHECK_FALSE(o.dirichlet);
  CHECK_FALSE(o.overlap);
  CHECK(o.local_epochs == 1);
  CHECK(o.momentum == 0.9);
  CHECK(o.weight_decay == 5e-4);
  CHECK(o.decay_at == std::vector<double>{0.5, 0.75});
  CHECK(o.widths.empty());
  CHECK(o.norm == trainer::norm_kind::batch);
  CHECK(o.model == trainer::model_kind::small);
  CHECK(o.width == 1);
  CHECK(o.scaler);
  CHECK(o.drop_by == trainer::thresholds::batch);
  CHECK(o.synchronised);
  CHECK(o.dropout_scaling);
  CHECK(o.fixed_start);
  CHECK(o.statistics == trainer::norm_statistics::measured);
  CHECK(o.cohort.cohort_rounds == 1);
  CHECK(o.member_by == subfed::ensemble_members::assignment::per_round);
  CHECK_FALSE(o.split_by_class);
  CHECK_FALSE(o.untied_skips);
  CHECK(o.notes.empty());
  CHECK(o.seed() == 1);
  CHECK(o.methods == std::vector<std::string>{"fedrolex", "heterofl", "fjord"});
}

TEST_CASE("each option reaches its place") {
  const trainer::options o = parsed(all_options);
  CHECK(o.methods == std::vector<std::string>{"fjord", "heterofl", "fedrolex"});
  CHECK(o.cohort.clients == 40);
  CHECK(o.cohort.participation == 0.3);
  CHECK(o.mix == "1:0.1,1/16:0.9");
  CHECK(o.cohort.mix.classes[1].capacity == subfed::capacity::ratio(1, 16));
  CHECK(o.cohort.mix.classes[1].share == 0.9);
  CHECK(o.cohort.capacities == subfed::capacity_assignment::redrawn);
  CHECK(o.server_scale == 1.25);
  CHECK(o.labels == 2);
  CHECK(o.dirichlet == 0.1);
  CHECK(o.samples == 33);
  CHECK(o.rounds == 7);
  CHECK(o.local_epochs == 3);
  CHECK(o.batch == 9);
  CHECK(o.lr == 0.012345678901234567);
  CHECK(o.cohort.cohort_rounds == 2);
  CHECK(o.split_by_class);
  CHECK(o.norm == trainer::norm_kind::none);
  CHECK(o.width == 3);
  CHECK_FALSE(o.scaler);
  CHECK(o.untied_skips);
  CHECK(o.member_by == subfed::ensemble_members::assignment::per_client);
  CHECK(o.decay_at == std::vector<double>{0.1, 0.30000000000000004});
  CHECK(o.momentum == 0.5);
  CHECK(o.weight_decay == 1e-7);
  CHECK(o.absent == trainer::absent_classes::minus_infinity);
  CHECK(o.divide_by == subfed::divisor::cohort);
  CHECK(o.server_step == 0.75);
  CHECK(o.weights == trainer::weight_rule::both);
  CHECK(!o.weights_by_element);  // does not go with the cohort
  CHECK(o.server == trainer::server_rule::yogi);
  CHECK(o.server_lr == 0.02);
  CHECK(o.server_momentum == 0.8);
  CHECK(o.overlap == 0.25);
  const subfed::draw_request where{
      .round = 3, .client = 9, .group = "g", .extent = 10, .capacity = 0.5};
  CHECK(o.seeds.stream(where).bits(0) == subfed::seed_policy::pool(12).stream(where).bits(0));
  CHECK(o.members == 5);
  CHECK(o.widths ==
        std::vector<subfed::capacity>{subfed::capacity::ratio(1, 8), 0.5, subfed::capacity(1.0)});
  CHECK(o.distillation);
  CHECK(o.distilled.alpha == 0.5);
  CHECK(o.distilled.temperature == 3);
  CHECK(o.flops_ratio == 0.625);
  CHECK(o.drop_by == trainer::thresholds::round);
  CHECK_FALSE(o.synchronised);
  CHECK_FALSE(o.dropout_scaling);
  CHECK_FALSE(o.fixed_start);
  CHECK(o.proximal == 0.01);
  CHECK(o.eval_every == 4);
  CHECK(o.checkpoint_every == 0);
  CHECK(o.resume);
  CHECK(o.seed() == 18446744073709551615u);
  CHECK(o.threads == 3);
  CHECK(o.device == "cuda");
  CHECK(o.data == "some where");
  CHECK(o.out == "else \"where\"");
}

TEST_CASE("words stand for what they say") {
  using trainer::weight_rule;
  CHECK(parsed({"--lr-schedule", "constant"}).schedule == trainer::lr_schedule::constant);
  CHECK(parsed({"--lr-schedule", "step"}).schedule == trainer::lr_schedule::step);
  CHECK(parsed({"--lr-schedule", "cosine"}).schedule == trainer::lr_schedule::cosine);
  CHECK(parsed({"--decay-at", "rolex"}).decay_at == std::vector<double>{0.32, 0.6});
  CHECK(parsed({"--member-by", "round"}).member_by ==
        subfed::ensemble_members::assignment::per_round);
  CHECK(parsed({"--member-by", "number"}).member_by ==
        subfed::ensemble_members::assignment::by_number);
  CHECK_FALSE(parsed({"--dirichlet", "1", "--dirichlet-split", "client"}).split_by_class);
  CHECK(parsed({"--model", "small"}).model == trainer::model_kind::small);
  CHECK(parsed({"--model", "pre-resnet18"}).model == trainer::model_kind::pre_resnet18);
  CHECK(parsed({"--model", "lenet"}).model == trainer::model_kind::lenet);
  CHECK(parsed({"--model", "cnn"}).model == trainer::model_kind::cnn);
  CHECK(parsed({"--scaler", "width"}).scaler);
  CHECK(parsed({"--norm", "batch"}).norm == trainer::norm_kind::batch);
  CHECK(parsed({"--overwrite"}).overwrite);
  CHECK(parsed({"--absent-logits", "zero"}).absent == trainer::absent_classes::zero);
  CHECK(parsed({"--absent-logits", "trained"}).absent == trainer::absent_classes::trained);
  CHECK(parsed({"--average", "holders"}).divide_by == subfed::divisor::holders);
  CHECK(!parsed({"--average", "by-method"}).divide_by);
  CHECK(parsed({"--weighting", "by-method"}).weights == weight_rule::by_method);
  CHECK(parsed({"--weighting", "none"}).weights == weight_rule::none);
  CHECK(parsed({"--weighting", "examples"}).weights == weight_rule::examples);
  CHECK(parsed({"--weighting", "kept-size"}).weights == weight_rule::kept_size);
  CHECK(parsed({"--weighting", "updates"}).weights == weight_rule::updates);
  CHECK_FALSE(parsed({"--weight-each", "client"}).weights_by_element);
  CHECK(parsed({"--server-optimizer", "none"}).server == trainer::server_rule::none);
  CHECK(parsed({"--server-optimizer", "sgd"}).server == trainer::server_rule::sgd);
  CHECK(parsed({"--server-optimizer", "adagrad"}).server == trainer::server_rule::adagrad);
  CHECK(parsed({"--server-optimizer", "adam"}).server == trainer::server_rule::adam);
  CHECK(parsed({"--thresholds", "round"}).drop_by == trainer::thresholds::round);
  CHECK(parsed({"--synchronization", "all"}).synchronised);
  CHECK(parsed({"--dropout-scaling", "inverse"}).dropout_scaling);
  CHECK(parsed({"--initialization", "fixed"}).fixed_start);
  CHECK(parsed({"--batch-norm", "static"}).statistics == trainer::norm_statistics::measured);
  CHECK(parsed({"--batch-norm", "running"}).statistics == trainer::norm_statistics::running);
  CHECK(parsed({"--step", "-3"}).window_step == -3);

  const subfed::draw_request where{
      .round = 7, .client = 9, .group = "g", .extent = 10, .capacity = 0.5};
  const auto bits = [&](const subfed::seed_policy& p) { return p.stream(where).bits(0); };
  const auto typed = [&](const char* text) { return bits(parsed({"--seed-policy", text}).seeds); };
  CHECK(typed("client-and-round") == bits(subfed::seed_policy::per_client_and_round()));
  CHECK(typed("client") == bits(subfed::seed_policy::per_client()));
  CHECK(typed("pool-per-round:4") == bits(subfed::seed_policy::pool_per_round(4)));
  CHECK(typed("shared:4") == bits(subfed::seed_policy::shared(4)));
}

TEST_CASE("several seeds are as many runs, each as if it were alone") {
  using seeds = std::vector<std::uint64_t>;
  CHECK(trainer::parse_seeds("7") == seeds{7});
  CHECK(trainer::parse_seeds("1..5") == seeds{1, 2, 3, 4, 5});
  CHECK(trainer::parse_seeds("9, 1..3,5..5") == seeds{9, 1, 2, 3, 5});
  CHECK(trainer::parse_seeds("18446744073709551614..18446744073709551615").size() == 2);
  CHECK(trainer::parse_seeds("0..999").size() == 1000);
  for (const char* text :
       {"", "x", "1..", "..5", "5..1", "1...5", "-1", "1,,2", "1..2..3", "1.5"}) {
    CAPTURE(text);
    CHECK(message_of([&] { trainer::parse_seeds(text); }).find("ascending ranges") !=
          std::string::npos);
  }
  for (const char* text : {"0..1000", "0..999,1000", "0..18446744073709551615"}) {
    CHECK(message_of([&] { trainer::parse_seeds(text); }).find("at most 1000") !=
          std::string::npos);
  }
  CHECK(refused({"--seeds", "1..3,2"}) == "--seeds is \"1..3,2\", but 2 is in it twice.");
  CHECK(refused({"--seeds", "1..3", "--seed", "2"}) ==
        "--seed and --seeds cannot be used together.");

  const trainer::options o = parsed({"--seeds", "1..2,9", "--lr", "0.1", "--out", "there"});
  REQUIRE(o.runs.size() == 3);
  CHECK(o.out == "there");
  CHECK(o.config.find("\"seeds\": \"1..2,9\"") != std::string::npos);
  CHECK(o.config.find("\"seed\":") == std::string::npos);
  const trainer::options last = o.of(o.runs[2]);
  const trainer::options alone = parsed({"--seed", "9", "--lr", "0.1", "--out", "there/seed-9"});
  CHECK(last.seed() == 9);
  CHECK(last.out == "there/seed-9");
  CHECK(last.identity == alone.identity);
  CHECK(last.config == alone.config);
  CHECK(last.runs.empty());
  CHECK(parsed({"--seed", "9"}).runs.empty());

  // A file's seeds are overruled by a seed, and the other way round.
  const configuration file(o.config);
  CHECK(parsed({"--config", file.path()}).runs.size() == 3);
  CHECK(parsed({"--config", file.path(), "--seed", "4"}).runs.empty());
  CHECK(parsed({"--config", file.path(), "--seed", "4"}).seed() == 4);
  const configuration one(alone.config);
  CHECK(parsed({"--config", one.path(), "--seeds", "4..5"}).runs.size() == 2);
}

TEST_CASE("mixes are uniform, by income, of two classes, or a list") {
  CHECK(parsed({"--capacity-mix", "income"}).cohort.mix.classes[4].share == 54.3);
  const auto two = parsed({"--capacity-mix", "two-class:0.25"}).cohort.mix.classes;
  CHECK(two[0].capacity.value() == 1);
  CHECK(two[0].share == 0.25);
  CHECK(two[1].capacity == subfed::capacity::ratio(1, 16));
  CHECK(two[1].share == 0.75);
  const auto list = parsed({"--capacity-mix", "1,1/2"}).cohort.mix.classes;
  CHECK(list[0].share == list[1].share);
  CHECK(list[1].capacity == subfed::capacity::ratio(1, 2));
}

TEST_CASE("what cannot be meant is refused") {
  CHECK(refused({"--labels", "11"}) == "--labels is 11, but 1 to 10 is expected.");
  CHECK(refused({"--rounds", "0"}) == "--rounds is 0, but at least 1 is expected.");
  CHECK(refused({"--rounds", "10000001"}) ==
        "--rounds is 10000001, but at most 10000000 is expected.");
  CHECK(refused({"--participation", "nan"}).starts_with("--participation is nan"));
  CHECK(refused({"--participation", "0.001"}) ==
        "subfed: cohort_model: a participation of 0.001 asks none of 100 clients");
  CHECK(refused({"--method", "fedsome"}) ==
        "There is no method \"fedsome\"; the methods are fedrolex, heterofl, fjord, fedavg, "
        "dropping.");
  CHECK(refused({"--method", "heterofl,heterofl"}) == "The method \"heterofl\" is given twice.");
  CHECK(refused({"--methods", "heterofl"}).find("--methods") != std::string::npos);
  CHECK(refused({"--rounds", "ten"}).find("--rounds") != std::string::npos);
  CHECK(refused({"--seed", "-1"}).starts_with("--seed: -1 is negative"));
  for (const char* option : {"--momentum", "--weight-decay", "--seed", "--rounds"}) {
    CHECK(refused({option, ""}).starts_with(std::string(option) + ": a number is expected"));
  }
  CHECK(refused({"--device", "tpu"}) == "--device is \"tpu\", but cpu or cuda is expected.");
  CHECK(refused({"--decay-at", "0.5,2"}) == "--decay-at is 2, but 0 to 1 is expected.");
  CHECK(refused({"--decay-at", "0.5,x"}) == "--decay-at: \"x\" is not a number.");
  CHECK(refused({"--capacity-mix", "1:0"}).starts_with("The capacity mix \"1:0\""));
  CHECK(refused({"--weighting", "size"}) ==
        "--weighting is \"size\", but by-method, none, examples, kept-size, updates or both is "
        "expected.");
  CHECK(refused({"--widths", "1,1/2"}) ==
        "--widths is 0.5 after 1, but an ascending list is expected.");
  CHECK(refused({"--widths", "1/2,1/2"}).starts_with("--widths is 0.5 after 0.5"));
  for (const char* policy : {"pool", "pool:0", "pool:x", "shared:-1", "both:3", "client:3", ""}) {
    CAPTURE(policy);
    CHECK(refused({"--seed-policy", policy}).starts_with("--seed-policy is \""));
  }
}

TEST_CASE("each number has its range") {
  struct range {
    const char* option;
    std::vector<const char*> within, outside, beside = {};
  };
  const range ranges[] = {
      {"--clients", {"10", "1000000"}, {"0", "-1", "1000001"}},
      {"--server-scale", {"1", "2.5"}, {"0.99", "nan", "inf"}},
      {"--labels", {"1", "10"}, {"0", "11"}},
      {"--dirichlet", {"1e-9", "1e9"}, {"0", "-1", "nan", "inf"}},
      {"--samples", {"1"}, {"0"}},
      {"--rounds",
       {"1", "10000000"},
       {"0", "10000001", "9223372036854775808", "-99999999999999999999"}},
      {"--local-epochs", {"1"}, {"0"}},
      {"--width", {"1", "64"}, {"0", "65", "1.5"}},
      {"--batch", {"1"}, {"0"}},
      {"--lr", {"1e-9"}, {"0", "-1", "nan", "inf"}},
      {"--decay-at", {"0", "1", ""}, {"-0.1", "1.1", "nan"}},
      {"--momentum", {"0", "0.99"}, {"-0.1", "1", "nan"}},
      {"--weight-decay", {"0"}, {"-1", "nan", "inf"}},
      {"--server-step", {"0.1", "2"}, {"0", "-1", "nan", "inf"}},
      {"--sums-bound", {"0.001", "1e9"}, {"0", "-1", "nan", "inf"}, {"--sums", "fixed-point"}},
      {"--liars", {"0", "0.5"}, {"1", "-0.1", "nan"}},
      {"--lie-factor", {"0", "10"}, {"-1", "nan", "inf"}, {"--liars", "0.1"}},
      {"--clip-bound", {"0.1", "9"}, {"0", "-1", "nan", "inf"}, {"--defense", "clip"}},
      {"--trim", {"0", "0.5"}, {"0.6", "-0.1", "nan"}, {"--defense", "trimmed-mean"}},
      {"--server-lr", {"0", "0.1"}, {"-1", "nan", "inf"}, {"--server-optimizer", "sgd"}},
      {"--server-momentum", {"0"}, {"-0.1", "1", "nan"}, {"--server-optimizer", "yogi"}},
      {"--step", {"1", "-3"}, {"0", "1.5", "9223372036854775808"}},
      {"--cohort-rounds", {"1", "9"}, {"0", "-1"}},
      {"--overlap", {"0", "1"}, {"-0.1", "1.1", "nan"}},
      {"--members", {"0", "3"}, {"-1"}},
      {"--flops-ratio", {"0.1", "1"}, {"0", "1.1", "nan"}},
      {"--proximal", {"0", "3"}, {"-1", "nan", "inf"}},
      {"--eval-every", {"1"}, {"0"}},
      {"--checkpoint-every", {"0", "1"}, {"-1"}},
      {"--seed",
       {"0", "18446744073709551615"},
       {"-1", "1.5", "18446744073709551616", "1e3", "0x10", ""}},
      {"--threads", {"1", "1024"}, {"0", "1025"}}};
  for (const range& r : ranges) {
    CAPTURE(r.option);
    const auto with = [&](const char* value) {
      std::vector<const char*> out = r.beside;
      out.insert(out.end(), {r.option, value});
      return out;
    };
    for (const char* value : r.within) CHECK(refused(with(value)) == "(no failure)");
    for (const char* value : r.outside) {
      CAPTURE(value);
      CHECK(refused(with(value)).find(r.option) != std::string::npos);
    }
  }
  for (const char* value : {"-0.1", "1.1", "nan"}) {
    CHECK(refused({"--distillation", "--alpha", value}).starts_with("--alpha is"));
  }
  for (const char* value : {"0", "-1", "nan", "inf"}) {
    CHECK(refused({"--distillation", "--temperature", value}).starts_with("--temperature is"));
  }
}

TEST_CASE("options that exclude or need another say so") {
  CHECK(refused({"--labels", "2", "--dirichlet", "1"}) ==
        "--labels and --dirichlet cannot be used together.");
  CHECK(refused({"--overlap", "1", "--step", "1"}) ==
        "--step and --overlap cannot be used together.");
  CHECK(refused({"--alpha", "1"}) == "--alpha needs --distillation.");
  CHECK(refused({"--temperature", "1"}) == "--temperature needs --distillation.");
  for (const char* weighting : {"by-method", "none", "examples"}) {
    CHECK(refused({"--weight-each", "element", "--weighting", weighting}) ==
          "--weight-each element needs --weighting kept-size, updates or both.");
  }
  for (const char* weighting : {"kept-size", "updates", "both"}) {
    CHECK(parsed({"--weight-each", "element", "--weighting", weighting}).weights_by_element);
  }
  for (const auto& [option, value] : {std::pair("--average", "cohort"), {"--server-step", "0.5"}}) {
    CHECK(refused({"--weight-each", "element", "--weighting", "both", option, value})
              .starts_with("--weight-each element divides by"));
  }
  CHECK(refused({"--weight-each", "element", "--weighting", "both", "--sums", "fixed-point"}) ==
        "--sums fixed-point cannot be used with --weight-each element.");
  CHECK(refused({"--device", "cuda", "--sums", "fixed-point"}) ==
        "--sums fixed-point cannot be used with --device cuda.");
  CHECK(refused({"--device", "cuda", "--batch-norm", "running"}) ==
        "--batch-norm running cannot be used with --device cuda.");
}

TEST_CASE("an option that would have no effect is refused, with the reason") {
  const auto without = [](std::vector<const char*> arguments) {
    const std::string option = arguments[arguments.size() - 2];
    const std::string message = refused(arguments), begin = option + " would have no effect: ";
    CAPTURE(message);
    CHECK(message.starts_with(begin));
    return message.starts_with(begin) ? message.substr(begin.size()) : "";
  };
  CHECK(without({"--method", "heterofl", "--step", "3"}) ==
        "it is for fedrolex, and --method is heterofl.");
  CHECK(without({"--method", "fedrolex,fjord", "--proximal", "3"}) ==
        "it is for heterofl, and --method is fedrolex,fjord.");
  for (const auto& [option, value] : {std::pair("--overlap", "0.5"),
                                      {"--members", "2"},
                                      {"--member-by", "client"},
                                      {"--seed-policy", "client"},
                                      {"--flops-ratio", "0.25"},
                                      {"--thresholds", "round"},
                                      {"--synchronization", "none"},
                                      {"--dropout-scaling", "none"},
                                      {"--initialization", "he"},
                                      {"--batch-norm", "running"},
                                      {"--widths", "1"},
                                      {"--scaler", "none"},
                                      {"--server-scale", "2"}}) {
    CHECK(without({"--method", "fedavg", option, value}).ends_with("--method is fedavg."));
  }
  for (const char* flag : {"--distillation", "--untied-skips", "--redraw-capacities"}) {
    CHECK(refused({"--method", "fedavg", flag})
              .starts_with(std::string(flag) + " would have no effect"));
  }
  CHECK(without({"--lr-schedule", "cosine", "--decay-at", "0.5"}) ==
        "it needs --lr-schedule step.");
  CHECK(without({"--server-lr", "0.5"}) == "it needs a --server-optimizer.");
  CHECK(without({"--server-momentum", "0.5"}) == "it needs --server-optimizer sgd, adam or yogi.");
  CHECK(without({"--server-optimizer", "adagrad", "--server-momentum", "0.5"}) ==
        "it needs --server-optimizer sgd, adam or yogi.");
  CHECK(without({"--model", "lenet", "--norm", "batch"}) == "it needs --model small.");
  CHECK(refused({"--model", "pre-resnet18", "--untied-skips"}) ==
        "--untied-skips would have no effect: it needs --model small.");
  CHECK(without({"--model", "lenet", "--batch-norm", "running"}) ==
        "the network has no batch norm.");
  CHECK(without({"--norm", "none", "--batch-norm", "running"}) == "the network has no batch norm.");
  CHECK(parsed({"--model", "pre-resnet18", "--batch-norm", "running"}).notes.empty());
  CHECK(without({"--sums-bound", "8"}) == "it needs --sums fixed-point.");
  CHECK(without({"--lie", "scaled"}) == "it needs --liars.");
  CHECK(without({"--lie-factor", "2"}) == "it needs --liars.");
  CHECK(without({"--clip-bound", "2"}) == "it needs a --defense.");
  CHECK(without({"--trim", "0.1"}) == "it needs --defense trimmed-mean.");
  CHECK(refused({"--device", "cuda", "--liars", "0.1"}) ==
        "--liars and --defense cannot be used with --device cuda.");
  CHECK(refused({"--defense", "median", "--average", "cohort"})
            .starts_with("--defense median and trimmed-mean take the place of the average:"));
  CHECK(without({"--dirichlet-split", "class"}) == "it needs --dirichlet.");
  CHECK(without({"--labels", "10", "--absent-logits", "trained"}) ==
        "with --labels 10 no client lacks a label.");
  CHECK(refused({"--capacity-mix", "1/2", "--redraw-capacities"}) ==
        "--redraw-capacities would have no effect: the mix has one capacity.");
  CHECK(refused({"--resume", "--overwrite"}) ==
        "--resume and --overwrite cannot be used together.");

  // What a file has is said, unless it is what it would be anyway.
  const configuration file(
      R"({"method": "fedavg", "step": 3, "proximal": 0.1, "decay-at": "0.1"})");
  const trainer::options o = parsed({"--config", file.path(), "--lr-schedule", "constant"});
  CHECK(o.notes == std::vector<std::string>{
                       std::string(file.path()) + ": \"decay-at\" has no effect: it needs "
                                                  "--lr-schedule step.",
                       std::string(file.path()) + ": \"step\" has no effect: it is for fedrolex, "
                                                  "and --method is fedavg."});
  CHECK(o.config.find("\"step\"") == std::string::npos);
  CHECK(o.config.find("\"decay-at\"") == std::string::npos);
}

TEST_CASE("a text has no labels: what is for images alone is refused, and not in a configuration") {
  for (const char* model : {"char-lstm", "transformer"}) {
    for (const auto& [option, value] : {std::pair("--labels", "5"),
                                        {"--dirichlet", "0.5"},
                                        {"--dirichlet-split", "class"},
                                        {"--absent-logits", "trained"}}) {
      CHECK(refused({"--model", model, option, value}) ==
            std::string(option) +
                " would have no effect: clients of a text have no labels, and lack "
                "no character or word.");
    }
    CHECK(refused({"--model", model, "--norm", "none"}) ==
          "--norm would have no effect: it needs --model small.");
    CHECK(refused({"--method", "fjord,fedavg,heterofl,dropping", "--model", model}) ==
          "dropping scales channels of the networks for images: it needs --model small, "
          "pre-resnet18, lenet or cnn.");
    const trainer::options o = parsed({"--model", model});
    CHECK(o.data == "/usr/lib/bible.data");
    CHECK(o.config.find("\"data\": \"/usr/lib/bible.data\"") != std::string::npos);
    CHECK(parsed({"--model", model, "--data", "a text"}).data == "a text");
    for (const char* absent : {"labels", "dirichlet", "absent-logits", "norm"}) {
      CHECK(o.config.find("\"" + std::string(absent) + "\"") == std::string::npos);
    }
  }
  CHECK(refused({"--model", "char-lstm", "--vocabulary", "10"}) ==
        "--vocabulary would have no effect: it needs --model transformer.");
  CHECK(parsed({}).identity.find("vocabulary") == std::string::npos);
  CHECK(parsed({"--model", "transformer"}).identity.find("\"vocabulary\":1000") !=
        std::string::npos);
  CHECK(parsed({}).data == "/usr/share/datasets/fashion-mnist");
}

TEST_CASE("a text that a configuration cannot hold is refused") {
  CHECK(refused({"--out", "a\xff"}) ==
        "--out is not UTF-8 text, so the configuration of the run cannot store it.");
  CHECK(refused({"--data", "\xc3("}).starts_with("--data is not UTF-8 text"));
  CHECK(parsed({"--out", "\xc3\xa4"}).out == "\xc3\xa4");
}

TEST_CASE("a run is made again from its configuration") {
  std::vector<std::vector<const char*>> lines = {{},
                                                 all_options,
                                                 {"--decay-at", ""},
                                                 {"--step", "-2"},
                                                 {"--client-phase", "7"},
                                                 {"--layer-phases"}};
  for (const auto& line : lines) {
    const trainer::options o = parsed(line);
    const configuration file(o.config);
    const trainer::options again = parsed({"--config", file.path()});
    // The texts have all options in them, which "each option reaches its place" looks at.
    CHECK(again.config == o.config);
    CHECK(again.identity == o.identity);
    CHECK(again.methods == o.methods);
    CHECK(again.dirichlet == o.dirichlet);
    CHECK(again.overlap == o.overlap);
    CHECK(again.client_phase == o.client_phase);
    CHECK(again.layer_phases == o.layer_phases);
    CHECK(again.lr == o.lr);
    CHECK(again.decay_at == o.decay_at);
    CHECK(again.seed() == o.seed());
    CHECK(again.widths == o.widths);
    CHECK(again.cohort.capacities == o.cohort.capacities);
    CHECK(again.distillation == o.distillation);
    CHECK(again.distilled.temperature == o.distilled.temperature);
    CHECK_FALSE(again.resume);
  }
}

TEST_CASE("a configuration has each option that is in force, numbers as numbers") {
  const std::string standard = parsed({}).config;
  CHECK(standard.find("  \"method\": \"fedrolex,heterofl,fjord\",\n  \"clients\": 100,\n") !=
        std::string::npos);
  CHECK(standard.find("\"lr\": 0.05,") != std::string::npos);
  CHECK(standard.find("\"distillation\": false,") != std::string::npos);
  CHECK(standard.find("\"labels\": 2,") != std::string::npos);
  CHECK(standard.find("\"step\": 1,") != std::string::npos);
  for (const char* absent :
       {"dirichlet", "overlap", "alpha", "temperature", "resume", "config", "help"}) {
    CHECK(standard.find("\"" + std::string(absent) + "\"") == std::string::npos);
  }
  const std::string all = parsed(all_options).config;
  for (std::size_t i = 0; i < all_options.size(); ++i) {
    const std::string word = all_options[i];
    if (!word.starts_with("--") || word == "--resume") continue;
    CAPTURE(word);
    CHECK(all.find("\n  \"" + word.substr(2) + "\": ") != std::string::npos);
  }
  CHECK(all.find("\"labels\"") == std::string::npos);
  CHECK(all.find("\"step\":") == std::string::npos);
  CHECK(all.find("\"lr\": 0.012345678901234567,") != std::string::npos);
  CHECK(all.find("\"seed\": 18446744073709551615,") != std::string::npos);
  CHECK(all.find("\"redraw-capacities\": true,") != std::string::npos);
}

TEST_CASE("an identity tells runs with other results apart, and no others") {
  const std::string identity = parsed({}).identity;
  CHECK(identity.find('\n') == std::string::npos);
  const std::vector<const char*> same[] = {
      {"--method", "fjord"}, {"--resume"},         {"--checkpoint-every", "3"},  {"--threads", "5"},
      {"--data", "x"},       {"--out", "x"},       {"--eval-every", "3"},        {"--overwrite"},
      {"--lr", "0.050"},     {"--clients", "100"}, {"--capacity-mix", "uniform"}};
  for (const auto& line : same) CHECK(parsed(line).identity == identity);
  const std::vector<const char*> others[] = {
      {"--norm", "none"}, {"--model", "lenet"},     {"--width", "2"},     {"--device", "cuda"},
      {"--seed", "2"},    {"--lr", "0.051"},        {"--dirichlet", "1"}, {"--overlap", "1"},
      {"--distillation"}, {"--cohort-rounds", "2"}, {"--rounds", "5"}};
  for (const auto& line : others) CHECK(parsed(line).identity != identity);
  CHECK(parsed({"--capacity-mix", "1, 1/2"}).identity ==
        parsed({"--capacity-mix", "1,1/2"}).identity);
  CHECK(parsed({"--widths", " 1/2, 1"}).identity == parsed({"--widths", "1/2,1"}).identity);
  CHECK(parsed({"--decay-at", ".5, 0.75"}).identity == identity);
}

TEST_CASE("the command line goes before the file") {
  const configuration file(
      R"({"rounds": 5, "lr": 1, "labels": 4, "overlap": 0.5, "distillation": true, "alpha": 0.5})");
  const trainer::options as_filed = parsed({"--config", file.path()});
  CHECK(as_filed.rounds == 5);
  CHECK(as_filed.lr == 1);
  CHECK(as_filed.labels == 4);
  CHECK(as_filed.distilled.alpha == 0.5);
  const trainer::options o = parsed({"--rounds", "6", "--config", file.path(), "--dirichlet", "0.5",
                                     "--step", "3", "--distillation=false"});
  CHECK(o.rounds == 6);
  CHECK(o.lr == 1);
  CHECK(o.dirichlet == 0.5);
  CHECK(o.labels == 2);
  CHECK_FALSE(o.overlap);
  CHECK(o.window_step == 3);
  CHECK_FALSE(o.distillation);
  CHECK(o.distilled.alpha == 1);
}

TEST_CASE("a file that cannot be meant is refused by its name and key") {
  CHECK(refused({"--config", "/no/such/file"}) ==
        "The configuration /no/such/file cannot be read.");
  CHECK(refused({"--config", "/"}) == "The configuration / cannot be read.");
  CHECK(file_refused("").starts_with("FILE is not JSON: "));
  CHECK(file_refused("{\"rounds\": 5").starts_with("FILE is not JSON: "));
  CHECK(file_refused("{\"lr\": 1e999}").starts_with("FILE is not JSON: "));
  CHECK(file_refused("{\"rounds\": 5, \"rounds\": 6}") == "FILE: the key \"rounds\" occurs twice.");
  CHECK(file_refused("[5]") == "FILE is not a JSON object.");
  for (const char* key : {"round", "methods", "config", "help", "resume", "--rounds", ""}) {
    CHECK(file_refused("{\"" + std::string(key) + "\": 5}") ==
          "FILE: there is no option \"" + std::string(key) +
              "\" for a configuration; --help lists the options.");
  }
  CHECK(file_refused(R"({"rounds": "ten"})") ==
        "FILE: \"rounds\" is \"ten\", but a whole number is expected.");
  CHECK(file_refused(R"({"rounds": 1.5})").find("a whole number is") != std::string::npos);
  CHECK(file_refused(R"({"rounds": true})").find("a whole number is") != std::string::npos);
  CHECK(file_refused(R"({"rounds": 18446744073709551615})").find("a whole number is") !=
        std::string::npos);
  CHECK(file_refused(R"({"seed": -1})") ==
        "FILE: \"seed\" is -1, but a whole number that is not negative is expected.");
  CHECK(file_refused(R"({"lr": "0.1"})") == "FILE: \"lr\" is \"0.1\", but a number is expected.");
  CHECK(file_refused(R"({"lr": null})").find("a number is") != std::string::npos);
  CHECK(file_refused(R"({"distillation": 1})") ==
        "FILE: \"distillation\" is 1, but true or false is expected.");
  CHECK(file_refused(R"({"device": {}})") == "FILE: \"device\" is {}, but a text is expected.");
  CHECK(file_refused(R"({"rounds": 0})") == "--rounds is 0, but at least 1 is expected.");
  CHECK(file_refused(R"({"device": "tpu"})").starts_with("--device is \"tpu\""));
  CHECK(file_refused(R"({"labels": 2, "dirichlet": 1})") ==
        "--labels and --dirichlet cannot be used together.");
  CHECK(file_refused(R"({"alpha": 1})") == "--alpha needs --distillation.");
  // What the command line overrules must be of its kind all the same.
  const configuration file(R"({"rounds": "ten"})");
  CHECK(refused({"--rounds", "5", "--config", file.path()}).find("\"rounds\" is \"ten\"") !=
        std::string::npos);
}
