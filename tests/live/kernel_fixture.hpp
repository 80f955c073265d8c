// SPDX-License-Identifier: MIT
// The fixture of tests of the BPF programs: children that act as traced processes, and the records about them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "kernel/programs.hpp"

namespace rtev::kernel {

using Clock = std::chrono::steady_clock;
inline constexpr std::chrono::seconds test_timeout{20};

struct Pipe {
  UniqueFd in, out;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    in.reset(ends[0]);
    out.reset(ends[1]);
  }
  void put() const {
    if (::write(out.get(), "x", 1) != 1) throw std::runtime_error("write to pipe");
  }
  /// False at the end of the stream.
  bool get() const {
    char byte = 0;
    return ::read(in.get(), &byte, 1) == 1;
  }
};

/// The offset in this program's file of what is mapped at an address.
inline std::uint64_t file_offset(std::uintptr_t address) {
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0, end = 0, offset = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 && address >= begin && address < end)
      return address - begin + offset;
  }
  return 0;
}

/// fork(2) that gives the child this pid, if it is free.
inline pid_t fork_as(pid_t pid) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uintptr_t>(&pid);
  arguments.set_tid_size = 1;
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

/// A child process that waits for release() before it runs its function. Killed and reaped at the latest by the
/// destructor.
class Child {
 public:
  explicit Child(const std::function<void()>& run) : Child(run, ::fork) {}
  Child(const std::function<void()>& run, const std::function<pid_t()>& fork) {
    pid_ = fork();
    if (pid_ != 0) return;
    gate_.out.reset();
    if (gate_.get()) run();
    ::_exit(0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }

  pid_t pid() const { return pid_; }
  void release() const { gate_.put(); }
  int wait(rusage* usage = nullptr) {
    int status = -1;
    ::wait4(std::exchange(pid_, 0), &status, 0, usage);
    return status;
  }

 private:
  Pipe gate_;
  pid_t pid_ = 0;
};

/// Sends a byte back for each byte received.
inline void answer(const Pipe& questions, const Pipe& answers) {
  while (questions.get()) answers.put();
}

/// Waits until a process sleeps (state S).
inline bool wait_until_asleep(pid_t pid) {
  const auto deadline = Clock::now() + test_timeout;
  while (Clock::now() < deadline) {
    std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().contains(") S ")) return true;
    std::this_thread::yield();
  }
  return false;
}

/// What was read from the BPF programs.
struct Records {
  std::vector<rtev_lifecycle> lifecycle;
  std::vector<rtev_sched> sched;
  std::vector<std::vector<std::byte>> ring_tails{};  ///< of the RTEV_RING records

  std::vector<rtev_lifecycle> of(rtev_lifecycle_type type, pid_t tgid) const {
    std::vector<rtev_lifecycle> found;
    std::ranges::copy_if(lifecycle, std::back_inserter(found), [&](const rtev_lifecycle& r) {
      return r.type == static_cast<unsigned>(type) && r.tgid == static_cast<unsigned>(tgid);
    });
    return found;
  }
};

class KernelLive : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) GTEST_SKIP() << "the kernel has no BTF";
  }

  static Programs start(const ProgramOptions& options) {
    auto programs = Programs::load(options);
    if (!programs) throw std::runtime_error(programs.error().message());
    if (const auto attached = programs->attach(); !attached) throw std::runtime_error(attached.error().message());
    return std::move(*programs);
  }

  /// Reads what waits; at most `max_sched` scheduler records of each buffer. False if some of those were left.
  static bool read(Programs& programs, Records& records, std::size_t max_sched = 1 << 16) {
    programs.read_lifecycle([&](const rtev_lifecycle& record, std::span<const std::byte> tail) {
      records.lifecycle.push_back(record);
      if (record.type == RTEV_RING) records.ring_tails.emplace_back(tail.begin(), tail.end());
    });
    return programs.read_sched([&](std::uint16_t, const rtev_sched& record) { records.sched.push_back(record); },
                               max_sched);
  }

  /// Reads until `done`; polls in between.
  static bool read_until(Programs& programs, Records& records, const std::function<bool()>& done) {
    const auto deadline = Clock::now() + test_timeout;
    for (read(programs, records); !done(); read(programs, records)) {
      if (Clock::now() > deadline) return false;
      pollfd wait[] = {{.fd = programs.lifecycle_fd(), .events = POLLIN, .revents = 0},
                       {.fd = programs.sched_fd(), .events = POLLIN, .revents = 0}};
      ::poll(wait, std::size(wait), 50);
    }
    return true;
  }
};

}  // namespace rtev::kernel
