// SPDX-License-Identifier: MIT
/// by_hand <folder>: writes the model files of examples/models, which derived descriptions are compared with.
#include <common/files.hpp>
#include <common/program.hpp>
#include <models/char_lstm.hpp>
#include <models/lenet.hpp>
#include <models/pre_resnet18.hpp>
#include <models/resnet50.hpp>
#include <models/transformer.hpp>
#include <models/vgg9.hpp>

#include <filesystem>
#include <string>
#include <subfed/adapt/model_file.hpp>

int main(int count, char** words) {
  return common::run_program("by_hand", [&] {
    const std::filesystem::path folder = count > 1 ? words[1] : ".";
    std::filesystem::create_directories(folder);
    const auto keep = [&](const std::string& name, const subfed::model& net) {
      common::write_file(folder / (name + ".json"), subfed::write_model(net));
    };
    keep("lenet", models::describe_lenet(models::lenet_options::fashion_mnist()).net);
    keep("vgg9", models::describe_vgg9().net);
    keep("pre_resnet18", models::describe_pre_resnet18().net);
    keep("resnet50", models::describe_resnet50().net);
    keep("char_lstm", models::describe_char_lstm().net);
    keep("transformer", models::describe_transformer().net);
  });
}
