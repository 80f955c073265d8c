// SPDX-License-Identifier: MIT
#include "formats/perfetto/perfetto_sink.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <concepts>

#include "base/clock.hpp"
#include "base/text_buffer.hpp"

namespace rtev {
namespace {

using namespace perfetto;

/// Events refer to names by number within a sequence of packets. Losses have a sequence of their own: there a reader
/// may drop what it knows, as a reader does where packets are missing.
enum Sequence : std::uint32_t { events_sequence = 1, losses_sequence = 2 };

/// Bytes of a payload that are shown; OCaml's runtime allows 1024.
constexpr std::size_t max_shown = 4096;

void set_value(Message<DebugAnnotation>& detail, bool value) {
  detail.add_bool(DebugAnnotation::bool_value, value);
}
void set_value(Message<DebugAnnotation>& detail, std::unsigned_integral auto value) {
  detail.add_uint64(DebugAnnotation::uint_value, value);
}
void set_value(Message<DebugAnnotation>& detail, std::signed_integral auto value) {
  detail.add_int64(DebugAnnotation::int_value, value);
}
void set_value(Message<DebugAnnotation>& detail, std::string_view value) {
  add_text(detail, DebugAnnotation::string_value, value);
}

template <typename Value>
void add_detail(Message<TrackEvent>& event, Detail name, Value value) {
  Message<DebugAnnotation> detail{event, TrackEvent::debug_annotations};
  detail.add_uint64(DebugAnnotation::name_iid, Names::id_of(name));
  set_value(detail, value);
}

/// For names that are used once or twice in a recording, and where readers may have dropped what they know.
template <typename Value>
void add_detail(Message<TrackEvent>& event, std::string_view name, Value value) {
  Message<DebugAnnotation> detail{event, TrackEvent::debug_annotations};
  add_text(detail, DebugAnnotation::name, name);
  set_value(detail, value);
}

void add_category(Message<TrackEvent>& event, Category category) {
  event.add_uint64(TrackEvent::category_iids, Names::id_of(category));
}

void note_late(Message<TrackEvent>& message, const Event& event) {
  if (event.flags & flag_late) add_detail(message, Detail::late, true);
}

Category category_of(const Event& event) {
  switch (event.kind) {
    case EventKind::begin:
    case EventKind::end:
      return Category::gc;
    case EventKind::alloc:
      return Category::alloc;
    case EventKind::lifecycle:
      return Category::lifecycle;
    case EventKind::process:
      return Category::process;
    default:
      return Category::user;
  }
}

void add_bytes(Message<TrackEvent>& message, std::span<const std::byte> payload) {
  TextBuffer hex;
  hex.add_hex({reinterpret_cast<const char*>(payload.data()), std::min(payload.size(), max_shown)});
  if (payload.size() > max_shown) hex.add("...");
  add_detail(message, Detail::bytes, hex.text());
}

void add_buckets(Message<TrackEvent>& message, const std::array<std::uint64_t, alloc_bucket_count>& buckets) {
  Message<DebugAnnotation> detail{message, TrackEvent::debug_annotations};
  detail.add_uint64(DebugAnnotation::name_iid, Names::id_of(Detail::buckets));
  for (const std::uint64_t count : buckets) {
    Message<DebugAnnotation> bucket{detail, DebugAnnotation::array_values};
    set_value(bucket, count);
  }
}

std::uint64_t words_lost(const Registry& registry) {
  std::uint64_t words = registry.others().words.lost;
  for (const ProcessInfo& info : registry.processes()) words += info.words.lost;
  return words;
}

void add_exit(Message<TrackEvent>& message, std::int64_t detail) {
  const int status = static_cast<int>(detail);
  if (detail < 0) return;
  if (WIFSIGNALED(status))
    add_detail(message, Detail::signal, WTERMSIG(status));
  else
    add_detail(message, Detail::status, WEXITSTATUS(status));
}

}  // namespace

PerfettoSink::PerfettoSink(Output& output, PerfettoOptions options)
    : packets_(output, options.flush_interval_ns), tracks_(packets_), sched_(packets_), builder_(*this) {}

void PerfettoSink::header(const RunHeader& header) {
  now_ = header.start_ns;
  packets_.add([&](Packet& packet) {
    Message<ClockSnapshot> snapshot{packet, TracePacket::clock_snapshot};
    const auto add_clock = [&](ClockId id, std::uint64_t time) {
      Message<Clock> clock{snapshot, ClockSnapshot::clocks};
      clock.add_uint32(Clock::id, id);
      clock.add_uint64(Clock::timestamp, time);
    };
    add_clock(boottime, header.start_ns);
    add_clock(monotonic, header.start_ns);
    add_clock(realtime, header.start_realtime_ns);
    snapshot.add_enum(ClockSnapshot::primary_trace_clock, boottime);
  });
  packets_.add([&](Packet& packet) {
    Message<SystemInfo> system{packet, TracePacket::system_info};
    Message<Utsname> kernel{system, SystemInfo::utsname};
    kernel.add_string(Utsname::sysname, "Linux");
    add_text(kernel, Utsname::release, header.kernel);
  });
  add(header.start_ns, EventType::instant, tracks_.recording(header.start_ns), [&](EventMessage& message) {
    message.add_uint64(TrackEvent::name_iid, names_.id_of("recording starts"));
    add_category(message, Category::recording);
    add_detail(message, "rtev-bpf", std::string_view{header.version});
    add_detail(message, "host", std::string_view{header.host});
    add_detail(message, "kernel", std::string_view{header.kernel});
    std::string command;
    for (const std::string& argument : header.command_line) {
      if (!command.empty()) command += ' ';
      command += argument;
    }
    add_detail(message, "command", std::string_view{command});
  });
}

void PerfettoSink::consume(const Batch& batch, const Registry& registry) {
  if (packets_.closed()) return;
  builder_.consume(batch, registry);
  sched_.flush();
}

void PerfettoSink::flush() {
  packets_.flush(monotonic_ns());
}

void PerfettoSink::summary(const RunSummary& summary, const Registry& registry) {
  builder_.finish(summary.end_ns, registry);
  sched_.flush();
  const std::uint64_t end = std::max(now_, summary.end_ns);
  add(end, EventType::instant, tracks_.recording(end), [&](EventMessage& message) {
    message.add_uint64(TrackEvent::name_iid, names_.id_of("recording ends"));
    add_category(message, Category::recording);
    for (std::size_t kind = 0; kind < event_kind_count; ++kind) {
      const std::string name = "events: " + std::string{to_string(static_cast<EventKind>(kind))};
      if (summary.events[kind] != 0) add_detail(message, name, summary.events[kind]);
    }
    for (const RunSummary::Drop& drop : summary.drops) add_detail(message, "dropped: " + drop.kind, drop.count);
    add_detail(message, "words lost", words_lost(registry));
    add_detail(message, "late", summary.late);
    add_detail(message, "forced", summary.forced);
    add_detail(message, "rings missed", summary.rings_missed);
  });
  packets_.hand_out();
}

template <typename Fill>
void PerfettoSink::add(std::uint64_t time, EventType type, std::uint64_t track, Fill&& fill) {
  names_.begin_packet();
  packets_.add([&](Packet& packet) {
    packet.add_uint64(TracePacket::timestamp, time);
    packet.add_uint32(TracePacket::sequence_id, events_sequence);
    {
      EventMessage message{packet, TracePacket::track_event};
      message.add_enum(TrackEvent::type, static_cast<std::int32_t>(type));
      message.add_uint64(TrackEvent::track_uuid, track);
      fill(message);
    }
    names_.end_packet(packet);
  });
}

void PerfettoSink::name(EventMessage& message, const Event& event, const Registry& registry,
                        std::string_view addition) {
  std::string scratch;
  std::string_view name = name_of(event, registry, scratch);
  if (!addition.empty()) {
    scratch = std::string{name}.append(addition);
    name = scratch;
  }
  message.add_uint64(TrackEvent::name_iid, names_.id_of(name));
  add_category(message, category_of(event));
}

void PerfettoSink::begin(const Track& track, const EventContext& context, const Flows& flows) {
  now_ = context.event.time;
  add(now_, EventType::slice_begin, tracks_.id_of(now_, track), [&](EventMessage& message) {
    name(message, context.event, context.registry);
    for (const std::uint64_t flow : flows.out) message.add_fixed64(TrackEvent::flow_ids, flow);
    if (flows.in != 0) message.add_fixed64(TrackEvent::terminating_flow_ids, flows.in);
    note_late(message, context.event);
  });
}

void PerfettoSink::end(const Track& track, const EventContext& context) {
  now_ = context.event.time;
  add(now_, EventType::slice_end, tracks_.id_of(now_, track),
      [&](EventMessage& message) { note_late(message, context.event); });
}

void PerfettoSink::stray_end(const Track& track, const EventContext& context) {
  now_ = context.event.time;
  add(now_, EventType::instant, tracks_.id_of(now_, track), [&](EventMessage& message) {
    name(message, context.event, context.registry, " ends");
    note_late(message, context.event);
  });
}

void PerfettoSink::counter(const Track& track, const EventContext& context) {
  now_ = context.event.time;
  add(now_, EventType::counter, tracks_.counter_of(track, context), [&](EventMessage& message) {
    message.add_int64(TrackEvent::counter_value, context.event.signed_value());
    note_late(message, context.event);
  });
}

void PerfettoSink::point(const Track& track, const EventContext& context) {
  now_ = context.event.time;
  add(now_, EventType::instant, tracks_.id_of(now_, track), [&](EventMessage& message) {
    const Event& event = context.event;
    name(message, event, context.registry);
    if (event.kind == EventKind::user_int || event.kind == EventKind::lifecycle)
      add_detail(message, Detail::value, event.signed_value());
    if (event.kind == EventKind::user_custom) add_bytes(message, context.batch.payload(event));
    if (const auto buckets = context.batch.payload_as<std::array<std::uint64_t, alloc_bucket_count>>(event);
        buckets && event.kind == EventKind::alloc)
      add_buckets(message, *buckets);
    note_late(message, event);
  });
}

void PerfettoSink::lost(const Track& track, const EventContext& context, const Loss& loss) {
  now_ = context.event.time;
  const std::uint64_t id = tracks_.id_of(now_, track);
  packets_.add([&](Packet& packet) {
    packet.add_uint64(TracePacket::timestamp, now_);
    packet.add_uint32(TracePacket::sequence_id, losses_sequence);
    packet.add_uint32(TracePacket::sequence_flags, state_cleared);
    packet.add_bool(TracePacket::previous_packet_dropped, true);
    EventMessage message{packet, TracePacket::track_event};
    message.add_enum(TrackEvent::type, static_cast<std::int32_t>(EventType::instant));
    message.add_uint64(TrackEvent::track_uuid, id);
    message.add_string(TrackEvent::name, "lost");
    add_text(message, TrackEvent::categories, category_names[static_cast<std::size_t>(Category::loss)]);
    add_detail(message, "words", loss.words);
    if (loss.from_ns != 0) add_detail(message, "from", loss.from_ns);
    add_detail(message, "to", loss.to_ns);
    add_detail(message, "reason", to_string(static_cast<LossReason>(context.event.id)));
    if (context.event.flags & flag_late) add_detail(message, "late", true);
  });
}

void PerfettoSink::dropped(const EventContext& context, const Loss& loss) {
  now_ = context.event.time;
  add(now_, EventType::instant, tracks_.recording(now_), [&](EventMessage& message) {
    message.add_uint64(TrackEvent::name_iid, names_.id_of("scheduler events dropped"));
    add_category(message, Category::loss);
    add_detail(message, "records", loss.words);
    add_detail(message, "from", loss.from_ns);
    add_detail(message, "to", loss.to_ns);
    if (context.event.flags & flag_late) add_detail(message, "late", true);
  });
}

void PerfettoSink::process(const Track& track, const EventContext& context, const ProcessRecord& record) {
  now_ = context.event.time;
  add(now_, EventType::instant, tracks_.id_of(now_, track), [&](EventMessage& message) {
    name(message, context.event, context.registry);
    const ProcessInfo& info = context.registry.process(record.process);
    switch (static_cast<ProcessAction>(context.event.id)) {
      case ProcessAction::fork:
        add_detail(message, Detail::parent, record.peer);
        [[fallthrough]];
      case ProcessAction::found:
      case ProcessAction::exec:
        add_detail(message, Detail::exe, std::string_view{info.exe});
        if (!info.version.empty()) add_detail(message, Detail::version, std::string_view{info.version});
        add_detail(message, Detail::family, to_string(info.family));
        break;
      case ProcessAction::ring:
        add_detail(message, Detail::path, std::string_view{info.ring_path});
        add_detail(message, Detail::rings, record.detail);
        break;
      case ProcessAction::exit:
        add_exit(message, record.detail);
        break;
      case ProcessAction::pause:
      case ProcessAction::resume:
      case ProcessAction::stop:
      case ProcessAction::probe:
        break;
    }
    note_late(message, context.event);
  });
}

void PerfettoSink::malformed(const EventContext& context) {
  now_ = context.event.time;
  add(now_, EventType::instant, tracks_.recording(now_), [&](EventMessage& message) {
    message.add_uint64(TrackEvent::name_iid, names_.id_of("malformed event"));
    add_category(message, Category::recording);
  });
}

void PerfettoSink::sched_switch(const EventContext& context, const SchedSwitch& change, const Track*, const Track*) {
  now_ = context.event.time;
  sched_.sched_switch(now_, change);
}

void PerfettoSink::wakeup(const EventContext& context, const Wakeup& wakeup, const Track*, const Track*) {
  now_ = context.event.time;
  sched_.waking(now_, wakeup);
}

void PerfettoSink::left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) {
  sched_.left_cpu(time, cpu, track);
}

void PerfettoSink::open(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
                        SpanMark mark) {
  add(time, EventType::slice_begin, tracks_.id_of(time, track), [&](EventMessage& message) {
    name(message, begun, registry);
    add_detail(message, Detail::mark, to_string(mark));
  });
}

void PerfettoSink::close(const Track& track, std::uint64_t time, const Event&, const Registry&, SpanMark mark) {
  add(time, EventType::slice_end, tracks_.id_of(time, track),
      [&](EventMessage& message) { add_detail(message, Detail::mark, to_string(mark)); });
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
