// SPDX-License-Identifier: MIT
// What reports say of recordings that lack records: what is not known is never 0.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "analysis/diff/diff_report.hpp"
#include "analysis/diff/recorded_run_sink.hpp"
#include "analysis/latency/latency_sink.hpp"
#include "analysis/pauses/pauses_sink.hpp"
#include "analysis/profile/profile_sink.hpp"
#include "analysis/spans/spans_sink.hpp"
#include "analysis/stalls/stalls_sink.hpp"
#include "analysis/stats/stats_sink.hpp"
#include "analysis/summary/summary_sink.hpp"
#include "analysis/tasks/tasks_sink.hpp"
#include "formats/csv/csv_sink.hpp"
#include "formats/report/html_report.hpp"
#include "formats/text/run_summary.hpp"
#include "stream/filter.hpp"
#include "top/interval_sink.hpp"
#include "top/interval_text.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/metrics/metrics_fixture.hpp"
#include "unit/recording/recording.hpp"

namespace rtev::test {
namespace {

constexpr std::uint64_t ms = 1'000'000;

enum class EventsAre : std::uint8_t { on, off, probed };

/// Spans, collections, turns of an event loop and stacks of one thread; of a program with its events off only what the
/// kernel tells. Probes are off for a time.
std::string recording_of_all_kinds(EventsAre events_are = EventsAre::on) {
  const bool is_on = events_are != EventsAre::off;
  ProcessInfo info = World::default_info();
  if (!is_on) info.ring = RingState::none;
  World world(std::move(info));
  world.user_names = {{1, "request"}};
  StackTable& stacks = world.registry.stacks();
  const StackIndex stack = stacks.add_stack(
      0, stacks.add_frame({.kind = FrameKind::ocaml, .line = 3, .function = "Shop.answer", .file = "shop.ml"}));
  Recording recording;
  RunHeader header = make_header();
  header.start_ns = 1;
  recording.header(header);
  const Thread thread = a_thread(4242, 4242, 0);
  Events events(world.slot), process(0);
  const auto consume = [&](Events& each) {
    recording.consume(each.batch(), world.registry);
    each = Events(&each == &events ? world.slot : 0);
  };
  const auto add_sched = [&](std::uint64_t time_ns, const auto& record, EventKind kind) {
    Events one(0);
    one.add_record(time_ns, kind, record, 0, first_sched_stream);
    recording.consume(one.batch(), world.registry);
  };
  for (const ProcessAction action : {ProcessAction::exec, is_on ? ProcessAction::ring : ProcessAction::exec})
    process.add_record(10, EventKind::process, ProcessRecord{.process = world.process, .peer = 0, .detail = 1},
                       static_cast<std::uint16_t>(action));
  consume(process);
  constexpr std::uint64_t turns = 40;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    const std::uint64_t begin = ms + turn * 10 * ms, longer = turn == turns / 2 ? 8 * ms : 2 * ms;
    add_sched(begin, enters(thread), EventKind::sched_switch);
    if (is_on) {
      events.add(begin + 1, EventKind::user_begin, 1)
          .add(begin + ms / 2, EventKind::begin, phase_minor)
          .add(begin + ms / 2 + 1, EventKind::counter, counter_minor_allocated, 8000)
          .add(begin + ms, EventKind::end, phase_minor)
          .add(begin + longer, EventKind::user_end, 1);
      if (events_are == EventsAre::probed && turn == turns / 2)
        events.add_record(begin + longer + 1, EventKind::lost,
                          Loss{.words = 0, .from_ns = begin + longer, .to_ns = begin + longer + 1},
                          static_cast<std::uint16_t>(LossReason::unprobed));
      consume(events);
    }
    for (const SampleKind kind : {SampleKind::on_cpu, SampleKind::allocation}) {
      Events sample(0);
      sample.add_record(begin + longer + 1, EventKind::sample,
                        Sample{.process = world.process,
                               .pid = 4242,
                               .tid = 4242,
                               .domain = 0,
                               .cpu = 0,
                               .stack = stack,
                               .weight = ms,
                               .role = ThreadRole::mutator,
                               .holds_lock = true,
                               .zero = {}},
                        static_cast<std::uint16_t>(kind), sample_stream);
      recording.consume(sample.batch(), world.registry);
    }
    add_sched(begin + longer + 2, blocks(thread, Syscall::epoll_wait), EventKind::sched_switch);
    add_sched(begin + 10 * ms - 100, wakes(thread), EventKind::wakeup);
  }
  if (is_on) {
    world.registry.process(world.process).words = {
        .written = 1010, .delivered = 1000, .before_attach = 10, .events = 5 * turns};
    world.registry.process(world.process).domains = 1;
  }
  recording.end(world.registry);
  return recording.recorded();
}

using Reports = std::map<std::string, nlohmann::json>;

/// The last interval of `top`.
struct Top {
  std::string json, text;
  top::IntervalSink sink{{}, [this](const top::Interval& interval) {
                           json = top::interval_json(interval, sink.run(), nullptr);
                           text = top::interval_text(interval, nullptr, 0, false);
                         }};
};

/// Calls `report` with the registry and the summary of a recording that `sink` has read.
void read_recording(std::string_view file, Sink& sink, std::function<void(const RunSummary&, const Registry&)> report) {
  struct AtEnd final : ForwardingSink {
    using ForwardingSink::ForwardingSink;
    void summary(const RunSummary& summary, const Registry& registry) override {
      sink_.summary(summary, registry);
      done(summary, registry);
    }
    std::function<void(const RunSummary&, const Registry&)> done;
  } at_end(sink);
  at_end.done = std::move(report);
  Replay reader(at_end);
  static_cast<void>(reader.feed(bytes_of(file)));  // some cannot be read to the end
  EXPECT_TRUE(reader.finish());
}

/// The recording compared with itself.
DiffReport diff_of(std::string_view file, bool full) {
  std::array<RecordedRun, 2> runs;
  for (RecordedRun& run : runs) {
    RecordedRunSink sink;
    read_recording(file, sink, [](const RunSummary&, const Registry&) {});
    run = sink.take();
  }
  DiffReport report = compare(runs[0], runs[1], {.full = full});
  report.version = "1.2";
  return report;
}

/// What it says of a recording as a whole.
const nlohmann::json& head_of(const std::string& name, const nlohmann::json& report) {
  return name == "diff" ? report.at("a") : report;
}

Reports reports_of(std::string_view file) {
  Reports reports;
  const auto replay = [&](Sink& sink, auto&& report) {
    read_recording(file, sink, [&](const RunSummary&, const Registry& registry) {
      const auto json = nlohmann::json::parse(report(registry));
      reports[json["type"]] = json;
    });
  };
  StringOutput no_output;
  Latency latency({}, no_output);
  replay(latency, [&](const Registry& registry) { return latency.report_json(registry); });
  Pauses pauses({.top = 3});
  replay(pauses, [&](const Registry&) { return pauses.report_json(); });
  Stats stats{StatsOptions{}};
  replay(stats, [&](const Registry& registry) { return stats.report_json(registry); });
  Spans spans({.pattern = "*"});
  replay(spans, [&](const Registry&) { return spans.report_json(); });
  Stalls stalls({.min_ns = 5 * ms});
  replay(stalls, [&](const Registry&) { return stalls.report_json(); });
  Tasks tasks{TasksOptions{}};
  replay(tasks, [&](const Registry&) { return tasks.report_json(); });
  Profile profile{ProfileOptions{}};
  replay(profile, [&](const Registry& registry) { return profile_json(profile.report(registry)); });
  Profile allocs({.kind = SampleKind::allocation});
  replay(allocs, [&](const Registry& registry) { return allocs_json(allocs.report(registry)); });
  reports["diff"] = nlohmann::json::parse(diff_json(diff_of(file, true)));
  Top top;
  read_recording(file, top.sink, [](const RunSummary&, const Registry&) {});
  if (!top.json.empty()) reports["top"] = nlohmann::json::parse(top.json);
  reports["dump"] = nlohmann::json::parse(lines_of(replayed(file).lines).back());
  return reports;
}

/// What people and tables get, by name.
std::map<std::string, std::string> texts_of(std::string_view file) {
  std::map<std::string, std::string> texts;
  StringOutput no_output;
  for (const bool full : {false, true}) {
    const std::string suffix = full ? " --full" : "";
    Latency latency({.full = full}, no_output);
    read_recording(file, latency, [&](const RunSummary&, const Registry& registry) {
      texts["latency" + suffix] = latency.report_text(registry);
    });
    Pauses pauses({.top = 3, .full = full});
    read_recording(file, pauses,
                   [&](const RunSummary&, const Registry&) { texts["pauses" + suffix] = pauses.report_text(); });
    Stats stats({.full = full});
    read_recording(file, stats, [&](const RunSummary&, const Registry& registry) {
      texts["stats" + suffix] = stats.report_text(registry);
    });
    Spans spans({.pattern = "*", .full = full});
    read_recording(file, spans,
                   [&](const RunSummary&, const Registry&) { texts["spans" + suffix] = spans.report_text(); });
    Stalls stalls({.min_ns = 5 * ms, .full = full});
    read_recording(file, stalls,
                   [&](const RunSummary&, const Registry&) { texts["stalls" + suffix] = stalls.report_text(); });
    Tasks tasks({.full = full});
    read_recording(file, tasks,
                   [&](const RunSummary&, const Registry&) { texts["tasks" + suffix] = tasks.report_text(); });
    Profile profile({.full = full});
    read_recording(file, profile, [&](const RunSummary& run, const Registry& registry) {
      texts["profile" + suffix] = profile_text(profile.report(registry));
      texts["messages" + suffix] = summary_text(run, registry, full);
    });
    Profile allocs({.kind = SampleKind::allocation, .full = full});
    read_recording(file, allocs, [&](const RunSummary&, const Registry& registry) {
      texts["allocs" + suffix] = allocs_text(allocs.report(registry));
    });
    texts["diff" + suffix] = diff_text(diff_of(file, full));
  }
  Top top;
  read_recording(file, top.sink, [&](const RunSummary&, const Registry&) { texts["top"] = top.text; });
  Summary summary(SummaryOptions{});
  read_recording(file, summary, [&](const RunSummary&, const Registry& registry) {
    texts["summary"] = summary.report_text(registry);
  });
  HtmlReportSink page(HtmlReportOptions{});
  read_recording(file, page, [&](const RunSummary&, const Registry& registry) {
    texts["report"] = report_head(page.report(registry));
  });
  StringOutput rows;
  CsvSink csv(rows, "");
  read_recording(file, csv, [](const RunSummary&, const Registry&) {});
  texts["csv"] = rows.text();
  return texts;
}

template <typename Record>
std::string kind_of(const Record& record) {
  if constexpr (std::is_same_v<Record, fxt::parsed::UserspaceObject>) {
    return record.arguments.empty() ? "" : std::string(record.arguments.front().name.text);
  } else if constexpr (std::is_same_v<Record, fxt::parsed::EventRecord>) {
    return fmt::format("event {} {}", record.category.text, static_cast<int>(record.type));
  } else if constexpr (std::is_same_v<Record, fxt::parsed::ContextSwitch>) {
    return "switch";
  } else if constexpr (std::is_same_v<Record, fxt::parsed::Wakeup>) {
    return "wakeup";
  } else {
    return "";
  }
}

/// Each record, by its kind. Strings and threads have none, and are not taken away: the rest could not be read.
std::vector<std::pair<std::string, std::string_view>> records_of(std::string_view file) {
  std::vector<std::pair<std::string, std::size_t>> begins;
  FxtReader reader;
  const auto fed = reader.feed(bytes_of(file), [&](const fxt::Record& record) {
    begins.emplace_back(std::visit([](const auto& one) { return kind_of(one); }, record), reader.offset());
  });
  EXPECT_TRUE(fed);
  std::vector<std::pair<std::string, std::string_view>> records;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::size_t end = i + 1 < begins.size() ? begins[i + 1].second : file.size();
    records.emplace_back(begins[i].first, file.substr(begins[i].second, end - begins[i].second));
  }
  return records;
}

