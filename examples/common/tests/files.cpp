// SPDX-License-Identifier: MIT
/// Files whole or not at all: each step of the system is watched, and made to fail.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <common/files.hpp>

#include <fstream>
#include <functional>
#include <vector>

#include "message_of.hpp"
#include "temporary_folder.hpp"

namespace {

/// What write_file asks of the system, and which of it fails with which reason.
struct watched {
  std::vector<std::string> calls;
  std::string failing;
  int reason = 0;

  bool fails(const std::string& call) {
    calls.push_back(call);
    if (call != failing) return false;
    errno = reason;
    return true;
  }
};
watched* now = nullptr;  // null: nobody looks

std::string kind_of(int file) {
  struct stat seen = {};
  return fstat(file, &seen) == 0 && S_ISDIR(seen.st_mode) ? " folder" : " file";
}

}  // namespace

// In place of the C library's.
extern "C" {
int fsync(int file) {
  if (now != nullptr && now->fails("fsync" + kind_of(file))) return -1;
  return static_cast<int>(syscall(SYS_fsync, file));
}
ssize_t write(int file, const void* data, std::size_t size) {
  if (now != nullptr && now->fails("write")) return -1;
  return static_cast<ssize_t>(syscall(SYS_write, file, data, size));
}
int rename(const char* from, const char* to) noexcept {
  if (now != nullptr && now->fails("rename")) return -1;
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int close(int file) {
  const bool failed = now != nullptr && now->fails("close" + kind_of(file));
  const int reason = errno;
  const int status = static_cast<int>(syscall(SYS_close, file));
  if (!failed) return status;
  errno = reason;
  return -1;
}
}

namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    out.push_back(entry.path().filename().string());
  }
  return out;
}

watched watch(const std::function<void()>& call, const std::string& failing = "", int reason = 0) {
  watched out{{}, failing, reason};
  now = &out;
  try {
    call();
  } catch (...) {
    now = nullptr;
    throw;
  }
  now = nullptr;
  return out;
}

}  // namespace

TEST_CASE("a file is on the disk before it has its name, and then its name is") {
  const temporary_folder folder;
  const auto file = folder.path() / "file";
  const watched seen = watch([&] { common::write_file(file, "text"); });
  CHECK(seen.calls == std::vector<std::string>{"write", "fsync file", "close file", "rename",
                                               "fsync folder", "close folder"});
  CHECK(text_of(file) == "text");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"file"});
}

TEST_CASE(
    "whichever step fails: the reason is reported, the old file stays, and nothing is left "
    "behind") {
  const temporary_folder folder;
  const auto file = folder.path() / "file";
  common::write_file(file, "old");
  const std::pair<const char*, int> steps[] = {
      {"write", ENOSPC}, {"fsync file", EIO}, {"close file", EDQUOT}, {"rename", EACCES}};
  for (const auto& step : steps) {
    CAPTURE(step.first);
    CHECK(message_of([&] {
            watch([&] { common::write_file(file, "new"); }, step.first, step.second);
          }) == file.string() +
                    " cannot be written: " + std::generic_category().message(step.second) + ".");
    CHECK(text_of(file) == "old");
    CHECK(names_in(folder.path()) == std::vector<std::string>{"file"});
  }
  // The file has its name then, but it may not last.
  CHECK(message_of([&] { watch([&] { common::write_file(file, "new"); }, "fsync folder", EIO); }) ==
        file.string() + " cannot be written: Input/output error.");
  // A file system that has no disk is none of these.
  CHECK(message_of([&] {
          watch([&] { common::write_file(file, "new"); }, "fsync file", EINVAL);
        }) == "(no failure)");
  CHECK(text_of(file) == "new");
}

