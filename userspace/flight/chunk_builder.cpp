// SPDX-License-Identifier: MIT
#include "flight/chunk_builder.hpp"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <utility>

namespace rtev::flight {
namespace {

/// Stacks that are not known may stay so: programs end before their code is looked at.
constexpr std::size_t max_unresolved = 4096;

std::size_t text_bytes(const ProcessInfo& info) {
  return info.comm.size() + info.exe.size() + info.script.size() + info.runtime.size() + info.version.size() +
         info.ring_path.size() + info.service.text_bytes();
}

template <typename Record>
std::optional<Record> record_of(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Record)) return std::nullopt;
  Record record;
  std::memcpy(&record, bytes.data(), sizeof record);
  return record;
}

/// A copy without spare memory, unless there is little of it.
template <typename T>
std::vector<T> take(std::vector<T>& filled) {
  if (filled.capacity() * sizeof(T) < filled.size() * sizeof(T) * 3 / 2 + 4096) return std::exchange(filled, {});
  std::vector<T> exact(filled.begin(), filled.end());
  filled.clear();
  return exact;
}

}  // namespace

std::size_t Chunk::bytes() const {
  std::size_t bytes = sizeof(Chunk) + events.capacity() * sizeof(Event) + payloads.capacity() +
                      rings.capacity() * sizeof(Ring) + processes.capacity() * sizeof(processes.front()) +
                      names.capacity() * sizeof(Name) + pids.capacity() * sizeof(pids.front()) +
                      frames.capacity() * sizeof(Frame) + stacks.capacity() * sizeof(Stack) +
                      unknown_stacks.capacity() * sizeof(StackIndex);
  for (const Name& name : names) bytes += name.text.capacity();
  if (figures) bytes += sizeof(FiguresChange) + figures->changed.capacity() * sizeof(figures->changed.front());
  return bytes;
}

std::size_t ChunkBuilder::add(const Batch& batch, const Registry& registry) {
  ++batch_;
  const auto events = batch.events();
  const std::size_t before = events_.size();
  events_.insert(events_.end(), events.begin(), events.end());
  std::uint32_t last_slot = 0;  // of no ring
  std::size_t at = before;
  for (; at < events_.size(); ++at) {
    Event& event = events_[at];
    if (const std::uint32_t slot = Source::unpack(event.source).slot; slot != last_slot) {
      const bool is_seen = slot == 0 || (slot < slots_.size() && slots_[slot].batch == batch_);
      if (!is_seen && !see_slot(slot, registry)) break;
      last_slot = slot;
    }
    constexpr auto plain = [](EventKind kind) { return kind < EventKind::alloc || kind == EventKind::lifecycle; };
    if (plain(event.kind)) [[likely]]
      continue;
    if (is_user_event(event.kind)) see_name(last_slot, event.id, registry);
    if (!has_payload(event.kind)) continue;
    const auto payload = batch.payload(event);
    see_payload(event, payload, registry);
    event.value = Batch::payload_ref(payloads_.size(), payload.size());
    payloads_.insert(payloads_.end(), payload.begin(), payload.end());
    if (payloads_.size() >= max_bytes_ || metadata_bytes_ >= max_bytes_) {
      ++at;
      break;
    }
  }
  events_.resize(at);
  return at - before;
}

/// False if it stands for another process than before in this chunk.
bool ChunkBuilder::see_slot(std::uint32_t slot, const Registry& registry) {
  if (slot >= slots_.size()) slots_.resize(std::min<std::size_t>(Source::max_slot + std::size_t{1}, 2 * slot + 1));
  Slot& seen = slots_[slot];
  const RingInfo* const ring = registry.ring(slot);
  const ProcessIndex process = ring != nullptr ? ring->process : 0;
  if (seen.chunk == chunk_ && seen.process != process) return false;
  seen.batch = batch_;
  if (seen.chunk == chunk_) return true;
  seen.chunk = chunk_;
  seen.process = process;
  if (ring == nullptr) return true;
  rings_.push_back({.slot = slot, .process = process, .domains = ring->domains, .producer = ring->producer});
  metadata_bytes_ += sizeof(Chunk::Ring);
  see_process(process, registry);
  return true;
}

void ChunkBuilder::see_process(ProcessIndex index, const Registry& registry) {
  if (index == 0) return;
  const auto [seen, is_new] = processes_.try_emplace(index);
  if (!is_new) return;
  seen->second = shared(index, registry.process(index));
  metadata_bytes_ += sizeof(seen->second) + (seen->second.use_count() == 2 ? text_bytes(*seen->second) : 0);
}

std::shared_ptr<const ProcessInfo> ChunkBuilder::shared(ProcessIndex index, const ProcessInfo& info) {
  auto& last = shared_[index];
  if (!last || !same_but_figures(*last, info)) last = std::make_shared<const ProcessInfo>(info);
  return last;
}

