// SPDX-License-Identifier: MIT
#include "formats/fxt/metadata_writer.hpp"

#include <algorithm>
#include <string_view>

#include "stream/recording_layout.hpp"

namespace rtev::record {
namespace {

bool is_forgotten(const ProcessInfo& info) {
  return info.ended && info.pid == 0;
}

}  // namespace

void MetadataWriter::header(const RunHeader& header) {
  Metadata metadata(writer_, metadata_header, format_version);
  header_fields(header, metadata);
  if (header.shown_from_ns != 0) metadata.add("shown_from", header.shown_from_ns);
  if (const NotRecorded& left_out = header.not_recorded; !left_out.selection.empty()) {
    metadata.add("selection", left_out.selection).add("left_out", left_out.kinds.to_ullong());
    for (std::size_t family = 0; family < left_out_phases.size(); ++family)
      if (left_out.phases.at(family).any())
        metadata.add(left_out_phases[family], left_out.phases.at(family).to_ullong());
  }
  metadata.write();
  for (const std::string& argument : header.command_line) {
    std::string_view rest = argument;
    do {
      const std::string_view piece = rest.substr(0, argument_piece_bytes);
      rest.remove_prefix(piece.size());
      Metadata(writer_, metadata_argument, piece).add("goes_on", !rest.empty()).write();
    } while (!rest.empty());
  }
}

unsigned MetadataWriter::check_ring(const Event& event, const Registry& registry) {
  const std::uint32_t slot = Source::unpack(event.source).slot;
  if (slot >= rings_.size()) rings_.resize(slot + 1);
  if (rings_[slot].checked_in == batch_) return rings_[slot].family;
  rings_[slot].checked_in = batch_;
  const RingInfo* const info = registry.ring(slot);
  if (info == nullptr) {
    if (rings_[slot].written) write_ring_gone(slot);
    rings_[slot] = {.checked_in = batch_};
    return 0;
  }
  if (registry.process_of(event) != nullptr) process(info->process, registry);
  Ring& ring = rings_[slot];
  const auto family = registry.family_of(event);
  ring.family = family ? 1u + static_cast<unsigned>(*family) : 0;
  if (ring.written && ring.process == info->process && ring.domains == info->domains && ring.producer == info->producer)
    return ring.family;
  ring.written = true;
  ring.process = info->process;
  ring.domains = info->domains;
  ring.producer = info->producer;
  write_ring(slot, ring);
  return ring.family;
}

void MetadataWriter::process(ProcessIndex index, const Registry& registry) {
  if (processes_.size() >= sweep_at_) sweep(registry);
  const auto [known, is_new] = processes_.try_emplace(index);
  if (known->second.checked_in == batch_) return;
  known->second.checked_in = batch_;
  const ProcessInfo& info = registry.process(index);
  if (!is_new && same_but_figures(known->second.info, info)) return;
  known->second.info = info;
  write_process(index, info);
}

void MetadataWriter::write_ring(std::uint32_t slot, const Ring& ring) {
  Metadata metadata(writer_, metadata_ring, ring.process);
  metadata.add("domains", ring.domains);
  if (ring.producer) metadata.add("producer", ring.producer->name).add("producer_family", ring.producer->family);
  metadata.write(slot);
}

void MetadataWriter::write_process(ProcessIndex index, const ProcessInfo& info) {
  if (!info.script.empty()) Metadata(writer_, metadata_script).add("path", info.script).write(index);
  Metadata metadata(writer_, metadata_process);
  process_fields(info, metadata);
  if (info.max_rss_bytes != 0) metadata.add("max_rss", info.max_rss_bytes);
  metadata.write(index);
  if (info.service.is_empty()) return;
  Metadata service(writer_, metadata_service);
  service_fields(info.service, service);
  service.write(index);
}

void MetadataWriter::write_accounting(ProcessIndex index, const ProcessInfo& info) {
  Metadata metadata(writer_, metadata_accounting);
  metadata.add("domains", info.domains);
  word_fields(info.words, metadata);
  metadata.write(index);
  if (info.missed.sum() != 0) {
    Metadata missed(writer_, metadata_missed);
    missed_fields(info.missed, missed);
    missed.add("too_large", info.missed.too_large);
    missed.write(index);
  }
  if (info.left_alone.times != 0) {
    Metadata left_alone(writer_, metadata_left_alone);
    left_alone_fields(info.left_alone, left_alone);
    left_alone.write(index);
  }
}

void MetadataWriter::write_ring_gone(std::uint32_t slot) {
  Metadata(writer_, metadata_ring_gone).write(slot);
}

/// Forgets rings and processes that are gone. If an event of this batch still refers to one, it is written again.
void MetadataWriter::sweep(const Registry& registry) {
  for (std::uint32_t slot = 0; slot < rings_.size(); ++slot) {
    if (!rings_[slot].written || registry.ring(slot) != nullptr) continue;
    write_ring_gone(slot);
    rings_[slot] = {};
  }
  std::erase_if(processes_, [&](const auto& process) {
    const bool gone = is_forgotten(registry.process(process.first));
    if (gone) Metadata(writer_, metadata_process_gone).write(process.first);
    return gone;
  });
  sweep_at_ = std::max(min_sweep, 2 * processes_.size());
}

void MetadataWriter::summary(const RunSummary& summary, const Registry& registry) {
  Metadata(writer_, metadata_list).write();
  for (const auto& [index, info] : registry.indexed_processes()) {
    write_process(index, info);
    write_accounting(index, info);
  }
  Metadata others(writer_, metadata_others, registry.others().count);
  word_fields(registry.others().words, others);
  if (registry.others().replaced > 0) others.add("replaced", registry.others().replaced);
  others.write();
  // In parts: a record has at most 15 arguments.
  constexpr std::size_t kinds_in_a_part = 8;
  for (std::size_t part = 0; part < event_kind_count; part += kinds_in_a_part) {
    Metadata events(writer_, metadata_events);
    for (std::size_t kind = part; kind < std::min(part + kinds_in_a_part, event_kind_count); ++kind)
      events.add(to_string(static_cast<EventKind>(kind)), summary.events[kind]);
    events.write();
  }
  for (const RunSummary::Drop& drop : summary.drops)
    Metadata(writer_, metadata_drop, drop.count).add("kind", drop.kind).write();
  for (const auto& [pid, comm, dropped] : summary.announcers)
    Metadata(writer_, metadata_announcer, dropped).add("pid", pid).add("comm", comm).write();
  Metadata end(writer_, metadata_summary);
  summary_fields(summary, end);
  if (summary.whole_ring) end("whole_ring", true);
  end.write();
}

}  // namespace rtev::record
