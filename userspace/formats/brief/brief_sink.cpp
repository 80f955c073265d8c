// SPDX-License-Identifier: MIT
#include "formats/brief/brief_sink.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "analysis/report_text.hpp"
#include "base/folding.hpp"
#include "base/utf8.hpp"
#include "formats/brief/brief_text.hpp"
#include "formats/text/process_text.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t notable = 100;  // a hundredth of a span
constexpr std::size_t time_width = 12;
constexpr std::string_view second_only = "14:03:22";
constexpr std::string_view alarm = "\x1b[1;31m", yellow = "\x1b[33m", cyan = "\x1b[36m", green = "\x1b[32m",
                           dim = "\x1b[2m", normal = "\x1b[0m";

std::string name_of(const ProcessInfo& info) {
  return fmt::format("{}", ProcessName{info.name, info.pid});
}

/// Events of programs that are worth a line. The others are steps of the tracer.
bool matters(ProcessAction action) {
  return action != ProcessAction::ring && action != ProcessAction::stop;
}

bool is_value(EventKind kind) {
  return kind == EventKind::user_unit || kind == EventKind::user_int || kind == EventKind::user_custom;
}

}  // namespace

BriefSink::BriefSink(Output& output, BriefOptions options)
    : LineSink(output),
      options_(std::move(options)),
      stalls_({.on_stall = [this](ProcessIndex process, const Stall& stall) { add_stall(process, stall); },
               .min_ns = least(BriefOptions::min_stall_ns)}) {}

void BriefSink::header(const RunHeader& header) {
  header_ = header;
  analyzer_.header(header);
  second_end_ns_ = end_of_second(header.begin_ns());
  const std::string title = fmt::format(
      "# pauses from {}, spans from {}, the {} longest a second; others summed up (--min, --all)",
      Duration{least(BriefOptions::min_pause_ns)}, Duration{least(BriefOptions::min_span_ns)}, max_long_lines);
  out_.add(std::string_view(cut(title, options_.columns)));
  end_line();
}

/// Seconds begin with those of the clock on the wall.
std::uint64_t BriefSink::end_of_second(std::uint64_t time_ns) const {
  const std::uint64_t of_day = header_.start_realtime_ns + (time_ns - header_.start_ns);
  return time_ns + second_ns - of_day % second_ns;
}

void BriefSink::consume(const Batch& batch, const Registry& registry) {
  registry_ = &registry;
  for (const Event& event : batch.events()) {
    if (event.time >= second_end_ns_) end_second(event.time);
    add(event, batch);
  }
  stalls_.consume(batch, registry);
  registry_ = nullptr;
}

void BriefSink::advance(std::uint64_t time_ns, const Registry& registry) {
  registry_ = &registry;
  if (time_ns >= second_end_ns_) end_second(time_ns);
  registry_ = nullptr;
}

void BriefSink::summary(const RunSummary& summary, const Registry& registry) {
  registry_ = &registry;
  analyzer_.finish(summary.end_ns);
  end_second(std::max(summary.end_ns, second_end_ns_));
  registry_ = nullptr;
  flush();
}

void BriefSink::add(const Event& event, const Batch& batch) {
  analyzer_.add(event, batch, *registry_);
  if (event.kind >= EventKind::sched_switch) return;
  spans_.add({event, batch, *registry_});
  if (event.kind == EventKind::process) add_process(event, batch);
  if (event.kind == EventKind::lost) add_loss(event, batch);
  if (!is_value(event.kind)) return;
  const Source source = Source::unpack(event.source);
  const RingInfo* const ring = registry_->ring(source.slot);
  if (ring && is_selected(registry_->process(ring->process).pid, source.domain)) sums_.add_value(ring->process);
}

bool BriefSink::is_selected(std::int32_t pid, std::uint16_t domain) const {
  if (options_.threads.is_all()) return true;
  return options_.threads.accepts(domain, analyzer_.threads().writer_of(pid, domain).value_or(0));
}