std::string without(std::string_view file, const std::set<std::string>& kinds) {
  std::string rest(file.substr(0, records_of(file).front().second.data() - file.data()));
  for (const auto& [kind, bytes] : records_of(file))
    if (!kinds.contains(kind)) rest += bytes;
  return rest;
}

/// Members that say what is missing, or what is counted at the end only.
const std::set<std::string> losses{"lost_words",        "losses",           "rings_missed", "words_before",
                                   "scheduler_dropped", "switches_dropped", "unprobed",     "dropped",
                                   "written",           "delivered",        "lost",         "before_attach",
                                   "corrupt",           "unread",           "forced",       "max_rss_bytes"};

/// The first of these members that is 0 or false; of lists all elements.
std::string first_zero(const nlohmann::json& value, const std::string& name) {
  for (const auto& [key, member] : value.items()) {
    const std::string inner = name + "." + key;
    const bool is_loss = value.is_object() && losses.contains(key);
    if ((is_loss && member.is_number() && member == 0) || (key == "lower_bound" && member == false)) return inner;
    if (!member.is_structured() || key == "events" || key == "unfinished") continue;
    if (const std::string found = first_zero(member, inner); !found.empty()) return found;
  }
  return {};
}

TEST(LostRecords, ARecordingWithoutItsEndDoesNotSayThatNothingIsMissing) {
  const std::string file = recording_of_all_kinds();
  for (const auto& [name, report] : reports_of(file)) {
    if (name != "dump") {
      EXPECT_EQ(head_of(name, report)["truncated"], false) << name;
    }
    if (name != "stalls") {
      EXPECT_NE(first_zero(report, name), "") << "the test looks at too little";
    }
  }
  std::set<std::string> kinds;
  for (const auto& [kind, bytes] : records_of(file)) kinds.insert(kind);
  EXPECT_GT(kinds.size(), 15u);
  std::size_t truncated = 0;
  for (const std::string& kind : kinds) {
    if (kind.empty() || kind == "rtev:header") continue;
    for (const auto& [name, report] : reports_of(without(file, {kind}))) {
      if (!head_of(name, report).value("truncated", false)) continue;
      ++truncated;
      EXPECT_EQ(first_zero(report, name), "") << "without " << kind;
    }
  }
  EXPECT_GT(truncated, 7u) << "without the summary, and where the rest cannot be read";
}

