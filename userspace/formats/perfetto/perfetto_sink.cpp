// SPDX-License-Identifier: MIT
#include "formats/perfetto/perfetto_sink.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/text_buffer.hpp"

namespace rtev {
namespace {

using namespace perfetto;

/// Events refer to names by number within a sequence of packets. A loss is reported as missing packets, after which a
/// reader forgets the names; so losses have a sequence of their own.
enum Sequence : std::uint32_t { events_sequence = 1, losses_sequence = 2, samples_sequence = 3 };

/// For late counters; other events have it among their details.
constexpr Detail late[] = {{.name = "late", .value = true}};

/// Bytes of a payload that are shown; OCaml's runtime allows 1024.
constexpr std::size_t max_shown = 4096;

void set_value(Message<DebugAnnotation>& detail, bool value) {
  detail.add_number(DebugAnnotation::bool_value, value);
}
void set_value(Message<DebugAnnotation>& detail, std::uint64_t value) {
  detail.add_number(DebugAnnotation::uint_value, value);
}
void set_value(Message<DebugAnnotation>& detail, std::int64_t value) {
  detail.add_number(DebugAnnotation::int_value, value);
}
void set_value(Message<DebugAnnotation>& detail, std::string_view value) {
  add_text(detail, DebugAnnotation::string_value, value);
}
void set_value(Message<DebugAnnotation>& detail, Timestamp value) {
  detail.add_number(DebugAnnotation::uint_value, value.ns);
}
void set_value(Message<DebugAnnotation>& detail, std::span<const std::byte> bytes) {
  const std::string_view shown{reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), max_shown)};
  const std::string_view more = bytes.size() > max_shown ? "..." : "";
  detail.add_bytes(DebugAnnotation::string_value, 2 * shown.size() + more.size(),
                   [&](char* at) { std::ranges::copy(more, TextBuffer::put_hex(at, shown)); });
}
void set_value(Message<DebugAnnotation>& detail, std::span<const std::uint64_t> values) {
  for (const std::uint64_t value : values) {
    Message<DebugAnnotation> element{detail, DebugAnnotation::array_values};
    set_value(element, value);
  }
}

/// With the numbers of names, which the reader knows.
void add_details(Message<TrackEvent>& event, Details details) {
  for (const Detail& each : details) {
    Message<DebugAnnotation> detail{event, TrackEvent::debug_annotations};
    detail.add_number(DebugAnnotation::name_iid, Names::id_of(each.name));
    std::visit([&](const auto& value) { set_value(detail, value); }, each.value);
  }
}

/// With the name itself: for rare names, and where the reader has forgotten the numbers.
template <typename Value>
void add_named_detail(Message<TrackEvent>& event, std::string_view name, const Value& value) {
  Message<DebugAnnotation> detail{event, TrackEvent::debug_annotations};
  add_text(detail, DebugAnnotation::name, name);
  set_value(detail, value);
}

void add_category(Message<TrackEvent>& event, Category category) {
  event.add_number(TrackEvent::category_iids, Names::id_of(category));
}

std::uint64_t words_lost(const Registry& registry) {
  std::uint64_t words = registry.others().words.lost;
  for (const ProcessInfo& info : registry.processes()) words += info.words.lost;
  return words;
}

}  // namespace

PerfettoSink::PerfettoSink(Output& output, PerfettoOptions options)
    : packets_(output, options.flush_interval_ns),
      tracks_(packets_),
      sched_(packets_),
      samples_(packets_, samples_sequence),
      builder_(*this) {}

void PerfettoSink::header(const RunHeader& header) {
  now_ = header.start_ns;
  packets_.add([&](Packet& packet) {
    Message<ClockSnapshot> snapshot{packet, TracePacket::clock_snapshot};
    const auto add_clock = [&](ClockId id, std::uint64_t time) {
      Message<Clock> clock{snapshot, ClockSnapshot::clocks};
      clock.add_number(Clock::id, id);
      clock.add_number(Clock::timestamp, time);
    };
    add_clock(boottime, header.start_ns);
    add_clock(monotonic, header.start_ns);
    add_clock(realtime, header.start_realtime_ns);
    snapshot.add_number(ClockSnapshot::primary_trace_clock, boottime);
  });
  packets_.add([&](Packet& packet) {
    Message<SystemInfo> system{packet, TracePacket::system_info};
    Message<Utsname> kernel{system, SystemInfo::utsname};
    kernel.add_bytes(Utsname::sysname, "Linux");
    add_text(kernel, Utsname::release, header.kernel);
    add_text(kernel, Utsname::machine, header.machine);  // importers complain without it
  });
  add(header.start_ns, EventType::instant, tracks_.recording(header.start_ns), [&](EventMessage& message) {
    message.add_number(TrackEvent::name_iid, names_.id_of_event("recording starts"));
    add_category(message, Category::recording);
    add_named_detail(message, "rtev-bpf", std::string_view{header.version});
    add_named_detail(message, "host", std::string_view{header.host});
    add_named_detail(message, "kernel", std::string_view{header.kernel});
    std::string command;
    for (const std::string& argument : header.command_line) {
      if (!command.empty()) command += ' ';
      command += argument;
    }
    add_named_detail(message, "command", std::string_view{command});
  });
}

void PerfettoSink::consume(const Batch& batch, const Registry& registry) {
  if (packets_.closed()) return;
  builder_.consume(batch, registry);
  sched_.flush();
  samples_.flush(registry.stacks(), false);
}

void PerfettoSink::flush() {
  packets_.flush(monotonic_ns());
}

