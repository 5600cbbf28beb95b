// SPDX-License-Identifier: MIT
/// Many gigabytes of addresses of which only the touched pages take memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define SUPPORT_HAS_MMAP 1
#else
#define SUPPORT_HAS_MMAP 0
#endif

namespace support {

/// Whether there are addresses for more than 2^32 bytes.
inline constexpr bool has_far_addresses = sizeof(void*) >= 8;

/// Zeros. data() is null, and a line says so, where the system does not give them.
class far_memory {
 public:
  /// Of more than the machine can address, none.
  explicit far_memory(std::uint64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
#if SUPPORT_HAS_MMAP
    void* got = MAP_FAILED;
    if (bytes <= PTRDIFF_MAX) {
      got = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (got != MAP_FAILED) data_ = static_cast<std::uint8_t*>(got);
#endif
    if (data_ == nullptr) {
      std::printf("skipped: %llu bytes of sparse memory are not to be had here\n",
                  static_cast<unsigned long long>(bytes));
    }
  }
  far_memory(const far_memory&) = delete;
  far_memory& operator=(const far_memory&) = delete;
  ~far_memory() {
#if SUPPORT_HAS_MMAP
    if (data_ != nullptr) munmap(data_, bytes_);
#endif
  }

  std::uint8_t* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::uint8_t* data_ = nullptr;
};

}  // namespace support
