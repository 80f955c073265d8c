// SPDX-License-Identifier: MIT
#include "recording/sched_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

#include "recording/argument_values.hpp"
#include "stream/stacks.hpp"

namespace rtev::record {
namespace {

std::optional<Thread> read_thread(Values& values, std::int32_t tid) {
  Thread thread{};
  thread.tid = tid;
  thread_fields(thread, values);
  const std::string comm = values.text("comm");
  std::copy_n(comm.begin(), std::min(comm.size(), thread.comm_bytes.size()), thread.comm_bytes.begin());
  if (!values.complete()) return std::nullopt;
  return thread;
}

std::optional<std::int16_t> priority(std::int64_t weight) {
  if (!std::in_range<std::int16_t>(weight)) return std::nullopt;
  return static_cast<std::int16_t>(weight);
}

SchedExtra extra_of(const Values& values) {
  const auto* const packed = values.get<std::int32_t>("rtev");
  return packed != nullptr ? SchedExtra::unpack(*packed) : SchedExtra{};
}

/// `thread`: the bytes of a Thread.
bool is_valid_thread(std::span<const std::byte> thread) {
  const auto at = [&](std::size_t offset) { return std::to_integer<std::uint8_t>(thread[offset]); };
  return at(offsetof(Thread, tracked)) <= 1 && at(offsetof(Thread, holds_lock)) <= 1 &&
         at(offsetof(Thread, role)) <= static_cast<std::uint8_t>(ThreadRole::tick);
}

/// `sample`: the bytes of a Sample.
StackIndex stack_of(std::span<const std::byte> sample) {
  StackIndex stack = 0;
  std::memcpy(&stack, sample.data() + offsetof(Sample, stack), sizeof(stack));
  return stack;
}

}  // namespace

bool SchedReader::is_valid(EventKind kind, std::span<const std::byte> payload) {
  const auto has_threads = [&](std::size_t first, std::size_t second) {
    return is_valid_thread(payload.subspan(first, sizeof(Thread))) &&
           is_valid_thread(payload.subspan(second, sizeof(Thread)));
  };
  if (kind == EventKind::sample && payload.size() == sizeof(Sample))
    return std::to_integer<std::uint8_t>(payload[offsetof(Sample, role)]) <=
               static_cast<std::uint8_t>(ThreadRole::tick) &&
           std::to_integer<std::uint8_t>(payload[offsetof(Sample, holds_lock)]) <= 1 &&
           stack_of(payload) < StackTable::max_stacks;
  // Of other sizes they are ignored.
  if (kind == EventKind::sched_switch && payload.size() == sizeof(SchedSwitch))
    return has_threads(offsetof(SchedSwitch, prev), offsetof(SchedSwitch, next));
  if (kind == EventKind::wakeup && payload.size() == sizeof(Wakeup))
    return has_threads(offsetof(Wakeup, woken), offsetof(Wakeup, by));
  return true;
}

Result<bool> SchedReader::take(std::string_view what, const fxt::parsed::UserspaceObject& object) {
  const auto bad = [&] { return bad_recording(std::string(what) + " has no valid thread"); };
  if (what == metadata_threads_gone) {
    threads_.clear();
    return true;
  }
  Values values(object.arguments);
  if (what == metadata_thread) {
    if (object.address == 0 || !std::in_range<std::int32_t>(object.address)) return bad();
    const auto thread = read_thread(values, static_cast<std::int32_t>(object.address));
    if (!thread || (threads_.size() >= max_threads && !threads_.contains(object.address))) return bad();
    threads_.insert_or_assign(object.address, *thread);
    return true;
  }
  if (what == metadata_idle) {
    auto thread = read_thread(values, 0);
    const auto weight = priority(values.number<std::int32_t>("priority"));
    if (!thread || !weight || !values.complete() || object.address >= SchedExtra::max_idle) return bad();
    thread->priority = *weight;
    if (object.address >= idle_.size()) idle_.resize(object.address + 1);
    idle_[object.address] = *thread;
    return true;
  }
  return false;
}

std::optional<SchedSwitch> SchedReader::read(const fxt::parsed::ContextSwitch& record) {
  Values values(record.arguments);
  const SchedExtra extra = extra_of(values);
  const auto thread = [&](std::uint64_t tid, std::string_view weight, bool holds_lock) -> std::optional<Thread> {
    const Thread* const known = tid == 0 ? idle_on(record.cpu, extra.idle) : find(tid);
    if (known == nullptr) return std::nullopt;
    Thread result = *known;
    result.holds_lock = holds_lock;
    if (tid == 0) return result;
    const auto given = priority(values.number<std::int32_t>(weight));
    if (!given || !values.complete()) return std::nullopt;
    result.priority = *given;
    return result;
  };
  const auto prev = thread(record.outgoing_tid, "outgoing_weight", extra.first_holds_lock);
  const auto next = thread(record.incoming_tid, "incoming_weight", extra.second_holds_lock);
  if (!prev || !next || extra.state > 1 + static_cast<std::uint32_t>(LeftState::other) ||
      extra.syscall > static_cast<std::uint8_t>(last_syscall))
    return std::nullopt;
  // All bytes are set, padding included: the record is a payload.
  SchedSwitch change{};
  change.cpu = record.cpu;
  change.state = extra.state != 0 ? static_cast<LeftState>(extra.state - 1) : meant_state(record.outgoing_state);
  change.syscall = static_cast<Syscall>(extra.syscall);
  change.prev = *prev;
  change.next = *next;
  return change;
}

std::optional<Wakeup> SchedReader::read(const fxt::parsed::Wakeup& record) {
  Values values(record.arguments);
  const SchedExtra extra = extra_of(values);
  const auto* const waker = values.get<fxt::Koid>("waker");
  const auto weight = priority(values.number<std::int32_t>("weight"));
  const Thread* const woken = find(record.tid);
  if (waker == nullptr || !weight || !values.complete() || woken == nullptr) return std::nullopt;
  const Thread* const by = waker->id == 0 ? idle(extra.idle) : find(waker->id);
  if (by == nullptr) return std::nullopt;
  Wakeup wakeup{};
  wakeup.cpu = record.cpu;
  wakeup.woken = *woken;
  wakeup.woken.priority = *weight;
  wakeup.woken.holds_lock = extra.first_holds_lock;
  wakeup.by = *by;
  wakeup.by.holds_lock = extra.second_holds_lock;
  if (waker->id != 0) wakeup.by.priority = static_cast<std::int16_t>(SchedExtra::nice_0 + extra.second_nice);
  return wakeup;
}

const Thread* SchedReader::find(std::uint64_t tid) const {
  const auto found = threads_.find(tid);
  return found != threads_.end() ? &found->second : nullptr;
}

/// By 1 + its number.
const Thread* SchedReader::idle(std::uint32_t number) const {
  return number != 0 && number <= idle_.size() && idle_[number - 1] ? &*idle_[number - 1] : nullptr;
}

const Thread* SchedReader::idle_on(std::uint16_t cpu, std::uint32_t given) {
  if (cpu >= idle_of_cpu_.size()) idle_of_cpu_.resize(cpu + std::size_t{1});
  if (given != 0) idle_of_cpu_[cpu] = given;
  return idle(idle_of_cpu_[cpu]);
}

}  // namespace rtev::record