void BriefSink::add_process(const Event& event, const Batch& batch) {
  const auto record = batch.payload_as<ProcessRecord>(event);
  const auto action = static_cast<ProcessAction>(event.id);
  if (!record || !matters(action)) return;
  if (process_lines_.size() >= max_process_lines) {
    ++other_process_events_[action];
    return;
  }
  TextBuffer text;
  add_process_event(text, action, *record, registry_->process(record->process));
  process_lines_.push_back(
      {.time_ns = event.time, .text = std::string(text.text()), .color = cyan, .process = record->process});
}

void BriefSink::add_loss(const Event& event, const Batch& batch) {
  const auto loss = batch.payload_as<Loss>(event);
  if (!loss) return;
  const RingInfo* const ring = registry_->ring(Source::unpack(event.source).slot);
  if (ring)
    sums_.add_loss(ring->process, *loss);
  else if (is_sched_loss(event))
    lost_sched_events_ += loss->words;
}

void BriefSink::on_pause_details(PauseDetails&& pause) {
  const DomainLife& life = pause.domain;
  Domain& domain = domains_[life.key()];
  domain.pauses.push_back({pause.begin_ns, pause.end_ns});
  if (domain.pauses.size() > remembered_pauses) {
    domain.known_from_ns = domain.pauses.front().end_ns;
    domain.pauses.pop_front();
  }
  if (!options_.threads.accepts(life.domain, pause.tid)) return;
  Line line{.time_ns = pause.begin_ns,
            .length_ns = pause.duration_ns(),
            .process = life.process,
            .domain = life.domain,
            .is_pause = true};
  if (line.length_ns < least(BriefOptions::min_pause_ns)) {
    sum_up(line);
    return;
  }
  line.text = pause_cause(pause, registry_->stacks());
  add_line(std::move(line));
}

BriefSink::Lane* BriefSink::lane_for(BriefRing& ring, const EventContext& context) {
  return is_phase(context.event) ? nullptr : &ring.lane({});
}

void BriefSink::on_domain_end(BriefRing& ring, std::uint64_t /*time_ns*/) {
  domains_.erase(ring.life.key());
}

void BriefSink::on_end(BriefRing& ring, Lane& /*lane*/, const Event& begin, const EventContext& context) {
  const DomainLife& life = ring.life;
  const std::uint64_t end_ns = context.event.time;
  if (end_ns < begin.time || !is_selected(life.pid, life.domain)) return;
  Line line{.time_ns = begin.time,
            .length_ns = end_ns - begin.time,
            .color = green,
            .process = life.process,
            .domain = life.domain};
  std::string scratch;
  line.span = rtev::name_of(context.event, *registry_, scratch);
  if (line.length_ns < least(BriefOptions::min_span_ns)) {
    sum_up(line);
    return;
  }
  std::uint64_t count = 0, paused_ns = 0;
  const auto domain = domains_.find(life.key());
  if (domain != domains_.end() && domain->second.known_from_ns <= begin.time) {
    for (const PauseTime& pause : domain->second.pauses) {
      if (pause.end_ns <= begin.time || pause.begin_ns >= end_ns) continue;
      ++count;
      paused_ns += std::min(pause.end_ns, end_ns) - std::max(pause.begin_ns, begin.time);
    }
  }
  TextBuffer text;
  add_quoted(text, line.span);
  if (paused_ns > 0 && paused_ns >= line.length_ns / notable) {
    print(text, "  paused {}", Duration{paused_ns});
    if (count > 1) print(text, " ({})", times(count));
  }
  if (const auto cause = take_pause(line, end_ns)) text.add(": ", std::string_view(*cause));
  line.text = text.text();
  add_line(std::move(line));
}

/// The cause of a slow span is in its line.
std::optional<std::string> BriefSink::take_pause(const Line& span, std::uint64_t end_ns) {
  const auto pause = std::ranges::find_if(long_lines_, [&](const Line& line) {
    return line.is_pause && line.process == span.process && line.domain == span.domain &&
           line.time_ns >= span.time_ns && line.time_ns + line.length_ns <= end_ns &&
           line.length_ns >= span.length_ns / 2;
  });
  if (pause == long_lines_.end()) return std::nullopt;
  std::string text = std::move(pause->text);
  long_lines_.erase(pause);
  return text;
}

