// SPDX-License-Identifier: MIT
#include "bench/idle_fleet.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "bench/producer.hpp"
#include "live/child_process.hpp"

namespace rtev::bench {
namespace {

/// A minor collection of Mix::runtime.
constexpr unsigned burst_events = 45;

void make_pipe(UniqueFd& in, UniqueFd& out) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  in = UniqueFd(ends[0]);
  out = UniqueFd(ends[1]);
}

/// Reads one byte from each of `count` processes.
void await(int fd, std::size_t count, std::chrono::milliseconds limit) {
  std::array<char, 512> bytes;
  while (count > 0) {
    pollfd readable_fd{.fd = fd, .events = POLLIN, .revents = 0};
    const int readable = ::poll(&readable_fd, 1, static_cast<int>(limit.count()));
    if (readable < 0 && errno == EINTR) continue;
    const ssize_t size = readable > 0 ? ::read(fd, bytes.data(), std::min(count, bytes.size())) : 0;
    if (size <= 0) throw std::runtime_error("a process of the fleet failed or timed out");
    count -= static_cast<std::size_t>(size);
  }
}

void sleep_until(std::uint64_t time_ns) {
  const timespec time{.tv_sec = static_cast<time_t>(time_ns / 1'000'000'000),
                      .tv_nsec = static_cast<long>(time_ns % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) continue;
}

}  // namespace

/// In memory shared by all processes. Only the counts are written after the gate opens.
struct Fleet::Shared {
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint64_t burst_gap_ns;  ///< of each domain
  std::atomic<std::uint64_t> events, wakes;
};

Fleet::Fleet(Size size) : size_(size) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  shared_ = new (memory) Shared{};
  try {
    make_pipe(gate_in_, gate_out_);
    make_pipe(status_in_, status_out_);
    for (std::uint32_t process = 0; process < size_.processes; ++process) {
      const pid_t pid = ::fork();
      if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
      if (pid == 0) run(process);
      pids_.push_back(pid);
    }
    status_out_.reset();
    await(status_in_.get(), pids_.size(), test::wait_timeout);
  } catch (...) {
    end_all();
    throw;
  }
}

Fleet::~Fleet() {
  end_all();
}

void Fleet::end_all() {
  for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
  for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
  pids_.clear();
  ::munmap(shared_, sizeof(Shared));
}

Fleet::Done Fleet::write(double events_per_second, double seconds) {
  // All threads exist by then.
  constexpr std::uint64_t notice_ns = 200'000'000;
  const double domains = static_cast<double>(size_.processes) * size_.domains;
  shared_->burst_gap_ns = static_cast<std::uint64_t>(1e9 * burst_events * domains / events_per_second);
  shared_->start_ns = monotonic_ns() + notice_ns;
  shared_->end_ns = shared_->start_ns + static_cast<std::uint64_t>(seconds * 1e9);
  gate_out_.reset();
  await(status_in_.get(), pids_.size(), test::wait_timeout + std::chrono::milliseconds(std::lround(seconds * 1000)));
  return {.events = shared_->events, .wakes = shared_->wakes};
}

/// Runs in a forked process: must not clean up resources of the parent.
void Fleet::run(std::uint32_t process) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, name);
  gate_out_.reset();
  auto writer = RingWriter::create({.directory = directory_.path().string()});
  char word = 'r';
  if (!writer || ::write(status_out_.get(), &word, 1) != 1) ::_exit(1);
  while (::read(gate_in_.get(), &word, 1) < 0 && errno == EINTR) continue;
  {
    std::vector<std::jthread> others;
    for (std::uint32_t domain = 1; domain < size_.domains; ++domain)
      others.emplace_back([this, &writer, process, domain] { write_domain(*writer, process, domain); });
    for (std::uint32_t sleeper = 0; sleeper < size_.sleepers; ++sleeper)
      others.emplace_back([this, sleeper] { sleep_often(sleeper); });
    write_domain(*writer, process, 0);
  }
  if (::write(status_out_.get(), &word, 1) != 1) ::_exit(1);
  while (true) ::pause();
}

void Fleet::write_domain(RingWriter& writer, std::uint32_t process, std::uint32_t domain) {
  Composer composer(writer, domain, Mix::runtime);
  // Staggered starts.
  const std::uint64_t writers = std::uint64_t{size_.processes} * size_.domains;
  const std::uint64_t place = std::uint64_t{process} * size_.domains + domain;
  for (std::uint64_t due = shared_->start_ns + shared_->burst_gap_ns * place / writers; due < shared_->end_ns;
       due += shared_->burst_gap_ns) {
    if (monotonic_ns() < due) sleep_until(due);
    for (unsigned event = 0; event < burst_events; ++event) composer.step();
  }
  shared_->events += composer.events();
}

void Fleet::sleep_often(std::uint32_t sleeper) {
  const std::uint64_t step_ns = 1'000'000'000 / size_.wakes_per_second;
  std::uint64_t wakes = 0;
  for (std::uint64_t due = shared_->start_ns + step_ns * sleeper; due < shared_->end_ns;
       due += step_ns * size_.sleepers) {
    sleep_until(due);
    ++wakes;
  }
  shared_->wakes += wakes;
}

}  // namespace rtev::bench
