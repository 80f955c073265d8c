// SPDX-License-Identifier: MIT
#include "enable/child_places.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace rtev::enable {
namespace {

/// How long children may take to end once they are killed.
constexpr std::uint64_t kill_timeout_ns = 100'000'000;
constexpr std::uint64_t ns_per_ms = 1'000'000;

}  // namespace

ChildPlaces::ChildPlaces() {
  void* const memory = ::mmap(nullptr, all * sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  shared_ = new (memory) Shared[all]{};
}

ChildPlaces::~ChildPlaces() {
  ::munmap(shared_, all * sizeof(Shared));
}

std::optional<ChildPlaces::Place> ChildPlaces::take(std::uint32_t user) {
  std::unique_lock lock(mutex_);
  for (std::size_t index = 0;;) {
    if (claim(user, index)) {
      ++at_work_;
      return Place(*this, index);
    }
    if (at_work_ == 0) return std::nullopt;
    changed_.wait(lock);
  }
}

bool ChildPlaces::claim(std::uint32_t user, std::size_t& index) {
  free_ended();
  const auto is_used = [](const Shared& place) { return place.use != Use::none; };
  const auto used = static_cast<std::size_t>(std::ranges::count_if(shared(), is_used));
  const auto own = static_cast<std::size_t>(
      std::ranges::count_if(shared(), [&](const Shared& place) { return is_used(place) && place.user == user; }));
  if (own >= most_of_user || used >= (own == 0 ? all : most)) return false;
  index = static_cast<std::size_t>(std::ranges::find_if_not(shared(), is_used) - shared().begin());
  Shared& place = shared()[index];
  place.user = user;
  place.pid = 0;
  place.use = Use::taken;
  return true;
}

void ChildPlaces::free_ended() {
  for (Shared& place : shared()) {
    if (place.use != Use::left) continue;
    const bool is_gone = ::kill(place.pid, 0) != 0 && errno == ESRCH;
    const auto stat = procfs_.stat(place.pid);
    const bool is_other = stat && (stat->start_ticks != place.start_ticks || stat->state == 'Z');
    if (is_gone || is_other) place.use = Use::none;
  }
}

void ChildPlaces::take_over() {
  const std::lock_guard lock(mutex_);
  std::vector<UniqueFd> killed;
  for (Shared& place : shared()) {
    if (place.use != Use::taken) continue;
    place.use = place.pid == 0 ? Use::none : Use::left;
    if (place.use == Use::none) continue;
    // It would make or remove a file, of which nobody would know.
    UniqueFd child = hold(place);
    if (child && ::syscall(SYS_pidfd_send_signal, child.get(), SIGKILL, nullptr, 0) == 0)
      killed.push_back(std::move(child));
  }
  // Who hangs does not end.
  const std::uint64_t end_ns = monotonic_ns() + kill_timeout_ns;
  for (const UniqueFd& child : killed) {
    pollfd ended{.fd = child.get(), .events = POLLIN, .revents = 0};
    ::poll(&ended, 1, static_cast<int>((end_ns - std::min(end_ns, monotonic_ns())) / ns_per_ms));
  }
  free_ended();
}

/// The child; nothing if it has ended.
UniqueFd ChildPlaces::hold(const Shared& place) const {
  UniqueFd child(static_cast<int>(::syscall(SYS_pidfd_open, place.pid.load(), 0)));
  // Looked at after it is held: another process may have its pid by now.
  const auto stat = procfs_.stat(place.pid);
  return stat && stat->start_ticks == place.start_ticks ? std::move(child) : UniqueFd();
}

bool ChildPlaces::Place::give(pid_t child) const {
  const auto stat = places_->procfs_.stat(child);
  if (!stat) return false;
  Shared& place = places_->shared()[index_];
  place.start_ticks = stat->start_ticks;
  place.pid = child;
  return true;
}

void ChildPlaces::Place::leave() {
  places_->shared()[index_].use = Use::left;
}

ChildPlaces::Place::~Place() {
  if (places_ == nullptr) return;
  const std::lock_guard lock(places_->mutex_);
  Use taken = Use::taken;
  places_->shared()[index_].use.compare_exchange_strong(taken, Use::none);
  --places_->at_work_;
  places_->changed_.notify_all();
}

}  // namespace rtev::enable
