// SPDX-License-Identifier: MIT
#include "enable/attempt.hpp"

#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "enable/bounded_task.hpp"
#include "enable/ring_removal.hpp"

namespace rtev::enable {
namespace {

constexpr std::uint64_t state_word_bytes = sizeof(std::uint64_t);

/// How often the flag is looked at, and the request made again: the runtime resets the limit of the minor heap at any
/// time.
constexpr std::chrono::microseconds look_interval{50};
constexpr int looks_between_requests = 10;

/// How long a process may take to let its hook be put back at the start.
constexpr std::chrono::milliseconds mend_timeout{500};

/// Asks the domain to look at its pending actions, the external interrupt among them. Each of these writes may come at
/// any time, from any thread. In this order: the runtime looks when the limit says so.
bool request_interrupt(const Target& target, std::uint64_t state) {
  const DomainLayout& layout = target.layout->state;
  return target.memory.write_word(state + layout.requested_external_interrupt * state_word_bytes, 1) &&
         target.memory.write_word(state + layout.action_pending * state_word_bytes, 1) &&
         target.memory.write_word(state + layout.young_limit * state_word_bytes, UINT64_MAX);
}

/// True when the events are on.
bool wait_for_events(const Target& target, std::uint64_t state, std::uint64_t deadline_ns) {
  for (int looks = 0; monotonic_ns() < deadline_ns; ++looks) {
    if (looks % looks_between_requests == 0 && !request_interrupt(target, state)) return false;
    if (const auto enabled = target.memory.word(target.flags().enabled); enabled.value_or(0) != 0) return enabled == 1;
    std::this_thread::sleep_for(look_interval);
  }
  return false;
}

/// A child that was forked while the hook was replaced has a copy of it.
void mend_children(const Procfs& procfs, const Target& target, const ReplacedHook& hook, std::uint64_t since_ticks,
                   const Supervision& supervision) {
  for (const std::int32_t pid : procfs.pids()) {
    if (pid == target.pid) continue;
    const auto stat = procfs.stat(pid);
    if (!stat || stat->kernel_thread || stat->start_ticks + 1 < since_ticks) continue;
    if (stat->parent != target.pid && stat->comm != target.comm) continue;
    if (supervision.silent.reason(pid, stat->start_ticks)) continue;
    const Progress::Scope at_work = supervision.progress.work_on(pid);
    const auto child = find_target(procfs, pid, stat->start_ticks);
    if (child && child->file == target.file && child->bias == target.bias) put_back(child->memory, hook);
  }
}

std::unexpected<Refused> refused(EnableResult result, std::string why) {
  return std::unexpected(Refused{.result = result, .why = std::move(why)});
}

/// Holds the lock of the journal.
class Locked {
 public:
  explicit Locked(const Journal& journal) : journal_(journal), is_locked_(journal.lock()) {}
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() {
    if (is_locked_) journal_.unlock();
  }
  explicit operator bool() const { return is_locked_; }

 private:
  const Journal& journal_;
  bool is_locked_;
};

}  // namespace

Checked<bool> start_events(const Procfs& procfs, const Target& target, std::uint64_t thread_pointer,
                           std::uint64_t window_ns, const Journal& journal, Guardian& guardian,
                           const Supervision& supervision) {
  const auto state = domain_state_of(target, thread_pointer);
  if (!state) return false;
  const Locked locked(journal);
  if (!locked) return false;
  const auto events = target.events_state();
  if (!events) return std::unexpected(events.error());
  if (*events != EventsState::off) return true;
  auto hook = plan_hook(target);
  if (!hook) return std::unexpected(hook.error());
  hook->request = *state + target.layout->state.requested_external_interrupt * state_word_bytes;

  const JournalEntry entry{.pid = target.pid, .start_ticks = target.start_ticks, .hook = *hook};
  if (auto added = journal.add(entry); !added) return refused(EnableResult::denied, added.error().message());
  if (auto held = guardian.hold(target.memory, entry, window_ns); !held) {
    journal.remove(entry);
    return refused(EnableResult::denied, held.error().message());
  }
  const std::uint64_t since_ticks = boot_ticks();
  const bool is_on = target.memory.write_word(hook->address, hook->replacement) &&
                     wait_for_events(target, *state, monotonic_ns() + window_ns);
  put_back(target.memory, *hook);
  mend_children(procfs, target, *hook, since_ticks, supervision);
  guardian.release();
  journal.remove(entry);
  return is_on;
}

Checked<void> set_paused(const Target& target, bool paused) {
  const auto events = target.events_state();
  if (!events) return std::unexpected(events.error());
  if (*events == EventsState::off) return {};
  if (target.memory.write_word(target.flags().paused, paused ? 1 : 0)) return {};
  return refused(EnableResult::gone, "it ended");
}

bool forget_ring(const Procfs& procfs, const Target& target) {
  return remove_ring_file(procfs, target) && target.memory.write_word(target.flags().enabled, 0);
}

void mend_left_hooks(const Journal& journal) {
  const Locked locked(journal);
  if (!locked) return;
  for (const JournalEntry& entry : journal.entries()) {
    const bool is_done = run_bounded(std::packaged_task<void()>([entry] {
                                       auto memory = ProcessMemory::open(entry.pid);
                                       // After the memory: what is looked at is the process whose memory it is.
                                       const auto stat = Procfs().stat(entry.pid);
                                       if (memory && stat && stat->start_ticks == entry.start_ticks)
                                         put_back(*memory, entry.hook);
                                     }),
                                     mend_timeout);
    if (is_done) journal.remove(entry);
  }
}

}  // namespace rtev::enable
