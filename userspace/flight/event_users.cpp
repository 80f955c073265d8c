// SPDX-License-Identifier: MIT
#include "flight/event_users.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace rtev::flight {
namespace {

std::size_t bytes_of(const Event& event) {
  // The size of a payload is in the lower half: see Batch::payload_ref().
  return sizeof event + (has_payload(event.kind) ? static_cast<std::uint32_t>(event.value) : 0);
}

template <typename Map>
std::uint32_t user_in(const Map& users, typename Map::key_type key) {
  const auto found = users.find(key);
  return found != users.end() ? found->second : no_user;
}

void add(Chunk& chunk, Event event, std::span<const std::byte> payload) {
  if (has_payload(event.kind)) {
    event.value = Batch::payload_ref(chunk.payloads.size(), payload.size());
    chunk.payloads.insert(chunk.payloads.end(), payload.begin(), payload.end());
  }
  chunk.events.push_back(event);
}

}  // namespace

EventUsers::EventUsers(const Chunk& chunk) : chunk_(chunk), pids_(chunk.pids.begin(), chunk.pids.end()) {
  for (const auto& [index, info] : chunk.processes) processes_.emplace(index, info->user);
  for (const Chunk::Ring& ring : chunk.rings) {
    if (ring.slot >= slots_.size()) slots_.resize(ring.slot + std::size_t{1}, no_user);
    slots_[ring.slot] = of_process(ring.process);
  }
}

std::uint32_t EventUsers::of_process(ProcessIndex process) const {
  return user_in(processes_, process);
}

/// Whoever has none of his own that is traced has no claim to it.
std::uint32_t EventUsers::of_threads(const Thread& one, const Thread& other) const {
  const std::uint32_t user = user_in(pids_, one.tracked ? one.pid : other.pid);
  if (!one.tracked && !other.tracked) return no_user;
  return !one.tracked || !other.tracked || user_in(pids_, other.pid) == user ? user : no_user;
}

std::uint32_t EventUsers::of(const Event& event) const {
  if (const std::uint32_t slot = Source::unpack(event.source).slot; slot != 0) [[likely]]
    return of_slot(slot);
  const Batch batch = chunk_.batch();
  switch (event.kind) {
    case EventKind::process: {
      const auto record = batch.payload_as<ProcessRecord>(event);
      return record ? of_process(record->process) : no_user;
    }
    case EventKind::sample: {
      const auto sample = batch.payload_as<Sample>(event);
      return sample ? of_process(sample->process) : no_user;
    }
    case EventKind::sched_switch: {
      const auto record = batch.payload_as<SchedSwitch>(event);
      return record ? of_threads(record->prev, record->next) : no_user;
    }
    case EventKind::wakeup: {
      const auto record = batch.payload_as<Wakeup>(event);
      return record ? of_threads(record->woken, record->by) : no_user;
    }
    default:
      return no_user;
  }
}

std::optional<std::uint32_t> EventUsers::only_one() const {
  std::optional<std::uint32_t> only;
  const auto is_same = [&](const auto& entry) { return entry.second == only.value_or(entry.second); };
  if (!processes_.empty()) only = processes_.begin()->second;
  if (!only && !pids_.empty()) only = pids_.begin()->second;
  return std::ranges::all_of(processes_, is_same) && std::ranges::all_of(pids_, is_same) ? only : std::nullopt;
}

std::vector<std::pair<std::uint32_t, std::size_t>> bytes_by_user(const Chunk& chunk) {
  const EventUsers users(chunk);
  if (const auto only = users.only_one()) return {{*only, chunk.events.size() * sizeof(Event) + chunk.payloads.size()}};
  std::map<std::uint32_t, std::size_t> bytes;
  std::uint32_t last_source = 0;
  std::size_t* of_source = nullptr;
  for (const Event& event : chunk.events) {
    const bool is_same = of_source != nullptr && event.source == last_source && Source::unpack(last_source).slot != 0;
    if (!is_same) of_source = &bytes[users.of(event)];
    last_source = event.source;
    *of_source += bytes_of(event);
  }
  for (const Chunk::Name& name : chunk.names) bytes[users.of_slot(name.slot)] += sizeof name + name.text.size();
  return {bytes.begin(), bytes.end()};
}

SplitChunk split(const Chunk& chunk, std::uint32_t user) {
  const EventUsers users(chunk);
  const Batch batch = chunk.batch();
  SplitChunk parts;
  Chunk &taken = parts.of_user, &rest = parts.rest;
  taken.begin_ns = rest.begin_ns = chunk.begin_ns;
  taken.end_ns = rest.end_ns = chunk.end_ns;
  rest.missing = chunk.missing;
  for (const Event& event : chunk.events) {
    const bool is_taken = users.of(event) == user;
    add(is_taken ? taken : rest, event, batch.payload(event));
    if (is_taken) ++rest.missing[static_cast<std::size_t>(event.kind)];
  }
  const auto part_of = [&](std::uint32_t slot) -> Chunk& { return users.of_slot(slot) == user ? taken : rest; };
  for (const Chunk::Ring& ring : chunk.rings) part_of(ring.slot).rings.push_back(ring);
  for (const Chunk::Name& name : chunk.names) part_of(name.slot).names.push_back(name);
  for (const auto& process : chunk.processes)
    (process.second->user == user ? taken : rest).processes.push_back(process);
  for (const auto& pid : chunk.pids)
    if (pid.second != user) rest.pids.push_back(pid);
  rest.frames = chunk.frames;
  rest.stacks = chunk.stacks;
  rest.unknown_stacks = chunk.unknown_stacks;
  rest.figures = chunk.figures;
  for (const auto& of : chunk.bytes_of_users)
    if (of.first != user) rest.bytes_of_users.push_back(of);
  rest.events.shrink_to_fit();
  rest.payloads.shrink_to_fit();
  return parts;
}

}  // namespace rtev::flight