TEST(LostRecords, OfADamagedSummaryFiguresAreThoseOfTheEvents) {
  const std::string file = recording_of_all_kinds();
  for (const std::string kind : {"rtev:accounting", "rtev:events", "rtev:others"}) {
    const std::string damaged = without(file, {kind});
    ASSERT_LT(damaged.size(), file.size()) << kind;
    for (const auto& [name, report] : reports_of(damaged)) {
      if (name != "dump") {
        EXPECT_EQ(head_of(name, report)["truncated"], true) << name << " without " << kind;
      }
    }
    const std::string message = texts_of(damaged).at("messages --full");
    EXPECT_FALSE(message.starts_with("0 events")) << message;
    EXPECT_EQ(message.find(" 0 "), std::string::npos) << message;
  }
}

TEST(LostRecords, WithoutSwitchesWhatTheySayIsUnknown) {
  const Reports reports = reports_of(without(recording_of_all_kinds(), {"switch", "wakeup"}));
  for (const std::string name : {"latency", "pauses"}) {
    EXPECT_EQ(reports.at(name)["self"]["waits"], nullptr);
    EXPECT_EQ(reports.at(name)["self"]["waited_ns"], nullptr);
  }
  const nlohmann::json pause = reports.at("pauses")["pauses"].at(0);
  for (const std::string key : {"preempted", "blocked", "woken", "migrations"}) EXPECT_EQ(pause[key], nullptr) << key;
  // Nor do wakeups alone say it.
  const Reports of_wakeups = reports_of(without(recording_of_all_kinds(), {"switch"}));
  EXPECT_EQ(of_wakeups.at("pauses")["counts"]["scheduler_seen"], false);
  for (const std::string share : {"cpu_share", "runnable_share"})
    EXPECT_EQ(of_wakeups.at("top")["processes"].at(0)[share], nullptr) << share;
}

