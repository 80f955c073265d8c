// SPDX-License-Identifier: MIT
#include "enable/attempt.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/subordinate_users.hpp"
#include "enable/bounded_task.hpp"
#include "enable/ring_directories.hpp"
#include "enable/ring_removal.hpp"
#include "enable/user_turns.hpp"

namespace rtev::enable {
namespace {

constexpr std::uint64_t state_word_bytes = sizeof(std::uint64_t);

/// How often the flag is looked at, and the request made again: the runtime resets the limit of the minor heap at any
/// time.
constexpr std::chrono::microseconds look_interval{50};
constexpr int looks_between_requests = 10;

/// How long all processes may take to let their hooks be put back at the start.
/// Of one process, and of all of them.
struct MendLimits {
  std::chrono::milliseconds one, all;
};
/// At how many of them at a time: each takes memory and time. One that takes longer than it may is left behind, and
/// others take its place, but not those of its user.
constexpr std::ptrdiff_t max_mended_at_once = 8, max_mended_of_user = 2;
/// How long they may take to let their hooks be put back at the start.
constexpr MendLimits mend_limits{.one = std::chrono::milliseconds(200), .all = std::chrono::seconds(2)};
constexpr std::chrono::milliseconds mend_look_interval{1};
/// One after the other: on a busy host most do not take as long.
constexpr MendLimits one_by_one_limits{.one = std::chrono::seconds(1), .all = std::chrono::seconds(5)};
/// At the end, where other programs wait to be as they were.
constexpr MendLimits last_mend_limits{.one = std::chrono::milliseconds(200), .all = std::chrono::milliseconds(200)};

/// Asks the domain to look at its pending actions, the external interrupt among them. Each of these writes may come at
/// any time, from any thread. In this order: the runtime looks when the limit says so.
bool request_interrupt(const Target& target, std::uint64_t state) {
  const DomainLayout& layout = target.layout;
  return target.memory().write_word(state + layout.requested_external_interrupt * state_word_bytes, 1) &&
         target.memory().write_word(state + layout.action_pending * state_word_bytes, 1) &&
         target.memory().write_word(state + layout.young_limit * state_word_bytes, UINT64_MAX);
}

/// Whether the domain may have called the hook since it was asked to: before that it clears one of these words, or
/// both.
bool has_looked(const Target& target, std::uint64_t state) {
  constexpr std::uint64_t int_mask = 0xffffffff;
  const DomainLayout& layout = target.layout;
  const auto pending = target.memory().word(state + layout.action_pending * state_word_bytes),
             limit = target.memory().word(state + layout.young_limit * state_word_bytes);
  return pending && limit && ((*pending & int_mask) == 0 || *limit != UINT64_MAX);
}

/// Waits until the events are on.
Started wait_for_events(const Target& target, std::uint64_t state, std::uint64_t deadline_ns) {
  Started started = Started::no;
  for (int looks = 0; monotonic_ns() < deadline_ns; ++looks) {
    if (looks % looks_between_requests == 0) {
      // Before the words are written again.
      if (looks > 0 && has_looked(target, state)) started = Started::begun;
      if (!request_interrupt(target, state)) return started;
    }
    if (const auto enabled = target.memory().word(target.flags().enabled); enabled.value_or(0) != 0)
      return enabled == 1 ? Started::yes : started;
    std::this_thread::sleep_for(look_interval);
  }
  return started;
}

/// How long children may take to be looked at: on a host that starts thousands of processes a second not all are.
constexpr std::uint64_t mend_children_ns = 200'000'000;

/// A child that was forked while the hook was replaced has a copy of it. The kernel gives out pids in their order:
/// `last_pid` was the last one before. Children whose parent has ended are among these, too.
void mend_children(const Procfs& procfs, const Target& target, const ReplacedHook& hook, std::int32_t last_pid,
                   const Supervision& supervision) {
  const std::uint64_t end_ns = monotonic_ns() + mend_children_ns;
  const std::uint32_t user = target.users_program().user;
  for (const std::int32_t pid : procfs.pids_after(last_pid)) {
    if (monotonic_ns() > end_ns) return;
    const auto stat = procfs.stat(pid);
    if (!stat || stat->kernel_thread) continue;
    if (stat->parent != target.process.pid() && stat->comm != target.comm) continue;
    // Others could let the worker wait, and this program's user be charged for that.
    if (procfs.user(pid) != user || supervision.silent.reason(pid, stat->start_ticks, user)) continue;
    const Progress::Scope at_work = supervision.progress.work_on(pid, stat->start_ticks, user);
    auto process = HeldProcess::hold(pid, stat->start_ticks);
    const auto child = process ? find_target(procfs, std::move(*process)) : std::unexpected(process.error());
    if (!child || !target.is_copy(*child)) continue;
    put_back(child->memory(), hook);
  }
}

/// Makes the file of the ring, or takes that of the last attempt.
Checked<void> prepare(const Procfs& procfs, const Target& target, const Requirements& requirements,
                      std::optional<ReservedRing>& made, const Journal& journal) {
  if (made && made->is_in_place(procfs)) return {};
  end_attempts(procfs, target, made, journal);
  auto ring = ReservedRing::make(procfs, target.process, requirements.directory, requirements.parts);
  if (!ring) return std::unexpected(std::move(ring.error()));
  made.emplace(std::move(*ring));
  return {};
}

/// The hook of an entry that is of this very program, as it is now.
std::optional<ReplacedHook> hook_of(const JournalEntry& entry, const Target& target) {
  const bool is_same = entry.program == target.process.program() && entry.user == target.process.credentials().user;
  return is_same ? own_hook(target, entry.claim) : std::nullopt;
}

void mend(const JournalEntry& entry) {
  const Procfs procfs;
  auto process = HeldProcess::hold(entry.pid, entry.start_ticks);
  if (!process) return;
  const auto target = find_target(procfs, std::move(*process));
  const auto hook = target ? hook_of(entry, *target) : std::nullopt;
  if (!hook) return;
  put_back(target->memory(), *hook);
  if (target->events_state() == EventsState::off)
    remove_ring_file(procfs, target->process, entry.ring_path, entry.ring);
}

std::packaged_task<void()> mending_of(const JournalEntry& entry) {
  return std::packaged_task<void()>([entry] { mend(entry); });
}

/// A process may let its reader wait for ever, so others are mended meanwhile. Users take turns.
void mend_side_by_side(UserTurns<Journal::Left>& left, const Journal& journal, const MendLimits& limits) {
  using Clock = std::chrono::steady_clock;
  struct Begun {
    std::uint32_t user;
    Journal::Left left;
    std::future<void> done;
    Clock::time_point late;
    bool is_done() const { return done.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  };
  std::vector<Begun> begun;
  const auto end = Clock::now() + limits.all;
  const auto has_place = [&begun] {
    const auto now = Clock::now();
    return std::ranges::count_if(begun, [now](const Begun& one) { return now < one.late && !one.is_done(); }) <
           max_mended_at_once;
  };
  const auto has_share = [&begun](std::uint32_t user) {
    return std::ranges::count_if(begun, [user](const Begun& one) { return one.user == user && !one.is_done(); }) <
           max_mended_of_user;
  };
  while (!left.is_empty() && Clock::now() < end) {
    auto next = has_place() ? left.take(has_share) : std::nullopt;
    if (!next) {
      std::this_thread::sleep_for(mend_look_interval);
      continue;
    }
    auto task = mending_of(next->second.entry);
    auto done = task.get_future();
    if (!run_detached(std::move(task))) break;
    begun.push_back({.user = next->first,
                     .left = std::move(next->second),
                     .done = std::move(done),
                     .late = Clock::now() + limits.one});
  }
  for (const Begun& one : begun)
    if (one.done.wait_until(end) == std::future_status::ready) journal.remove(one.left.entry);
}

/// Users whose processes have taken the least time come first. The process that did not answer: no further one is
/// mended then, for what was begun there goes on, and may end this process when it is at another one.
std::optional<Progress::Work> mend_one_by_one(UserTurns<Journal::Left>& left, const Journal& journal,
                                              const Progress& progress, const MendLimits& limits) {
  const auto end = std::chrono::steady_clock::now() + limits.all;
  std::map<std::uint32_t, std::uint64_t> used_ns;
  while (!left.is_empty() && std::chrono::steady_clock::now() < end) {
    const auto next = left.take_least([&](std::uint32_t user) { return used_ns[user]; });
    const auto& [user, one] = *next;
    const Progress::Scope at_work = progress.work_on(one.entry.pid, one.entry.start_ticks, user);
    const std::uint64_t begin_ns = monotonic_ns();
    auto task = mending_of(one.entry);
    const auto done = task.get_future();
    if (!run_detached(std::move(task))) break;  // no more threads: it is not to blame
    if (done.wait_for(limits.one) != std::future_status::ready) return progress.current();
    journal.remove(one.entry);
    used_ns[user] += monotonic_ns() - begin_ns;
  }
  return std::nullopt;
}

}  // namespace

Checked<Started> start_events(const Procfs& procfs, const Target& target, std::uint64_t thread_pointer,
                              std::uint64_t window_ns, const Requirements& requirements,
                              std::optional<ReservedRing>& made, const Journal& journal, Guardian& guardian,
                              const Supervision& supervision) {
  const auto state = domain_state_of(target, thread_pointer);
  if (!state) return Started::no;
  const auto locked = journal.lock(target.process);
  if (!locked) return Started::no;
  const auto events = target.events_state();
  if (!events) return std::unexpected(events.error());
  if (*events != EventsState::off) return Started::yes;
  // The last attempt has the runtime start them just now.
  if (present_ring(procfs, target.process)) return Started::begun;
  auto hook = plan_hook(target);
  if (!hook) return std::unexpected(hook.error());
  hook->request = *state + target.layout.requested_external_interrupt * state_word_bytes;
  if (auto is_made = prepare(procfs, target, requirements, made, journal); !is_made)
    return std::unexpected(std::move(is_made.error()));

  const JournalEntry entry{.owner = supervision.supervisor,
                           .pid = target.process.pid(),
                           .start_ticks = target.process.start_ticks(),
                           .program = target.process.program(),
                           .user = target.process.credentials().user,
                           .claim = {*hook},
                           .ring = made->identity(),
                           .ring_path = made->path()};
  if (auto added = journal.add(entry); !added) return refuse(EnableResult::denied, added.error().message());
  if (!guardian.hold(target.memory(), *hook, window_ns)) {
    end_attempts(procfs, target, made, journal);
    end_without_guardian(supervision.progress);
  }
  const std::int32_t last_pid = procfs.last_pid();
  // What was checked before is what is written to now: the same process, program, user and mappings.
  auto same = target.check_unchanged(procfs);
  if (same && !has_spare_files(target.process))
    same = refuse(EnableResult::limit, "it may open too few files (RLIMIT_NOFILE)", files_hint);
  Started started = Started::no;
  if (same && domain_state_of(target, thread_pointer) == state) {
    // Nothing sets it back: the runtime, or that of a child, may be about to make a ring at any later time, and would
    // make it where the program works then.
    const bool is_led = !requirements.is_led || lead_to_directory(target, requirements.directory.path);
    if (is_led && target.memory().write_word(hook->address, hook->replacement))
      started = wait_for_events(target, *state, monotonic_ns() + window_ns);
    put_back(target.memory(), *hook);
    withdraw_request(target.memory(), *hook);
    if (started == Started::no && has_looked(target, *state)) started = Started::begun;
    mend_children(procfs, target, *hook, last_pid, supervision);
  }
  // Otherwise the runtime may use what was prepared. A later worker has to find it until that is known and answered.
  if (started == Started::no) end_attempts(procfs, target, made, journal);
  guardian.let_go();
  if (!same) return std::unexpected(std::move(same.error()));
  return started;
}

void end_without_guardian(const Progress& progress) {
  [[maybe_unused]] const Progress::Scope idle = progress.idle();
  ::_exit(1);
}

void end_attempts(const Procfs& procfs, const Target& target, std::optional<ReservedRing>& made,
                  const Journal& journal) {
  if (!made) return;
  const auto ring = present_ring(procfs, target.process);
  if (ring && ring->inode == made->identity().inode) made->keep();
  made.reset();
  journal.remove(target.process);
}

Checked<void> set_paused(const Target& target, bool paused) {
  const auto events = target.events_state();
  if (!events) return std::unexpected(events.error());
  if (*events == EventsState::off) return {};
  if (auto same = target.check_unchanged(Procfs()); !same) return same;
  if (target.memory().write_word(target.flags().paused, paused ? 1 : 0)) return {};
  return ended();
}

bool forget_ring(const Procfs& procfs, const Target& target) {
  return remove_present_ring(procfs, target) && target.check_unchanged(procfs) &&
         target.memory().write_word(target.flags().enabled, 0);
}

Mended mend_left_hooks(const Journal& journal, const JournalOwner& supervisor, const SilentProcesses& silent,
                       const Progress& progress, Mending mending, bool is_finishing) {
  Mended mended;
  UserTurns<Journal::Left> left;
  for (Journal::Left& one : journal.left_to(supervisor)) {
    const JournalEntry& entry = one.entry;
    if (entry.owner == supervisor) mended.tried.emplace(entry.pid, entry.start_ticks);
    // It would take the time that others need. A later run tries it again.
    const std::uint32_t user = charged_user(entry.user);
    if (!silent.may_mend(user) || silent.reason(entry.pid, entry.start_ticks, user)) continue;
    if (!is_finishing || !silent.has_any_of(user)) left.add(user, std::move(one));
  }
  if (mending == Mending::side_by_side) mend_side_by_side(left, journal, is_finishing ? last_mend_limits : mend_limits);
  if (mending == Mending::one_by_one)
    mended.unanswered = mend_one_by_one(left, journal, progress, is_finishing ? last_mend_limits : one_by_one_limits);
  return mended;
}

}  // namespace rtev::enable
