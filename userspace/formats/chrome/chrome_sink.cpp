// SPDX-License-Identifier: MIT
#include "formats/chrome/chrome_sink.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <array>

namespace rtev {
namespace {

constexpr std::uint64_t day_ns = 86'400'000'000'000;

/// Processes without an index are at 0.
constexpr int ocaml_sort_index = -2;
/// Beyond every domain's.
constexpr std::int64_t other_thread_sort_index = std::int64_t{1} << 20;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view category_of(const Event& event) {
  switch (event.kind) {
    case EventKind::begin:
    case EventKind::end:
    case EventKind::counter:
    case EventKind::alloc:
    case EventKind::lifecycle:
      return "gc";
    default:
      return "user";
  }
}

/// Domains by their number, each followed by its backup thread, its tick thread and its systhreads.
std::int64_t sort_index(const Track& track) {
  if (track.domain < 0) return other_thread_sort_index;
  std::int64_t place = 3;
  if (track.role == ThreadRole::mutator || !track.is_thread) place = 0;
  if (track.role == ThreadRole::backup) place = 1;
  if (track.role == ThreadRole::tick) place = 2;
  return std::int64_t{track.domain} * 4 + place;
}

void add_details(ChromeEvent& event, ProcessAction action, const ProcessRecord& record, const ProcessInfo& info) {
  switch (action) {
    case ProcessAction::fork:
      event.number("parent", record.peer);
      [[fallthrough]];
    case ProcessAction::found:
    case ProcessAction::exec:
      event.text("exe", info.exe);
      event.text("runtime", info.runtime);
      event.text("version", info.version);
      event.text("family", to_string(info.family));
      event.number("ns_pid", info.ns_pid);
      break;
    case ProcessAction::ring:
      event.text("path", info.ring_path);
      event.number("max_domains", record.detail);
      break;
    case ProcessAction::exit: {
      const int status = static_cast<int>(record.detail);
      if (record.detail == exit_by_exec) {
        event.truth("exec");
      } else if (record.detail >= 0 && WIFSIGNALED(status)) {
        event.number("signal", WTERMSIG(status));
      } else if (record.detail >= 0) {
        event.number("code", WEXITSTATUS(status));
      }
      break;
    }
    case ProcessAction::pause:
    case ProcessAction::resume:
    case ProcessAction::stop:
    case ProcessAction::probe:
      break;
  }
}

}  // namespace

ChromeSink::ChromeSink(Output& output) : LineSink(output) {
  out_.add("[\n");
}

void ChromeSink::header(const RunHeader& header) {
  const std::uint64_t origin = header.start_ns - std::min(header.start_ns, day_ns);
  event_.set_origin(origin);
  event_.start_metadata("rtev_header", cpus_pid, cpus_pid);
  event_.text("version", header.version);
  event_.text("host", header.host);
  event_.text("kernel", header.kernel);
  event_.texts("command_line", header.command_line);
  event_.text("clock", "monotonic");
  event_.number("ts_origin", origin);
  event_.number("start", header.start_ns);
  event_.number("start_realtime", header.start_realtime_ns);
  finish();
}

void ChromeSink::consume(const Batch& batch, const Registry& registry) {
  if (closed()) return;
  builder_.consume(batch, registry);
}

void ChromeSink::summary(const RunSummary& summary, const Registry& registry) {
  builder_.finish(summary.end_ns, registry);
  states_.finish(summary.end_ns, [this](const ThreadInterval& interval) { thread_state(interval); });

  Accounting words = registry.others().words;
  std::uint64_t processes = registry.others().count;
  for (const ProcessInfo& info : registry.processes()) {
    ++processes;
    words += info.words;
  }
  event_.start_metadata("rtev_summary", cpus_pid, cpus_pid);
  event_.number("end", summary.end_ns);
  if (!summary.complete) event_.truth("lacks_its_end");
  event_.begin_object("events");
  for (std::size_t kind = 0; kind < event_kind_count; ++kind)
    event_.number(to_string(static_cast<EventKind>(kind)), summary.events[kind]);
  event_.end_object();
  event_.number("late", summary.late);
  event_.number("forced", summary.forced);
  event_.number("rings_missed", summary.rings_missed);
  event_.begin_object("drops");
  for (const RunSummary::Drop& drop : summary.drops) event_.number(drop.kind, drop.count);
  event_.end_object();
  event_.number("processes", processes);
  event_.begin_object("words");
  event_.number("written", words.written);
  event_.number("delivered", words.delivered);
  event_.number("lost", words.lost);
  event_.number("before_attach", words.before_attach);
  event_.number("corrupt", words.corrupt);
  event_.number("unread", words.unread);
  event_.end_object();
  event_.begin_object("self");
  event_.number("cpu_ns", summary.own_cpu_ns);
  event_.number("max_rss_bytes", summary.own_max_rss_bytes);
  event_.finish();
  out_.add("\n]");
  end_line();
  hand_out();
}

void ChromeSink::begin(const Track& track, const EventContext& context, const Flows& flows) {
  const std::uint64_t time = context.event.time;
  start('B', time, track);
  name_span(context.event, context.registry);
  mark_late(context.event);
  finish();
  // Arrows hold on to the span that is open at their place in the file.
  for (const std::uint64_t id : flows.out) flow('s', time, track, id);
  if (flows.in != 0) flow('f', time, track, flows.in);
}

void ChromeSink::end(const Track& track, const EventContext& context) {
  start('E', context.event.time, track);  // without a name: it ends the innermost span, whatever that is called
  mark_late(context.event);
  finish();
}

void ChromeSink::stray_end(const Track& track, const EventContext& context) {
  scratch_ = std::string(name_of(context.event, context.registry)) + " ended";
  start_instant('t', context.event.time, track, scratch_, category_of(context.event));
  mark_late(context.event);
  finish();
}

void ChromeSink::open(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
                      SpanMark mark) {
  start('B', time, track);
  name_span(begun, registry);
  event_.args();
  event_.text("begin", to_string(mark));
  finish();
}

void ChromeSink::close(const Track& track, std::uint64_t time, const Event& /*begun*/, const Registry& /*registry*/,
                       SpanMark mark) {
  start('E', time, track);
  event_.args();
  event_.text("end", to_string(mark));
  finish();
}

void ChromeSink::counter(const Track& track, const EventContext& context) {
  const auto family = context.registry.family_of(context.event);
  const std::string_view unit = family ? counter_unit(*family, context.event.id) : std::string_view{};
  graph(track, context, unit.empty() ? "value" : unit, context.event.value);
}

/// A point of a graph. Viewers make one for each name and argument of a process.
void ChromeSink::graph(const Track& track, const EventContext& context, std::string_view unit,
                       std::integral auto value) {
  scratch_ = name_of(context.event, context.registry);
  scratch_ += " domain ";
  scratch_ += std::to_string(Source::unpack(context.event.source).domain);
  if (track.incarnation > 1) scratch_ += " #" + std::to_string(track.incarnation);
  start('C', context.event.time, track);
  event_.name(scratch_, category_of(context.event));
  event_.args();
  event_.number(unit, value);  // nothing but numbers: each argument is a graph
  finish();
}

void ChromeSink::point(const Track& track, const EventContext& context) {
  const Event& event = context.event;
  start_instant('t', event.time, track, name_of(event, context.registry), category_of(event));
  switch (event.kind) {
    case EventKind::user_int:
    case EventKind::lifecycle:
      event_.args();
      event_.number("value", event.signed_value());
      break;
    case EventKind::user_custom:
      event_.args();
      event_.hex("bytes", as_text(context.batch.payload(event)));
      break;
    case EventKind::alloc:
      event_.args();
      if (const auto buckets = context.batch.payload_as<std::array<std::uint64_t, alloc_bucket_count>>(event))
        event_.numbers("buckets", *buckets);
      break;
    default:
      break;
  }
  mark_late(event);
  finish();
  // A number says most as a graph; the instant keeps its place among the spans and all of its digits.
  if (event.kind == EventKind::user_int) graph(track, context, "value", event.signed_value());
}

void ChromeSink::lost(const Track& track, const EventContext& context, const Loss& loss) {
  start_instant('p', context.event.time, track, "lost", "loss");
  event_.text("cname", "terrible");  // red, where colours can be chosen
  event_.args();
  event_.number("domain", Source::unpack(context.event.source).domain);
  event_.number("words", loss.words);
  if (loss.from_ns != 0) event_.time("from", loss.from_ns);
  event_.time("to", loss.to_ns);
  event_.text("reason", to_string(static_cast<LossReason>(context.event.id)));
  mark_late(context.event);
  finish();
}

void ChromeSink::dropped(const EventContext& context, const Loss& loss) {
  event_.start('i', context.event.time, cpus_pid, cpus_pid);
  event_.name("scheduler events dropped", "loss");
  event_.text("s", "g");
  event_.text("cname", "terrible");
  event_.args();
  event_.number("records", loss.words);
  event_.time("from", loss.from_ns);
  event_.time("to", loss.to_ns);
  mark_late(context.event);
  finish();
}

void ChromeSink::process(const Track& track, const EventContext& context, const ProcessRecord& record) {
  const auto action = static_cast<ProcessAction>(context.event.id);
  start_instant('p', context.event.time, track, to_string(action), "process");
  event_.args();
  add_details(event_, action, record, context.registry.process(record.process));
  mark_late(context.event);
  finish();
  if (action != ProcessAction::exit) sort_process(track.pid, ocaml_sort_index);
}

void ChromeSink::malformed(const EventContext& context) {
  event_.start('i', context.event.time, cpus_pid, cpus_pid);
  event_.name("malformed record", to_string(context.event.kind));
  event_.text("s", "g");
  finish();
}

void ChromeSink::name_process(std::int32_t pid, std::string_view name) {
  event_.start_metadata("process_name", pid, pid);
  event_.text("name", name.empty() ? no_name : name);
  finish();
}

void ChromeSink::name_track(const Track& track) {
  name_row(track.pid, track.tid, track.name, sort_index(track));
  if (track.process != 0) sort_process(track.pid, ocaml_sort_index);  // process events may be filtered out
}

void ChromeSink::name_row(std::int32_t pid, std::int32_t tid, std::string_view name, std::int64_t sort_index) {
  event_.start_metadata("thread_name", pid, tid);
  event_.text("name", name.empty() ? no_name : name);
  finish();
  event_.start_metadata("thread_sort_index", pid, tid);
  event_.number("sort_index", sort_index);
  finish();
}

void ChromeSink::sort_process(std::int32_t pid, int sort_index) {
  event_.start_metadata("process_sort_index", pid, pid);
  event_.number("sort_index", sort_index);
  finish();
}

void ChromeSink::start_instant(char scope, std::uint64_t time, const Track& track, std::string_view name,
                               std::string_view category) {
  start('i', time, track);
  event_.name(name, category);
  event_.text("s", {&scope, 1});
}

void ChromeSink::finish() {
  event_.finish();
  out_.add(',');
  end_line();
}

std::string_view ChromeSink::name_of(const Event& event, const Registry& registry) {
  return rtev::name_of(event, registry, unnamed_);
}

void ChromeSink::name_span(const Event& event, const Registry& registry) {
  event_.name(name_of(event, registry), category_of(event));
}

void ChromeSink::mark_late(const Event& event) {
  if (!(event.flags & flag_late)) return;
  event_.args();
  event_.truth("late");
}

void ChromeSink::flow(char phase, std::uint64_t time, const Track& track, std::uint64_t id) {
  start(phase, time, track);
  event_.name("stop the world", "gc");
  event_.number("id", id);
  if (phase == 'f') event_.text("bp", "e");  // or else it holds on to the next span
  finish();
}

}  // namespace rtev
