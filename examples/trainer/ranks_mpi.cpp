// SPDX-License-Identifier: MIT
/// With MPI.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <common/mpirun.hpp>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <subfed/adapt/mpi.hpp>
#include <thread>

#include "ranks.hpp"

namespace trainer::ranks {
namespace {

struct world {
  subfed::mpi::communicator all{MPI_COMM_WORLD};
  int on_this_machine = 1;
  pid_t first_process = 0;  // 0: it is on another machine

  std::mutex mutex;  // of what follows
  interruption now;
  std::string folder;

  std::atomic<bool> ends = false;
  std::thread watcher;
};
std::optional<world> joined;

/// The first rank says what has happened; where it is gone, the second.
bool is_the_one_to_speak(const world& w) {
  if (w.all.rank() == 0) return true;
  return w.all.rank() == 1 && w.first_process != 0 && kill(w.first_process, 0) != 0;
}

/// A rank that has ended leaves the others waiting for it in MPI, where no signal ends the wait. mpirun
/// asks them to stop, and kills the rest a second later or as soon as one of them has ended: the
/// others wait for the one that speaks.
void watch(world& w) {
  while (!w.ends && !asked_to_stop()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (w.ends) return;
  if (is_the_one_to_speak(w)) {
    const std::lock_guard lock(w.mutex);
    const std::string text = "subfed_trainer: Asked to stop, or another rank has ended. " +
                             text_of(w.now, w.folder) + "\n";
    static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(900));
  }
  end_by_signal();
}

}  // namespace

void start(int& argc, char**& argv) {
  if (!common::was_started_by_mpirun()) return;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  world& w = joined.emplace();
  MPI_Comm here;
  MPI_Comm_split_type(w.all.handle(), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_size(here, &w.on_this_machine);
  int first = w.all.rank();
  std::int64_t process = getpid();
  MPI_Bcast(&first, 1, MPI_INT, 0, here);
  MPI_Bcast(&process, 1, MPI_INT64_T, 0, here);
  if (first == 0) w.first_process = static_cast<pid_t>(process);
  MPI_Comm_free(&here);
  if (w.all.rank() != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) return;
}

void finish() noexcept {
  if (!joined) return;
  joined->ends = true;
  if (joined->watcher.joinable()) joined->watcher.join();
  joined.reset();
  MPI_Finalize();
}

void abandon(const std::string& why) noexcept {
  std::fprintf(stderr, "subfed_trainer: rank %d: %s\n", number(), why.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

int count() noexcept { return joined ? joined->all.size() : 1; }
int number() noexcept { return joined ? joined->all.rank() : 0; }
int count_on_this_machine() noexcept { return joined ? joined->on_this_machine : 1; }

void all_reduce(subfed::selective_average<float>& mean) {
  if (count() > 1) subfed::mpi::all_reduce(mean, joined->all);
}
void broadcast(std::span<std::byte> bytes, int from) {
  if (count() > 1) subfed::mpi::broadcast(bytes, from, joined->all);
}

void remember(const interruption& now, const std::string& folder) {
  if (count() == 1) return;
  const std::lock_guard lock(joined->mutex);
  joined->now = now;
  joined->folder = folder;
  if (!joined->watcher.joinable()) joined->watcher = std::thread([] { watch(*joined); });
}

}  // namespace trainer::ranks
