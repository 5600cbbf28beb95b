// SPDX-License-Identifier: MIT
/// A program that a test starts, waits for or kills. Its output goes to files.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

extern char** environ;

class child_program {
 public:
  /// Starts the program where no other is found: PATH is empty.
  child_program(std::vector<std::string> arguments, const std::filesystem::path& out,
                const std::filesystem::path& error) {
    std::vector<std::string> variables = {"PATH="};
    for (char** v = environ; *v != nullptr; ++v) {
      if (!std::string_view(*v).starts_with("PATH=")) variables.push_back(*v);
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    constexpr int how = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), how, 0644);
    posix_spawn_file_actions_addopen(&actions, 2, error.c_str(), how, 0644);
    const int failed = posix_spawn(&process_, arguments.front().c_str(), &actions, nullptr,
                                   pointers(arguments).data(), pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error("cannot start " + arguments.front());
  }
  ~child_program() {
    if (!ended_) kill();
  }
  child_program(const child_program&) = delete;
  child_program& operator=(const child_program&) = delete;

  bool has_ended() {
    if (!ended_) ended_ = waitpid(process_, &status_, WNOHANG) == process_;
    return ended_;
  }
  /// Its exit status, or -1 when a signal ended it.
  int wait() {
    if (!ended_) waitpid(process_, &status_, 0);
    ended_ = true;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }
  /// Sends a signal, and waits: the signal that ended it, or 0.
  int end_by(int signal) {
    if (!has_ended()) ::kill(process_, signal);
    wait();
    return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
  }
  /// SIGKILL: true when the program was still there.
  bool kill() {
    if (has_ended()) return false;
    ::kill(process_, SIGKILL);
    wait();
    return WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL;
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (std::string& t : texts) out.push_back(t.data());
    out.push_back(nullptr);
    return out;
  }

  pid_t process_ = 0;
  int status_ = 0;
  bool ended_ = false;
};
