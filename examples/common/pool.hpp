// SPDX-License-Identifier: MIT
/// A fixed number of worker threads that share numbered tasks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace common {

/// run(n, task) calls task(0) .. task(n-1), each once, on any worker and in any order, and returns
/// when all are done. Tasks that write only what belongs to their number give results that do not
/// depend on the number of workers.
class pool {
 public:
  /// `prepare` runs first on each worker: thread-local settings go there.
  pool(std::size_t workers, std::function<void()> prepare) {
    for (std::size_t w = 0; w < workers; ++w) {
      threads_.emplace_back([this, prepare] {
        prepare();
        work();
      });
    }
  }
  ~pool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_workers_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  /// Throws  what the first task to fail threw, after all tasks that had begun are done; those that
  ///         had not are dropped.
  void run(std::size_t count, const std::function<void(std::size_t)>& task) {
    std::unique_lock lock(mutex_);
    task_ = &task;
    next_ = 0;
    count_ = count;
    failed_ = nullptr;
    wake_workers_.notify_all();
    wake_caller_.wait(lock, [this] { return next_ >= count_ && running_ == 0; });
    task_ = nullptr;
    if (failed_) std::rethrow_exception(failed_);
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_workers_.wait(lock, [this] { return stopping_ || next_ < count_; });
      if (stopping_) return;
      const std::size_t mine = next_++;
      ++running_;
      lock.unlock();
      std::exception_ptr error;
      try {
        (*task_)(mine);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      --running_;
      if (error) {
        if (!failed_) failed_ = error;
        next_ = count_;
      }
      if (next_ >= count_ && running_ == 0) wake_caller_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_workers_, wake_caller_;
  std::vector<std::thread> threads_;
  const std::function<void(std::size_t)>* task_ = nullptr;
  std::size_t next_ = 0, count_ = 0, running_ = 0;
  std::exception_ptr failed_;
  bool stopping_ = false;
};

}  // namespace common
