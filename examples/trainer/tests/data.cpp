// SPDX-License-Identifier: MIT
#include "data.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <common/tests/message_of.hpp>
#include <common/tests/temporary_folder.hpp>

#include "idx_files.hpp"

namespace {

struct pair_of_files {
  temporary_folder folder;
  std::filesystem::path images = folder.path() / "images.gz";
  std::filesystem::path labels = folder.path() / "labels.gz";

  pair_of_files() {
    write_packed(images, image_file(3, 28, 28));
    write_packed(labels, label_file({0, 9, 4}));
  }
  trainer::dataset load() const { return trainer::load_idx(images, labels); }
  std::string message() const {
    return message_of([&] { load(); });
  }
};

}  // namespace

TEST_CASE("a pair of files is read, gzip'd or plain") {
  const pair_of_files files;
  const trainer::dataset packed = files.load();
  CHECK(packed.count == 3);
  CHECK(packed.rows == 28);
  CHECK(packed.columns == 28);
  CHECK(packed.labels == bytes{0, 9, 4});
  const bytes whole = image_file(3, 28, 28);
  CHECK(packed.pixels == bytes(whole.begin() + 16, whole.end()));

  write_plain(files.images, whole);
  CHECK(files.load().pixels == packed.pixels);
}

TEST_CASE("a file cut short at any byte is refused by name") {
  const pair_of_files files;
  const bytes packed_images = read_plain(files.images);
  for (std::size_t length = 0; length < packed_images.size(); length += 97) {
    write_plain(files.images, bytes(packed_images.begin(),
                                    packed_images.begin() + static_cast<std::ptrdiff_t>(length)));
    CHECK(files.message().starts_with(files.images.string()));
  }
  write_plain(files.images, packed_images);
  const bytes packed_labels = read_plain(files.labels);
  for (std::size_t length = 0; length < packed_labels.size(); ++length) {
    write_plain(files.labels, bytes(packed_labels.begin(),
                                    packed_labels.begin() + static_cast<std::ptrdiff_t>(length)));
    CAPTURE(length);
    CHECK(files.message().starts_with(files.labels.string()));
  }
}

TEST_CASE("a short unpacked file says what was expected and found") {
  const pair_of_files files;
  bytes short_by_five = image_file(3, 28, 28);
  short_by_five.resize(short_by_five.size() - 5);
  write_packed(files.images, short_by_five);
  CHECK(files.message() == files.images.string() +
                               " is cut short: 2352 bytes are expected for the pixels, 2347 were "
                               "found.");
}

TEST_CASE("a wrong checksum is refused") {
  const pair_of_files files;
  bytes packed = read_plain(files.images);
  packed[packed.size() - 6] ^= 1;  // in the CRC-32 of the gzip trailer
  write_plain(files.images, packed);
  CHECK(files.message().starts_with(files.images.string() + " is damaged: zlib says"));
}

TEST_CASE("a wrong magic number is refused") {
  const pair_of_files files;
  write_packed(files.images, label_file({1, 2, 3}));
  CHECK(files.message() == files.images.string() +
                               " starts with the magic number 0x00000801, but 0x00000803 is "
                               "expected.");
}

TEST_CASE("counts that do not agree are refused") {
  const pair_of_files files;
  write_packed(files.labels, label_file({1, 2}));
  CHECK(files.message() == files.labels.string() + " holds 2 labels, but " + files.images.string() +
                               " holds 3 images.");
}

TEST_CASE("a header that asks for terabytes is refused before memory is taken") {
  const pair_of_files files;
  bytes huge;
  for (const std::uint32_t word : {0x803u, 0xFFFFFFFFu, 28u, 28u}) append_word(huge, word);
  write_packed(files.images, huge);
  CHECK(files.message() == files.images.string() +
                               " gives 4294967295 as the number of images, but 1 to 10000000 is "
                               "expected.");
}

TEST_CASE("a label that is no class is refused with its place") {
  const pair_of_files files;
  write_packed(files.labels, label_file({1, 10, 2}));
  CHECK(files.message() ==
        files.labels.string() + " gives item 1 the label 10, but 0 to 9 is expected.");
}

TEST_CASE("bytes after the last item are refused") {
  const pair_of_files files;
  bytes longer = label_file({1, 2, 3});
  longer.push_back(0);
  write_packed(files.labels, longer);
  CHECK(files.message() ==
        files.labels.string() + " has data after the last item that its header counts.");
}

TEST_CASE("a folder without the data says how to get it") {
  const temporary_folder folder;
  const std::string message =
      message_of([&] { trainer::load_fashion_mnist(folder.path() / "nowhere"); });
  CHECK(message.find("train-images-idx3-ubyte.gz is missing") != std::string::npos);
  CHECK(message.find("apt-get install dataset-fashion-mnist") != std::string::npos);
}

TEST_CASE("images of another size are no Fashion-MNIST") {
  const temporary_folder folder;
  for (const char* prefix : {"train", "t10k"}) {
    write_packed(folder.path() / (std::string(prefix) + "-images-idx3-ubyte.gz"),
                 image_file(1, 32, 32));
    write_packed(folder.path() / (std::string(prefix) + "-labels-idx1-ubyte.gz"), label_file({0}));
  }
  const std::string message = message_of([&] { trainer::load_fashion_mnist(folder.path()); });
  CHECK(message.find("holds images of 32 x 32 pixels, but 28 x 28 is expected") !=
        std::string::npos);
}
