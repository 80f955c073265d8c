// SPDX-License-Identifier: MIT
#include "base/background_close.hpp"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace rtev {
namespace {

class Closer {
 public:
  Closer() : thread_([this] { run(); }) {}
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;
  ~Closer() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void add(int fd) {
    {
      const std::lock_guard lock(mutex_);
      fds_.push_back(fd);
    }
    wake_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stop_ || !fds_.empty(); });
      if (stop_) return;
      const int fd = fds_.front();
      fds_.pop_front();
      lock.unlock();
      ::close(fd);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<int> fds_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

void close_in_background(int fd) {
  static Closer closer;
  closer.add(fd);
}

}  // namespace rtev
