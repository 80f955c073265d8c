// SPDX-License-Identifier: MIT
// Any stream, from processes with any strings, through the merge to each format and each report: text controls no
// terminal, JSON is valid, traces can be read back. The input selects the output, then come strings, then events.
#include <nlohmann/json.hpp>

#include "analysis/diff/diff_report.hpp"
#include "analysis/diff/recorded_run_sink.hpp"
#include "analysis/html_report/html_report_sink.hpp"
#include "analysis/latency/latency_sink.hpp"
#include "analysis/pauses/pauses_sink.hpp"
#include "analysis/profile/profile_sink.hpp"
#include "analysis/spans/spans_sink.hpp"
#include "analysis/stalls/stalls_sink.hpp"
#include "analysis/stats/stats_sink.hpp"
#include "analysis/tasks/tasks_sink.hpp"
#include "formats/format_table.hpp"
#include "formats/output/output.hpp"
#include "formats/profile/profile_files.hpp"
#include "formats/report/html_report.hpp"
#include "formats/text/run_summary.hpp"
#include "fuzz/fuzzing.hpp"
#include "recording/replay.hpp"
#include "stream/timeline.hpp"
#include "support/csv_lines.hpp"
#include "support/perfetto_check.hpp"
#include "support/terminal_check.hpp"
#include "top/interval_sink.hpp"
#include "top/interval_text.hpp"
#include "top/view.hpp"
#include "unit/stream/world.hpp"

namespace rtev::fuzz {
namespace {

constexpr std::uint64_t end_of_time = 1 << 30;

/// User events with a meaning, so that an input need not spell them.
constexpr std::array<std::string_view, 17> task_events{
    "eio.create_fiber", "eio.fiber", "eio.suspend_fiber", "eio.exit_fiber", "eio.create_cc",      "eio.exit_cc",
    "eio.name",         "eio.error", "eio.try_get",       "eio.put",        "eio.suspend_domain", "miou.spawn",
    "miou.begin",       "miou.end",  "miou.await",        "miou.resume",    "miou.done"};

/// How an input describes an event.
struct Step {
  std::uint8_t kind, ring_and_domain;
  std::uint16_t id, time;
  std::uint8_t value, size;
};

/// Processes and their names, and the stream of their events.
class HostileWorld {
 public:
  explicit HostileWorld(Input& input) : input_(input) {
    for (std::string& string : strings_) string = input_.take_until('\0').substr(0, 200);
    for (ProcessIndex& process : processes_) process = add_process();
    for (std::uint16_t id = 0; id < 4; ++id) world_.user_names[id] = string(id);
    for (std::uint16_t id = 0; id < task_events.size(); ++id) world_.user_names[4u + id] = task_events[id];
    StackTable& stacks = world_.registry.stacks();
    for (std::uint32_t number = 0; number < 12; ++number) {
      const FrameIndex frame = stacks.add_frame({.kind = static_cast<FrameKind>(number % 6),
                                                 .line = number / 3,
                                                 .address = number,
                                                 .function = string(number),
                                                 .file = string(number / 2),
                                                 .object = string(number + 1),
                                                 .build_id = string(number + 2)});
      stacks.add_stack(number / 2, frame);
    }
  }

  void run(Sink& sink) {
    sink.header({.version = string(0),
                 .host = string(1),
                 .kernel = string(2),
                 .machine = string(3),
                 .command_line = {string(4), string(5)},
                 .start_ns = 1,
                 .start_realtime_ns = 2});
    Timeline timeline([this] { return now_; });
    const auto consume = [&](const Batch& batch) {
      for (const Event& event : batch.events()) ++summary_.events[static_cast<std::size_t>(event.kind)];
      sink.consume(batch, registry());
    };
    for (int steps = 0; !input_.empty() && steps < 500; ++steps) {
      const auto step = input_.take<Step>();
      push(step, timeline);
      if (step.size % 8 == 0) timeline.deliver(now_ - std::min<std::uint64_t>(now_, step.value), consume);
      if (step.size % 32 == 0) sink.advance(now_ - std::min<std::uint64_t>(now_, step.value), registry());
      if (step.size % 64 == 0) sink.flush();
    }
    timeline.deliver(UINT64_MAX, consume);
    summary_.start_ns = 1;
    summary_.end_ns = now_;
    summary_.late = timeline.late();
    summary_.drops = {{.kind = string(6), .count = 3}, {.kind = string(7), .count = 1}};
    sink.summary(summary_, registry());
    sink.flush();
  }

