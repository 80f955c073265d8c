// SPDX-License-Identifier: MIT
#include "analysis/read_programs.hpp"

#include <algorithm>

#include "base/text_format.hpp"

namespace rtev {

EventsRead events_read(const ProcessInfo& process) {
  if (process.words.events != 0 || process.domains != 0) return EventsRead::yes;
  switch (process.ring) {
    case RingState::none:
    case RingState::paused:
      return process.missed.sum() > 0 ? EventsRead::unread : EventsRead::off;
    case RingState::active:
    case RingState::stopped:
    case RingState::ended:
    case RingState::probed:
      return process.missed.sum() > 0 ? EventsRead::unread : EventsRead::yes;
    case RingState::truncated:
    case RingState::shared:
    case RingState::unreadable:
      break;
  }
  return EventsRead::unread;
}

std::string why_none_read(const ReadPrograms& programs) {
  if (programs.off == 0 && programs.unread > 0)
    return fmt::format("the {} not read", programs.unread == 1 ? "ring of the program was" : "rings of programs were");
  return fmt::format("events of the {} are off{}",
                     programs.off + programs.unread + programs.ended == 1 ? "program" : "programs", how_to_read);
}

std::string why_some_unread(const ReadPrograms& programs) {
  if (programs.read == 0 || programs.off == 0) return {};
  return fmt::format("{} of {} processes {} events off, so nothing is known of {} GC{}", programs.off,
                     Grouped{programs.read + programs.off + programs.unread}, programs.off == 1 ? "has" : "have",
                     programs.off == 1 ? "its" : "their", how_to_read);
}

void ReadProgramCount::add(const Event& event, const Batch& batch, const Registry& registry) {
  last_ns_ = std::max(last_ns_, event.time);
  if (event.kind != EventKind::process) return;
  const auto record = batch.payload_as<ProcessRecord>(event);
  if (!record) return;
  if (event.id != static_cast<std::uint16_t>(ProcessAction::exit)) {
    const bool has_run = event.id == static_cast<std::uint16_t>(ProcessAction::found);
    if (running_.size() < max_running) running_.try_emplace(record->process, has_run ? 0 : event.time);
    return;
  }
  if (running_.erase(record->process) == 0) return;
  const ProcessInfo& process = registry.process(record->process);
  const EventsRead events = events_read(process);
  if (events == EventsRead::off && ended_off_.size() < max_running)
    ended_off_.push_back({.index = record->process, .pid = process.pid});
  else
    ended_.add(events, true);
}

ReadPrograms ReadProgramCount::programs(const Registry& registry) const {
  ReadPrograms programs = ended_;
  for (const Ended& ended : ended_off_) {
    const ProcessInfo& process = registry.process(ended.index);
    programs.add(process.pid == ended.pid ? events_read(process) : EventsRead::off, true);
  }
  for (const auto& [index, since_ns] : running_)
    programs.add(events_read(registry.process(index)), since_ns != 0 && last_ns_ - since_ns < max_start_ns);
  return programs;
}

}  // namespace rtev