void BriefSink::add_stall(ProcessIndex process, const Stall& stall) {
  if (!options_.threads.accepts(stall.domain, stall.tid)) return;
  add_line({.time_ns = stall.begin_ns,
            .length_ns = stall.length_ns(),
            .text = "stall: " + stall_activity(stall, &registry_->stacks(), false),
            .color = yellow,
            .process = process,
            .domain = stall.domain});
}

/// If there is no room, the shortest is summed up.
void BriefSink::add_line(Line line) {
  long_lines_.push_back(std::move(line));
  if (long_lines_.size() <= max_long_lines) return;
  const auto shortest = std::ranges::min_element(long_lines_, {}, &Line::length_ns);
  sum_up(*shortest);
  long_lines_.erase(shortest);
}

void BriefSink::sum_up(const Line& line) {
  if (line.is_pause)
    sums_.add_pause(line.process, line.length_ns);
  else if (line.span.empty())
    sums_.add_stall(line.process, line.length_ns);
  else
    sums_.add_span(line.process, line.span, line.length_ns);
}

void BriefSink::end_second(std::uint64_t now_ns) {
  std::vector<Line> lines = std::exchange(process_lines_, {});
  std::ranges::move(std::exchange(long_lines_, {}), std::back_inserter(lines));
  std::ranges::sort(lines, {}, &Line::time_ns);
  for (const Line& line : lines) {
    TextBuffer text;
    if (line.domain >= 0) print(text, "{:<4}", fmt::format("d{}", line.domain));
    if (line.length_ns > 0) print(text, "{:>6} ", Duration{line.length_ns});
    if (line.is_pause) text.add(line.text.starts_with('(') ? "pause  " : "pause: ");
    text.add(std::string_view(line.text));
    write_line(line.time_ns, name_of(registry_->process(line.process)), text.text(), line.color);
  }
  write_rest();
  second_end_ns_ = end_of_second(now_ns);
}

/// What has no line of its own.
void BriefSink::write_rest() {
  if (!other_process_events_.empty()) {
    TextBuffer text;
    std::string_view separator;
    for (const auto& [action, count] : std::exchange(other_process_events_, {})) {
      print(text, "{}{} × {}", separator, Grouped{count}, to_string(action));
      separator = ", ";
    }
    write_line({}, "other programs", text.text(), cyan);
  }
  for (const BriefSums::Line& line : sums_.take(max_sums, *registry_))
    write_line({}, line.program, line.text, line.has_loss ? alarm : dim);
  if (const std::uint64_t lost = std::exchange(lost_sched_events_, 0); lost > 0)
    write_line({}, "", fmt::format("LOST {}", Counted{lost, "scheduler event", "scheduler events"}), alarm);
}

void BriefSink::write_line(std::optional<std::uint64_t> of, std::string_view program, std::string_view text,
                           std::string_view color) {
  TextBuffer line;
  if (header_.start_realtime_ns != 0) {
    const std::uint64_t time_ns = of.value_or(second_end_ns_ - 1);
    add_time_of_day(line, header_.start_realtime_ns + (time_ns - header_.start_ns));
    line.cut(std::min(line.size(), of ? time_width : second_only.size()));
    line.add_repeated(' ', time_width - line.size());
  } else {
    add_seconds(line, of.value_or(second_end_ns_), header_.start_ns, time_width);
  }
  const std::size_t columns = columns_of(program);
  name_width_ = std::clamp(columns, name_width_, max_name_width);
  line.add("  ", program);
  line.add_repeated(' ', name_width_ - std::min(name_width_, columns) + 2);
  line.add(text);
  // Rather without the phases of a pause than without the end of its cause.
  std::string_view shown = line.text();
  const bool is_wide = options_.columns != 0 && columns_of(shown) > options_.columns;
  if (const auto phases = shown.rfind("  ("); is_wide && phases != std::string_view::npos && shown.ends_with(')'))
    shown = shown.substr(0, phases);
  const bool colored = options_.color && !color.empty();
  if (colored) out_.add(color);
  out_.add(std::string_view(cut(shown, options_.columns)));
  if (colored) out_.add(normal);
  end_line();
}

}  // namespace rtev