  const Registry& registry() const { return world_.registry; }
  const RunSummary& summary() const { return summary_; }

 private:
  const std::string& string(std::size_t number) const { return strings_[number % strings_.size()]; }

  ProcessIndex add_process() {
    const auto number = world_.registry.processes().size();
    ProcessInfo info = test::World::default_info();
    info.pid = info.ns_pid = static_cast<std::int32_t>(100 + number);
    info.comm = string(number);
    info.exe = string(number + 1);
    info.runtime = number % 2 == 0 ? ocaml_runtime : string(number + 2);
    info.version = string(number + 3);
    info.ring_path = string(number + 4);
    const ProcessIndex index = world_.registry.add_process(std::move(info));
    slots_.push_back(world_.add_ring(index));
    return index;
  }

  Thread thread(std::uint8_t seed) const {
    const std::int32_t pid = seed % 5 == 0 ? 0 : 100 + seed % 4;
    Thread thread = test::make_thread(pid, pid == 0 ? 0 : pid + seed / 64, string(seed), pid != 0 && seed % 4 != 3);
    thread.domain = thread.tracked ? seed / 32 - 1 : -1;
    thread.role = static_cast<ThreadRole>(seed % 4);
    thread.holds_lock = seed % 3 == 0;
    return thread;
  }

  void push(const Step& step, Timeline& timeline) {
    now_ = std::min(now_ + step.time, end_of_time);
    const auto kind = static_cast<EventKind>(step.kind % event_kind_count);
    const auto ring = step.ring_and_domain % slots_.size();
    const std::uint16_t domain = step.ring_and_domain / 32;
    const Source source = kind >= EventKind::process ? Source{0, domain} : Source{slots_[ring], domain};
    // Now and then a time that goes back, or that is still to come.
    const std::uint64_t time = step.value == 255 ? now_ + 1000 : now_ - std::min<std::uint64_t>(now_, step.value % 4);
    switch (kind) {
      case EventKind::lost:
        return timeline.push(
            time, source, kind, step.id % 6,
            Loss{.words = step.value, .from_ns = time - std::min<std::uint64_t>(time, step.size), .to_ns = time});
      case EventKind::process: {
        ProcessInfo& info = world_.registry.process(processes_[ring % processes_.size()]);
        info.ring = static_cast<RingState>(step.value % 9);
        info.ended = info.ended || step.id % 9 == static_cast<std::uint16_t>(ProcessAction::exit);
        info.words = {.written = 9, .delivered = 5, .lost = 3, .corrupt = 1, .events = 2};
        info.domains = step.size;
        return timeline.push(
            time, source, kind, step.id % 11,
            ProcessRecord{
                .process = processes_[ring % processes_.size()], .peer = step.size, .detail = step.value - 3});
      }
      case EventKind::sched_switch:
        return timeline.push(time, source, kind, 0,
                             SchedSwitch{.cpu = step.id % 3u,
                                         .state = static_cast<LeftState>(step.id / 4 % 8),
                                         .syscall = static_cast<Syscall>(step.id / 32 % 32),
                                         .prev = thread(step.value),
                                         .next = thread(step.size)});
      case EventKind::wakeup:
        return timeline.push(time, source, kind, 0,
                             Wakeup{.cpu = step.id % 3u, .woken = thread(step.value), .by = thread(step.size)});
      case EventKind::sample: {
        Sample sample{};
        sample.process = step.id % 5 == 4 ? step.id : processes_[ring % processes_.size()];
        sample.pid = sample.tid = 100 + step.id % 4;
        sample.domain = step.id / 8 % 4 - 1;
        sample.stack = step.size % 16;
        sample.weight = std::uint64_t{step.value} << step.size % 64;
        sample.role = static_cast<ThreadRole>(step.id % 4);
        sample.holds_lock = step.id % 2 == 0;
        return timeline.push(time, Source{0, sample_stream}, kind, step.id % 3, sample);
      }
      default:
        break;
    }
    const auto payload = has_payload(kind) ? std::as_bytes(input_.take_bytes(step.size)) : std::span<const std::byte>{};
    timeline.push({.time = time,
                   .value = has_payload(kind) ? 0u : std::uint64_t{step.value} << step.size % 64,
                   .source = source.pack(),
                   .id = step.id,
                   .kind = kind,
                   .flags = 0},
                  payload);
  }