/// What must be in no text, for there is no evidence.
void expect_none(const std::map<std::string, std::string>& texts, const std::vector<std::string_view>& sentences,
                 std::string_view without) {
  for (const auto& [name, text] : texts)
    for (const std::string_view sentence : sentences)
      EXPECT_EQ(text.find(sentence), std::string::npos) << name << " without " << without << " says: " << sentence;
}

TEST(LostRecords, TextsAndTablesClaimNothingWithoutEvidence) {
  const std::string file = recording_of_all_kinds();
  expect_none(texts_of(without(file, {"rtev:summary"})),
              {"nothing lost", "Nothing was lost", ">all of ", ",done,0,0,0\n"}, "its end");
  expect_none(texts_of(without(file, {"rtev:drop"})), {"overwritten"}, "drops: it is no ring file for that");
  expect_none(texts_of(without(file, {"switch"})),
              {"no CPU", "waiting for a CPU", "on CPU", "of its CPU time", "hardly waited"}, "switches");
  expect_none(texts_of(without(file, {"event process 0"})), {"of 0ns)", "0% of its CPU time"}, "processes");
}

TEST(LostRecords, WhatWasMissedMakesCountsLowerBoundsAndIsSaidEverywhere) {
  const auto texts = texts_of(recording_of_all_kinds());
  for (const std::string name : {"latency", "pauses", "summary", "report"})
    EXPECT_NE(texts.at(name).find("at least 40"), std::string::npos) << name << ": " << texts.at(name);
  for (const std::string name : {"latency", "pauses", "stats", "spans", "stalls", "tasks"})
    EXPECT_NE(texts.at(name).find("missing: 5 rings"), std::string::npos) << name << ": " << texts.at(name);
}

