// SPDX-License-Identifier: MIT
#include "formats/fxt/sched_writer.hpp"

#include <algorithm>
#include <bit>

#include "formats/fxt/metadata_writer.hpp"
#include "stream/recording_layout.hpp"

namespace rtev::record {
namespace {

constexpr std::uint32_t max_cpu = UINT16_MAX;

std::uint64_t koid(std::int32_t tid) {
  return static_cast<std::uint32_t>(tid);
}

std::int32_t weight(const Thread& thread) {
  return thread.tid == 0 ? fxt::idle_weight : thread.priority;
}

}  // namespace

SchedWriter::ThreadFields SchedWriter::fields_of(const Thread& thread) {
  return {.pid = thread.pid,
          .domain = thread.domain,
          .role = thread.role,
          .tracked = thread.tracked,
          .comm = std::bit_cast<std::array<std::uint64_t, 2>>(thread.comm_bytes)};
}

/// Writes the fields of a thread if they are new. True if all other threads were forgotten for it. Not for idle
/// threads.
bool SchedWriter::define(const Thread& thread) {
  if (thread.tid == 0) return false;
  const ThreadFields fields = fields_of(thread);
  ThreadFields* known = recent_.find(threads_, thread.tid);
  if (known != nullptr && *known == fields) return false;
  bool others_gone = false;
  if (known == nullptr) {
    if (threads_.size() >= max_threads) {
      threads_.clear();
      recent_.clear();
      Metadata(writer_, metadata_threads_gone).write();
      others_gone = true;
    }
    known = &threads_.emplace(thread.tid, fields).first->second;
  }
  *known = fields;
  Metadata metadata(writer_, metadata_thread);
  thread_fields(fields, metadata);
  metadata.add("comm", thread.comm()).write(koid(thread.tid));
  return others_gone;
}

/// False if the two contradict each other: the same tid with other fields.
bool SchedWriter::define(const Thread& one, const Thread& other) {
  if (one.tid == other.tid && fields_of(one) != fields_of(other)) return false;
  define(one);
  if (define(other)) define(one);
  return true;
}

std::uint32_t SchedWriter::define_idle(const Thread& thread) {
  const Idle idle{.fields = fields_of(thread), .priority = thread.priority};
  const auto found = std::ranges::find(idle_, idle);
  if (found != idle_.end()) return static_cast<std::uint32_t>(found - idle_.begin());
  const std::uint32_t number = next_idle_;
  next_idle_ = (next_idle_ + 1) % SchedExtra::max_idle;
  if (number == idle_.size()) {
    idle_.push_back(idle);
  } else {
    idle_[number] = idle;
  }
  Metadata metadata(writer_, metadata_idle);
  thread_fields(idle.fields, metadata);
  metadata.add("comm", thread.comm()).add("priority", std::int32_t{idle.priority}).write(number);
  return number;
}

/// 1 + the number of the idle thread, or 0 if it is that of the last switch on this CPU.
std::uint32_t SchedWriter::idle_on(std::uint32_t cpu, const Thread& thread) {
  if (cpu >= idle_of_cpu_.size()) idle_of_cpu_.resize(cpu + 1);
  std::uint32_t& last = idle_of_cpu_[cpu];
  if (last != 0 && idle_[last - 1] == Idle{.fields = fields_of(thread), .priority = thread.priority}) return 0;
  return last = 1 + define_idle(thread);
}

void SchedWriter::finish(fxt::Arguments& arguments, const SchedExtra& extra, const Event& event) {
  if (const std::int32_t packed = extra.pack(); packed != 0) arguments.add(extra_, packed);
  if (event.flags != 0) arguments.add(flags_, std::uint32_t{event.flags});
}

bool SchedWriter::write(const Event& event, const SchedSwitch& change) {
  const Thread &prev = change.prev, &next = change.next;
  if (change.cpu > max_cpu || event.id != 0 || prev.tid < 0 || next.tid < 0 || (prev.tid == 0 && next.tid == 0) ||
      change.state > LeftState::other || change.syscall > last_syscall || !define(prev, next))
    return false;
  SchedExtra extra{.first_holds_lock = prev.holds_lock,
                   .second_holds_lock = next.holds_lock,
                   .syscall = static_cast<std::uint8_t>(change.syscall)};
  if (prev.tid == 0) extra.idle = idle_on(change.cpu, prev);
  if (next.tid == 0) extra.idle = idle_on(change.cpu, next);
  const fxt::ThreadState state = shown_state(change.state);
  if (meant_state(state) != change.state) extra.state = 1 + static_cast<std::uint32_t>(change.state);
  fxt::Arguments arguments;
  finish(arguments, extra, event);
  writer_.write(fxt::ContextSwitch{.time = event.time,
                                   .cpu = static_cast<std::uint16_t>(change.cpu),
                                   .outgoing_tid = koid(prev.tid),
                                   .outgoing_state = state,
                                   .outgoing_weight = weight(prev),
                                   .incoming_tid = koid(next.tid),
                                   .incoming_weight = weight(next)},
                arguments);
  return true;
}

bool SchedWriter::write(const Event& event, const Wakeup& wakeup) {
  const Thread &woken = wakeup.woken, &by = wakeup.by;
  const int nice = by.priority - SchedExtra::nice_0;
  if (wakeup.cpu > max_cpu || event.id != 0 || woken.tid <= 0 || by.tid < 0 ||
      (by.tid != 0 && nice != static_cast<std::int8_t>(nice)) || !define(woken, by))
    return false;
  SchedExtra extra{.first_holds_lock = woken.holds_lock, .second_holds_lock = by.holds_lock};
  if (by.tid == 0) {
    extra.idle = 1 + define_idle(by);  // the CPU of the waker is unknown
  } else {
    extra.second_nice = static_cast<std::int8_t>(nice);
  }
  fxt::Arguments arguments;
  finish(arguments, extra, event);
  writer_.write(fxt::Wakeup{.time = event.time,
                            .cpu = static_cast<std::uint16_t>(wakeup.cpu),
                            .tid = koid(woken.tid),
                            .weight = woken.priority,
                            .waker_tid = koid(by.tid)},
                arguments);
  return true;
}

void SchedWriter::left_cpu(std::uint64_t time, std::uint32_t cpu, std::int32_t tid) {
  if (cpu > max_cpu || tid <= 0) return;
  fxt::Arguments arguments;
  arguments.add(drawn_, true);
  // It is unknown why it left; "blocked" claims least.
  writer_.write(fxt::ContextSwitch{.time = time,
                                   .cpu = static_cast<std::uint16_t>(cpu),
                                   .outgoing_tid = koid(tid),
                                   .outgoing_state = fxt::ThreadState::blocked,
                                   .outgoing_weight = {},
                                   .incoming_tid = 0,
                                   .incoming_weight = fxt::idle_weight},
                arguments);
}

}  // namespace rtev::record
