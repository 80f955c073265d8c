// SPDX-License-Identifier: MIT
#include "processes/lifecycle_reader.hpp"

#include <poll.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "base/clock.hpp"

namespace rtev {
namespace {

/// Sightings that wait with something held fast; more are kept without, so that a stuck main thread does not use up
/// descriptors and memory.
constexpr std::size_t most_pinned = 256;

/// Likewise with the paths of files, which may be long. What is left behind can then still be read.
constexpr std::size_t most_placed = 8192;

/// Beyond this records are left in the kernel's buffer, where those that do not fit are counted.
constexpr std::size_t most_seen = 65536;

/// The record of a ring comes right before its mapping exists: looked for again at this interval, this often.
constexpr std::uint64_t mapping_retry_ns = 50'000;
constexpr int mapping_tries = 10;

/// A process maps its ring once. Who maps again so soon is left to the main thread, which is in no hurry.
constexpr std::uint64_t ring_interval_ns = 2'000'000;

/// How long the main thread waits for records after it has not run for a while, and how often it looks.
constexpr std::uint64_t catching_up_patience_ns = 200'000'000, catching_up_retry_ns = 100'000;

/// Ahead of every ordinary thread, or a busy host would run it too late. It sleeps but for some ten microseconds a
/// record. Where that is not allowed it stays an ordinary thread.
void hurry() {
  const sched_param lowest{.sched_priority = 1};
  ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest);
}

void sleep_ns(std::uint64_t duration) {
  const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(duration)};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
}

/// A drain goes on after its last pin was taken, so a process that had gone on to its next program by then has the
/// record of that behind it: what was pinned may be the next one's.
void mark_ended(std::span<Sighting> sightings) {
  std::set<std::uint32_t> ended;
  for (Sighting& sighting : std::views::reverse(sightings)) {
    const rtev_lifecycle& record = sighting.record;
    if (record.type == RTEV_EXEC || record.type == RTEV_EXIT) ended.insert(record.tgid);
    if (record.type == RTEV_RING) sighting.over = ended.contains(record.tgid);
  }
}

}  // namespace

Lookout::Lookout(Procfs procfs, Records records) : procfs_(std::move(procfs)), records_(std::move(records)) {
  thread_ = std::thread([this] { run(); });
}

Lookout::~Lookout() {
  stop();
}

void Lookout::stop() {
  if (!thread_.joinable()) return;
  stop_.signal();
  thread_.join();
}

bool Lookout::has_caught_up() const {
  pollfd waiting{.fd = records_.fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, 0) == 0 && busy_since_ == 0;
}

void Lookout::catch_up() const {
  const std::uint64_t deadline = monotonic_ns() + catching_up_patience_ns;
  while (!has_caught_up() && monotonic_ns() < deadline) sleep_ns(catching_up_retry_ns);
}

std::vector<Sighting> Lookout::take() {
  event_.clear();
  std::vector<Sighting> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(seen_);
  }
  mark_ended(taken);
  return taken;
}

void Lookout::run() {
  hurry();
  std::array<pollfd, 2> wait{
      {{.fd = stop_.get(), .events = POLLIN, .revents = 0}, {.fd = records_.fd, .events = POLLIN, .revents = 0}}};
  while (true) {
    const bool has_room = this->has_room();
    ::poll(wait.data(), has_room ? 2 : 1, has_room ? -1 : 10);
    saw_any_ = false;
    if (has_room) {
      busy_since_ = monotonic_ns();
      records_.drain([this](const rtev_lifecycle& record, std::span<const std::byte> tail) { see(record, tail); });
      publish();
      busy_since_ = 0;
    }
    if (wait[0].revents != 0) return;
    // Readable, but nothing to take: its writer has not finished, and may be waiting for this very cpu.
    if (has_room && !saw_any_) sleep_ns(mapping_retry_ns);
  }
}

bool Lookout::has_room() {
  const std::lock_guard lock(mutex_);
  return seen_.size() < most_seen;
}

void Lookout::see(const rtev_lifecycle& record, std::span<const std::byte> tail) {
  saw_any_ = true;
  Sighting sighting{.record = record, .image = {}, .rings = {}, .places = {}, .over = false};
  std::size_t waiting = batch_.size();
  {
    const std::lock_guard lock(mutex_);
    waiting += seen_.size();
  }
  if (record.type == RTEV_RING && waiting < most_placed) sighting.places = parse_birth(tail);
  if (waiting < most_pinned) pin(sighting);
  batch_.push_back(std::move(sighting));
}

/// Hands over what a drain brought, all at once: see mark_ended().
void Lookout::publish() {
  if (batch_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    std::ranges::move(batch_, std::back_inserter(seen_));
  }
  batch_.clear();
  event_.signal();
}

void Lookout::pin(Sighting& sighting) {
  const rtev_lifecycle& record = sighting.record;
  const auto pid = static_cast<std::int32_t>(record.tgid);
  if (record.type == RTEV_RING) {
    const bool again = record.tgid == last_ring_tgid_ && record.time_ns - last_ring_ns_ < ring_interval_ns;
    last_ring_tgid_ = record.tgid;
    last_ring_ns_ = record.time_ns;
    for (int tries = 0; !again && sighting.rings.empty() && tries < mapping_tries; ++tries) {
      if (tries > 0) sleep_ns(mapping_retry_ns);
      sighting.rings = pin_rings(procfs_, pid);
    }
    if (holds_announced(sighting)) records_.opened(pid, record.time_ns);
    if (!again) sighting.image = pin_image(procfs_, pid);
  } else if (record.type == RTEV_EXEC) {
    sighting.image = pin_image(procfs_, pid);
    // It may run the next program already, whose record is on its way.
    const auto stat = procfs_.stat(pid);
    if (stat && std::string_view(stat->comm) != comm_of(record)) sighting.image.file.reset();
  }
}

/// What is mapped may still be another ring: that of the parent of a forked process.
bool Lookout::holds_announced(const Sighting& sighting) const {
  return sighting.places.ring && std::ranges::any_of(sighting.rings, [&](const PinnedRing& pin) {
           const auto open = procfs_.open_file(pin.fd.get());
           return open && open->inode == sighting.places.ring->inode;
         });
}

std::string_view comm_of(const rtev_lifecycle& record) {
  const std::string_view bytes(record.comm, sizeof record.comm);
  return bytes.substr(0, bytes.find('\0'));
}

}  // namespace rtev