std::string written_with(std::string_view file, std::string_view events) {
  StringOutput output;
  FxtSink sink(output, {.max_held_ns = 0});
  FilterSink filter(sink, EventFilter::parse(events).value());
  read_recording(file, filter, [](const RunSummary&, const Registry&) {});
  return output.text();
}

TEST(LostRecords, WhatEventsLeftOutIsUnknown) {
  struct Kind {
    std::string_view word;
    std::vector<std::pair<std::string_view, std::string_view>> unknown;  ///< members of a report
    std::vector<std::string_view> sentences;
  };
  const std::vector<Kind> kinds{
      {"phase",
       {{"latency", "/all"},
        {"latency", "/processes"},
        {"pauses", "/counts/pauses"},
        {"pauses", "/pauses"},
        {"pauses", "/groups"},
        {"stats", "/total/gc_ns"},
        {"stats", "/total/gc_share"},
        {"stats", "/total/gc_cpu_ns"},
        {"stats", "/total/collections/minor"},
        {"stats", "/total/explicit/full_major"},
        {"stats", "/processes/0/domains/0/gc_ns"},
        {"stats", "/processes/0/cycles/have_stopped"},
        {"latency", "/mmu"},
        {"pauses", "/mmu"},
        {"pauses", "/counts/unfinished"},
        {"stats", "/mmu"},
        {"top", "/processes/0/pauses"},
        {"top", "/processes/0/gc_share"},
        {"diff", "/programs/0/a/longest_pause_ns"}},
       {"no pauses", " GC pauses of", "no garbage collection", "0.00%", "No GC pause", "0.0% of the time", "no GC",
        "MMU: ", "MMU of"}},
      {"counter",
       {{"stats", "/total/words/minor"}, {"stats", "/total/triggers/force_minor_memprof"}, {"allocs", "/minor_bytes"}},
       {" 0 B", "allocated 0"}},
      {"user",
       {{"spans", "/spans"}, {"tasks", "/programs"}, {"stats", "/total/user_events"}},
       {"no span is", "no task"}},
      {"switch",
       {{"stalls", "/programs"}, {"stats", "/total/cpu_ns"}, {"top", "/processes/0/cpu_share"}},
       {"no thread has", "no CPU", "on CPU"}},
      {"sample",
       {{"profile", "/samples"}, {"allocs", "/samples"}, {"allocs", "/weight"}},
       {"was seen to run", "no stack"}},
  };
  const std::string file = recording_of_all_kinds();
  for (const Kind& kind : kinds) {
    std::string others;
    for (const KindWord& word : kind_words())
      if (word.word != kind.word) others += (others.empty() ? "" : ",") + std::string(word.word);
    // Also when it was written again.
    const std::string filtered = written_with(written_with(file, others), others);
    const Reports reports = reports_of(filtered);
    for (const auto& [name, report] : reports) {
      if (name != "dump") {
        EXPECT_EQ(head_of(name, report)["not_recorded"], nlohmann::json{kind.word}) << name;
      }
    }
    for (const auto& [name, member] : kind.unknown) {
      const nlohmann::json::json_pointer at{std::string(member)};
      EXPECT_TRUE(reports.at(std::string(name)).contains(at)) << name << member;
      EXPECT_EQ(reports.at(std::string(name)).value(at, nlohmann::json(0)), nlohmann::json()) << name << member;
    }
    const auto texts = texts_of(filtered);
    expect_none(texts, kind.sentences, kind.word);
    expect_none(texts, {">all of "}, kind.word);
    const std::string_view report = kind.unknown.front().first;
    EXPECT_NE(texts.at(std::string(report)).find(others), std::string::npos) << texts.at(std::string(report));
  }
}