void ChunkBuilder::see_name(std::uint32_t slot, std::uint16_t id, const Registry& registry) {
  const std::uint32_t key = slot << 16 | id;
  const std::uint64_t stamped = chunk_ << 32 | key;
  std::uint64_t& recent = recent_names_[(key * 0x9E3779B9u) >> 20];
  if (recent == stamped) [[likely]]
    return;
  if (!named_.contains(key)) {
    const RingInfo* const ring = registry.ring(slot);
    const std::string_view name =
        ring != nullptr && ring->user_event_name ? ring->user_event_name(id) : std::string_view{};
    if (name.empty()) return;  // it may come later
    named_.insert(key);
    names_.push_back({.slot = slot, .id = id, .text = std::string(name)});
    metadata_bytes_ += sizeof(Chunk::Name) + name.size();
  }
  recent = stamped;
}

void ChunkBuilder::see_thread(const Thread& thread) {
  if (!thread.tracked) return;
  const auto user = users_.find(thread.pid);
  if (user != users_.end() && pids_.insert(*user).second) metadata_bytes_ += sizeof(*user);
}

void ChunkBuilder::see_payload(const Event& event, std::span<const std::byte> payload, const Registry& registry) {
  if (event.kind == EventKind::process) {
    const auto record = record_of<ProcessRecord>(payload);
    if (!record) return;
    see_process(record->process, registry);
    const ProcessInfo& info = registry.process(record->process);
    if (event.id == static_cast<std::uint16_t>(ProcessAction::exit)) {
      users_.erase(info.pid);
    } else if (info.pid != 0) {
      users_[info.pid] = info.user;
    }
  } else if (event.kind == EventKind::sched_switch) {
    const auto record = record_of<SchedSwitch>(payload);
    if (!record) return;
    see_thread(record->prev);
    see_thread(record->next);
  } else if (event.kind == EventKind::wakeup) {
    const auto record = record_of<Wakeup>(payload);
    if (!record) return;
    see_thread(record->woken);
    see_thread(record->by);
  } else if (event.kind == EventKind::sample) {
    const auto sample = record_of<Sample>(payload);
    if (!sample) return;
    see_process(sample->process, registry);
    if (sample->stack != 0) stacks_.insert(sample->stack);
  }
}

/// Those of the samples, and those of earlier samples that have become known.
void ChunkBuilder::add_stacks(Chunk& chunk, const StackTable& table) {
  stacks_.insert(unresolved_.begin(), unresolved_.end());
  unresolved_.clear();
  std::unordered_set<StackIndex> added;
  std::unordered_set<FrameIndex> frames;
  std::vector<StackIndex> path;
  for (const StackIndex stack : stacks_) {
    if (table.is_reserved(stack)) {
      chunk.unknown_stacks.push_back(stack);
      if (unresolved_.size() < max_unresolved) unresolved_.push_back(stack);
      continue;
    }
    path.clear();
    for (StackIndex one = stack; one != 0 && path.size() < StackTable::max_depth && added.insert(one).second;
         one = table.caller_of(one))
      path.push_back(one);
    for (const StackIndex one : path | std::views::reverse) {
      const FrameIndex frame = table.frame_of(one);
      // Every table has the frame 0.
      if (frame != 0 && frames.insert(frame).second)
        chunk.frames.push_back({.index = frame, .frame = table.frame(frame)});
      chunk.stacks.push_back({.index = one, .caller = table.caller_of(one), .frame = frame});
    }
  }
  stacks_.clear();
}

Chunk ChunkBuilder::close(const Registry* registry) {
  Chunk chunk;
  const std::size_t event_count = events_.size(), payload_bytes = payloads_.size();
  chunk.events = take(events_);
  chunk.payloads = take(payloads_);
  if (events_.capacity() == 0) events_ = std::move(spare_events_);
  if (payloads_.capacity() == 0) payloads_ = std::move(spare_payloads_);
  events_.clear();
  payloads_.clear();
  if (events_.capacity() == 0) events_.reserve(event_count);
  if (payloads_.capacity() == 0) payloads_.reserve(payload_bytes);
  if (registry != nullptr) {
    // As they are now, if they are still there.
    for (Chunk::Ring& ring : rings_) {
      const RingInfo* const now = registry->ring(ring.slot);
      if (now == nullptr || now->process != ring.process) continue;
      ring.domains = now->domains;
      ring.producer = now->producer;
    }
    for (auto& [index, info] : processes_)
      if (const ProcessInfo& now = registry->process(index); now.pid != 0) info = shared(index, now);
    add_stacks(chunk, registry->stacks());
  }
  chunk.rings = std::exchange(rings_, {});
  chunk.processes.assign(processes_.begin(), processes_.end());
  processes_.clear();
  chunk.names = std::exchange(names_, {});
  chunk.pids.assign(pids_.begin(), pids_.end());
  pids_.clear();
  named_.clear();
  metadata_bytes_ = 0;
  ++chunk_;
  if (shared_.size() >= sweep_at_) {
    std::erase_if(shared_, [](const auto& process) { return process.second.use_count() == 1; });
    sweep_at_ = std::max<std::size_t>(1024, 2 * shared_.size());
  }
  return chunk;
}

void ChunkBuilder::reuse(Chunk&& chunk) {
  if (chunk.events.capacity() > spare_events_.capacity()) spare_events_ = std::move(chunk.events);
  if (chunk.payloads.capacity() > spare_payloads_.capacity()) spare_payloads_ = std::move(chunk.payloads);
}

}  // namespace rtev::flight
