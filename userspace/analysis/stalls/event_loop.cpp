// SPDX-License-Identifier: MIT
#include "analysis/stalls/event_loop.hpp"

#include <algorithm>
#include <functional>

namespace rtev {

bool is_wait_for_events(const ThreadInterval& interval) {
  switch (interval.syscall) {
    case Syscall::select:
    case Syscall::poll:
    case Syscall::epoll_wait:
    case Syscall::io_uring_enter:
      return true;
    case Syscall::unknown:
      return interval.state == ThreadState::sleeping;
    default:
      return false;
  }
}

void EventLoop::add(const ThreadInterval& interval) {
  const std::uint64_t begin_ns = std::max(interval.begin_ns, turn_.begin_ns);
  if (interval.end_ns <= begin_ns) return;
  turn_.time.add(interval.state, interval.end_ns - begin_ns);
  if (is_blocked(interval.state)) {
    const Syscall call = interval.syscall <= last_syscall ? interval.syscall : Syscall::other;
    turn_.blocked[static_cast<std::size_t>(call)] += interval.end_ns - begin_ns;
  }
}

void EventLoop::add_wait(const Thread& by, std::uint64_t ns) {
  auto& all = turn_.competitors;
  const auto known =
      std::ranges::find_if(all, [&](const Competitor& other) { return other.thread.comm_bytes == by.comm_bytes; });
  if (known != all.end()) {
    known->ns += ns;
  } else if (all.size() < max_competitors) {
    all.push_back({.thread = by, .ns = ns});
  }
}

void EventLoop::add_span(const OpenSpan& span, std::uint64_t end_ns) {
  const std::uint64_t from_ns = std::max(span.begin_ns, turn_.begin_ns);
  if (end_ns <= from_ns || end_ns - from_ns <= turn_.span_ns) return;
  turn_.span = span;
  turn_.span_ns = end_ns - from_ns;
}

std::uint64_t EventLoop::longest_run(std::uint64_t begin_ns, std::uint64_t end_ns) const {
  const std::uint64_t ns = end_ns - std::min(end_ns, std::max(begin_ns, turn_.begin_ns));
  return ns > turn_.task_ns ? ns : 0;
}

std::optional<EventLoop::LongTurn> EventLoop::long_turn(std::uint64_t end_ns, std::uint64_t min_ns) const {
  if (end_ns < turn_.begin_ns || end_ns - turn_.begin_ns < min_ns || turn_.time.unknown > 0) return std::nullopt;
  Stall stall{.begin_ns = turn_.begin_ns, .end_ns = end_ns, .time = SpanTime::of(turn_.time, turn_.in_pauses)};
  if (turn_.task_ns >= stall.length_ns() / 2) stall.task = turn_.task;
  if (const auto most = std::ranges::max_element(turn_.competitors, {}, &Competitor::ns);
      most != turn_.competitors.end())
    stall.behind = *most;
  auto blocked = turn_.blocked;
  // Domains wait for each other in futex.
  std::uint64_t& locks = blocked[static_cast<std::size_t>(Syscall::futex)];
  locks -= std::min(locks, stall.time.domains);
  const auto longest = std::ranges::max_element(blocked);
  if (*longest > 0) {
    stall.blocked_in = static_cast<Syscall>(longest - blocked.begin());
    stall.blocked_in_ns = *longest;
  }
  const bool is_in_span = turn_.span_ns >= stall.length_ns() / 2;
  return LongTurn{.stall = stall, .span = is_in_span ? turn_.span : std::nullopt};
}

void EventLoop::end_turn(std::uint64_t end_ns, std::uint64_t next_ns, const std::optional<LongTurn>& turn) {
  const std::uint64_t length_ns = end_ns - std::min(end_ns, turn_.begin_ns);
  total_ns_ += length_ns;
  unknown_ns_ += std::min(turn_.time.unknown, length_ns);
  if (turn_.time.unknown > 0) {
    ++unknown_turns_;
  } else if (length_ns > 0) {
    turns_.record(length_ns);
  }
  if (turn && (long_turns_.size() < max_long_turns || long_turns_.back().stall.length_ns() < length_ns)) {
    const auto length_of = [](const LongTurn& other) { return other.stall.length_ns(); };
    long_turns_.insert(std::ranges::upper_bound(long_turns_, length_ns, std::ranges::greater{}, length_of), *turn);
    if (long_turns_.size() > max_long_turns) long_turns_.pop_back();
  }
  turn_ = {.begin_ns = next_ns};
}

}  // namespace rtev
