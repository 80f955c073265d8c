// SPDX-License-Identifier: MIT
#include "formats/perfetto/perfetto_sched.hpp"

#include <array>

namespace rtev::perfetto {
namespace {

/// Beyond what kernels have; more cpus than that are not drawn.
constexpr std::uint32_t max_drawn_cpus = 1 << 16;

constexpr std::size_t max_in_bundle = std::size_t{64} << 10;

constexpr std::int32_t usual_priority = 120;

/// The kernel's prev_state as its event sched_switch has it from 4.14 on, which Perfetto decodes by the kernel's
/// version: by LeftState.
constexpr std::int64_t interruptible = 0x1, uninterruptible = 0x2, stopped = 0x4, traced = 0x8, dead = 0x10,
                       parked = 0x40, idle_task = 0x80, preempted = 0x100;
constexpr std::array prev_states{preempted, interruptible, uninterruptible, stopped, traced, dead, idle_task, parked};

/// For a state that is unknown. Perfetto requires one; a runnable thread would seem to wait for a cpu.
constexpr std::int64_t unknown_state = interruptible;

}  // namespace

template <typename Fill>
void Sched::add_event(std::uint32_t index, std::uint64_t time, std::int32_t tid, Fill&& fill) {
  TextBuffer& content = bundles_[index];
  {
    Message<FtraceEventBundle> bundle{content};
    if (content.size() == 0) bundle.add_number(FtraceEventBundle::cpu, index);
    Message<FtraceEvent> event{bundle, FtraceEventBundle::event};
    event.add_number(FtraceEvent::timestamp, time);
    event.add_number(FtraceEvent::pid, tid);
    fill(event);
  }
  if (content.size() >= max_in_bundle) write_bundle(index);
}

void Sched::sched_switch(std::uint64_t time, const SchedSwitch& change) {
  const auto left = static_cast<std::size_t>(change.state);
  const std::int64_t state = change.prev.tid == 0 ? 0 : left < prev_states.size() ? prev_states[left] : parked;
  write_switch(change.cpu, time, side(change.prev), state, side(change.next));
}

void Sched::left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) {
  write_switch(cpu, time, {track.tid, track.name, usual_priority}, unknown_state, idle());
}

void Sched::entered_unseen(std::uint64_t time, std::uint32_t cpu, const Thread& thread) {
  write_switch(cpu, time, idle(), 0, side(thread));
}

void Sched::waking(std::uint64_t time, const Wakeup& wakeup, std::optional<std::uint32_t> waker_cpu) {
  const std::uint32_t index = waker_cpu.value_or(wakeup.cpu);
  if (!make_bundle(index)) return;
  add_event(index, time, wakeup.by.tid, [&](Message<FtraceEvent>& event) {
    Message<SchedWaking> waking{event, FtraceEvent::sched_waking};
    add_text(waking, SchedWaking::comm, wakeup.woken.comm());
    waking.add_number(SchedWaking::pid, wakeup.woken.tid);
    waking.add_number(SchedWaking::prio, wakeup.woken.priority);
    waking.add_number(SchedWaking::success, 1);
    waking.add_number(SchedWaking::target_cpu, static_cast<std::int32_t>(wakeup.cpu));
  });
}

void Sched::gone(std::uint64_t time, const Track& track) {
  if (bundles_.empty()) return;
  constexpr std::uint32_t index = 0;  // which one does not matter
  add_event(index, time, 0, [&](Message<FtraceEvent>& event) {
    Message<SchedProcessFree> freed{event, FtraceEvent::sched_process_free};
    add_text(freed, SchedProcessFree::comm, track.name);
    freed.add_number(SchedProcessFree::pid, track.tid);
    freed.add_number(SchedProcessFree::prio, usual_priority);
  });
}

Sched::Side Sched::idle() {
  return {0, "swapper", usual_priority};
}

Sched::Side Sched::side(const Thread& thread) {
  return {thread.tid, thread.comm(), thread.priority};
}

/// False if there are no bundles for the cpu.
bool Sched::make_bundle(std::uint32_t cpu) {
  if (cpu >= max_drawn_cpus) return false;
  if (cpu >= bundles_.size()) bundles_.resize(cpu + 1);
  return true;
}

void Sched::write_switch(std::uint32_t index, std::uint64_t time, const Side& prev, std::int64_t prev_state,
                         const Side& next) {
  if (!make_bundle(index)) return;
  add_event(index, time, prev.tid, [&](Message<FtraceEvent>& event) {
    Message<SchedSwitchEvent> change{event, FtraceEvent::sched_switch};
    add_text(change, SchedSwitchEvent::prev_comm, prev.comm);
    change.add_number(SchedSwitchEvent::prev_pid, prev.tid);
    change.add_number(SchedSwitchEvent::prev_prio, prev.priority);
    change.add_number(SchedSwitchEvent::prev_state, prev_state);
    add_text(change, SchedSwitchEvent::next_comm, next.comm);
    change.add_number(SchedSwitchEvent::next_pid, next.tid);
    change.add_number(SchedSwitchEvent::next_prio, next.priority);
  });
}

void Sched::flush() {
  for (std::uint32_t index = 0; index < bundles_.size(); ++index) write_bundle(index);
}

void Sched::write_bundle(std::uint32_t index) {
  TextBuffer& bundle = bundles_[index];
  if (bundle.size() == 0) return;
  packets_.add([&](Packet& packet) { packet.add_bytes(TracePacket::ftrace_events, bundle.text()); });
  bundle.clear();
}

}  // namespace rtev::perfetto
