// SPDX-License-Identifier: MIT
#include "data.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "failure.hpp"

namespace trainer {
namespace {

constexpr std::uint32_t magic_of_images = 0x803;  // unsigned bytes, three dimensions
constexpr std::uint32_t magic_of_labels = 0x801;  // unsigned bytes, one dimension
constexpr std::int64_t most_images = 10'000'000;  // a damaged header must not ask for terabytes
constexpr std::int64_t longest_side = 4096;

/// A file read through zlib, which takes plain files as they are.
class idx_file {
 public:
  explicit idx_file(const std::filesystem::path& path) : name_(path.string()) {
    errno = 0;
    file_.reset(gzopen(name_.c_str(), "rb"));
    if (!file_) {
      const char* reason = errno != 0 ? std::strerror(errno) : "out of memory";
      throw failure(fmt::format("{} cannot be opened: {}.", name_, reason));
    }
  }

  std::uint32_t big_endian_word(const char* what) {
    std::uint8_t byte[4];
    read(byte, what);
    return std::uint32_t{byte[0]} << 24 | std::uint32_t{byte[1]} << 16 |
           std::uint32_t{byte[2]} << 8 | std::uint32_t{byte[3]};
  }

  void expect_magic(std::uint32_t expected) {
    const std::uint32_t found = big_endian_word("the magic number");
    if (found != expected) {
      throw failure(
          fmt::format("{} starts with the magic number {:#010x}, but {:#010x} is expected.", name_,
                      found, expected));
    }
  }

  std::int64_t size(const char* what, std::int64_t largest) {
    const std::int64_t found = big_endian_word(what);
    if (found < 1 || found > largest) {
      throw failure(
          fmt::format("{} gives {} as {}, but 1 to {} is expected.", name_, found, what, largest));
    }
    return found;
  }

  void read(std::span<std::uint8_t> out, const char* what) {
    constexpr std::size_t piece = std::size_t{1} << 24;  // gzread counts in unsigned int
    std::size_t done = 0;
    while (done < out.size()) {
      const auto wanted = static_cast<unsigned>((std::min)(piece, out.size() - done));
      const int got = gzread(file_.get(), out.data() + done, wanted);
      if (got < 0) throw damaged();
      done += static_cast<std::size_t>(got);
      if (static_cast<unsigned>(got) < wanted) break;
    }
    if (done < out.size()) {
      int code = Z_OK;
      gzerror(file_.get(), &code);
      throw failure(fmt::format("{} is cut short: {} bytes are expected for {}, {} were found.",
                                name_, out.size(), what, done));
    }
  }

  /// Also makes zlib compare the checksum at the end of the file.
  void expect_end() {
    std::uint8_t byte = 0;
    const int got = gzread(file_.get(), &byte, 1);
    if (got < 0) throw damaged();
    int code = Z_OK;
    gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR) {
      throw failure(fmt::format("{} is cut short: the end of its gzip stream is missing.", name_));
    }
    if (got > 0) {
      throw failure(fmt::format("{} has data after the last item that its header counts.", name_));
    }
  }

 private:
  failure damaged() const {
    int code = Z_OK;
    const char* reason = gzerror(file_.get(), &code);
    // zlib puts the file's name in front of its reason.
    std::string text = reason;
    if (text.starts_with(name_ + ": ")) text.erase(0, name_.size() + 2);
    return failure(fmt::format("{} is damaged: zlib says \"{}\".", name_, text));
  }

  struct closer {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };

  std::string name_;
  std::unique_ptr<gzFile_s, closer> file_;
};

}  // namespace

dataset load_idx(const std::filesystem::path& images, const std::filesystem::path& labels) {
  dataset out;
  idx_file image_file(images);
  image_file.expect_magic(magic_of_images);
  out.count = image_file.size("the number of images", most_images);
  out.rows = image_file.size("the number of rows", longest_side);
  out.columns = image_file.size("the number of columns", longest_side);

  idx_file label_file(labels);
  label_file.expect_magic(magic_of_labels);
  const std::int64_t label_count = label_file.size("the number of labels", most_images);
  if (label_count != out.count) {
    throw failure(fmt::format("{} holds {} labels, but {} holds {} images.", labels.string(),
                              label_count, images.string(), out.count));
  }

  // Labels first: they are small, and a wrong one is found before the images take memory.
  out.labels.resize(static_cast<std::size_t>(out.count));
  label_file.read(out.labels, "the labels");
  label_file.expect_end();
  const auto wrong = std::find_if(out.labels.begin(), out.labels.end(),
                                  [](std::uint8_t label) { return label >= class_count; });
  if (wrong != out.labels.end()) {
    throw failure(fmt::format("{} gives item {} the label {}, but 0 to {} is expected.",
                              labels.string(), wrong - out.labels.begin(), *wrong,
                              class_count - 1));
  }

  out.pixels.resize(static_cast<std::size_t>(out.count * out.rows * out.columns));
  image_file.read(out.pixels, "the pixels");
  image_file.expect_end();
  return out;
}

std::string checksum(const data_split& data) {
  uLong sum = crc32_z(0, nullptr, 0);
  for (const dataset* set : {&data.train, &data.test}) {
    sum = crc32_z(sum, set->pixels.data(), set->pixels.size());
    sum = crc32_z(sum, set->labels.data(), set->labels.size());
  }
  return fmt::format("{:08x}", sum);
}

std::uint32_t checksum(std::uint32_t sum, const void* bytes, std::size_t size) {
  if (size == 0) return sum;  // where zlib takes a null pointer for a new start
  return static_cast<std::uint32_t>(
      crc32_z(sum, static_cast<const Bytef*>(bytes), static_cast<z_size_t>(size)));
}

data_split load_fashion_mnist(const std::filesystem::path& folder) {
  const auto pair = [&](const char* prefix) {
    const auto images = folder / fmt::format("{}-images-idx3-ubyte.gz", prefix);
    const auto labels = folder / fmt::format("{}-labels-idx1-ubyte.gz", prefix);
    for (const auto& path : {images, labels}) {
      std::error_code ignored;
      if (std::filesystem::is_regular_file(path, ignored)) continue;
      throw failure(fmt::format(
          "{} is missing: on Debian `apt-get install dataset-fashion-mnist` puts it under "
          "/usr/share/datasets/fashion-mnist, and --data takes any other folder.",
          path.string()));
    }
    dataset set = load_idx(images, labels);
    if (set.rows != 28 || set.columns != 28) {
      throw failure(fmt::format("{} holds images of {} x {} pixels, but 28 x 28 is expected.",
                                images.string(), set.rows, set.columns));
    }
    return set;
  };
  return {pair("train"), pair("t10k")};
}

}  // namespace trainer
