// SPDX-License-Identifier: MIT
#include "architecture.hpp"

#include <fmt/format.h>

#include <cmath>
#include <models/char_lstm.hpp>
#include <models/lenet.hpp>
#include <models/pre_resnet18.hpp>
#include <models/transformer.hpp>
#include <string>
#include <subfed/layers.hpp>

#include "data.hpp"
#include "text_data.hpp"

namespace trainer {

channel_counts full_size(model_kind model, std::int64_t width, std::int64_t vocabulary) {
  channel_counts out{{32, 64}, {32, 64}, class_count, model};
  if (model == model_kind::pre_resnet18) {
    out.stream = {64, 128, 256, 512};
    out.inner = {64, 64, 128, 128, 256, 256, 512, 512};
  }
  if (model == model_kind::lenet) {
    out.stream = {};
    out.inner = {32, 64, 64, 512};
  }
  if (model == model_kind::cnn) out = {{}, {8, 8, 16}, class_count, model};
  if (model == model_kind::char_lstm) out = {{}, {256}, character_count, model};
  if (model == model_kind::transformer) {
    out = {{128}, {16, 2048, 16, 2048, 16, 2048, 128}, vocabulary, model};
  }
  return widened(out, static_cast<double>(width));
}

channel_counts narrowed(const channel_counts& whole, subfed::capacity share) {
  channel_counts out = whole;
  for (std::int64_t& n : out.stream) n = share.of(n);
  for (std::int64_t& n : out.inner) n = share.of(n);
  return out;
}

channel_counts widened(const channel_counts& whole, double factor) {
  const auto times = [factor](std::int64_t n) {
    return static_cast<std::int64_t>(std::floor(factor * static_cast<double>(n) + 1e-9));
  };
  channel_counts out = whole;
  for (std::int64_t& n : out.stream) n = times(n);
  for (std::int64_t& n : out.inner) n = times(n);
  return out;
}

channel_counts architecture::channels(const subfed::submodel& part) const {
  channel_counts out;
  for (const subfed::group_id g : stream) out.stream.push_back(part.extent(g));
  for (const subfed::group_id g : inner) out.inner.push_back(part.extent(g));
  out.classes = part.extent(classes);
  out.model = model;
  return out;
}

namespace {

architecture describe_pre_resnet18(const channel_counts& whole) {
  const models::pre_resnet18 made = models::describe_pre_resnet18({.classes = whole.classes,
                                                                   .widths = whole.stream,
                                                                   .middles = whole.inner,
                                                                   .colours = 1,
                                                                   .side = 28});
  return {made.net,     made.stream, made.middle, made.stream.back(),
          made.classes, made.work,   whole.model, norm_kind::batch};
}

architecture describe_lenet(const channel_counts& whole) {
  models::lenet_options options = models::lenet_options::fashion_mnist();
  options.classes = whole.classes;
  options.widths = whole.inner;
  const models::lenet made = models::describe_lenet(options);
  std::vector<subfed::group_id> hidden = made.channels;
  hidden.push_back(made.hidden);
  return {made.net, {}, hidden, made.hidden, made.classes, made.work, whole.model, norm_kind::none};
}

// The convolutions see 28 x 28 and 14 x 14 places, and the hidden layer 7 x 7 of each channel.
architecture describe_cnn(const channel_counts& whole) {
  subfed::model net;
  const auto c1 = net.group("conv1", whole.inner.at(0));
  const auto c2 = net.group("conv2", whole.inner.at(1));
  const auto hidden = net.group("fc1", whole.inner.at(2));
  const auto classes = net.group("classes", whole.classes, subfed::cut::never);
  const auto conv1 = subfed::conv2d(net, "conv1", {1, c1, 5, 5});
  const auto conv2 = subfed::conv2d(net, "conv2", {c1, c2, 5, 5});
  const auto fc1 = subfed::linear(net, "fc1", {subfed::flatten(c2, 7 * 7), hidden});
  const auto fc2 = subfed::linear(net, "fc2", {hidden, classes});
  check_reads(net, fc1.weight, {conv2.weight});

  subfed::workload work(net);
  work.convolution(conv1, 28 * 28).pooling(c1, 28 * 28);
  work.convolution(conv2, 14 * 14).pooling(c2, 14 * 14);
  work.linear(fc1).linear(fc2);
  return {net, {}, {c1, c2, hidden}, hidden, classes, work, whole.model, norm_kind::none};
}

architecture describe_char_lstm(const channel_counts& whole) {
  const models::char_lstm made =
      models::describe_char_lstm({.characters = whole.classes, .hidden = whole.inner.at(0)});
  const auto tensor = [&](const char* name) { return made.net.find_tensor(name); };
  subfed::workload work(made.net);
  for (const char* gates : {"ih", "hh"}) {
    work.linear({tensor(fmt::format("lstm.weight_{}_l0", gates).c_str()), {}}, characters_each);
  }
  work.linear({tensor("decoder.weight"), {}}, characters_each);
  return {made.net,        {},   {made.hidden}, made.hidden,
          made.characters, work, whole.model,   norm_kind::none};
}

architecture describe_transformer(const channel_counts& whole) {
  models::transformer_options options;
  options.vocabulary = whole.classes;
  options.width = whole.stream.at(0);
  options.head_width = whole.inner.at(0);
  options.hidden = whole.inner.at(1);
  const models::transformer made = models::describe_transformer(options);
  subfed::workload work(made.net);
  std::vector<subfed::group_id> inner;
  const auto linear = [&](const std::string& name) {
    work.linear({made.net.find_tensor(name + ".weight"), {}}, words_each);
  };
  for (std::size_t l = 0; l < made.hidden.size(); ++l) {
    inner.push_back(made.heads[l]);
    inner.push_back(made.hidden[l]);
    const std::string layer = fmt::format("layers.{}.", l);
    for (const char* part : {"attention.q_proj", "attention.k_proj", "attention.v_proj",
                             "attention.o_proj", "linear1", "linear2"}) {
      linear(layer + part);
    }
    const subfed::dimension heads = subfed::dimension(made.heads[l]).repeat(options.heads);
    for (int i = 0; i < 2; ++i) work.attention(heads, words_each * words_each);
  }
  linear("decoder1");
  linear("decoder2");
  inner.push_back(made.decoder);
  return {made.net,   {made.width}, inner,       made.decoder,
          made.words, work,         whole.model, norm_kind::none};
}

}  // namespace

architecture describe(const channel_counts& whole, const network_variant& variant) {
  if (whole.model == model_kind::pre_resnet18) return describe_pre_resnet18(whole);
  if (whole.model == model_kind::lenet) return describe_lenet(whole);
  if (whole.model == model_kind::cnn) return describe_cnn(whole);
  if (whole.model == model_kind::char_lstm) return describe_char_lstm(whole);
  if (whole.model == model_kind::transformer) return describe_transformer(whole);
  subfed::model net;
  std::vector<subfed::group_id> stream, inner;
  for (std::size_t s = 0; s < whole.stream.size(); ++s) {
    stream.push_back(net.group(fmt::format("stream{}", s + 1), whole.stream[s]));
    inner.push_back(net.group(fmt::format("inner{}", s + 1), whole.inner.at(s)));
  }
  // Of a stage whose input goes round the convolutions as it is.
  const subfed::group_id first_result =
      variant.skips == skips::tied ? stream.front() : net.group("result1", whole.stream.front());
  const auto result_of = [&](std::size_t s) { return s == 0 ? first_result : stream[s]; };
  const subfed::group_id classes = net.group("classes", whole.classes, subfed::cut::never);

  // Names and shapes as network.cpp registers them; operations by the places that they work at: the
  // stem of stride 4 leaves 7 x 7, the second stage 4 x 4.
  struct used {
    subfed::weight_and_bias layer;
    std::int64_t positions;
  };
  std::vector<used> convolutions;
  const auto biases = variant.norm == norm_kind::batch ? subfed::bias::none : subfed::bias::added;
  const auto convolution = [&](const std::string& name, subfed::dimension in, subfed::group_id out,
                               std::int64_t kernel, std::int64_t side) {
    convolutions.push_back(
        {subfed::conv2d(net, name, {in, out, kernel, kernel, biases}), side * side});
  };
  const auto norm = [&](const std::string& name, subfed::group_id channels) {
    if (variant.norm == norm_kind::batch) subfed::batch_norm(net, name, {channels});
  };
  std::int64_t side = 7;
  convolution("conv1", 1, stream[0], 5, side);
  for (std::size_t s = 0; s < stream.size(); ++s) {
    const std::string block = fmt::format("block{}.", s + 1);
    const subfed::group_id in = s == 0 ? stream[0] : result_of(s - 1);
    if (s != 0) side = (side + 1) / 2;
    norm(block + "n1", in);
    convolution(block + "conv1", in, inner[s], 3, side);
    norm(block + "n2", inner[s]);
    convolution(block + "conv2", inner[s], result_of(s), 3, side);
    // In the first block the stem's channels go round the convolutions as they are, so its result
    // uses their group: that ties the residual add, unless it is to be untied.
    if (s != 0) convolution(block + "shortcut", in, result_of(s), 1, side);
  }
  norm("n4", result_of(stream.size() - 1));
  const auto head = subfed::linear(net, "linear", {result_of(stream.size() - 1), classes});

  subfed::workload work(net);
  for (const used& u : convolutions) work.convolution(u.layer, u.positions);
  work.linear(head);
  return {net, stream, inner, stream.back(), classes, work, whole.model, variant.norm};
}

}  // namespace trainer
