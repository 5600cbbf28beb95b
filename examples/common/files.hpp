// SPDX-License-Identifier: MIT
/// Files that are read completely, and files that appear completely or not at all, whatever
/// happens. To be copied with failure.hpp: needs POSIX and the standard library alone.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "failure.hpp"

namespace common {

namespace detail {

/// A file descriptor, closed once.
class descriptor {
 public:
  explicit descriptor(int number) : number_(number) {}
  ~descriptor() { close(); }
  descriptor(descriptor&& from) noexcept : number_(std::exchange(from.number_, -1)) {}
  descriptor& operator=(descriptor&&) = delete;

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  /// False, with errno set, where a file system reports only now that something is lost.
  bool close() {
    const int number = std::exchange(number_, -1);
    return number < 0 || ::close(number) == 0 || errno == EINTR;  // closed in that case, too
  }

 private:
  int number_;
};

inline failure cannot(const char* what, const std::filesystem::path& path, int reason) {
  std::string text = path.string();
  text.append(" cannot be ").append(what).append(": ");
  return failure(text.append(std::generic_category().message(reason)).append("."));
}

inline bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(file, text.data(), (std::min)(text.size(), std::size_t{1} << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

/// Syncs a file or a folder to the disk, where there is one.
inline bool put_on_disk(int file) {
  while (::fsync(file) != 0) {
    if (errno != EINTR) return errno == EINVAL || errno == ENOTSUP || errno == ENOSYS;
  }
  return true;
}

inline std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

/// Where links lead that end at no file: a path that is no link.
inline std::filesystem::path end_of_links(std::filesystem::path path) {
  std::error_code error;
  for (int link = 0; link < 40 && std::filesystem::is_symlink(path, error); ++link) {
    const std::filesystem::path next = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = folder_of(path) / next;  // next alone where it is absolute
  }
  return path;
}

/// A new file next to `path` with a name that no other process uses, locked as long as it is open.
/// Not open, with errno set, where that is impossible.
inline descriptor make_unfinished(const std::filesystem::path& path, std::filesystem::path& name) {
  for (int attempt = 0;; ++attempt) {
    name = path;
    name.concat(".").concat(std::to_string(::getpid())).concat("-");
    name.concat(std::to_string(attempt)).concat(".unfinished");
    descriptor made(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!made.is_open() && errno == EEXIST && attempt < 1000) continue;
    if (!made.is_open()) return made;
    // remove_unfinished() of another process may have been faster than the lock.
    struct stat seen = {};
    if (::flock(made.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    if (::fstat(made.number(), &seen) == 0 && seen.st_nlink == 0) continue;
    return made;
  }
}

}  // namespace detail

/// A file that is written under a name of its own until it is finished. An older file keeps its
/// permissions, and a link its name.
class unfinished_file {
 public:
  /// Throws  failure that names the file and the reason when it cannot be written, or is a folder, a
  ///         device or a pipe, which a file is not to replace.
  explicit unfinished_file(std::filesystem::path path) : path_(std::move(path)), target_(path_) {
    struct stat old = {};
    const bool replaces = ::stat(path_.c_str(), &old) == 0;
    if (!replaces && errno == ELOOP) throw detail::cannot("written", path_, ELOOP);
    if (!replaces) target_ = detail::end_of_links(path_);
    if (replaces && S_ISDIR(old.st_mode)) throw detail::cannot("written", path_, EISDIR);
    if (replaces && !S_ISREG(old.st_mode)) {
      std::string text = path_.string();
      throw failure(text.append(" is not a regular file, and is not replaced by one."));
    }
    if (replaces) {  // where a link leads
      std::error_code error;
      target_ = std::filesystem::canonical(path_, error);
      if (error) throw detail::cannot("written", path_, error.value());
    }
    file_.emplace(detail::make_unfinished(target_, name_));
    if (!file_->is_open()) throw detail::cannot("written", path_, errno);
    if (replaces) static_cast<void>(::fchmod(number(), old.st_mode & 07777));  // if possible
  }
  ~unfinished_file() {
    if (!finished_) ::unlink(name_.c_str());
  }
  unfinished_file(const unfinished_file&) = delete;
  unfinished_file& operator=(const unfinished_file&) = delete;

  int number() const { return file_->number(); }
  const std::filesystem::path& path() const { return path_; }

  /// Puts it on the disk and gives it its name.
  ///
  /// Throws  failure as above; the older file, if any, is then unchanged.
  void finish() {
    if (!detail::put_on_disk(number()) || !file_->close() ||
        ::rename(name_.c_str(), target_.c_str()) != 0) {
      throw detail::cannot("written", path_, errno);
    }
    finished_ = true;
    // The new name is on the disk when the folder is. Some folders may be written to, but not read.
    const detail::descriptor folder(
        ::open(detail::folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.is_open() && !detail::put_on_disk(folder.number()))
      throw detail::cannot("written", path_, errno);
  }

 private:
  std::filesystem::path path_;    // as it was given
  std::filesystem::path target_;  // where it is to be
  std::filesystem::path name_;    // until it is finished
  std::optional<detail::descriptor> file_;
  bool finished_ = false;
};

/// Runs a step that works on a file; what it throws becomes a failure that begins with the file's
/// path.
template <class Step>
auto about_file(const std::filesystem::path& path, Step&& step) {
  try {
    return step();
  } catch (const std::exception& wrong) {
    std::string text = path.string();
    throw failure(text.append(": ").append(wrong.what()));
  }
}

/// Throws  failure that names the file and the reason when it cannot be read.
inline std::string read_file(const std::filesystem::path& path) {
  const detail::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) throw detail::cannot("read", path, errno);
  struct stat seen = {};
  std::string out;
  if (::fstat(file.number(), &seen) == 0 && seen.st_size > 0) {
    out.reserve(static_cast<std::size_t>(seen.st_size) + 1);
  }
  for (std::size_t size = 0;;) {
    out.resize((std::max)(out.capacity(), size + 4096));
    const ssize_t done = ::read(file.number(), out.data() + size, out.size() - size);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw detail::cannot("read", path, errno);
    size += static_cast<std::size_t>(done);
    if (done > 0) continue;
    out.resize(size);
    return out;
  }
}

/// Writes a file that appears completely or not at all, even when the process is killed, the disk
/// is full or the power fails; two processes that write it at once do not mix. An older file keeps
/// its permissions, and a link its name. What is not a file (a terminal, a pipe) is written to
/// directly.
///
/// Throws  failure that names the file and the reason when it cannot be written.
inline void write_file(const std::filesystem::path& path, std::string_view text) {
  const auto refused = [&] { return detail::cannot("written", path, errno); };
  struct stat old = {};
  const bool replaces = ::stat(path.c_str(), &old) == 0;
  if (replaces && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode)) {
    detail::descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file.is_open() || !detail::write_all(file.number(), text) || !file.close()) {
      throw refused();
    }
    return;
  }
  unfinished_file file(path);
  if (!detail::write_all(file.number(), text)) throw refused();
  file.finish();
}

/// Removes what write_file() of ended processes has left in a folder.
inline void remove_unfinished(const std::filesystem::path& folder) {
  constexpr std::string_view ending = ".unfinished";
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (!name.ends_with(ending)) continue;
    name.resize(name.size() - ending.size());
    const std::size_t numbers = name.find_last_not_of("0123456789-");  // of process and attempt
    if (numbers == std::string::npos || name[numbers] != '.' || numbers + 3 > name.size()) continue;
    const detail::descriptor file(
        ::open(at->path().c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    if (file.is_open() && ::flock(file.number(), LOCK_EX | LOCK_NB) == 0) {
      ::unlink(at->path().c_str());
    }
  }
}

/// Creates a folder, makes sure that files can be written to it before hours are spent on their
/// contents, and removes what killed runs have left.
///
/// Throws  failure that names the folder and the reason when they cannot.
inline void prepare_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  int reason = error.value();
  if (!error) {
    remove_unfinished(folder);
    std::filesystem::path probe;
    detail::descriptor file = detail::make_unfinished(folder / "probe", probe);
    const bool opened = file.is_open();
    if (opened && detail::write_all(file.number(), "x") && file.close()) {
      ::unlink(probe.c_str());
      return;
    }
    reason = errno;
    if (opened) ::unlink(probe.c_str());
  }
  throw failure("Files cannot be written to the folder " + folder.string() + ": " +
                std::generic_category().message(reason) + "; --out names another.");
}

}  // namespace common