  Input& input_;
  std::array<std::string, 8> strings_;
  test::World world_;
  std::vector<std::uint32_t> slots_{world_.slot};
  std::array<ProcessIndex, 3> processes_{};
  std::uint64_t now_ = 1;
  RunSummary summary_;
};

void check_text(std::string_view text) {
  const std::string danger = test::terminal_danger(text);
  check(danger.empty(), "nothing controls the terminal", danger);
}

void check_json(std::string_view text) {
  check(nlohmann::json::accept(text), "valid JSON", text);
  const std::string danger = test::terminal_danger(text, test::Deception::allowed);
  check(danger.empty(), "nothing in JSON controls the terminal", danger);
}

void check_lines(std::string_view text) {
  check(text.empty() || text.ends_with('\n'), "whole lines");
  while (!text.empty()) {
    check_json(text.substr(0, text.find('\n')));
    text.remove_prefix(text.find('\n') + 1);
  }
}

void check_csv(std::string_view text) {
  check(test::read_csv(text).has_value(), "rows of a table");
  check_text(text);
}

void check_recording(std::string_view file) {
  StringOutput again;
  const auto text = info_of(Format::text).make(again, {});
  Replay replay(*text);
  const auto fed = replay.feed(std::as_bytes(std::span(file)));
  check(fed.has_value(), "a recording can be read", fed ? "" : fed.error().message());
  const auto end = replay.finish();
  check(end && end->complete, "a recording has its end");
  check_text(again.text());
}

void check_format(Format format, HostileWorld& world) {
  StringOutput output;
  const auto sink = info_of(format).make(output, {});
  world.run(*sink);
  switch (format) {
    case Format::brief:
      return check_text(output.text());
    case Format::text:
      check_text(output.text());
      return check_text(summary_text(world.summary(), world.registry(), true));
    case Format::jsonl:
      return check_lines(output.text());
    case Format::fxt:
      return check_recording(output.text());
    case Format::chrome:
      return check_json(output.text());
    case Format::csv:
      return check_csv(output.text());
    case Format::pftrace: {
      auto trace = test::read_perfetto(output.text());
      // Names can be empty, and names of details the same. A thread that enters two CPUs is what the recording says.
      std::erase_if(trace.errors, [](const std::string& error) {
        return error.contains("no machine") || error.contains("track without name") || error.ends_with(" twice") ||
               error.contains(" on two cpus");
      });
      check(trace.bytes_left == 0, "whole packets");
      check(trace.errors.empty(), "a viewer shows all of the trace", trace.all_errors());
      return;
    }
  }
}

template <typename Analysis>
void check_reports(Analysis& analysis, HostileWorld& world) {
  world.run(analysis);
  if constexpr (requires { analysis.report_text(); }) {
    check_text(analysis.report_text());
    check_json(analysis.report_json());
  } else {
    check_text(analysis.report_text(world.registry()));
    check_json(analysis.report_json(world.registry()));
  }
}

void check_profile(std::uint8_t way, HostileWorld& world) {
  ProfileOptions options{.kind = static_cast<SampleKind>(way % 3),
                         .by = static_cast<ProfileBy>(way / 4 % 6),
                         .full = way % 2 == 0,
                         .max_keys = 8,
                         .max_waiting = 4};
  if (way % 5 < 2) options.in = SpanCondition{.pattern = way % 5 == 0 ? "*" : "pause", .min_ns = 5000};
  Profile profile(std::move(options));
  world.run(profile);
  const ProfileReport report = profile.report(world.registry());
  check_text(profile_text(report));
  check_text(allocs_text(report));
  check_json(profile_json(report));
  check_json(allocs_json(report));
  check_text(folded_stacks(report));
  check_json(speedscope_profile(report));
  check(!pprof_profile(report).empty(), "a profile for pprof");
  check_text(flame_graph_html(report));
}

void check_html_report(HostileWorld& world) {
  HtmlReportSink sink({.input = "trace.fxt", .max_bytes = std::size_t{1} << 16});
  world.run(sink);
  HtmlReport report = sink.report(world.registry());
  for (const Finding& finding : report.findings)
    check_text(finding.title + finding.text + finding.next + finding.command);
  check_text(html_report(report));
  check_json(html_report_json(report));
}

void check_diff(HostileWorld& world) {
  RecordedRunSink sink;
  world.run(sink);
  const RecordedRun run = sink.take();
  const DiffReport report = compare(run, run, {.full = true});
  check_text(diff_text(report));
  check_json(diff_json(report));
}

/// As text, as JSON and on a screen.
void check_top(HostileWorld& world) {
  top::View view({.sorted_by = top::column_named("worst"), .input = "x"});
  top::IntervalSink sink({.interval_ns = 10'000, .details = true}, [&](top::Interval&& interval) {
    check_text(interval_text(interval, nullptr, 80));
    check_lines(interval_json(interval, sink.run(), nullptr));
    view.add(std::move(interval));
    view.step();
    for (const char key : {'\r', 'q'}) {
      for (const top::Line& line : view.draw(100, 30)) check_text(line.text());
      view.press(key == '\r' ? top::Key{.kind = top::Key::Kind::enter}
                             : top::Key{.kind = top::Key::Kind::character, .character = key},
                 30);
    }
  });
  world.run(sink);
}

}  // namespace

void sinks(Bytes bytes) {
  Input input(bytes);
  const auto way = input.take<std::uint8_t>();
  HostileWorld world(input);
  switch (way % 9) {
    case 6: {
      if (way >= 128) return check_diff(world);
      Stats stats({.full = true});
      return check_reports(stats, world);
    }
    case 7: {
      if (way >= 240) return check_top(world);
      StringOutput output;
      const bool json = way >= 128;
      Latency latency({.format = json ? LatencyOptions::Format::json : LatencyOptions::Format::text,
                       .interval_ns = way >= 64 ? 5000u : 0u,
                       .full = way >= 32},
                      output);
      check_reports(latency, world);
      return json ? check_lines(output.text()) : check_text(output.text());
    }
    case 8: {
      if (way >= 240) return check_html_report(world);
      if (way >= 224) return check_profile(input.take<std::uint8_t>(), world);
      if (way >= 192) {
        Stalls stalls({.min_ns = 100, .full = (way & 32) != 0});
        return check_reports(stalls, world);
      }
      if (way >= 160) {
        Tasks tasks({.min_ns = 10, .full = (way & 1) != 0});
        return check_reports(tasks, world);
      }
      if (way >= 128) {
        Spans spans({.pattern = "*"});
        return check_reports(spans, world);
      }
      Pauses pauses({.full = way >= 64});
      return check_reports(pauses, world);
    }
    default:
      return check_format(static_cast<Format>(way % 9), world);
  }
}

}  // namespace rtev::fuzz
