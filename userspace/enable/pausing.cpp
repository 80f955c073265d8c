// SPDX-License-Identifier: MIT
#include "enable/pausing.hpp"

#include <algorithm>
#include <thread>

#include "base/user_share.hpp"

namespace rtev::enable {
namespace {

/// After how long a program counts as one that does not answer, how often that is looked at, and for how long in all.
constexpr std::chrono::milliseconds step_timeout{20}, pause_look_interval{1}, timeout{1000};

/// Returns whether its events are off.
bool pause_one(const PausedAtEnd& program) {
  const auto enabled = program.memory.word(program.flags.enabled);
  if (enabled == 1) program.memory.write_word(program.flags.paused, 1);
  return enabled == 0 && program.memory.word(program.flags.paused) == 0;
}

UserTurns<PausedAtEnd> in_turns(std::vector<PausedAtEnd> programs) {
  UserTurns<PausedAtEnd> turns;
  for (PausedAtEnd& program : programs) {
    const std::uint32_t user = program.user;
    turns.add(user, std::move(program));
  }
  return turns;
}

}  // namespace

bool Pauser::is_silent(const Running& running) {
  return Clock::now() - running.start > step_timeout;
}

bool Pauser::has_silent_of(std::uint32_t user) const {
  return std::ranges::any_of(running_,
                             [user](const Running& one) { return one.program->user == user && is_silent(one); });
}

bool Pauser::has_place_for(std::uint32_t user) const {
  const auto own = std::ranges::count_if(running_, [user](const Running& one) { return one.program->user == user; });
  return has_share(static_cast<std::size_t>(own), running_.size(), max_threads);
}

/// Nothing if there is none, or no user of one has a place.
std::optional<Pauser::Waiting::OfUser> Pauser::take_next(Waiting& waiting, bool needs_place) const {
  const auto may = [&](std::uint32_t user) { return !needs_place || has_place_for(user); };
  const auto answers = [&](std::uint32_t user) { return !has_silent_of(user) && may(user); };
  std::optional<Waiting::OfUser> next;
  if (waiting.size_of(0) != 0) next = waiting.take([&](std::uint32_t user) { return user == 0 && answers(user); });
  if (!next) next = waiting.take(answers);
  if (!next) next = waiting.take(may);
  return next;
}

Pauser::Begun Pauser::begin_next(Waiting& waiting) {
  auto next = take_next(waiting, true);
  if (!next) return Begun::no;
  const auto program = std::make_shared<PausedAtEnd>(std::move(next->second));
  const auto is_off = std::make_shared<std::atomic<bool>>(false);
  std::packaged_task<void()> task([program, is_off] { *is_off = pause_one(*program); });
  auto done = task.get_future();
  if (!start_(std::move(task))) {
    waiting.add(next->first, std::move(*program));
    return Begun::without_thread;
  }
  running_.push_back({.program = program, .is_off = is_off, .done = std::move(done), .start = Clock::now()});
  return Begun::yes;
}

void Pauser::take_done(std::vector<PausedAtEnd>& off) {
  std::erase_if(running_, [&off](const Running& one) {
    if (one.done.wait_for(Clock::duration::zero()) != std::future_status::ready) return false;
    if (*one.is_off) off.push_back(std::move(*one.program));
    return true;
  });
}

std::vector<PausedAtEnd> Pauser::pause(std::vector<PausedAtEnd> programs) {
  const auto end = Clock::now() + timeout;
  Waiting waiting = in_turns(std::move(programs));
  std::vector<PausedAtEnd> rest;
  while (Clock::now() < end) {
    take_done(rest);
    const Begun begun = begin_next(waiting);
    if (begun == Begun::yes) continue;
    const auto slow = std::ranges::find_if(running_, [](const Running& one) { return !is_silent(one); });
    if (slow != running_.end())
      slow->done.wait_for(pause_look_interval);
    else if (begun == Begun::without_thread)
      std::this_thread::sleep_for(pause_look_interval);
    else
      break;
  }
  take_done(rest);
  while (auto left = take_next(waiting, false)) rest.push_back(std::move(left->second));
  return rest;
}

void Pauser::pause_here(std::vector<PausedAtEnd> programs) const {
  Waiting waiting = in_turns(std::move(programs));
  while (const auto next = take_next(waiting, false)) pause_one(next->second);
}

}  // namespace rtev::enable