void PerfettoSink::summary(const RunSummary& summary, const Registry& registry) {
  builder_.finish(summary.end_ns, registry);
  sched_.flush();
  samples_.flush(registry.stacks(), true);
  const std::uint64_t end = std::max(now_, summary.end_ns);
  add(end, EventType::instant, tracks_.recording(end), [&](EventMessage& message) {
    message.add_number(TrackEvent::name_iid, names_.id_of_event("recording ends"));
    add_category(message, Category::recording);
    for (std::size_t kind = 0; kind < event_kind_count; ++kind) {
      const std::string name = "events: " + std::string{to_string(static_cast<EventKind>(kind))};
      if (summary.events[kind] != 0) add_named_detail(message, name, summary.events[kind]);
    }
    for (const RunSummary::Drop& drop : summary.drops) add_named_detail(message, "dropped: " + drop.kind, drop.count);
    add_named_detail(message, "late", summary.late);
    for (const auto& [name, count] : {std::pair{"words lost", words_lost(registry)},
                                      {"forced", summary.forced},
                                      {"rings missed", summary.rings_missed}}) {
      if (const auto known = known_count(count, !summary.complete)) add_named_detail(message, name, *known);
    }
  });
  packets_.hand_out();
}

template <typename Fill>
void PerfettoSink::add(std::uint64_t time, EventType type, std::uint64_t track, Fill&& fill) {
  names_.begin_packet();
  packets_.add(time, [&](Packet& packet) {
    packet.add_number(TracePacket::sequence_id, events_sequence);
    {
      EventMessage message{packet, TracePacket::track_event};
      message.add_number(TrackEvent::type, type);
      message.add_number(TrackEvent::track_uuid, track);
      fill(message);
    }
    names_.end_packet(packet);
  });
}

void PerfettoSink::begin_span(const Track& track, const ViewerEvent& event, const Flows& flows) {
  now_ = std::max(now_, event.time);
  add(event.time, EventType::slice_begin, tracks_.id_of(now_, track), [&](EventMessage& message) {
    message.add_number(TrackEvent::name_iid, names_.id_of_event(event.name));
    add_category(message, event.category);
    for (const std::uint64_t flow : flows.out) message.add_fixed(TrackEvent::flow_ids, flow);
    if (flows.in != 0) message.add_fixed(TrackEvent::terminating_flow_ids, flows.in);
    add_details(message, event.details);
  });
}

void PerfettoSink::end_span(const Track& track, std::uint64_t time, Details details) {
  now_ = std::max(now_, time);
  add(time, EventType::slice_end, tracks_.id_of(now_, track),
      [&](EventMessage& message) { add_details(message, details); });
}

void PerfettoSink::instant(const Track* track, const ViewerEvent& event) {
  now_ = std::max(now_, event.time);
  const std::uint64_t id = track != nullptr ? tracks_.id_of(now_, *track) : tracks_.recording(now_);
  if (event.category == Category::loss && track != nullptr) return loss(id, event);
  add(event.time, EventType::instant, id, [&](EventMessage& message) {
    message.add_number(TrackEvent::name_iid, names_.id_of_event(event.name));
    add_category(message, event.category);
    add_details(message, event.details);
  });
}

/// In the sequence for losses.
void PerfettoSink::loss(std::uint64_t track, const ViewerEvent& event) {
  packets_.add(event.time, [&](Packet& packet) {
    packet.add_number(TracePacket::sequence_id, losses_sequence);
    packet.add_number(TracePacket::sequence_flags, state_cleared);
    packet.add_number(TracePacket::previous_packet_dropped, true);
    EventMessage message{packet, TracePacket::track_event};
    message.add_number(TrackEvent::type, EventType::instant);
    message.add_number(TrackEvent::track_uuid, track);
    add_text(message, TrackEvent::name, event.name);
    add_text(message, TrackEvent::categories, to_string(event.category));
    for (const Detail& detail : event.details)
      std::visit([&](const auto& value) { add_named_detail(message, to_string(detail.name), value); }, detail.value);
  });
}

void PerfettoSink::counter(const Track& track, const EventContext& context) {
  now_ = context.event.time;
  add(now_, EventType::counter, tracks_.counter_of(track, context), [&](EventMessage& message) {
    message.add_number(TrackEvent::counter_value, context.event.signed_value());
    if (context.event.flags & flag_late) add_details(message, late);
  });
}

void PerfettoSink::sched_switch(const EventContext& context, const SchedSwitch& change, const Track*, const Track*) {
  now_ = context.event.time;
  sched_.sched_switch(now_, change);
}

void PerfettoSink::wakeup(const EventContext& context, const Wakeup& wakeup, const Track*, const Track*) {
  now_ = context.event.time;
  sched_.waking(now_, wakeup, builder_.threads().cpu_of(wakeup.by.tid));
}

/// Viewers draw stacks of time on a CPU only.
void PerfettoSink::sample(const EventContext& context, const Sample& sample, const Track*) {
  now_ = context.event.time;
  if (static_cast<SampleKind>(context.event.id) == SampleKind::on_cpu)
    samples_.add(now_, sample, context.registry.stacks());
}

void PerfettoSink::left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) {
  sched_.left_cpu(time, cpu, track);
}

void PerfettoSink::entered_unseen(std::uint64_t time, std::uint32_t cpu, const Thread& thread) {
  sched_.entered_unseen(time, cpu, thread);
}

void PerfettoSink::name_process(std::int32_t pid, std::string_view name) {
  tracks_.name_process(now_, pid, name);
}

void PerfettoSink::name_track(const Track& track) {
  tracks_.name_track(now_, track);
}

void PerfettoSink::forget_track(const Track& track) {
  if (track.is_thread) sched_.gone(now_, track);
  tracks_.forget(track);
}

}  // namespace rtev
