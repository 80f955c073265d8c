// SPDX-License-Identifier: MIT
#include "session/rootless/sampled_thread.hpp"

#include <algorithm>

#include "base/parse.hpp"
#include "inspect/proc_lines.hpp"
#include "kernel/syscall.hpp"

namespace rtev {
namespace {

/// Shorter waits for a CPU are not worth two records.
constexpr std::uint64_t min_wait_ns = 100'000;

/// What a sample that came late has of more than this may have been several turns: it is cut at so many of its sleeps.
constexpr std::uint64_t longest_turn_ns = 20'000'000, max_cuts = 63;

/// The value of a line of a status file; empty if there is none.
std::string_view value_of(std::string_view text, std::string_view label) {
  const std::size_t at = text.find(label);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + label.size());
  return take_until(text, '\n');
}

bool is_wait_for_events(LeftState state, Syscall syscall) {
  switch (syscall) {
    case Syscall::select:
    case Syscall::poll:
    case Syscall::epoll_wait:
    case Syscall::io_uring_enter:
      return true;
    default:
      return syscall == Syscall::unknown && state == LeftState::sleeping;
  }
}

std::uint64_t since(std::uint64_t before, std::uint64_t now) {
  return now - std::min(before, now);
}

}  // namespace

void parse_schedstat(std::string_view text, ThreadSample& sample) {
  for (std::uint64_t* const number : {&sample.cpu_ns, &sample.wait_ns, &sample.runs})
    *number = parse_leading_number<std::uint64_t>(take_word(text)).value_or(0);
}

void parse_status(std::string_view text, ThreadSample& sample) {
  // The name in the first line cannot hold a line end.
  const std::string_view state = value_of(text, "\nState:\t");
  const auto sleeps = parse_leading_number<std::uint64_t>(value_of(text, "\nvoluntary_ctxt_switches:\t"));
  sample.has_ended = state.empty() || !sleeps;
  sample.sleeps = sleeps.value_or(0);
  sample.blocked_as.reset();
  switch (state.empty() ? 'X' : state.front()) {
    case 'R':
      break;
    case 'S':
      sample.blocked_as = LeftState::sleeping;
      break;
    case 'D':
      sample.blocked_as = LeftState::uninterruptible;
      break;
    case 'T':
      sample.blocked_as = LeftState::stopped;
      break;
    case 't':
      sample.blocked_as = LeftState::traced;
      break;
    case 'I':
      sample.blocked_as = LeftState::idle;
      break;
    default:
      sample.has_ended = true;
  }
}

void parse_syscall(std::string_view text, ThreadSample& sample) {
  // It has woken since.
  if (text.starts_with("running")) return sample.blocked_as.reset();
  const auto number = parse_leading_number<std::int32_t>(text);
  sample.syscall = number ? kernel::syscall_of(*number) : Syscall::unknown;
}

void SampledThread::leave(std::uint64_t time_ns, LeftState state, Syscall syscall, const Emit& emit) const {
  emit(time_ns, {.cpu = cpu_, .state = state, .syscall = syscall, .prev = thread_, .next = {}});
}

void SampledThread::enter(std::uint64_t time_ns, const Emit& emit) const {
  emit(time_ns, {.cpu = cpu_, .state = LeftState::preempted, .prev = {}, .next = thread_});
}

void SampledThread::block(std::uint64_t time_ns, const ThreadSample& sample, const Emit& emit) {
  if (is_wait_for_events(*sample.blocked_as, sample.syscall)) unseen_in_ = sample.syscall;
  leave(time_ns, *sample.blocked_as, sample.syscall, emit);
}

void SampledThread::add_unseen_sleep(std::uint64_t begin_ns, std::uint64_t end_ns, const Emit& emit) const {
  leave(begin_ns, LeftState::sleeping, unseen_in_, emit);
  enter(end_ns, emit);
}

void SampledThread::add(const ThreadSample& sample, const Emit& emit) {
  if (sample.syscall == Syscall::unknown) unseen_in_ = Syscall::unknown;
  if (!last_) {
    sample.blocked_as ? block(sample.time_ns, sample, emit) : enter(sample.time_ns, emit);
    last_ = sample;
    return;
  }
  const ThreadSample last = *last_;
  // Records need times of their own.
  if (sample.time_ns < last.time_ns + 2) return;
  last_ = sample;
  const bool was_blocked = last.blocked_as.has_value(), is_blocked = sample.blocked_as.has_value();
  const bool has_run = sample.runs != last.runs || sample.cpu_ns != last.cpu_ns || sample.sleeps != last.sleeps;
  if (was_blocked && is_blocked && !has_run) return;

  const std::uint64_t length_ns = sample.time_ns - last.time_ns;
  // The kernel counts a wait when it is over.
  const bool waits = !has_run && sample.runs != 0 && !was_blocked && !is_blocked;
  const std::uint64_t waited_ns = waits ? length_ns : since(last.wait_ns, sample.wait_ns);
  const std::uint64_t active_ns =
      std::clamp<std::uint64_t>(since(last.cpu_ns, sample.cpu_ns) + waited_ns, 1, length_ns - 1);
  // The one that the sample shows is not unseen.
  const std::uint64_t slept = since(last.sleeps, sample.sleeps),
                      unseen = slept - std::min(slept, is_blocked ? 1UL : 0UL);
  const bool slept_unseen = unseen > 0;

  // It was active, with or without a CPU, from `begin_ns` to `end_ns`.
  std::uint64_t begin_ns = sample.time_ns - active_ns, end_ns = sample.time_ns;
  if (was_blocked) {
    if (slept_unseen && !is_wait_for_events(*last.blocked_as, last.syscall)) {
      enter(begin_ns - 1, emit);
      add_unseen_sleep(begin_ns - 1, begin_ns, emit);
    } else {
      enter(begin_ns, emit);
    }
  } else {
    if (is_blocked) {
      begin_ns = last.time_ns + 1;
      end_ns = last.time_ns + active_ns;
    } else if (!slept_unseen) {
      begin_ns = last.time_ns;
    }
    if (slept_unseen) add_unseen_sleep(last.time_ns, begin_ns, emit);
  }
  const bool is_long = end_ns - begin_ns > longest_turn_ns && is_wait_for_events(LeftState::sleeping, unseen_in_);
  const std::uint64_t turns = is_long ? std::min(unseen, max_cuts) + 1 : 1, turn_ns = (end_ns - begin_ns) / turns;
  for (std::uint64_t turn = 1; turn <= turns; ++turn) {
    const std::uint64_t turn_end_ns = turn < turns ? begin_ns + turn_ns : end_ns;
    if (waited_ns >= min_wait_ns) {
      leave(turn_end_ns - std::min(waited_ns / turns, turn_end_ns - begin_ns), LeftState::preempted, Syscall::unknown,
            emit);
      enter(turn_end_ns, emit);
    }
    if (turn == turns) break;
    add_unseen_sleep(turn_end_ns, turn_end_ns + 1, emit);
    begin_ns = turn_end_ns + 1;
  }
  if (is_blocked) block(end_ns, sample, emit);
}

}  // namespace rtev
