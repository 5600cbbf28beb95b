// SPDX-License-Identifier: MIT
#include <subfed/cost/workload.hpp>

#include <models/char_lstm.hpp>
#include <models/lenet.hpp>
#include <models/pre_resnet18.hpp>
#include <models/resnet50.hpp>
#include <models/transformer.hpp>
#include <models/vgg9.hpp>
#include <subfed/draw.hpp>
#include <subfed/layers.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>

#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

using subfed::capacity;
using subfed::cost_rule;
using subfed::index_set;
using subfed::model;
using subfed::submodel;
using subfed::workload;
using support::message_of;
using counts = std::vector<std::int64_t>;

namespace {

/// A client of capacity 2^-halvings.
submodel client(const model& net, int halvings) {
  return subfed::draw(net, subfed::prefix(),
                      {.capacity = capacity::ratio(1, std::int64_t{1} << halvings)});
}
counts sizes_at_every_capacity(const model& net) {
  counts out;
  for (int i = 0; i < 5; ++i) out.push_back(client(net, i).size());
  return out;
}
std::string rounded(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
std::string mebibytes(std::int64_t bytes) {
  return rounded(static_cast<double>(bytes) / (1 << 20), 2);
}
double mean(const counts& values) {
  return static_cast<double>(std::accumulate(values.begin(), values.end(), std::int64_t{0})) /
         static_cast<double>(values.size());
}
std::int64_t sum(const counts& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}
/// Parameters of each layer, that is of each weight with its biases.
counts parameters_by_layer(const model& net) {
  counts out;
  std::string layer;
  for (const auto& t : net.tensors()) {
    std::int64_t n = 1;
    for (const std::int64_t e : t.extents) n *= e;
    const std::string name = t.name.substr(0, t.name.rfind('.'));
    if (name != layer) out.push_back(0);
    layer = name;
    out.back() += n;
  }
  return out;
}

}  // namespace

TEST_CASE("[Rolex, Table 7]: parameters, operations and bytes, all nine cells") {
  const auto resnet = models::describe_pre_resnet18();
  counts sizes, operations;
  std::vector<std::int64_t> bytes;
  for (int i = 0; i < 5; ++i) {
    const submodel part = client(resnet.net, i);
    sizes.push_back(part.size());
    operations.push_back(resnet.work.count(part, cost_rule::rolex()));
    bytes.push_back(subfed::traffic(part).down);
  }
  CHECK(sizes == counts{11172170, 2796714, 701018, 176178, 44510});
  CHECK(operations == counts{557656064, 140416000, 35604992, 9151744, 2413184});
  CHECK(mean(sizes) == 2978118);
  // The paper prints 2.9781232: the mean of millions that were rounded to six digits.
  CHECK(rounded((11.172200 + 2.796710 + 0.701018 + 0.176178 + 0.044510) / 5, 7) == "2.9781232");
  CHECK(rounded(mean(operations) / 1e6, 6) == "149.048397");  // printed: 149.048384
  CHECK(mebibytes(bytes[0]) == "42.62");
  CHECK(rounded(mean(bytes) / (1 << 20), 2) == "11.36");
  CHECK(mebibytes(bytes[4]) == "0.17");
  CHECK(resnet.work.count(client(resnet.net, 0)) == 555422720);
  CHECK(models::describe_pre_resnet18({.classes = 100}).net.size() == 11218340);
}

TEST_CASE("costs are those of the nodes held, whichever they are") {
  const auto resnet = models::describe_pre_resnet18();
  const submodel rolled =
      subfed::draw(resnet.net, subfed::rolling(), {.round = 500, .capacity = 0.25});
  CHECK(rolled.size() == 701018);
  CHECK(resnet.work.count(rolled, cost_rule::rolex()) == 35604992);
}

TEST_CASE("[FedDrop, Table 6]: the LeNet of Fashion-MNIST") {
  const auto lenet = models::describe_lenet(models::lenet_options::fashion_mnist());
  CHECK(parameters_by_layer(lenet.net) == counts{832, 51264, 36928, 131584, 5130});
  CHECK(lenet.net.size() == 225738);
  const auto rows = lenet.work.counts(submodel::full(lenet.net), cost_rule::feddrop_tables());
  // The table's 125 k of the second pooling are 12.5 k.
  CHECK(rows == counts{652288, 25088, 10047744, 12544, 923200, 1600, 131584, 5130});
  CHECK(sum(rows) == 11799178);
}

TEST_CASE("[FedDrop, Table 7]: the LeNet of SVHN") {
  const auto lenet = models::describe_lenet(models::lenet_options::svhn());
  CHECK(parameters_by_layer(lenet.net) == counts{2432, 51264, 36928, 131584, 5130});
  CHECK(lenet.net.size() == 227338);
  const auto rows = lenet.work.counts(submodel::full(lenet.net), cost_rule::feddrop_tables());
  // The table's 333 k of the third convolution are 332352, its total of 7.54 M 7534218.
  CHECK(rows == counts{1906688, 25088, 5126400, 6400, 332352, 576, 131584, 5130});
  CHECK(sum(rows) == 7534218);
}

TEST_CASE("[FedDrop, Table 8]: VGG-9") {
  const auto vgg = models::describe_vgg9();
  CHECK(parameters_by_layer(vgg.net) ==
        counts{896, 18496, 73856, 147584, 295168, 590080, 131584, 262656, 5130});
  CHECK(vgg.net.size() == 1525450);
  const auto rows = vgg.work.counts(submodel::full(vgg.net), cost_rule::feddrop_tables());
  CHECK(rows == counts{917504, 18939904, 65536, 18907136, 37781504, 32768, 18890752, 37765120,
                       16384, 131584, 262656, 5130});
  CHECK(sum(rows) == 133715978);
}

TEST_CASE("[FedDrop, Eq. 9]: twice the weights and biases of a layer at each position") {
  const auto vgg = models::describe_vgg9();
  const submodel whole = submodel::full(vgg.net);
  const std::int64_t poolings = 65536 + 32768 + 16384;
  CHECK(vgg.work.count(whole, cost_rule::feddrop_equations()) == 2 * (133715978 - poolings));
  // Half of the channels on both sides of a convolution: 2 (3^2 16 32 + 32) 32^2.
  CHECK(vgg.work.counts(client(vgg.net, 1), cost_rule::feddrop_equations())[1] ==
        2 * (9 * 16 * 32 + 32) * 1024);
}

TEST_CASE("[FedDrop, Table 4]: memory of training, r times the features and all parameters") {
  const auto vgg = models::describe_vgg9();
  const std::int64_t features = vgg.work.features(submodel::full(vgg.net));
  CHECK(features == 197642);
  const double mebibyte = 1 << 20;
  const double parameters = static_cast<double>(4 * vgg.net.size()) / mebibyte;
  CHECK(rounded(parameters, 2) == "5.82");
  const auto total = [&](double r, std::int64_t batch) {
    return r * static_cast<double>(4 * batch * features) / mebibyte + parameters;
  };
  struct row {
    std::int64_t batch;
    const char *feature, *whole, *at_075, *reduction_075, *at_05, *reduction_05;
  };
  const row table[] = {{4, "3.02", "8.83", "8.08", "8.53", "7.33", "17.07"},
                       {8, "6.03", "11.85", "10.34", "12.72", "8.83", "25.45"},
                       {16, "12.06", "17.88", "14.87", "16.86", "11.85", "33.73"},
                       {32, "24.13", "29.95", "23.91", "20.14", "17.88", "40.28"}};
  for (const row& r : table) {
    INFO("batch ", r.batch);
    const double whole = total(1, r.batch);
    const auto reduction = [&](double ratio) {
      return rounded(100 * (1 - total(ratio, r.batch) / whole), 2);
    };
    CHECK(rounded(whole - parameters, 2) == r.feature);
    CHECK(rounded(whole, 2) == r.whole);
    CHECK(rounded(total(0.75, r.batch), 2) == r.at_075);
    CHECK(reduction(0.75) == r.reduction_075);
    CHECK(rounded(total(0.5, r.batch), 2) == r.at_05);
    CHECK(reduction(0.5) == r.reduction_05);
  }
}

TEST_CASE("[FedDrop, Table 9]: the character LSTM") {
  const auto lstm = models::describe_char_lstm();
  std::int64_t cell = 0;
  counts rest;
  for (const auto& t : lstm.net.tensors()) {
    std::int64_t n = 1;
    for (const std::int64_t e : t.extents) n *= e;
    if (t.name.starts_with("lstm.")) {
      cell += n;
    } else {
      rest.push_back(n);
    }
  }
  CHECK(cell == 272384);  // with two biases a gate
  CHECK(rest == counts{640, 20480, 80});
  CHECK(lstm.net.size() == 293584);  // the table's 293 k is cut off, not rounded
  const auto rows = lstm.work.counts(submodel::full(lstm.net), cost_rule::feddrop_tables());
  CHECK(rows == counts{4 * 256 * 9, 4 * 256 * 257, 10 * 256, 20560});
  CHECK(lstm.work.count(submodel::full(lstm.net), cost_rule::feddrop_tables()) == 295504);
  CHECK(rows[0] + rows[1] == cell);
}

TEST_CASE(
    "the Transformer of [Rolex] has as many parameters as the released code, and as the text") {
  CHECK(sizes_at_every_capacity(models::describe_transformer().net) ==
        counts{4374416, 1745744, 766256, 360224, 178136});
  CHECK(models::describe_transformer({.head_width = 12}).net.size() == 4324976);
  CHECK(models::describe_transformer({.cut = models::head_cut::whole}).net.size() == 4374416);
}

TEST_CASE("multiply-adds of grouped, transposed, attention and element-wise operations") {
  model net;
  const auto in = net.group("in", 4);
  const auto out = net.group("out", 2);
  const auto grouped =
      conv1d(net, "grouped", {in.repeat(2), out.repeat(2), 3, subfed::bias::added, 2});
  const auto up = conv_transpose1d(net, "up", {out.repeat(2), in, 5});
  workload work(net);
  work.convolution(grouped, 10).transposed_convolution(up, 10, 20);
  work.attention(in, 7 * 7).normalization(in, 20).pooling(in, 20).elementwise(out, 9);
  const submodel part(net, {index_set(4, {0, 3, 1}), index_set(2, {1})});
  // Weights (2, 3, 3) and (2, 3, 5).
  CHECK(work.counts(part) == counts{18 * 10, 30 * 10, 3 * 49, 0, 0, 0});
  cost_rule all;
  all.bias = all.normalization = all.pooling = all.elementwise = 1;
  CHECK(work.counts(part, all) ==
        counts{18 * 10 + 2 * 10, 30 * 10 + 3 * 20, 3 * 49, 3 * 20, 3 * 20, 9});
  CHECK(work.operations().size() == 6);
}

TEST_CASE("what cannot be counted is refused") {
  model net;
  const auto fc = linear(net, "fc", {5, net.group("hidden", std::int64_t{1} << 40)});
  workload work(net);
  CHECK(message_of([&] { work.linear(fc, -1); }) == "subfed: cost: an operation at -1 positions");
  CHECK(message_of([&] { work.elementwise(subfed::group_id(3)); }) ==
        "subfed: model: a dimension uses group number 3, but this model has 1 groups");
  CHECK(work.operations().empty());
  work.linear(fc, std::int64_t{1} << 40);
  CHECK(message_of([&] { work.count(submodel::full(net)); }) ==
        "subfed: cost: a count grows beyond 2^63 - 1");
  model other;
  other.group("hidden", 3);
  CHECK(message_of([&] { work.count(submodel::full(other)); }) ==
        "subfed: cost: the submodel is of another model than the workload");
}

TEST_CASE("sizes and rules that are negative are refused, what a rule leaves out costs nothing") {
  model net;
  const auto fc = linear(net, "fc", {.in = 5, .out = net.group("g", 2)});
  const submodel all = submodel::full(net);
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  CHECK(message_of([&] { traffic(all, {.element_bytes = least}); }) ==
        "subfed: cost: the size of an element is -9223372036854775808, expected a number that is "
        "not negative");
  const std::vector<std::int64_t> sizes{4, -1};
  CHECK(message_of([&] { traffic(all, {.tensor_element_bytes = sizes}); }) ==
        "subfed: cost: the size of an element is -1, expected a number that is not negative");
  CHECK(message_of([&] { traffic(all, {.index_bytes = -4}); }) ==
        "subfed: cost: the size of an index is -4, expected a number that is not negative");
  CHECK(message_of([&] {
          traffic(all, {.element_bytes = std::numeric_limits<std::int64_t>::max()});
        }) == "subfed: cost: a count grows beyond 2^63 - 1");
  workload work(net);
  work.linear(fc);
  subfed::cost_rule rule;
  rule.linear = -1;
  CHECK(message_of([&] { work.count(all, rule); }) ==
        "subfed: cost: what a rule counts is -1, expected a number that is not negative");
  work.pooling(9, std::numeric_limits<std::int64_t>::max());  // counts nothing by this rule
  CHECK(work.count(all) == 10);
}
