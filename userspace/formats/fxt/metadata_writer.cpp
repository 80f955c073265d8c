// SPDX-License-Identifier: MIT
#include "formats/fxt/metadata_writer.hpp"

#include <algorithm>
#include <string_view>

#include "formats/fxt/metadata.hpp"

namespace rtev::record {
namespace {

/// What changes from poll to poll is told with the summary.
bool same_but_figures(const ProcessInfo& one, const ProcessInfo& other) {
  return one.pid == other.pid && one.ns_pid == other.ns_pid && one.start_ticks == other.start_ticks &&
         one.exec_generation == other.exec_generation && one.comm == other.comm && one.exe == other.exe &&
         one.runtime == other.runtime && one.version == other.version && one.family == other.family &&
         one.family_source == other.family_source && one.ring == other.ring && one.ring_path == other.ring_path &&
         one.ended == other.ended && one.max_rss_bytes == other.max_rss_bytes;
}

bool is_nobody(const ProcessInfo& facts) {
  return facts.ended && facts.pid == 0;
}

void add_words(Fact& fact, const Accounting& words) {
  fact.add("written", words.written)
      .add("delivered", words.delivered)
      .add("lost", words.lost)
      .add("before_attach", words.before_attach)
      .add("corrupt", words.corrupt)
      .add("unread", words.unread)
      .add("events", words.events);
}

}  // namespace

void FactsWriter::header(const RunHeader& header) {
  Fact(writer_, fact_header, format_version)
      .add("version", header.version)
      .add("host", header.host)
      .add("kernel", header.kernel)
      .add("start", header.start_ns)
      .add("start_realtime", header.start_realtime_ns)
      .write();
  for (const std::string& argument : header.command_line) {
    std::string_view rest = argument;
    do {
      const std::string_view piece = rest.substr(0, argument_piece_bytes);
      rest.remove_prefix(piece.size());
      Fact(writer_, fact_argument, piece).add("goes_on", !rest.empty()).write();
    } while (!rest.empty());
  }
}

unsigned FactsWriter::look_at_ring(const Event& event, const Registry& registry) {
  const std::uint32_t slot = Source::unpack(event.source).slot;
  if (slot >= rings_.size()) rings_.resize(slot + 1);
  rings_[slot].sure_in = batch_;
  const RingInfo* const facts = registry.ring(slot);
  if (facts == nullptr) {
    if (rings_[slot].told) tell_gone(slot);
    rings_[slot] = {.sure_in = batch_};
    return 0;
  }
  if (registry.process_of(event) != nullptr) process(facts->process, registry);
  Ring& ring = rings_[slot];
  const auto family = registry.family_of(event);
  ring.family = family ? 1u + static_cast<unsigned>(*family) : 0;
  if (ring.told && ring.process == facts->process && ring.domains == facts->domains && ring.producer == facts->producer)
    return ring.family;
  ring.told = true;
  ring.process = facts->process;
  ring.domains = facts->domains;
  ring.producer = facts->producer;
  tell(slot, ring);
  return ring.family;
}

void FactsWriter::process(ProcessIndex index, const Registry& registry) {
  if (processes_.size() >= sweep_at_) forget_gone(registry);
  const auto [told, is_new] = processes_.try_emplace(index);
  if (told->second.sure_in == batch_) return;
  told->second.sure_in = batch_;
  const ProcessInfo& facts = registry.process(index);
  if (!is_new && same_but_figures(told->second.facts, facts)) return;
  told->second.facts = facts;
  tell(index, facts);
}

void FactsWriter::tell(std::uint32_t slot, const Ring& ring) {
  Fact fact(writer_, fact_ring, ring.process);
  fact.add("domains", ring.domains);
  if (ring.producer) {
    fact.add("producer", ring.producer->name).add("producer_family", static_cast<std::uint32_t>(ring.producer->family));
  }
  fact.write(slot);
}

void FactsWriter::tell(ProcessIndex index, const ProcessInfo& facts) {
  Fact fact(writer_, fact_process);
  fact.add("pid", facts.pid)
      .add("ns_pid", facts.ns_pid)
      .add("start_ticks", facts.start_ticks)
      .add("exec_generation", facts.exec_generation)
      .add("comm", facts.comm)
      .add("exe", facts.exe)
      .add("runtime", facts.runtime)
      .add("version", facts.version)
      .add("family", static_cast<std::uint32_t>(facts.family))
      .add("family_source", static_cast<std::uint32_t>(facts.family_source))
      .add("ring", static_cast<std::uint32_t>(facts.ring))
      .add("ring_path", facts.ring_path)
      .add("ended", facts.ended);
  if (facts.max_rss_bytes != 0) fact.add("max_rss", facts.max_rss_bytes);
  fact.write(index);
}

void FactsWriter::tell_accounting(ProcessIndex index, const ProcessInfo& facts) {
  Fact fact(writer_, fact_accounting);
  fact.add("domains", facts.domains);
  add_words(fact, facts.words);
  fact.write(index);
}

void FactsWriter::tell_gone(std::uint32_t slot) {
  Fact(writer_, fact_ring_gone).write(slot);
}

/// Also before an event of this batch that refers to what is gone: it is looked at, and told, anew.
void FactsWriter::forget_gone(const Registry& registry) {
  for (std::uint32_t slot = 0; slot < rings_.size(); ++slot) {
    if (!rings_[slot].told || registry.ring(slot) != nullptr) continue;
    tell_gone(slot);
    rings_[slot] = {};
  }
  std::erase_if(processes_, [&](const auto& process) {
    const bool gone = is_nobody(registry.process(process.first));
    if (gone) Fact(writer_, fact_process_gone).write(process.first);
    return gone;
  });
  sweep_at_ = std::max(sweep_at_least, 2 * processes_.size());
}

void FactsWriter::summary(const RunSummary& summary, const Registry& registry) {
  Fact(writer_, fact_list).write();
  for (const auto& [index, facts] : registry.indexed_processes()) {
    tell(index, facts);
    tell_accounting(index, facts);
  }
  Fact others(writer_, fact_others, registry.others().count);
  add_words(others, registry.others().words);
  others.write();
  Fact events(writer_, fact_events);
  for (std::size_t kind = 0; kind < event_kind_count; ++kind)
    events.add(to_string(static_cast<EventKind>(kind)), summary.events[kind]);
  events.write();
  for (const RunSummary::Drop& drop : summary.drops)
    Fact(writer_, fact_drop, drop.count).add("kind", drop.kind).write();
  Fact(writer_, fact_summary)
      .add("start", summary.start_ns)
      .add("end", summary.end_ns)
      .add("late", summary.late)
      .add("forced", summary.forced)
      .add("rings_missed", summary.rings_missed)
      .add("own_cpu", summary.own_cpu_ns)
      .add("own_max_rss", summary.own_max_rss_bytes)
      .add("complete", summary.complete)
      .write();
}

}  // namespace rtev::record