TEST(LostRecords, OnlyARecordingOfARingFileIsOneOfAWholeRing) {
  World world;
  for (const bool whole_ring : {false, true}) {
    Recording recording;
    recording.header(make_header());
    recording.summary({.whole_ring = whole_ring}, world.registry);
    struct : Sink {
      void header(const RunHeader&) override {}
      void consume(const Batch&, const Registry&) override {}
      void flush() override {}
      void summary(const RunSummary& summary, const Registry&) override { is_whole_ring = summary.whole_ring; }
      bool is_whole_ring = false;
    } end;
    read_recording(recording.recorded(), end, [](const RunSummary&, const Registry&) {});
    EXPECT_EQ(end.is_whole_ring, whole_ring);
  }
}

TEST(LostRecords, OfKindsThatAreThereInPartItIsNotSaidThatTheyWereNotRecorded) {
  const std::string file = recording_of_all_kinds();
  const auto texts = texts_of(written_with(file, "minor,process,switch"));
  for (const auto& [name, text] : texts) EXPECT_EQ(text.find("GC phases were not"), std::string::npos) << name << text;
}

/// Without line breaks and the indents after them.
std::string unfolded(std::string_view text) {
  std::string line;
  for (const char c : text)
    if (c != '\n' && !(c == ' ' && line.ends_with(' ')))
      line += c;
    else if (!line.ends_with(' '))
      line += ' ';
  return line;
}

