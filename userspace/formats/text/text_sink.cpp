// SPDX-License-Identifier: MIT
#include "formats/text/text_sink.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include "base/escape.hpp"
#include "base/units.hpp"
#include "stream/user_fields.hpp"

namespace rtev {
namespace {

constexpr std::size_t text_time_width = 14, pid_width = 7, domain_width = 3;
constexpr std::size_t indent_per_level = 2, deepest_indent = 20;

/// Local time with its distance from UTC, to the second.
std::string wall_clock(std::uint64_t realtime_ns) {
  const auto seconds = static_cast<std::time_t>(realtime_ns / 1'000'000'000);
  std::tm fields{};
  std::array<char, 64> text;
  if (!localtime_r(&seconds, &fields)) return "?";
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S %z", &fields)};
}

bool opens_span(EventKind kind) {
  return kind == EventKind::begin || kind == EventKind::user_begin;
}
bool closes_span(EventKind kind) {
  return kind == EventKind::end || kind == EventKind::user_end;
}
std::string_view lost_unit(LossReason reason) {
  if (reason == LossReason::dropped) return " scheduler event";
  return lost_samples(reason) ? " stack sample" : " word";
}

}  // namespace

void TextSink::header(const RunHeader& header) {
  start_ns_ = header.start_ns;
  out_.add("# rtev-bpf ");
  add_escaped(out_, header.version);
  out_.add(" on ");
  add_escaped(out_, header.host);
  out_.add(", Linux ");
  add_escaped(out_, header.kernel);
  out_.add(", time 0 = ", wall_clock(header.start_realtime_ns), '\n');
  out_.add('#');
  out_.add_repeated(' ', text_time_width - std::string_view{"#TIME"}.size());
  out_.add("TIME");
  out_.add_repeated(' ', pid_width + 1 - std::string_view{"PID"}.size());
  out_.add("PID COMM");
  out_.add_repeated(' ', name_width_ + 1 - std::string_view{"COMM"}.size());
  out_.add("DOM  EVENT");
  end_line();
}

void TextSink::consume(const Batch& batch, const Registry& registry) {
  for (const Event& event : batch.events()) {
    if (closed()) return;
    write(event, batch, registry);
  }
}

void TextSink::summary(const RunSummary&, const Registry&) {
  flush();
}

void TextSink::write(const Event& event, const Batch& batch, const Registry& registry) {
  switch (event.kind) {
    case EventKind::process:
      process_event(event, batch, registry);
      threads_.add(event, batch, registry);
      return;
    case EventKind::sched_switch:
      if (options_.min_ns == 0) switch_event(event, batch);
      threads_.add(event, batch, registry);
      return;
    case EventKind::wakeup:
      if (options_.min_ns == 0) wakeup_event(event, batch);
      threads_.add(event, batch, registry);
      return;
    case EventKind::sample:
      if (options_.min_ns == 0) sample_event(event, batch, registry);
      return;
    case EventKind::lost:
      threads_.add(event, batch, registry);
      [[fallthrough]];
    default:
      ring_event(event, batch, registry);
      return;
  }
}

void TextSink::begin_line(const Line& line, const Style& style) {
  const bool colored = options_.color && !style.color.empty();
  if (colored && style.whole_line) out_.add(style.color);
  add_seconds(out_, line.time, start_ns_, text_time_width);
  out_.add(' ');
  if (line.pid != 0) {
    out_.add_right(line.pid, pid_width);
  } else {
    out_.add_repeated(' ', pid_width);
  }
  out_.add(' ');
  name_width_ = std::max(name_width_, std::min(line.comm.size(), ShownNames::max_bytes));
  add_column(out_, line.comm, name_width_);
  out_.add(' ');
  if (line.domain >= 0) {
    out_.add_right(line.domain, domain_width);
  } else {
    out_.add_repeated(' ', domain_width);
  }
  out_.add_repeated(' ', 2 + indent_per_level * std::min(line.depth, deepest_indent));
  if (colored && !style.whole_line) out_.add(style.color);
}

void TextSink::finish_line(const Event& event, const Style& style) {
  if (event.flags & flag_late) out_.add("  [late]");
  if (options_.color && !style.color.empty()) out_.add(ansi_normal);
  end_line();
}

TextSink::Style TextSink::ring_style(EventKind kind) {
  switch (kind) {
    case EventKind::lost:
      return {ansi_alarm, true};
    case EventKind::counter:
    case EventKind::alloc:
      return {ansi_blue, false};
    case EventKind::lifecycle:
      return {ansi_cyan, false};
    default:
      return {is_user_event(kind) ? ansi_green : std::string_view{}, false};
  }
}

void TextSink::ring_event(const Event& event, const Batch& batch, const Registry& registry) {
  const Style style = ring_style(event.kind);
  const Source source = Source::unpack(event.source);
  Line line{.time = event.time};
  if (const ProcessInfo* info = registry.process_of(event)) {
    line.pid = info->pid;
    line.comm = info->name;
  }
  if (source.slot != 0) line.domain = source.domain;
  depth_ = 0;
  duration_ns_.reset();
  if (registry.ring(source.slot)) spans_.add({event, batch, registry});
  line.depth = depth_;
  if (duration_ns_.value_or(0) < options_.min_ns && event.kind != EventKind::lost) return;

  begin_line(line, style);
  describe(event, batch, registry);
  if (duration_ns_) {
    out_.add("  ");
    add_duration(out_, *duration_ns_);
  }
  finish_line(event, style);
}

void TextSink::on_begin(TextRing& /*ring*/, Lane& lane, const EventContext& /*context*/) {
  depth_ = lane.open.size() - 1;
}

void TextSink::on_end(TextRing& /*ring*/, Lane& lane, const Event& begin, const EventContext& context) {
  depth_ = lane.open.size();
  if (context.event.time >= begin.time) duration_ns_ = context.event.time - begin.time;
}

void TextSink::on_unknown_end(TextRing& /*ring*/, Lane& lane, const EventContext& /*context*/) {
  depth_ = lane.open.size();
}

void TextSink::on_other(TextRing& ring, const EventContext& /*context*/) {
  depth_ = ring.lane({}).open.size();
}

void TextSink::describe(const Event& event, const Batch& batch, const Registry& registry) {
  if (opens_span(event.kind)) out_.add("> ");
  if (closes_span(event.kind)) out_.add("< ");
  switch (event.kind) {
    case EventKind::counter:
      counter(event, registry);
      return;
    case EventKind::alloc:
      alloc(event, batch);
      return;
    case EventKind::lifecycle:
      lifecycle(event, registry);
      return;
    case EventKind::lost:
      lost(event, batch);
      return;
    default:
      break;
  }
  name(event, registry);
  if (event.kind == EventKind::user_unit) out_.add(" unit");
  if (event.kind == EventKind::user_int) out_.add(" int = ", event.signed_value());
  if (event.kind == EventKind::user_custom) custom(known_name_of(event, registry), batch.payload(event));
}

void TextSink::name(const Event& event, const Registry& registry) {
  const std::string_view known = known_name_of(event, registry);
  if (known.empty()) {
    out_.add('#', event.id);
  } else if (is_user_event(event.kind)) {
    add_quoted(out_, known);
  } else {
    out_.add(known);  // from our own tables
  }
}

void TextSink::counter(const Event& event, const Registry& registry) {
  name(event, registry);
  out_.add(" = ");
  out_.add_grouped(event.value);
  if (const auto family = registry.family_of(event)) {
    const std::string_view unit = counter_unit(*family, event.id);
    if (!unit.empty()) out_.add(' ', unit);
  }
}

void TextSink::alloc(const Event& event, const Batch& batch) {
  constexpr std::size_t single_sizes = 10;
  out_.add("alloc");
  const auto buckets = batch.payload_as<std::array<std::uint64_t, alloc_bucket_count>>(event);
  if (!buckets) return;
  for (std::size_t i = 0; i < buckets->size(); ++i) {
    if ((*buckets)[i] == 0) continue;
    const std::size_t first = i < single_sizes ? i : (i - single_sizes + 1) * 10;
    out_.add("  ", first);
    if (i + 1 == buckets->size()) {
      out_.add("+");
    } else if (i >= single_sizes) {
      out_.add('-', first + 9);
    }
    out_.add("w: ");
    out_.add_grouped((*buckets)[i]);
  }
}

void TextSink::lifecycle(const Event& event, const Registry& registry) {
  name(event, registry);
  if (event.value == 0) return;
  const auto what = static_cast<Lifecycle>(event.id);
  if (what == Lifecycle::ring_start || what == Lifecycle::domain_spawn || what == Lifecycle::domain_terminate)
    out_.add("  pid");
  if (what == Lifecycle::fork_parent) out_.add("  child");
  out_.add(' ', event.signed_value());
}

void TextSink::custom(std::string_view event, std::span<const std::byte> payload) {
  constexpr std::size_t longest_text = 64, longest_hex = 32;
  if (const UserFields fields = user_fields(event, payload); !fields.empty()) {
    out_.add(' ');
    add_user_fields(out_, fields, longest_text);
    return;
  }
  const std::string_view bytes{reinterpret_cast<const char*>(payload.data()), payload.size()};
  out_.add(" custom ");
  if (const UserIntegers integers = user_integers(payload); !integers.empty()) return add_user_integers(out_, integers);
  const bool printable = is_printable(bytes);
  const std::size_t longest = printable ? longest_text : longest_hex;
  std::size_t shown = std::min(bytes.size(), longest);
  if (printable) {
    while (shown < bytes.size() && shown > 0 && (bytes[shown] & 0xC0) == 0x80) --shown;  // not within a character
    add_quoted(out_, bytes.substr(0, shown));
  } else {
    out_.add("0x");
    out_.add_hex(bytes.substr(0, shown));
  }
  if (shown < bytes.size()) {
    out_.add("... (");
    out_.add_grouped(bytes.size());
    out_.add(" bytes)");
  }
}

void TextSink::lost(const Event& event, const Batch& batch) {
  out_.add("LOST");
  const auto loss = batch.payload_as<Loss>(event);
  if (!loss) return;
  const auto reason = static_cast<LossReason>(event.id);
  if (reason == LossReason::unprobed) {
    out_.add(" events while probes were off, ");
  } else {
    out_.add(' ');
    out_.add_grouped(loss->words);
    if (reason == LossReason::corrupt) out_.add(" corrupt");
    out_.add(lost_unit(reason), loss->words == 1 ? " " : "s ");
  }
  if (loss->from_ns != 0) {
    out_.add("between ");
    add_seconds(out_, loss->from_ns, start_ns_, 0);
    out_.add("s and ");
  } else {
    out_.add("before ");
  }
  add_seconds(out_, loss->to_ns, start_ns_, 0);
  out_.add('s');
  if (loss->from_ns != 0 && loss->to_ns >= loss->from_ns) {
    out_.add("  (");
    add_duration(out_, loss->to_ns - loss->from_ns);
    out_.add(')');
  }
}

}  // namespace rtev