TEST_CASE("a limit that cuts a write short is an error, not a short file") {
  const temporary_folder folder;
  const auto file = folder.path() / "file";
  rlimit limit = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  rlimit lower = limit;
  lower.rlim_cur = 100'000;
  const auto before = signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &lower) == 0);
  const std::string message =
      message_of([&] { common::write_file(file, std::string(300'000, 'x')); });
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  signal(SIGXFSZ, before);
  CHECK(message == file.string() + " cannot be written: File too large.");
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("paths that cannot be written to are refused with the reason") {
  const temporary_folder folder;
  const auto none = folder.path() / "none" / "file";
  CHECK(message_of([&] { common::write_file(none, ""); }) ==
        none.string() + " cannot be written: No such file or directory.");
  CHECK(message_of([&] { common::write_file(folder.path(), ""); }) ==
        folder.path().string() + " cannot be written: Is a directory.");
  CHECK(message_of([&] { common::write_file("/dev/full", "text"); }) ==
        "/dev/full cannot be written: No space left on device.");
  CHECK(message_of([&] { common::write_file("", "text"); }) ==
        " cannot be written: No such file or directory.");
}

TEST_CASE("what is no file is written to and stays what it is") {
  common::write_file("/dev/null", "text");
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("a file that appears at the end does not replace a device, a pipe or a folder") {
  const temporary_folder folder;
  const auto pipe = folder.path() / "pipe", link = folder.path() / "link";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::filesystem::create_symlink("pipe", link);
  for (const auto& path : {pipe, link, std::filesystem::path("/dev/null")}) {
    CHECK(message_of([&] { common::unfinished_file file(path); }) ==
          path.string() + " is not a regular file, and is not replaced by one.");
  }
  CHECK(message_of([&] { common::unfinished_file file(folder.path()); }) ==
        folder.path().string() + " cannot be written: Is a directory.");
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(names_in(folder.path()).size() == 2);
}

TEST_CASE("a link stays a link, and an older file keeps its permissions") {
  const temporary_folder folder;
  const auto file = folder.path() / "file", link = folder.path() / "link";
  common::write_file(file, "old");
  std::filesystem::permissions(file, std::filesystem::perms(0640));
  std::filesystem::create_symlink("file", link);
  common::write_file(link, "new");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(text_of(file) == "new");
  CHECK(std::filesystem::status(file).permissions() == std::filesystem::perms(0640));
}

TEST_CASE("a link to what is not there yet stays a link, and the file is where it leads") {
  const temporary_folder folder;
  const auto first = folder.path() / "first", second = folder.path() / "second";
  std::filesystem::create_directory(folder.path() / "other");
  std::filesystem::create_symlink("second", first);
  std::filesystem::create_symlink("other/file", second);
  common::write_file(first, "text");
  CHECK(std::filesystem::is_symlink(first));
  CHECK(std::filesystem::is_symlink(second));
  CHECK(text_of(folder.path() / "other" / "file") == "text");
  CHECK(names_in(folder.path() / "other").size() == 1);
  const auto loop = folder.path() / "loop";
  std::filesystem::create_symlink("loop", loop);
  CHECK(message_of([&] { common::write_file(loop, "text"); }) ==
        loop.string() + " cannot be written: " + std::generic_category().message(ELOOP) + ".");
  CHECK(std::filesystem::is_symlink(loop));
}

TEST_CASE("two processes that write one file at once leave one of the two texts, whole") {
  const temporary_folder folder;
  const auto file = folder.path() / "file";
  const std::string texts[] = {std::string(300'000, 'a'), std::string(200'000, 'b')};
  pid_t children[2];
  for (int c = 0; c < 2; ++c) {
    children[c] = fork();
    if (children[c] != 0) continue;
    try {
      for (int i = 0; i < 30; ++i) common::write_file(file, texts[c]);
      _exit(0);
    } catch (...) {
      _exit(1);
    }
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  const std::string left = text_of(file);
  CHECK((left == texts[0] || left == texts[1]));
  CHECK(names_in(folder.path()) == std::vector<std::string>{"file"});
}

TEST_CASE("a relative path is written in the working folder") {
  const temporary_folder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string message = message_of([&] { common::write_file("file", "text"); });
  std::filesystem::current_path(before);
  CHECK(message == "(no failure)");
  CHECK(text_of(folder.path() / "file") == "text");
}

TEST_CASE("a file is read whole, or refused with the reason") {
  const temporary_folder folder;
  const auto file = folder.path() / "file";
  for (const std::size_t size : {0u, 1u, 4096u, 100'000u}) {
    const std::string text(size, 'x');
    common::write_file(file, text);
    CHECK(common::read_file(file) == text);
  }
  CHECK(!common::read_file("/proc/self/status").empty());  // whose size is 0 before it is read
  CHECK(message_of([&] { common::read_file(folder.path() / "none"); }) ==
        (folder.path() / "none").string() + " cannot be read: No such file or directory.");
  CHECK(message_of([&] { common::read_file(folder.path()); }) ==
        folder.path().string() + " cannot be read: Is a directory.");
}

TEST_CASE("what killed programs left is removed, and nothing else") {
  const temporary_folder folder;
  const auto put = [&](const std::string& name) { std::ofstream(folder.path() / name) << "x"; };
  put("file.1234-0.unfinished");
  put("thesis.unfinished");
  put("1234-0.unfinished");
  put("file.1234-0");
  std::filesystem::path mine;
  const auto open = common::detail::make_unfinished(folder.path() / "other", mine);  // locked
  REQUIRE(open.is_open());
  common::remove_unfinished(folder.path());
  auto left = names_in(folder.path());
  std::sort(left.begin(), left.end());
  CHECK(left == std::vector<std::string>{"1234-0.unfinished", "file.1234-0",
                                         mine.filename().string(), "thesis.unfinished"});
}

TEST_CASE("a folder is made and tried; an existing file named probe is not touched") {
  const temporary_folder folder;
  const auto place = folder.path() / "new" / "out";
  common::prepare_folder(place);
  CHECK(names_in(place).empty());
  std::ofstream(place / "probe") << "mine";
  common::prepare_folder(place);
  CHECK(text_of(place / "probe") == "mine");

  CHECK(message_of([&] { common::prepare_folder(place / "probe" / "below"); }) ==
        "Files cannot be written to the folder " + (place / "probe" / "below").string() +
            ": Not a directory; --out names another.");
  CHECK(message_of([&] { watch([&] { common::prepare_folder(place); }, "write", ENOSPC); }) ==
        "Files cannot be written to the folder " + place.string() +
            ": No space left on device; --out names another.");
  CHECK(names_in(place) == std::vector<std::string>{"probe"});
}
