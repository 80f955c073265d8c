// SPDX-License-Identifier: MIT
#include "processes/lifecycle_reader.hpp"

#include <poll.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include "base/clock.hpp"
#include "base/subordinate_users.hpp"

namespace rtev {
namespace {

/// Beyond this records are left in the kernel's buffer, where those that do not fit are counted.
constexpr std::size_t max_events = 65536;

/// How long to wait for a record that is not finished yet.
constexpr std::uint64_t unfinished_retry_ns = 50'000;

/// Beyond this many waiting events, none waits for its look-up for longer than this: each of them is work whenever the
/// thread wakes up.
constexpr std::size_t max_patient = 100;
constexpr std::uint64_t max_impatient_wait_ns = 50'000'000;

/// How long events wait for their look-ups when the thread is to end.
constexpr std::uint64_t max_end_wait_ns = 200'000'000;

/// Without room for events, the thread looks for some at this interval.
constexpr int room_retry_ms = 10;

/// How long the main thread waits for records after it has not run for a while, and how often it looks.
constexpr std::uint64_t catching_up_timeout_ns = 20'000'000, catching_up_retry_ns = 100'000;

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

LifecycleReader::LifecycleReader(ProcessQueries& queries, Records records)
    : records_(std::move(records)), queries_(queries) {
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

std::vector<ResolvedRecord> LifecycleReader::take() {
  event_.clear();
  std::vector<ResolvedRecord> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(events_);
    for (const ResolvedRecord& event : taken)
      if (const auto user = waiting_.find(event.record.uid); --user->second == 0) waiting_.erase(user);
  }
  mark_ended_images(taken);
  return taken;
}

void LifecycleReader::run() {
  raise_priority();
  std::array<pollfd, 3> wait{{{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                              {.fd = queries_.event_fd(), .events = POLLIN, .revents = 0},
                              {.fd = records_.fd, .events = POLLIN, .revents = 0}}};
  for (bool stopped = false; !stopped || !pending_.empty();) {
    const bool has_room = this->has_room();
    wait[0].fd = stopped ? -1 : stop_.get();
    wait[2].fd = has_room ? records_.fd : -1;
    ::poll(wait.data(), wait.size(), wait_ms(has_room, stopped));
    stopped |= wait[0].revents != 0;
    read_any_ = false;
    const std::uint64_t now = monotonic_ns();
    busy_since_ = pending_.empty() ? now : pending_.front().read_ns;
    // Answers first: if an image had ended before it was looked up, the record of its end is then read with them.
    queries_.process(now);
    if (has_room)
      records_.read([this](const rtev_lifecycle& record, std::span<const std::byte> tail) { add(record, tail); });
    publish(now, stopped);
    busy_since_ = pending_.empty() ? 0 : pending_.front().read_ns;
    // Readable, but no record: its writer has not finished, and may be waiting for this very cpu.
    if (wait[2].revents != 0 && !read_any_) sleep_ns(unfinished_retry_ns);
  }
}

/// How long an event waits for its look-up. HelperQueries answers each of them in the end.
std::uint64_t LifecycleReader::max_wait_ns(bool stopped) const {
  if (pending_.size() > max_patient) return max_impatient_wait_ns;
  return stopped ? max_end_wait_ns : UINT64_MAX / 2;
}

int LifecycleReader::wait_ms(bool has_room, bool stopped) const {
  int wait = has_room ? -1 : room_retry_ms;
  const auto wait_until = [&](std::uint64_t time_ns) {
    const std::uint64_t left = time_ns - std::min(time_ns, monotonic_ns());
    const int ms = static_cast<int>(std::min<std::uint64_t>(left / 1'000'000 + 1, 1000));
    wait = wait < 0 ? ms : std::min(wait, ms);
  };
  if (!pending_.empty()) wait_until(pending_.front().read_ns + max_wait_ns(stopped));
  if (const auto deadline = queries_.next_deadline_ns()) wait_until(*deadline);
  return wait;
}

bool LifecycleReader::has_room() {
  const std::lock_guard lock(mutex_);
  return events_.size() + pending_.size() < max_events;
}

void LifecycleReader::add(const rtev_lifecycle& record, std::span<const std::byte> tail) {
  read_any_ = true;
  ResolvedRecord event{.record = record};
  event.record.uid = charged_user(record.uid);
  const std::uint32_t user = event.record.uid;
  LifecycleLookup::Waiting waiting{.all = pending_.size()};
  {
    const std::lock_guard lock(mutex_);
    waiting.all += events_.size();
    waiting.of_user = waiting_[user]++;
  }
  const std::uint64_t number = ++events_read_;
  auto query = lookup_.query_for(event, tail, waiting);
  pending_.push_back(
      {.number = number, .event = std::move(event), .read_ns = monotonic_ns(), .waits = query.has_value()});
  if (!query) return;
  queries_.ask(std::move(*query), user, [this, number](ProcessView view) { take_answer(number, std::move(view)); });
}

/// An answer that comes too late is dropped: the main thread has asked again.
void LifecycleReader::take_answer(std::uint64_t number, ProcessView view) {
  const auto pending = std::ranges::lower_bound(pending_, number, {}, &Pending::number);
  if (pending == pending_.end() || pending->number != number) return;
  pending->waits = false;
  if (view.no_answer) return;
  ResolvedRecord& event = pending->event;
  lookup_.add(event, std::move(view));
  if (!event.rings.empty() && event.rings.front().fd)
    records_.ring_opened(static_cast<std::int32_t>(event.record.tgid), event.record.time_ns);
}

/// Publishes what does not wait any more, all at once as mark_ended_images() needs it. Events of one process stay in
/// order, and so do those of a child behind its fork.
void LifecycleReader::publish(std::uint64_t now_ns, bool stopped) {
  const std::uint64_t max_wait = max_wait_ns(stopped);
  std::set<std::uint32_t> waiting;
  std::vector<ResolvedRecord> ready;
  std::deque<Pending> rest;
  for (Pending& pending : pending_) {
    const rtev_lifecycle& record = pending.event.record;
    const bool forks = record.type == RTEV_FORK;
    if ((pending.waits && now_ns < pending.read_ns + max_wait) || waiting.contains(record.tgid) ||
        (forks && waiting.contains(record.peer))) {
      waiting.insert(record.tgid);
      if (forks) waiting.insert(record.peer);
      rest.push_back(std::move(pending));
    } else {
      ready.push_back(std::move(pending.event));
    }
  }
  pending_ = std::move(rest);
  if (ready.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    std::ranges::move(ready, std::back_inserter(events_));
  }
  event_.signal();
}

}  // namespace rtev
