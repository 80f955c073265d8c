// SPDX-License-Identifier: MIT
#include "formats/chrome/chrome_sink.hpp"

#include <algorithm>

#include "formats/run_json.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t day_ns = 86'400'000'000'000;

/// Processes without an index are at 0.
constexpr int ocaml_sort_index = -2;
/// Beyond every domain's.
constexpr std::int64_t task_sort_index = std::int64_t{1} << 20, other_thread_sort_index = task_sort_index + 1;

/// Domains by their number, each followed by its backup thread, its tick thread and its systhreads.
std::int64_t sort_index(const Track& track) {
  if (track.domain < 0) return track.is_task ? task_sort_index : other_thread_sort_index;
  std::int64_t place = 3;
  if (track.role == ThreadRole::mutator || !track.is_thread) place = 0;
  if (track.role == ThreadRole::backup) place = 1;
  if (track.role == ThreadRole::tick) place = 2;
  return std::int64_t{track.domain} * 4 + place;
}

void add_detail(ChromeEvent& event, const Detail& detail) {
  const std::string_view key = to_string(detail.name);
  std::visit(
      [&]<typename T>(const T& value) {
        if constexpr (std::same_as<T, Timestamp>) {
          event.time(key, value.ns);
        } else if constexpr (std::same_as<T, std::span<const std::byte>>) {
          event.json().hex(key, value);
        } else if constexpr (std::same_as<T, std::span<const std::uint64_t>>) {
          event.json().values(key, value);
        } else {
          event.json().member(key, value);
        }
      },
      detail.value);
}

}  // namespace

ChromeSink::ChromeSink(Output& output) : LineSink(output) {
  out_.add("[\n");
}

void ChromeSink::header(const RunHeader& header) {
  const std::uint64_t origin = header.start_ns - std::min(header.start_ns, day_ns);
  event_.set_origin(origin);
  event_.start_metadata("rtev_header", cpus_pid, cpus_pid);
  event_.json().member("ts_origin", origin);
  add_run(event_.json(), header);
  finish();
}

void ChromeSink::consume(const Batch& batch, const Registry& registry) {
  if (!closed()) builder_.consume(batch, registry);
}

void ChromeSink::summary(const RunSummary& summary, const Registry& registry) {
  builder_.finish(summary.end_ns, registry);

  Accounting words = registry.others().words;
  for (const ProcessInfo& info : registry.processes()) words += info.words;
  event_.start_metadata("rtev_summary", cpus_pid, cpus_pid);
  JsonWriter& json = event_.json();
  json.member("end", summary.end_ns);
  add_counts(json, summary);
  json.member("processes", registry.process_count());
  add_words(json, words, !summary.complete);
  event_.finish();
  out_.cut(out_.size() - ChromeEvent::separator.size());
  out_.add("\n]\n");
  hand_out();
}

void ChromeSink::begin_span(const Track& track, const ViewerEvent& event, const Flows& flows) {
  start('B', event.time, track);
  event_.name(to_string(event.category), event.name);
  finish(event.details);
  // Arrows are bound to the span that is open at their place in the file.
  for (const std::uint64_t id : flows.out) flow('s', event, track, id);
  if (flows.in != 0) flow('f', event, track, flows.in);
}

/// Without a name: it ends the innermost span, whatever its name is.
void ChromeSink::end_span(const Track& track, std::uint64_t time, Details details) {
  start('E', time, track);
  finish(details);
}

void ChromeSink::instant(const Track* track, const ViewerEvent& event) {
  event_.start('i', event.time, track != nullptr ? track->pid : cpus_pid, track != nullptr ? track->tid : cpus_pid);
  event_.name(to_string(event.category), event.name);
  const bool of_process = event.category == Category::loss || event.category == Category::process;
  event_.json().plain_member("s", track == nullptr ? "g" : of_process ? "p" : "t");       // scope: all, process, thread
  if (event.category == Category::loss) event_.json().plain_member("cname", "terrible");  // red in chrome://tracing
  finish(event.details);
}

void ChromeSink::counter(const Track& track, const EventContext& context) {
  const auto family = context.registry.family_of(context.event);
  const std::string_view unit = family ? counter_unit(*family, context.event.id) : std::string_view{};
  graph(track, context, unit.empty() ? "value" : unit, context.event.value);
}

/// A point of a graph. Viewers make one for each name and argument of a process.
void ChromeSink::graph(const Track& track, const EventContext& context, std::string_view unit,
                       std::integral auto value) {
  const std::string_view name = name_of(context.event, context.registry, unnamed_);
  const std::uint32_t domain = Source::unpack(context.event.source).domain;
  const std::string_view category = to_string(category_of(context.event));
  start('C', context.event.time, track);
  track.incarnation > 1 ? event_.name(category, name, " domain ", domain, " #", track.incarnation)
                        : event_.name(category, name, " domain ", domain);
  event_.args();
  event_.json().member(unit, value);  // numbers only: viewers make a graph of each argument
  finish();
}

/// A number is a graph, too. The instant keeps its place among the spans and all of its digits.
void ChromeSink::point(const Track& track, const EventContext& context) {
  ViewerWriter::point(track, context);
  if (context.event.kind == EventKind::user_int) graph(track, context, "value", context.event.signed_value());
}

void ChromeSink::process(const Track& track, const EventContext& context, const ProcessRecord& record) {
  ViewerWriter::process(track, context, record);
  if (static_cast<ProcessAction>(context.event.id) != ProcessAction::exit) sort_process(track.pid, ocaml_sort_index);
}

void ChromeSink::name_process(std::int32_t pid, std::string_view name) {
  metadata("process_name", pid, pid, "name", name.empty() ? no_name : name);
}

void ChromeSink::name_track(const Track& track) {
  name_row(track.pid, track.tid, track.name, sort_index(track));
  if (track.process != 0) sort_process(track.pid, ocaml_sort_index);  // process events may be filtered out
}

void ChromeSink::name_row(std::int32_t pid, std::int32_t tid, std::string_view name, std::int64_t sort_index) {
  metadata("thread_name", pid, tid, "name", name.empty() ? no_name : name);
  metadata("thread_sort_index", pid, tid, "sort_index", sort_index);
}

void ChromeSink::sort_process(std::int32_t pid, int sort_index) {
  metadata("process_sort_index", pid, pid, "sort_index", sort_index);
}

template <typename Value>
void ChromeSink::metadata(std::string_view name, std::int32_t pid, std::int32_t tid, std::string_view key,
                          const Value& value) {
  event_.start_metadata(name, pid, tid);
  event_.json().member(key, value);
  finish();
}

void ChromeSink::finish(Details details) {
  if (!details.empty()) event_.args();
  for (const Detail& detail : details) add_detail(event_, detail);
  event_.finish();
  hand_out_if_full();
}

void ChromeSink::flow(char phase, const ViewerEvent& from, const Track& track, std::uint64_t id) {
  start(phase, from.time, track);
  event_.name(to_string(from.category), from.category == Category::task ? "creates" : "stop the world");
  event_.json().member("id", id);
  if (phase == 'f') event_.json().plain_member("bp", "e");  // bound to the enclosing span, not to the next one
  finish();
}

}  // namespace rtev
