// SPDX-License-Identifier: MIT
#include "formats/csv/csv_sink.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/escape.hpp"
#include "formats/output/output.hpp"
#include "support/csv_lines.hpp"
#include "unit/stream/world.hpp"

namespace rtev {
namespace {

using test::CsvRecord;
using test::Events;

constexpr std::uint64_t csv_start = 5'000'000'000, csv_start_realtime = 1'764'165'802'000'000'000;

class Csv : public testing::Test {
 protected:
  Events events() const { return Events{world_.slot}; }
  /// All rows of a run with these events.
  std::vector<CsvRecord> rows_of(const Events& events, const RunSummary& summary = {.end_ns = csv_start + 1000}) {
    StringOutput output;
    CsvSink sink{output, label_};
    sink.header({.version = "0.2.0", .host = host_, .start_ns = csv_start, .start_realtime_ns = csv_start_realtime});
    sink.consume(events.batch(), world_.registry);
    sink.summary(summary, world_.registry);
    text_ = output.text();
    const auto records = test::read_csv(text_);
    EXPECT_TRUE(records) << text_;
    return records.value_or(std::vector<CsvRecord>{});
  }
  std::vector<CsvRecord> rows_of(std::string_view kind, const Events& events) {
    auto rows = rows_of(events);
    std::erase_if(rows, [&](CsvRecord& row) { return row["kind"] != kind; });
    return rows;
  }
  CsvRecord row_of(std::string_view kind, const Events& events) {
    const auto rows = rows_of(kind, events);
    EXPECT_EQ(rows.size(), 1u) << text_;
    return rows.empty() ? CsvRecord{} : rows.front();
  }
  Events process(std::uint64_t time_ns, ProcessAction action, std::int64_t detail = 0) const {
    return Events{0}.add_record(time_ns, EventKind::process, ProcessRecord{world_.process, 0, detail},
                                static_cast<std::uint16_t>(action));
  }

  test::World world_;
  std::string host_ = "web-1", label_ = "2.1.0", text_;
};

/// The inverse of the escapes of a field.
std::string decoded(const std::string& field) {
  std::string bytes;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] != '\\') {
      bytes += field[i];
    } else if (field.substr(i, 2) == "\\\\") {
      bytes += field[i++];
    } else {
      bytes += static_cast<char>(std::stoi(field.substr(i + 2, 2), nullptr, 16));
      i += 3;
    }
  }
  return bytes;
}

TEST_F(Csv, APauseIsARowWithItsRunAndProcess) {
  world_.registry.process(world_.process).service = {.name = "shop", .version = "7"};
  EXPECT_EQ(row_of("pause", events().add("10 >major 20 >major_slice 50 <major_slice 100 <major", csv_start)),
            (CsvRecord{{"kind", "pause"},
                       {"host", "web-1"},
                       {"run", "1764165802000000000"},
                       {"label", "2.1.0"},
                       {"time_ns", "1764165802000000010"},
                       {"duration_ns", "90"},
                       {"pid", "4242"},
                       {"start_ticks", "99"},
                       {"comm", "server"},
                       {"exe", "/usr/bin/server"},
                       {"service_name", "shop"},
                       {"service_version", "7"},
                       {"ocaml", "5.3"},
                       {"domain", "0"},
                       {"name", "major"},
                       {"value", "60"},
                       {"unit", "ns"},
                       {"state", "done"},
                       {"on_cpu_ns", ""},
                       {"runnable_ns", ""},
                       {"blocked_ns", ""}}));
}

TEST_F(Csv, InnerPhasesAreRowsWithTheirOwnTime) {
  const auto rows = rows_of(
      "phase",
      events().add("10 >major 20 >major_slice 30 >major_mark 35 <major_mark 50 <major_slice 100 <major", csv_start));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("name"), "major_mark");
  EXPECT_EQ(rows[0].at("value"), "5");
  EXPECT_EQ(rows[1].at("name"), "major_slice");
  EXPECT_EQ(rows[1].at("duration_ns"), "30");
  EXPECT_EQ(rows[1].at("value"), "25");
}