TEST(LostRecords, PhasesInOnesThatWereLeftOutAreNoPauses) {
  const std::string file = recording_of_all_kinds();
  const std::string some = written_with(file, "minor*,process,switch");
  const Reports reports = reports_of(some);
  for (const std::string_view member : {"/counts/pauses", "/pauses", "/groups", "/mmu"})
    EXPECT_EQ(reports.at("pauses").at(nlohmann::json::json_pointer(std::string(member))), nullptr) << member;
  EXPECT_EQ(reports.at("latency")["all"], nullptr);
  EXPECT_THAT(reports.at("pauses")["not_recorded_phases"], ::testing::Contains("stw_leader"));
  const auto texts = texts_of(some);
  expect_none(texts, {" GC pauses of", "of 40 pauses", "40 pauses of"}, "outermost phases");
  for (const std::string name : {"pauses", "latency", "stats", "summary", "report"})
    EXPECT_THAT(unfolded(texts.at(name)),
                ::testing::HasSubstr("(--events minor*,process,switch; without major, stw_leader and 10 more)"))
        << name;

  std::string outermost = "minor*,process,switch";
  for (const std::string_view phase : outermost_phases()) outermost += "," + std::string(phase);
  EXPECT_EQ(reports_of(written_with(file, outermost)).at("pauses")["counts"]["pauses"], 40) << "all can be told";
  EXPECT_EQ(reports_of(some).at("stats")["total"]["gc_ns"], nullptr);
}

TEST(LostRecords, APhaseThatWasRecordedIsMeasuredAlsoWithoutOthers) {
  const std::string some = written_with(recording_of_all_kinds(), "minor*,process,switch");
  StringOutput no_output;
  for (const auto& [phase, count] : {std::pair<std::string, nlohmann::json>{"minor", 40}, {"stw_leader", nullptr}}) {
    Latency latency({.phase = phase}, no_output);
    read_recording(some, latency, [&](const RunSummary&, const Registry& registry) {
      const auto report = nlohmann::json::parse(latency.report_json(registry));
      EXPECT_EQ(report["all"].is_null() ? nlohmann::json() : report["all"]["count"], count) << phase;
    });
  }
}

/// The members that have 0, false, an empty text or an empty object.
void add_nothings(const nlohmann::json& value, const std::string& name, std::set<std::string>& found) {
  for (const auto& [key, member] : value.items()) {
    const std::string inner = value.is_array() ? name : name + "/" + key;
    if (member.is_structured()) {
      add_nothings(member, inner, found);
    } else if (member == 0 || member == false || member == "") {
      found.insert(inner);
    }
  }
}

TEST(LostRecords, HowMuchAGapOfProbesLosesIsUnknown) {
  const std::string file = recording_of_all_kinds(EventsAre::probed);
  for (const auto& [name, report] : reports_of(file)) {
    std::set<std::string> nothings;
    add_nothings(report, name, nothings);
    // Of the others there were none.
    std::erase_if(nothings, [](const std::string& member) {
      return !member.ends_with("lost_words") || member.contains("/other");
    });
    EXPECT_THAT(nothings, ::testing::IsEmpty());
  }
  expect_none(texts_of(file), {"Nothing was lost", ">all of ", ">nothing<", ",ring,0,words"}, "probes for a time");
}

