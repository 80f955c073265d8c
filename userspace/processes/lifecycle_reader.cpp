// SPDX-License-Identifier: MIT
#include "processes/lifecycle_reader.hpp"

#include <poll.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/clock.hpp"

namespace rtev {
namespace {

/// Beyond this records are left in the kernel's buffer, where those that do not fit are counted.
constexpr std::size_t max_events = 65536;

/// How long to wait for a record that is not finished yet.
constexpr std::uint64_t unfinished_retry_ns = 50'000;

/// Without room for events, the thread looks for some at this interval.
constexpr int room_retry_ms = 10;

/// How long the main thread waits for records after it has not run for a while, and how often it looks.
constexpr std::uint64_t catching_up_timeout_ns = 200'000'000, catching_up_retry_ns = 100'000;

/// Runs the thread before every ordinary one, or a busy host would run it too late. It sleeps except for some ten
/// microseconds a record. Where that is not permitted it stays an ordinary thread.
void raise_priority() {
  const sched_param lowest{.sched_priority = 1};
  ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest);
}

void sleep_ns(std::uint64_t duration) {
  const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(duration)};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
}

}  // namespace

LifecycleReader::LifecycleReader(Procfs procfs, Records records)
    : records_(std::move(records)),
      lookup_(std::move(procfs), {.ring_opened = records_.ring_opened, .wait = sleep_ns}) {
  thread_ = std::thread([this] { run(); });
}

LifecycleReader::~LifecycleReader() {
  stop();
}

void LifecycleReader::stop() {
  if (!thread_.joinable()) return;
  stop_.signal();
  thread_.join();
}

bool LifecycleReader::has_caught_up() const {
  pollfd waiting{.fd = records_.fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, 0) == 0 && busy_since_ == 0;
}

void LifecycleReader::catch_up() const {
  const std::uint64_t deadline = monotonic_ns() + catching_up_timeout_ns;
  while (!has_caught_up() && monotonic_ns() < deadline) sleep_ns(catching_up_retry_ns);
}

std::vector<LifecycleEvent> LifecycleReader::take() {
  event_.clear();
  std::vector<LifecycleEvent> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(events_);
  }
  mark_ended_images(taken);
  return taken;
}

void LifecycleReader::run() {
  raise_priority();
  std::array<pollfd, 2> wait{
      {{.fd = stop_.get(), .events = POLLIN, .revents = 0}, {.fd = records_.fd, .events = POLLIN, .revents = 0}}};
  while (true) {
    const bool has_room = this->has_room();
    ::poll(wait.data(), has_room ? 2 : 1, has_room ? -1 : room_retry_ms);
    read_any_ = false;
    if (has_room) {
      busy_since_ = monotonic_ns();
      records_.read([this](const rtev_lifecycle& record, std::span<const std::byte> tail) { add(record, tail); });
      publish();
      busy_since_ = 0;
    }
    if (wait[0].revents != 0) return;
    // Readable, but no record: its writer has not finished, and may be waiting for this very cpu.
    if (has_room && !read_any_) sleep_ns(unfinished_retry_ns);
  }
}

bool LifecycleReader::has_room() {
  const std::lock_guard lock(mutex_);
  return events_.size() < max_events;
}

void LifecycleReader::add(const rtev_lifecycle& record, std::span<const std::byte> tail) {
  read_any_ = true;
  std::size_t waiting = batch_.size();
  {
    const std::lock_guard lock(mutex_);
    waiting += events_.size();
  }
  batch_.push_back(lookup_.look_up(record, tail, waiting));
}

/// Publishes all events of a read at once, as mark_ended_images() needs it.
void LifecycleReader::publish() {
  if (batch_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    std::ranges::move(batch_, std::back_inserter(events_));
  }
  batch_.clear();
  event_.signal();
}

}  // namespace rtev