TEST_F(Csv, WhatIsLostInAPauseEndsItUnfinished) {
  CsvRecord row = row_of("pause", events().add("10 >major 100 ?", csv_start));
  EXPECT_EQ(row["state"], "lost");
  for (const char* const unknown : {"duration_ns", "value", "on_cpu_ns", "runnable_ns", "blocked_ns"})
    EXPECT_EQ(row[unknown], "") << unknown;
  row = row_of("loss", events().add("10 >major 100 ?", csv_start));
  EXPECT_EQ(row["name"], "ring");
  EXPECT_EQ(row["value"], "100");
  EXPECT_EQ(row["unit"], "words");
  EXPECT_EQ(row["duration_ns"], "10");
  EXPECT_EQ(row["state"], "overwritten");
}

TEST_F(Csv, WhatIsUnknownOfALossIsEmpty) {
  const CsvRecord gap = row_of("loss", events().add_record(csv_start + 50, EventKind::lost,
                                                           Loss{.words = 0, .from_ns = 0, .to_ns = csv_start + 50},
                                                           static_cast<std::uint16_t>(LossReason::unprobed)));
  EXPECT_EQ(gap.at("value"), "") << "probes were off";
  EXPECT_EQ(gap.at("duration_ns"), "") << "since when is unknown";
}

TEST_F(Csv, WithoutSwitchesItIsUnknownWhetherThreadsWaited) {
  std::map<std::string, std::string> figures;
  for (const CsvRecord& row : rows_of("figure", process(csv_start, ProcessAction::found)))
    figures[row.at("name")] = row.at("value");
  EXPECT_EQ(figures.at("runnable_ns"), "");
}

TEST_F(Csv, WhatGoesOnAtTheEndLastedUntilThen) {
  const CsvRecord row = row_of("pause", events().add("10 >major", csv_start));
  EXPECT_EQ(row.at("state"), "ended");
  EXPECT_EQ(row.at("duration_ns"), "990");
}

TEST_F(Csv, ASpanHasItsTimeInPauses) {
  world_.user_names[1] = "request";
  const CsvRecord row = row_of("span", events().add("10 [1 20 >major 50 <major 60 >major 65 <major 100 ]1", csv_start));
  EXPECT_EQ(row.at("name"), "request");
  EXPECT_EQ(row.at("duration_ns"), "90");
  EXPECT_EQ(row.at("value"), "35");
  EXPECT_EQ(row.at("state"), "done");
  EXPECT_EQ(row_of("span", events().add("10 [1 50 ?", csv_start)).at("state"), "lost");
  EXPECT_EQ(row_of("span", events().add("10 [7", csv_start)).at("name"), "#7");
}

TEST_F(Csv, SpansOfLibrariesAreNoEvents) {
  world_.user_names = {{3, "trace.span.enter"}, {4, "trace.span.exit"}, {5, "log"}};
  const auto what = events()
                        .add_bytes(csv_start + 10, EventKind::user_custom, "parse", 3)
                        .add_bytes(csv_start + 20, EventKind::user_custom, "hello", 5)
                        .add_bytes(csv_start + 30, EventKind::user_custom, "parse", 4);
  EXPECT_EQ(row_of("span", what).at("name"), "parse");
  const CsvRecord event = row_of("event", what);
  EXPECT_EQ(event.at("name"), "log");
  EXPECT_EQ(event.at("value"), "5");
}

TEST_F(Csv, NumbersFitDatabases) {
  const CsvRecord row =
      row_of("counter", events().add(UINT64_MAX, EventKind::counter, test::counter_minor_allocated, UINT64_MAX));
  EXPECT_EQ(row.at("value"), "9223372036854775807");
  EXPECT_EQ(row.at("unit"), "bytes");
  EXPECT_EQ(row_of("value", events().add(csv_start, EventKind::user_int, 3, static_cast<std::uint64_t>(INT64_MIN)))
                .at("value"),
            "-9223372036854775808");
  label_.clear();
  StringOutput output;
  CsvSink sink{output, {}};
  sink.header({.start_ns = UINT64_MAX});
  sink.summary({.end_ns = UINT64_MAX}, world_.registry);
  EXPECT_THAT(output.text(), testing::HasSubstr("\nrun,,9223372036854775807,,9223372036854775807,0,"));
}

