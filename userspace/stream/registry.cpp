// SPDX-License-Identifier: MIT
#include "stream/registry.hpp"

#include <algorithm>
#include <utility>

#include "base/enum_names.hpp"

namespace rtev {
namespace {

ProcessInfo unknown_process() {
  ProcessInfo unknown;
  unknown.ended = true;
  return unknown;
}

/// Does not change a family that the program's symbols gave: the program may have a ring of OCaml's runtime as well.
void note_producer(ProcessInfo& info, const std::optional<Producer>& producer) {
  info.runtime = producer ? producer->name : ocaml_runtime;
  if (!producer || info.family_source == FamilySource::forced || info.family_source == FamilySource::symbols) return;
  info.family = producer->family;
  info.family_source = FamilySource::producer;
}

}  // namespace

std::string_view to_string(Family family) {
  return family == Family::before_5_3 ? "5.0-5.2" : "5.3+";
}

std::string_view to_string(RingState state) {
  static constexpr std::string_view names[]{"none",   "active", "paused", "stopped",   "truncated",
                                            "shared", "probed", "ended",  "unreadable"};
  return name_at(names, state);
}

RingState after_end(RingState state) {
  return state == RingState::active || state == RingState::paused ? RingState::ended : state;
}

std::string_view to_string(FamilySource source) {
  static constexpr std::string_view names[]{"assumed", "symbols", "ring", "producer", "forced"};
  return name_at(names, source);
}

bool same_but_figures(const ProcessInfo& one, const ProcessInfo& other) {
  return one.pid == other.pid && one.ns_pid == other.ns_pid && one.start_ticks == other.start_ticks &&
         one.exec_generation == other.exec_generation && one.comm == other.comm && one.exe == other.exe &&
         one.script == other.script && one.runtime == other.runtime && one.version == other.version &&
         one.family == other.family && one.family_source == other.family_source && one.ring == other.ring &&
         one.ring_path == other.ring_path && one.service == other.service && one.ended == other.ended &&
         one.max_rss_bytes == other.max_rss_bytes;
}

ProcessIndex Registry::add_process(ProcessInfo info) {
  const ProcessIndex index = next_index_++;
  name(processes_.emplace_hint(processes_.end(), index, Entry{.info = std::move(info)})->second.info);
  mark_replaced(index);
  return index;
}

/// Marks the image that this one replaced by an exec.
void Registry::mark_replaced(ProcessIndex index) {
  const ProcessInfo& info = processes_.find(index)->second.info;
  const auto before = processes_.find(std::exchange(last_images_[info.pid], index));
  if (info.exec_generation == 0 || before == processes_.end()) return;
  ProcessInfo& other = before->second.info;
  if (other.start_ticks == info.start_ticks && other.exec_generation < info.exec_generation) other.replaced = true;
}

void Registry::forget_image(ProcessIndex index, std::int32_t pid) {
  const auto last = last_images_.find(pid);
  if (last != last_images_.end() && last->second == index) last_images_.erase(last);
}

/// Names also the others again that are called like it, now that there is one more of them.
void Registry::name(ProcessInfo& info) {
  if (!names_.add(info.names())) {
    info.name = names_.name_of(info.names());
    return;
  }
  for (auto& [index, entry] : processes_)
    if (full_name(entry.info.names()) == full_name(info.names())) entry.info.name = names_.name_of(entry.info.names());
}

ProcessInfo& Registry::process(ProcessIndex index) {
  if (const auto found = processes_.find(index); found != processes_.end()) return found->second.info;
  return unknown_ = unknown_process();
}

const ProcessInfo& Registry::process(ProcessIndex index) const {
  static const ProcessInfo unknown = unknown_process();
  const auto found = processes_.find(index);
  return found != processes_.end() ? found->second.info : unknown;
}

void Registry::retire_process(ProcessIndex index) {
  const auto found = processes_.find(index);
  if (found == processes_.end() || std::exchange(found->second.retired, true)) return;
  if (found->second.rings == 0) remember_retired(index);
}

void Registry::remember_retired(ProcessIndex index) {
  retired_[process(index).user].push_back(index);
  if (++retired_count_ <= remembered) return;
  --retired_count_;
  // Else a user who starts many processes would push out those of others.
  const auto most = std::ranges::max_element(retired_, {}, [](const auto& user) { return user.second.size(); });
  const auto oldest = processes_.find(most->second.front());
  most->second.pop_front();
  if (most->second.empty()) retired_.erase(most);
  ++(oldest->second.info.replaced ? others_.replaced : others_.count);
  others_.words += oldest->second.info.words;
  forget_image(oldest->first, oldest->second.info.pid);
  processes_.erase(oldest);
}

std::uint32_t Registry::add_ring(RingInfo info) {
  std::uint32_t slot = 0;
  if (rings_.size() < ring_slots && free_slots_.size() < reused_after) {
    slot = static_cast<std::uint32_t>(rings_.size());
    rings_.emplace_back();
  } else if (!free_slots_.empty()) {
    slot = free_slots_.front();
    free_slots_.pop_front();
  } else {
    return 0;
  }
  if (const auto owner = processes_.find(info.process); owner != processes_.end())
    note_producer(owner->second.info, info.producer);
  place_ring(slot, std::move(info));
  return slot;
}

void Registry::place_ring(std::uint32_t slot, RingInfo info) {
  const ProcessIndex index = info.process;
  const auto owner = processes_.find(index);
  if (owner != processes_.end()) ++owner->second.rings;
  rings_[slot] = Ring{std::move(info), index, owner != processes_.end() ? &owner->second : nullptr};
}

void Registry::remove_ring(std::uint32_t slot) {
  if (!ring(slot)) return;
  const Ring removed = *std::exchange(rings_[slot], std::nullopt);
  free_slots_.push_back(slot);
  if (removed.owner && --removed.owner->rings == 0 && removed.owner->retired) remember_retired(removed.index);
}

void Registry::restore_process(ProcessIndex index, ProcessInfo info) {
  const auto [entry, is_new] = processes_.try_emplace(index);
  revive(index);
  info.replaced = entry->second.info.replaced;
  entry->second.info = std::move(info);
  name(entry->second.info);
  if (is_new) mark_replaced(index);
  next_index_ = std::max(next_index_, index + 1);
}

void Registry::restore_ring(std::uint32_t slot, RingInfo info) {
  if (slot >= rings_.size()) rings_.resize(slot + 1);
  revive(info.process);
  remove_ring(slot);
  free_slots_.clear();  // the file says which slots are used
  place_ring(slot, std::move(info));
}

/// A process that is mentioned again must not be folded into others().
void Registry::revive(ProcessIndex index) {
  const auto found = processes_.find(index);
  if (found == processes_.end() || !std::exchange(found->second.retired, false)) return;
  const auto of_user = retired_.find(found->second.info.user);
  if (of_user == retired_.end()) return;
  retired_count_ -= std::erase(of_user->second, index);
  if (of_user->second.empty()) retired_.erase(of_user);
}

void Registry::restore_list(std::map<ProcessIndex, ProcessInfo> list, const Others& others) {
  for (std::uint32_t slot = 0; slot < rings_.size(); ++slot) {
    if (rings_[slot] && !list.contains(rings_[slot]->index)) remove_ring(slot);
  }
  std::erase_if(processes_, [&](const auto& process) {
    const bool is_gone = !list.contains(process.first);
    if (is_gone) forget_image(process.first, process.second.info.pid);
    return is_gone;
  });
  retired_.clear();
  retired_count_ = 0;
  for (auto& [index, info] : list) restore_process(index, std::move(info));
  others_ = others;
}

std::string_view known_name_of(const Event& event, const Registry& registry) {
  switch (event.kind) {
    case EventKind::begin:
    case EventKind::end: {
      const auto family = registry.family_of(event);
      return family ? phase_name(*family, event.id) : std::string_view{};
    }
    case EventKind::counter: {
      const auto family = registry.family_of(event);
      return family ? counter_name(*family, event.id) : std::string_view{};
    }
    case EventKind::lifecycle:
      return lifecycle_name(event.id);
    case EventKind::user_unit:
    case EventKind::user_int:
    case EventKind::user_begin:
    case EventKind::user_end:
    case EventKind::user_custom: {
      const RingInfo* ring = registry.ring(Source::unpack(event.source).slot);
      return ring && ring->user_event_name ? ring->user_event_name(event.id) : std::string_view{};
    }
    case EventKind::process:
      return to_string(static_cast<ProcessAction>(event.id));
    case EventKind::sample:
      return to_string(static_cast<SampleKind>(event.id));
    case EventKind::alloc:
    case EventKind::lost:
    case EventKind::sched_switch:
    case EventKind::wakeup:
    case EventKind::usage:
      return to_string(event.kind);
  }
  return {};
}

std::string_view name_of(const Event& event, const Registry& registry, std::string& scratch) {
  const std::string_view known = known_name_of(event, registry);
  if (!known.empty()) return known;
  scratch = '#' + std::to_string(event.id);
  return scratch;
}

}  // namespace rtev
