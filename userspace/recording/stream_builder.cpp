// SPDX-License-Identifier: MIT
#include "recording/stream_builder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/saturating_sum.hpp"
#include "stream/records.hpp"

namespace rtev {
namespace {

std::size_t string_bytes(const ProcessInfo& info) {
  return info.comm.size() + info.exe.size() + info.script.size() + info.runtime.size() + info.version.size() +
         info.ring_path.size() + info.service.text_bytes();
}

}  // namespace

StreamBuilder::StreamBuilder(Sink& sink) : sink_(sink) {
  counted_.complete = false;
}

StreamBuilder::~StreamBuilder() = default;

void StreamBuilder::header(const RunHeader& header) {
  counted_.start_ns = header.start_ns;
  counted_.end_ns = header.start_ns;
  sink_.header(header);
}

bool StreamBuilder::process(ProcessIndex index, ProcessInfo info) {
  if (index == 0 || index == UINT32_MAX) return false;
  const std::size_t bytes = string_bytes(info);
  const auto known = processes_.find(index);
  const std::size_t before = known != processes_.end() ? known->second.bytes : 0;
  if (known == processes_.end() && processes_.size() >= max_processes) return false;
  if (process_bytes_ - before + bytes > max_process_bytes) return false;
  hand_out();
  process_bytes_ += bytes - before;
  processes_[index].bytes = bytes;
  registry_.restore_process(index, std::move(info));
  return true;
}

bool StreamBuilder::service(ProcessIndex index, ServiceIdentity service) {
  const auto known = processes_.find(index);
  if (known == processes_.end()) return false;
  hand_out();
  ProcessInfo& info = registry_.process(index);
  const std::size_t before = known->second.bytes;
  const std::size_t bytes = before - info.service.text_bytes() + service.text_bytes();
  if (process_bytes_ - before + bytes > max_process_bytes) return false;
  process_bytes_ += bytes - before;
  known->second.bytes = bytes;
  info.service = std::move(service);
  return true;
}

void StreamBuilder::forget_process(ProcessIndex index) {
  const auto known = processes_.find(index);
  if (known == processes_.end()) return;
  hand_out();
  set_counted(registry_.process(index).words, known->second.counted);
  process_bytes_ -= known->second.bytes;
  processes_.erase(known);
  registry_.retire_process(index);
}

bool StreamBuilder::ring(std::uint32_t slot, ProcessIndex process, std::uint32_t domains,
                         std::optional<Producer> producer) {
  if (slot == 0 || slot >= ring_slots) return false;
  hand_out();
  count_for_process(slot);
  auto& names = names_[slot];
  if (!names) names = std::make_shared<Names>();
  registry_.restore_ring(slot, {.process = process,
                                .domains = domains,
                                .producer = std::move(producer),
                                .user_event_name = [names](std::uint16_t id) {
                                  const auto found = names->find(id);
                                  return found != names->end() ? std::string_view{found->second} : std::string_view{};
                                }});
  return true;
}

void StreamBuilder::forget_ring(std::uint32_t slot) {
  if (registry_.ring(slot) == nullptr) return;
  hand_out();
  count_for_process(slot);
  registry_.remove_ring(slot);
}

bool StreamBuilder::user_event(std::uint32_t slot, std::uint16_t id, std::string_view name) {
  if (slot >= ring_slots) return false;
  auto& names = names_[slot];
  if (!names) names = std::make_shared<Names>();
  const auto known = names->find(id);
  const std::string_view before = known != names->end() ? std::string_view{known->second} : std::string_view{};
  if (before == name) return true;
  if (name_bytes_ - before.size() + name.size() > max_name_bytes) return false;
  hand_out();
  name_bytes_ += name.size() - before.size();
  if (name.empty()) {
    names->erase(known);
  } else {
    (*names)[id] = name;
  }
  return true;
}

void StreamBuilder::add(Event event, std::span<const std::byte> payload) {
  if (has_payload(event.kind)) {
    event.value = Batch::payload_ref(payloads_.size(), payload.size());
    payloads_.insert(payloads_.end(), payload.begin(), payload.end());
  }
  events_.push_back(event);
  count(event, payload);
  if (events_.size() >= batch_events || payloads_.size() >= batch_payload_bytes) hand_out();
}

void StreamBuilder::hand_out() {
  if (events_.empty()) return;
  sink_.consume(Batch(events_, payloads_), registry_);
  events_.clear();
  payloads_.clear();
}

void StreamBuilder::finish(const RunSummary& summary, std::optional<List> list) {
  hand_out();
  if (!list || !summary.complete)
    for (std::uint32_t slot = 0; slot < rings_.size(); ++slot) count_for_process(slot);
  if (list) {
    for (auto& [index, info] : list->processes) {
      const auto known = processes_.find(index);
      if (!summary.complete && known != processes_.end() && info.words == Accounting{})
        set_counted(info.words, known->second.counted);
    }
    registry_.restore_list(std::move(list->processes), list->others);
  } else {
    for (const auto& [index, process] : processes_) set_counted(registry_.process(index).words, process.counted);
  }
  sink_.summary(summary, registry_);
  sink_.flush();
}

void StreamBuilder::count(const Event& event, std::span<const std::byte> payload) {
  ++counted_.events[static_cast<std::size_t>(event.kind)];
  if (event.flags & flag_late) ++counted_.late;
  counted_.end_ns = std::max(counted_.end_ns, event.time);
  const std::uint32_t slot = Source::unpack(event.source).slot;
  if (slot == 0 && event.kind == EventKind::lost) count_drop(event, payload);
  if (slot == 0 || slot >= ring_slots) return;
  if (slot >= rings_.size()) rings_.resize(slot + 1);
  if (event.kind != EventKind::lost) {
    ++rings_[slot].events;
  } else if (Loss loss; payload.size() == sizeof loss) {
    std::memcpy(&loss, payload.data(), sizeof loss);
    if (static_cast<LossReason>(event.id) != LossReason::corrupt) rings_[slot].lost_words += loss.words;
  }
}

/// The kernel's buffers: of switches and wakeups together, and of samples.
void StreamBuilder::count_drop(const Event& event, std::span<const std::byte> payload) {
  Loss loss;
  if (payload.size() != sizeof loss) return;
  std::memcpy(&loss, payload.data(), sizeof loss);
  const auto add = [&](std::string_view kind) {
    auto drop = std::ranges::find(counted_.drops, kind, &RunSummary::Drop::kind);
    if (drop == counted_.drops.end()) drop = counted_.drops.insert(drop, {.kind = std::string(kind)});
    drop->count = saturating_sum(drop->count, loss.words);
  };
  const auto kind = lost_samples(event);
  add(kind ? RunSummary::sample : RunSummary::scheduler);
  if (kind == SampleKind::off_cpu) add(RunSummary::sample_off_cpu);
  if (kind == SampleKind::allocation) add(RunSummary::sample_allocation);
}

void StreamBuilder::count_for_process(std::uint32_t slot) {
  if (slot >= rings_.size()) return;
  const Counted counted = std::exchange(rings_[slot], {});
  const RingInfo* const ring = registry_.ring(slot);
  const auto process = ring != nullptr ? processes_.find(ring->process) : processes_.end();
  if (process == processes_.end()) return;
  process->second.counted.events += counted.events;
  process->second.counted.lost_words += counted.lost_words;
}

void StreamBuilder::set_counted(Accounting& words, const Counted& counted) {
  words.events = counted.events;
  words.lost = counted.lost_words;
}

}  // namespace rtev