TEST_F(Csv, ProcessesHaveTheirEnd) {
  StringOutput output;
  CsvSink sink{output, {}};
  sink.header({.host = "h", .start_ns = csv_start});
  sink.consume(process(csv_start + 10, ProcessAction::exec).batch(), world_.registry);
  world_.registry.process(world_.process).max_rss_bytes = 4096;
  sink.consume(process(csv_start + 50, ProcessAction::exit, 9).batch(), world_.registry);
  sink.summary({.end_ns = csv_start + 60}, world_.registry);
  const auto records = test::read_csv(output.text());
  ASSERT_TRUE(records);
  ASSERT_EQ(std::ranges::count(*records, "process", [](const CsvRecord& row) { return row.at("kind"); }), 1);
  const CsvRecord row = records->front();
  EXPECT_EQ(row.at("name"), "exec");
  EXPECT_EQ(row.at("duration_ns"), "40");
  EXPECT_EQ(row.at("value"), "4096");
  EXPECT_EQ(row.at("state"), "signal 9");
  EXPECT_EQ(row_of("process", process(csv_start + 10, ProcessAction::found)).at("state"), "running");
}

TEST_F(Csv, FiguresAreThoseOfStats) {
  const Events what = events()
                          .add("10 >explicit_gc_minor 20 >minor 40 <minor 50 <explicit_gc_minor", csv_start)
                          .add(csv_start + 45, EventKind::counter, test::counter_minor_allocated, 800);
  Stats stats;
  stats.header({.start_ns = csv_start});
  stats.consume(what.batch(), world_.registry);
  stats.summary({.end_ns = csv_start + 1000}, world_.registry);
  const StatsFigures expected = stats.report(world_.registry).processes.at(0).figures;
  std::map<std::string, std::string> figures;
  for (const CsvRecord& row : rows_of("figure", what)) figures[row.at("name")] = row.at("value");
  EXPECT_EQ(figures["minor_words"], "100");
  EXPECT_EQ(figures["explicit_gc_minor"], "1");
  EXPECT_EQ(figures["gc_ns"], std::to_string(expected.gc_ns));
  EXPECT_EQ(figures["domain_ns"], std::to_string(expected.domain_ns));
  EXPECT_EQ(figures.at("major_words"), "") << "no slice said how many";
  EXPECT_EQ(figures.at("cpu_ns"), "");
  EXPECT_FALSE(figures.contains("major_cycles")) << "there was none";
  const CsvRecord domain = row_of("domain", what);
  EXPECT_EQ(domain.at("duration_ns"), figures["domain_ns"]);
  EXPECT_EQ(domain.at("value"), figures["gc_ns"]);
}

/// Also of those that reports would only sum up.
TEST_F(Csv, EachOfManyProcessesHasFigures) {
  constexpr int count = 3000;
  StringOutput output;
  CsvSink sink{output, {}};
  sink.header({.host = "h", .start_ns = csv_start});
  for (int i = 0; i < count; ++i) {
    ProcessInfo info = test::World::default_info();
    info.pid = 10'000 + i;
    const ProcessIndex index = world_.registry.add_process(info);
    const std::uint32_t slot = world_.add_ring(index);
    sink.consume(Events(slot).add("10 >major 20 <major", csv_start).batch(), world_.registry);
    sink.consume(Events(0)
                     .add_record(csv_start + 30, EventKind::process, ProcessRecord{index, 0, 0},
                                 static_cast<std::uint16_t>(ProcessAction::exit))
                     .batch(),
                 world_.registry);
    world_.registry.process(index).ended = true;
    world_.registry.remove_ring(slot);
    world_.registry.retire_process(index);
  }
  sink.summary({.end_ns = csv_start + 60}, world_.registry);
  const auto records = test::read_csv(output.text());
  ASSERT_TRUE(records);
  const auto has_gc = [](const CsvRecord& row) {
    return row.at("kind") == "figure" && row.at("name") == "gc_ns" && row.at("value") == "10";
  };
  EXPECT_EQ(std::ranges::count_if(*records, has_gc), count);
}

