// SPDX-License-Identifier: MIT
#include "mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

output_file::output_file(const std::filesystem::path& path, std::size_t size)
    : file_(path), size_(size) {
  if (is_npz(path)) {
    in_memory_.resize(size);
    return;
  }
  const auto length = static_cast<off_t>(size);
  // Where the space cannot be reserved, a full disk would be a signal later.
  int reason = size == 0 ? 0 : ::posix_fallocate(file_.number(), 0, length);
  if (reason == EOPNOTSUPP || reason == EINVAL) {
    reason = ::ftruncate(file_.number(), length) == 0 ? 0 : errno;
  }
  if (reason != 0) throw common::detail::cannot("written", path, reason);
}
output_file::~output_file() { unmap(mapped_); }

std::span<std::byte> output_file::bytes() {
  if (!in_memory_.empty()) return in_memory_;
  if (mapped_.empty()) {
    mapped_ = mapped(file_.number(), size_, PROT_READ | PROT_WRITE, file_.path(), "written");
  }
  return mapped_;
}

void output_file::write(std::size_t offset, std::span<const std::byte> from) {
  if (!in_memory_.empty()) {
    std::copy(from.begin(), from.end(), in_memory_.begin() + static_cast<std::ptrdiff_t>(offset));
    return;
  }
  while (!from.empty()) {
    const ssize_t done =
        ::pwrite(file_.number(), from.data(), from.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw common::detail::cannot("written", file_.path(), errno);
    offset += static_cast<std::size_t>(done);
    from = from.subspan(static_cast<std::size_t>(done));
  }
}

void output_file::finish() {
  const bool written =
      in_memory_.empty()
          ? mapped_.empty() || ::msync(mapped_.data(), mapped_.size(), MS_SYNC) == 0
          : common::detail::write_all(file_.number(), npz_bytes(in_memory_, file_.path()));
  if (!written) throw common::detail::cannot("written", file_.path(), errno);
  file_.finish();
}

}  // namespace tool
