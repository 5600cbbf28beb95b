// SPDX-License-Identifier: MIT
/// Any text as a model file: it is refused with an error, or is a model that is the same after it was
/// written and read again.
#include <fuzz/fuzz.hpp>
#include <subfed/adapt/model_file.hpp>

#include <string>
#include <string_view>

namespace {

const fuzz::registered model_file("model_file", [](fuzz::bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const subfed::model net = subfed::read_model(text);
  const std::string written = subfed::write_model(net);
  fuzz::expect(subfed::read_model(written) == net);
});

}  // namespace