TEST_F(Csv, OnlyLongWaitsHaveARow) {
  const auto thread = [&](std::int32_t tid, bool tracked) { return test::make_thread(4242, tid, "server", tracked); };
  const Thread other = test::make_thread(9, 9, "hog", false);
  Events what = process(csv_start, ProcessAction::found);
  const auto change = [&](std::uint64_t after_ns, const Thread& prev, LeftState state, const Thread& next) {
    what.add_record(csv_start + after_ns, EventKind::sched_switch,
                    SchedSwitch{.cpu = 0, .state = state, .prev = prev, .next = next}, 0, first_sched_stream);
  };
  change(10, thread(4242, true), LeftState::preempted, other);
  change(2'000'010, other, LeftState::preempted, thread(4242, true));
  change(2'000'020, thread(4242, true), LeftState::preempted, other);
  change(2'000'030, other, LeftState::preempted, thread(4242, true));
  const CsvRecord row = row_of("wait", what);
  EXPECT_EQ(row.at("name"), "hog");
  EXPECT_EQ(row.at("duration_ns"), "2000000");
  EXPECT_EQ(row.at("runnable_ns"), "2000000");
  EXPECT_EQ(row.at("state"), "preempted");
  EXPECT_EQ(row.at("pid"), "4242");
  const auto is_waited = [](const CsvRecord& figure) { return figure.at("name") == "runnable_ns"; };
  const auto rows = rows_of("figure", what);
  const auto waited = std::ranges::find_if(rows, is_waited);
  ASSERT_NE(waited, rows.end());
  EXPECT_EQ(waited->at("value"), "2000010");
}

TEST_F(Csv, TheRunIsTheLastRow) {
  RunSummary summary{.end_ns = csv_start + 1000, .drops = {{"switch", 3}, {"wakeup", 0}}, .rings_missed = 2};
  auto rows = rows_of(events(), summary);
  EXPECT_EQ(rows.back()["kind"], "run");
  EXPECT_EQ(rows.back()["duration_ns"], "1000");
  EXPECT_EQ(rows.back()["state"], "done");
  std::map<std::string, std::string> figures;
  for (CsvRecord& row : rows)
    if (row["kind"] == "figure") figures[row["name"]] = row["value"];
  EXPECT_EQ(figures, (std::map<std::string, std::string>{
                         {"dropped_switch", "3"}, {"rings_missed", "2"}, {"tracer_cpu_ns", ""}}));
  summary.complete = false;
  EXPECT_EQ(rows_of(events(), summary).back()["state"], "truncated");
}

TEST_F(Csv, HostileTextsComeBackAndControlNothing) {
  std::vector<std::string> texts = test::hostile_strings();
  for (const char* formula : {"=1+1", "+1", "-1", "@sum", "\uFF1D1+1", "\uFF0B1", "\uFF0D1", "\uFF20sum",
                              "=cmd|' /C calc'!A0", "'quoted'", " spaces ", "a,b", "\\N", "\\x41"})
    texts.emplace_back(formula);
  for (const std::string& text : texts) {
    host_ = label_ = text;
    ProcessInfo& info = world_.registry.process(world_.process);
    info.comm = info.exe = info.version = info.service.name = info.service.version = text;
    world_.user_names[1] = text;
    const CsvRecord row = row_of("span", events().add("10 [1 20 ]1", csv_start));
    for (const char* column : {"host", "label", "comm", "exe", "service_name", "service_version", "ocaml", "name"}) {
      const std::string& field = row.at(column);
      EXPECT_EQ(decoded(field), text) << column;
      for (const char* begin : {"=", "+", "-", "@", "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"})
        EXPECT_FALSE(field.starts_with(begin)) << field;
    }
    for (std::string_view rest = text_; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1))
      EXPECT_EQ(printable_message(rest.substr(0, rest.find('\n'))), rest.substr(0, rest.find('\n')));
  }
}

}  // namespace
}  // namespace rtev
