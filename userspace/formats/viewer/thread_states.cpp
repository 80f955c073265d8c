// SPDX-License-Identifier: MIT
#include "formats/viewer/thread_states.hpp"

namespace rtev {
namespace {

/// What is unknown is not shown. All states of a thread that could run begin with that of one that waits for a cpu.
constexpr std::string_view running = "Running", runnable = "R", unknown;

std::string_view state_after(LeftState left) {
  switch (left) {
    case LeftState::preempted:
      return "R+";
    case LeftState::sleeping:
      return "S";
    case LeftState::uninterruptible:
      return "D";
    case LeftState::stopped:
      return "T";
    case LeftState::traced:
      return "t";
    case LeftState::idle:
      return "I";
    case LeftState::dead:
    case LeftState::other:
      break;
  }
  return unknown;
}

}  // namespace

ThreadStates::Ended ThreadStates::leave(std::uint64_t time, const SchedSwitch& change, const Track& prev) {
  const auto found = now_.find(prev.id);
  // Where it is not known to have come to the cpu, when its last state ended is not known, either.
  if (found != now_.end() && found->second.name != running) found->second.name = unknown;
  return become(time, {.track = &prev,
                       .name = change.prev.tracked ? state_after(change.state) : unknown,
                       .since = time,
                       .cpu = change.cpu,
                       .other = change.state == LeftState::preempted ? std::optional(change.next) : std::nullopt});
}

ThreadStates::Ended ThreadStates::enter(std::uint64_t time, const SchedSwitch& change, const Track& next) {
  return become(time, {.track = &next, .name = running, .since = time, .cpu = change.cpu, .other = {}});
}

ThreadStates::Ended ThreadStates::wake(std::uint64_t time, const Wakeup& wakeup, const Track& woken) {
  if (!wakeup.woken.tracked) return std::nullopt;
  const auto found = now_.find(woken.id);
  const bool is_awake = found != now_.end() && found->second.name.starts_with(runnable);
  if (is_awake) return std::nullopt;  // it was on its way to sleep, or is woken twice
  return become(time, {.track = &woken, .name = runnable, .since = time, .cpu = wakeup.cpu, .other = wakeup.by});
}

ThreadStates::Ended ThreadStates::vanish(std::uint64_t time, const Track& track) {
  return become(time, {.track = &track, .name = unknown, .since = time, .cpu = 0, .other = {}});
}

ThreadStates::Ended ThreadStates::until(std::uint64_t time, const State& state) {
  if (time <= state.since || state.name == unknown) return std::nullopt;
  return ThreadInterval{.track = state.track,
                        .state = state.name,
                        .from = state.since,
                        .to = time,
                        .cpu = state.cpu,
                        .other = state.other};
}

ThreadStates::Ended ThreadStates::become(std::uint64_t time, const State& next) {
  const auto [place, is_new] = now_.try_emplace(next.track->id, next);
  if (is_new) return std::nullopt;
  const Ended ended = until(time, place->second);
  place->second = next;
  return ended;
}

}  // namespace rtev
