// SPDX-License-Identifier: MIT
// What `summary` says of a program, with and without scheduler events.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/summary/summary_sink.hpp"
#include "base/utf8.hpp"
#include "formats/output/output.hpp"
#include "support/files.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

class SummaryTest : public testing::Test {
 protected:
  static constexpr std::uint64_t second = 1'000'000'000, ms = 1'000'000, begin_ns = 5 * second;

  /// Ten seconds of a server whose heap grows. Every 100 ms it collects, in one out of ten times for long: then it has
  /// no CPU for most of the pause. It marks its requests.
  void run(Sink& sink, bool has_scheduler_events) {
    world.user_names = {{1, "request"}};
    sink.header({.version = "1.2", .start_ns = begin_ns, .start_realtime_ns = 1'763'693'912 * second});
    const Thread main = a_thread(4242, 4242, 0);
    const auto feed = [&](const Events& events) { sink.consume(events.batch(), world.registry); };
    const auto switches = [&](std::uint64_t time, const SchedSwitch& change) {
      if (has_scheduler_events)
        feed(Events(0).add_record(time, EventKind::sched_switch, change, 0, first_sched_stream));
    };
    feed(Events(0).add_record(begin_ns, EventKind::process, ProcessRecord{world.process, 0, 0},
                              static_cast<std::uint16_t>(ProcessAction::exec)));
    feed(Events(world.slot).add(begin_ns, Lifecycle::ring_start, 4242));
    switches(begin_ns, enters(main));
    for (std::uint64_t i = 0; i < 100; ++i) {
      const std::uint64_t at = begin_ns + (i + 1) * 90 * ms;
      const std::uint64_t pause_ns = i % 10 == 0 ? 12 * ms : ms / 2;
      feed(Events(world.slot).add(at, EventKind::user_begin, 1).add(at + ms, EventKind::begin, phase_major));
      feed(Events(world.slot).add(at + ms, EventKind::begin, id_of("major_slice")));
      if (i % 10 == 0) {
        switches(at + 2 * ms, leaves(main, LeftState::preempted, 0, competitor()));
        switches(at + 11 * ms, enters(main, 0, competitor()));
      }
      feed(Events(world.slot)
               .add(at + ms + pause_ns, EventKind::end, id_of("major_slice"))
               .add(at + ms + pause_ns, EventKind::end, phase_major)
               .add(at + 2 * ms + pause_ns, EventKind::user_end, 1)
               .add(at + 20 * ms, EventKind::counter, counter("minor_allocated"), 100'000)
               .add(at + 20 * ms, EventKind::counter, counter("major_heap_words"), 1'000'000 + i * 50'000));
    }
    feed(Events(0).add_record(begin_ns + 10 * second, EventKind::process, ProcessRecord{world.process, 0, 0},
                              static_cast<std::uint16_t>(ProcessAction::exit)));
    sink.summary({.end_ns = begin_ns + 10 * second}, world.registry);
  }

  static std::uint16_t id_of(std::string_view phase) {
    return static_cast<std::uint16_t>(find_phase(Family::since_5_3, phase).value());
  }
  static std::uint16_t counter(std::string_view name) {
    return static_cast<std::uint16_t>(find_counter(Family::since_5_3, name).value());
  }
  static void expect_fits(const std::string& text) {
    EXPECT_LE(std::ranges::count(text, '\n'), 24) << text;
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
      EXPECT_LE(columns_of(text.substr(begin, text.find('\n', begin) - begin)), 100u) << text;
  }

  World world;
};

TEST_F(SummaryTest, AllReportsHaveTheSameUtilization) {
  Summary summary({});
  run(summary, true);
  std::istringstream lines(summary.report_json(world.registry));
  std::vector<nlohmann::json> found;
  for (std::string line; std::getline(lines, line);) found.push_back(nlohmann::json::parse(line).at("mmu"));
  ASSERT_THAT(found, testing::SizeIs(3));
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
  // Pauses of 12 ms, ten others of half a millisecond between them.
  const auto of = [&](std::uint64_t length_ns) {
    const auto window = std::ranges::find_if(found[0], [&](const auto& one) { return one["window_ns"] == length_ns; });
    return window != found[0].end() ? window->at("min").get<double>() : -1;
  };
  EXPECT_EQ(of(10 * ms), 0);
  EXPECT_DOUBLE_EQ(of(30 * ms), 0.6);
  EXPECT_DOUBLE_EQ(of(100 * ms), 0.875);
}

TEST_F(SummaryTest, Text) {
  Summary summary({.input = "server.fxt"});
  run(summary, true);
  const std::string text = summary.report_text(world.registry);
  expect_fits(text);
  EXPECT_EQ(text, golden("analysis/golden/summary.txt"));
}

TEST_F(SummaryTest, InFullIsTheThreeReportsInFull) {
  Stats stats({.full = true});
  StringOutput unused;
  Latency latency({.full = true}, unused);
  Pauses pauses({.full = true, .input = "server.fxt"});
  Summary summary({.input = "server.fxt", .full = true});
  for (Sink* const sink : std::vector<Sink*>{&stats, &latency, &pauses, &summary}) run(*sink, true);
  EXPECT_EQ(summary.report_text(world.registry), stats.report_text(world.registry) + "\n" +
                                                     latency.report_text(world.registry) + "\n" + pauses.report_text());
}

TEST_F(SummaryTest, ManyProcessesOfAProgramAreOneUnlessEachIsAskedFor) {
  std::vector<Events> runs;
  for (std::int32_t pid = 1; pid <= 6; ++pid) {
    ProcessInfo info = World::default_info();
    info.pid = pid;
    info.comm = "ocamlopt";
    info.exe = "/opt/ocamlopt";
    runs.emplace_back(world.add_ring(world.registry.add_process(info)))
        .add(begin_ns, Lifecycle::ring_start, pid)
        .add(begin_ns + ms, EventKind::begin, phase_major)
        .add(begin_ns + 2 * ms, EventKind::end, phase_major);
  }
  const auto texts = [&](bool full, bool by_process) {
    Summary summary({.by_process = by_process, .full = full});
    summary.header({.version = "1.2", .start_ns = begin_ns});
    for (const Events& events : runs) summary.consume(events.batch(), world.registry);
    summary.summary({.end_ns = begin_ns + second}, world.registry);
    return std::pair(summary.report_text(world.registry), summary.report_json(world.registry));
  };
  for (const bool full : {false, true}) {
    EXPECT_THAT(texts(full, false).first, testing::HasSubstr("6 processes of ocamlopt in"));
    EXPECT_THAT(texts(full, true).first, testing::Not(testing::HasSubstr("of ocamlopt in")));
    // JSON has all.
    const std::string json = texts(full, false).second;
    EXPECT_EQ(json, texts(full, true).second);
    EXPECT_THAT(json, testing::AllOf(testing::HasSubstr("\"pid\":6"), testing::HasSubstr("\"processes\":6")));
  }
  EXPECT_THAT(texts(false, false).first, testing::StartsWith("6 OCaml processes in 1.00s\nocamlopt, 6 processes: "));
}

TEST_F(SummaryTest, WithoutSchedulerEvents) {
  Summary summary({});
  run(summary, false);
  const std::string text = summary.report_text(world.registry);
  expect_fits(text);
  EXPECT_EQ(text, golden("analysis/golden/summary_rootless.txt"));
}

TEST_F(SummaryTest, TheReportsWithoutSchedulerEvents) {
  Stats stats;
  StringOutput unused;
  Latency latency({}, unused);
  Pauses pauses({});
  for (Sink* const sink : std::vector<Sink*>{&stats, &latency, &pauses}) run(*sink, false);
  EXPECT_EQ(stats.report_text(world.registry), golden("analysis/golden/stats_rootless.txt"));
  EXPECT_EQ(latency.report_text(world.registry), golden("analysis/golden/latency_rootless.txt"));
  EXPECT_EQ(pauses.report_text(), golden("analysis/golden/pauses_rootless.txt"));
}

TEST_F(SummaryTest, JsonIsThatOfTheThreeReports) {
  Summary summary({});
  run(summary, true);
  std::istringstream in{summary.report_json(world.registry)};
  std::vector<std::string> types;
  for (std::string line; std::getline(in, line);) types.push_back(nlohmann::json::parse(line)["type"]);
  EXPECT_THAT(types, testing::ElementsAre("stats", "latency", "pauses"));
}

}  // namespace
}  // namespace rtev::test
