// SPDX-License-Identifier: MIT
#include "mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <common/failure.hpp>
#include <cstdint>
#include <limits>

#include "npz.hpp"

namespace tool {
namespace {

std::span<std::byte> mapped(int file, std::size_t size, int protection,
                            const std::filesystem::path& path, const char* what) {
  if (size == 0) return {};
  void* const at = ::mmap(nullptr, size, protection, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) throw common::detail::cannot(what, path, errno);
  return {static_cast<std::byte*>(at), size};
}

void unmap(std::span<std::byte> bytes) {
  if (!bytes.empty()) ::munmap(bytes.data(), bytes.size());
}

}  // namespace

mapped_file::mapped_file(std::filesystem::path path) : path_(std::move(path)) {
  if (is_npz(path_)) {
    in_memory_ = read_npz(path_);
    bytes_ = in_memory_;
    return;
  }
  const common::detail::descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat seen = {};
  if (!file.is_open() || ::fstat(file.number(), &seen) != 0) {
    throw common::detail::cannot("read", path_, errno);
  }
  if (S_ISDIR(seen.st_mode)) throw common::detail::cannot("read", path_, EISDIR);
  if (!S_ISREG(seen.st_mode)) {
    throw common::failure(path_.string() +
                          " is not a regular file, which it must be to be mapped.");
  }
  bytes_ = mapped(file.number(), static_cast<std::size_t>(seen.st_size), PROT_READ, path_, "read");
}
mapped_file::~mapped_file() {
  if (in_memory_.empty()) unmap(bytes_);
}

mapped_output::mapped_output(const std::filesystem::path& path, std::size_t size) : file_(path) {
  if (is_npz(path)) {
    in_memory_.resize(size);
    bytes_ = in_memory_;
    return;
  }
  const auto length = static_cast<off_t>(size);
  // Where the space cannot be reserved, a full disk would be a signal later.
  int reason = size == 0 ? 0 : ::posix_fallocate(file_.number(), 0, length);
  if (reason == EOPNOTSUPP || reason == EINVAL) {
    reason = ::ftruncate(file_.number(), length) == 0 ? 0 : errno;
  }
  if (reason != 0) throw common::detail::cannot("written", path, reason);
  bytes_ = mapped(file_.number(), size, PROT_READ | PROT_WRITE, path, "written");
}
mapped_output::~mapped_output() {
  if (in_memory_.empty()) unmap(bytes_);
}

void mapped_output::finish() {
  if (!in_memory_.empty()) {
    if (!common::detail::write_all(file_.number(), npz_bytes(in_memory_, file_.path()))) {
      throw common::detail::cannot("written", file_.path(), errno);
    }
  } else if (!bytes_.empty() && ::msync(bytes_.data(), bytes_.size(), MS_SYNC) != 0) {
    throw common::detail::cannot("written", file_.path(), errno);
  }
  file_.finish();
}

}  // namespace tool