TEST(LostRecords, OfAProgramWithItsEventsOffNothingIsZero) {
  const std::string file = recording_of_all_kinds(EventsAre::off);
  const Reports reports = reports_of(file);
  std::set<std::string> nothings;
  for (const auto& [name, report] : reports)
    if (name != "dump") add_nothings(report, name, nothings);
  // What is known all the same: of the run, of its options, of the kernel.
  for (const std::string_view known : {"/truncated",
                                       "/schema",
                                       "/min_ns",
                                       "/ended",
                                       "/scheduler_dropped",
                                       "/switches_dropped",
                                       "/ignored_events",
                                       "/rings_missed",
                                       "/unprobed",
                                       "/words_before",
                                       "/self/",
                                       "/not_followed",
                                       "/other_processes",
                                       "/dropped",
                                       "/samples_dropped",
                                       "/processes_left_out",
                                       "/sample_interval_ns",
                                       "/tid",
                                       "/incomplete",
                                       "/cut",
                                       "/unknown_process",
                                       "/without_room",
                                       "/ungrouped",
                                       "all_switches_seen",
                                       "scheduler_contradictions",
                                       "/begin_ns",
                                       "/runnable_share",
                                       "/stall_count",
                                       "/unknown_turns",
                                       "stalls/unknown_ns",
                                       "/other_domains/wall_ns"})
    std::erase_if(nothings, [&](const std::string& name) { return name.contains(known); });
  EXPECT_THAT(nothings, ::testing::IsEmpty());
  for (const auto& [name, member] : std::vector<std::pair<std::string, std::string>>{{"latency", "/all"},
                                                                                     {"pauses", "/pauses"},
                                                                                     {"stats", "/total/gc_ns"},
                                                                                     {"spans", "/spans"},
                                                                                     {"tasks", "/programs"},
                                                                                     {"top", "/processes/0/domains"}})
    EXPECT_EQ(reports.at(name).at(nlohmann::json::json_pointer(member)), nullptr) << name << member;
  const auto texts = texts_of(file);
  expect_none(texts,
              {"no pauses", "No pauses", "0 GC pauses", "no garbage", "It does well", "Nothing was lost", "all of 0",
               " 0 B", "     0ns", ">none<", "no GC", "no task was", "no span is", ",lower_bound,0"},
              "events");
  for (const std::string name : {"latency", "pauses", "stats", "spans", "tasks", "summary", "report", "top"})
    EXPECT_NE(texts.at(name).find("--enable"), std::string::npos) << name << ": " << texts.at(name);
  EXPECT_NE(texts.at("report").find("Worth a look: Events are off"), std::string::npos) << texts.at("report");
}

/// The families of metrics that have series of this recording, of "server".
std::set<std::string> families_of(std::string_view file) {
  MetricsSink metrics({});
  MetricCollector collector;
  read_recording(file, metrics, [&](const RunSummary&, const Registry&) { metrics.visit(collector); });
  std::set<std::string> families;
  for (const auto& [name, labels] : collector.keys)
    if (labels.contains("group")) families.insert(name);
  return families;
}

TEST(LostRecords, MetricsHaveNoSeriesOfWhatIsUnknown) {
  using ::testing::Contains;
  const std::string file = recording_of_all_kinds();
  const std::vector<std::string> of_events{
      "ocaml_domains", "ocaml_gc_pause_duration", "ocaml_gc_minor_collections", "ocaml_gc_minor_allocated",
      "ocaml_gc_time", "ocaml_ring_lost_words"},
      of_scheduler{"ocaml_thread_cpu", "ocaml_sched_delay"};
  const std::string of_both = "ocaml_gc_cpu";
  for (const auto& [families, has_events, has_scheduler] :
       {std::tuple{families_of(file), true, true},
        std::tuple{families_of(without(file, {"switch", "wakeup"})), true, false},
        std::tuple{families_of(recording_of_all_kinds(EventsAre::off)), false, true}}) {
    EXPECT_THAT(families, Contains("ocaml_processes"));
    for (const std::string& name : of_events) EXPECT_EQ(families.contains(name), has_events) << name;
    for (const std::string& name : of_scheduler) EXPECT_EQ(families.contains(name), has_scheduler) << name;
    EXPECT_EQ(families.contains(of_both), has_events && has_scheduler);
  }
}

}  // namespace
}  // namespace rtev::test
