// SPDX-License-Identifier: MIT
/// Any text as the trainer's configuration, as a capacity and as a mix of capacities: refused with
/// a sentence, or read; what was read is the same when it is written and read again.
#include <fuzz/fuzz.hpp>

#if __has_include(<nlohmann/json.hpp>) && __has_include(<fmt/format.h>)
#define FMT_HEADER_ONLY
#include <common/mix.cpp>
#include <trainer/configuration.cpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

struct options {
  bool flag = false;
  std::int64_t whole = 0;
  std::uint64_t seed = 0;
  double rate = 0;
  std::string name;

  std::vector<trainer::field> fields() {
    return {{"flag", &flag},
            {"whole", &whole},
            {"seed", &seed},
            {"rate", &rate, trainer::origin::standard, "name"},
            {"name", &name}};
  }
  std::string text() {
    const auto all = fields();
    return trainer::write_configuration(all, trainer::layout::compact,
                                        [](std::string_view) { return true; });
  }
};

struct file {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("subfed_fuzz_" + std::to_string(std::random_device()()));
  ~file() {
    std::error_code none;
    std::filesystem::remove(path, none);
  }
};

void read(options& into, const std::string& text) {
  static const file at;
  std::ofstream(at.path, std::ios::binary) << text;
  std::vector<trainer::field> fields = into.fields();
  trainer::read_configuration(at.path, fields);
}

const fuzz::registered configuration("configuration", [](fuzz::bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  try {
    options first;
    read(first, text);
    options second;
    read(second, first.text());
    fuzz::expect(second.text() == first.text());
  } catch (const common::failure&) {
  }
  try {
    const double share = common::parse_capacity(text).value();
    fuzz::expect(share > 0 && share <= 1);
  } catch (const common::failure&) {
  }
  try {
    const common::named_mix mix = common::parse_mix(text);
    fuzz::expect(mix.names.size() == mix.mix.classes.size());
    fuzz::expect(common::parse_mix(mix.text).text == mix.text);
  } catch (const common::failure&) {
  }
});

}  // namespace
#else
namespace {
const fuzz::registered configuration("configuration", [](fuzz::bytes) {});
}
#endif
