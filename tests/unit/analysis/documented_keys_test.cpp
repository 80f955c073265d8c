// SPDX-License-Identifier: MIT
// docs/json.md names every key, and every value of an enumeration, that the stream and the reports have.
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "analysis/pauses/blame.hpp"
#include "analysis/spans/spans_sink.hpp"
#include "analysis/stalls/stalls_sink.hpp"
#include "analysis/tasks/tasks_sink.hpp"
#include "formats/jsonl/jsonl_sink.hpp"
#include "top/interval_sink.hpp"
#include "top/interval_text.hpp"
#include "unit/analysis/diff/diff_fixture.hpp"
#include "unit/analysis/latency/latency_fixture.hpp"
#include "unit/analysis/pauses/pauses_fixture.hpp"
#include "unit/analysis/profile/profile_fixture.hpp"
#include "unit/analysis/stats/stats_fixture.hpp"
#include "unit/analysis/tasks/eio_events.hpp"
#include "unit/top/a_server.hpp"

namespace rtev::test {
namespace {

/// The part of docs/json.md under a heading such as "## Report: stats", up to the next heading of its level or above.
std::string section_of(const std::string& heading) {
  std::ifstream file(RTEV_JSON_DOCUMENT);
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = document.find("\n" + heading + "\n");
  if (begin == std::string::npos) {
    ADD_FAILURE() << "no heading '" << heading << "' in " << RTEV_JSON_DOCUMENT;
    return {};
  }
  for (std::size_t end = begin + 1; (end = document.find("\n#", end)) != std::string::npos; ++end) {
    const std::size_t level = document.find(' ', end) - end - 1;
    if (level <= heading.find(' ')) return document.substr(begin, end - begin);
  }
  return document.substr(begin);
}

/// Words in backticks or quotes: where Markdown names a key or a value.
void add_named_words(std::string_view text, std::set<std::string>& words) {
  std::string word;
  for (const char c : text) {
    if (c == '_' || c == '.' || c == '-' || c == '+' || std::isalnum(static_cast<unsigned char>(c))) {
      word += c;
    } else {
      if (c == '`' || c == '"') words.insert(word);
      word.clear();
    }
  }
}

std::set<std::string> words_of(const std::string& heading) {
  std::set<std::string> words;
  add_named_words(section_of(heading), words);
  return words;
}

void add_keys(const nlohmann::json& value, std::set<std::string>& keys) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      keys.insert(key);
      add_keys(member, keys);
    }
  } else if (value.is_array()) {
    for (const auto& element : value) add_keys(element, keys);
  }
}

/// Percentiles are their own names.
bool is_number(std::string_view key) {
  return key.find_first_not_of("0123456789.") == std::string_view::npos;
}

void expect_documented(const std::string& command, const nlohmann::json& report) {
  EXPECT_EQ(report["type"], command);
  EXPECT_EQ(report["schema"], 1);
  EXPECT_TRUE(report["version"].is_string());
  const nlohmann::json& run = report.contains("start_ns") ? report : report["a"];
  EXPECT_TRUE(run["start_ns"].is_number_unsigned());
  EXPECT_TRUE(run["end_ns"].is_number_unsigned());
  std::set<std::string> documented = words_of("## Report: " + command), keys;
  documented.merge(words_of("## Members of all reports"));
  add_keys(report, keys);
  for (const std::string& key : keys)
    EXPECT_TRUE(is_number(key) || documented.contains(key)) << command << " has \"" << key << '"';
}

void expect_words(const std::set<std::string>& documented, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words)
    EXPECT_TRUE(documented.contains(std::string(word))) << "no \"" << word << '"';
}

/// to_string() of the first `count` values of an enumeration.
template <typename Enum>
void expect_values(const std::set<std::string>& documented, int count) {
  for (int value = 0; value < count; ++value) expect_words(documented, {to_string(static_cast<Enum>(value))});
}

/// One event of every kind, with all that each can carry.
Events every_kind_of_event(World& world) {
  Thread thread = make_thread(1, 2, "server", true);
  thread.domain = 0;
  thread.role = ThreadRole::mutator;
  thread.holds_lock = true;
  Events events{world.slot};
  for (const EventKind kind : {EventKind::begin, EventKind::end, EventKind::lifecycle, EventKind::user_unit,
                               EventKind::user_int, EventKind::user_begin, EventKind::user_end})
    events.add(1, kind, 0);
  events.add(2, EventKind::counter, counter_minor_allocated, 7)
      .add_record(3, EventKind::alloc, std::array<std::uint64_t, alloc_bucket_count>{})
      .add_bytes(4, EventKind::user_custom, "bytes")
      .add_record(5, EventKind::lost, Loss{.words = 1, .from_ns = 2, .to_ns = 3});
  for (int action = 0; action <= static_cast<int>(ProcessAction::probe); ++action)
    events.add_record(6, EventKind::process, ProcessRecord{world.process, 0, 0}, static_cast<std::uint16_t>(action));
  events
      .add_record(
          7, EventKind::sched_switch,
          SchedSwitch{.cpu = 0, .state = LeftState::sleeping, .syscall = Syscall::read, .prev = thread, .next = thread})
      .add_record(8, EventKind::wakeup, Wakeup{.cpu = 0, .woken = thread, .by = thread});
  return events.late();
}

TEST(DocumentedStream, EveryKeyOfEveryEvent) {
  World world;
  world.registry.process(world.process).max_rss_bytes = 4096;
  StringOutput output;
  JsonlSink sink{output};
  sink.header({.version = "1", .command_line = {"rtev-bpf"}});
  sink.consume(every_kind_of_event(world).batch(), world.registry);
  sink.consume(Events{0}
                   .add_record(9, EventKind::lost, Loss{.words = 1, .from_ns = 2, .to_ns = 3},
                               static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream)
                   .batch(),
               world.registry);
  sink.flush();

  const std::set<std::string> documented = words_of("## The stream");
  std::istringstream lines{output.text()};
  std::set<std::string> keys, types;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    types.insert(event["type"]);
    add_keys(event, keys);
  }
  EXPECT_EQ(types.size(), 11U);  // the header is one
  keys.merge(types);
  for (const std::string& word : keys) EXPECT_TRUE(documented.contains(word)) << "the stream has \"" << word << '"';
}

TEST(DocumentedStream, EveryValueOfAnEnumeration) {
  const std::set<std::string> stream = words_of("## The stream");
  expect_values<LossReason>(stream, static_cast<int>(LossReason::unprobed) + 1);
  expect_values<ProcessAction>(stream, static_cast<int>(ProcessAction::probe) + 1);
  expect_values<LeftState>(stream, static_cast<int>(LeftState::other) + 1);
  expect_values<Syscall>(stream, static_cast<int>(last_syscall) + 1);
  expect_values<RingState>(stream, static_cast<int>(RingState::ended) + 1);
  expect_values<FamilySource>(stream, static_cast<int>(FamilySource::forced) + 1);
  expect_values<Cause>(words_of("## Report: pauses"), static_cast<int>(Cause::unknown) + 1);
  expect_values<Why>(words_of("## Report: pauses"), static_cast<int>(Why::unknown) + 1);
  expect_values<Unfinished>(words_of("## Members of all reports"), unfinished_count);
}

TEST(DocumentedStream, EveryKeyOfTheSummary) {
  World world;
  StringOutput output;
  JsonlSink sink{output};
  RunSummary summary;
  summary.complete = false;
  summary.announcers.emplace_back();
  world.registry.process(world.process).missed.gone = 1;
  world.registry.process(world.process).left_alone.times = 1;
  sink.summary(summary, world.registry);
  const auto line = nlohmann::json::parse(output.text());

  const std::set<std::string> documented = words_of("### Summary");
  std::set<std::string> keys;
  for (const auto& [key, member] : line.items()) {
    keys.insert(key);
    // The members of these are kinds of events.
    if (key != "events" && key != "drops") add_keys(member, keys);
  }
  for (const std::string& key : keys) EXPECT_TRUE(documented.contains(key)) << "the summary has \"" << key << '"';
}

using DocumentedLatency = LatencyTest;

TEST_F(DocumentedLatency, EveryKey) {
  add(10, enters(a_thread(4242, 4242, 0)));
  pause(100, 10);
  latency->summary({.end_ns = start + 1000}, world.registry);
  expect_documented("latency", report());
}

TEST(DocumentedSpans, EveryKey) {
  test::World world;
  world.user_names = {{1, "request"}, {2, "other"}};
  Spans spans({.pattern = "request"});
  spans.header({.version = "1.2", .start_ns = 1});
  spans.consume(test::Events(world.slot).add("100 [1 150 ]1 160 [2 170 ]2").batch(), world.registry);
  expect_documented("spans", nlohmann::json::parse(spans.report_json()));
}

TEST(DocumentedStalls, EveryKey) {
  constexpr std::uint64_t ms = 1'000'000;
  const Thread main = a_thread(4242, 4242, 0);
  test::World world;
  world.user_names = {{1, "request"}, {2, "eio.fiber"}};
  Stalls stalls({});
  stalls.header({.version = "1.2", .start_ns = 1});
  test::Events events(0);
  events.add_record(1, EventKind::process, ProcessRecord{world.process, 0, 0},
                    static_cast<std::uint16_t>(ProcessAction::found));
  events.add_record(1, EventKind::sched_switch, leaves(competitor(), LeftState::sleeping, 9));
  for (std::uint64_t now = 1; now < 20 * ms; now += ms) {
    events.add_record(now, EventKind::sched_switch, blocks(main, Syscall::poll))
        .add_record(now + 1, EventKind::sched_switch, enters(main));
  }
  stalls.consume(events.batch(), world.registry);
  stalls.consume(test::Events(world.slot).add("20000000 [1").add(20 * ms, EventKind::user_int, 2, 7).batch(),
                 world.registry);
  stalls.consume(test::Events(0)
                     .add_record(30 * ms, EventKind::sched_switch, leaves(main, LeftState::preempted, 0, competitor()))
                     .add_record(90 * ms, EventKind::sched_switch, enters(main, 0, competitor()))
                     .batch(),
                 world.registry);
  stalls.summary({.end_ns = 100 * ms}, world.registry);
  const auto report = nlohmann::json::parse(stalls.report_json());
  const auto& stall = report["programs"][0]["stalls"][0];
  EXPECT_TRUE(stall.contains("span") && stall.contains("behind") && stall.contains("task"));
  expect_documented("stalls", report);
}

TEST(DocumentedTasks, EveryKey) {
  constexpr std::uint64_t ms = 1'000'000;
  World world;
  Tasks tasks({});
  tasks.header({.version = "1.2", .start_ns = 1});
  TaskScript script{world};
  script.at(ms).create_context(9, 3).name(9, "main").create_fiber(1, 9).fiber(1).create_fiber(2, 9).fiber(2).name(
      2, "worker");
  script.at(90 * ms).error(9, "Exit").exit_fiber(2).fiber(1).suspend("sleep");
  tasks.consume(script.batch(), world.registry);
  tasks.summary({.end_ns = 100 * ms}, world.registry);
  const auto report = nlohmann::json::parse(tasks.report_json());
  const auto& program = report["programs"].at(0);
  ASSERT_FALSE(program["longest"].at(0)["waits"].empty());
  ASSERT_FALSE(program["failures"].empty());
  ASSERT_FALSE(program["operations"].empty());
  expect_documented("tasks", report);
  expect_values<TaskState>(words_of("## Report: tasks"), task_state_count);
  expect_values<TaskEnd>(words_of("## Report: tasks"), static_cast<int>(TaskEnd::cancelled) + 1);
}

using DocumentedPauses = PausesTest;

TEST_F(DocumentedPauses, EveryKey) {
  switches(100, enters(main_thread(), 0));
  switches(100, enters(other_thread(), 1));
  fiber(200, 7);
  fiber(200, 8, 1);
  span(1'000, 7'100, phase_leader);
  span(1'010, 6'010, phase_start_barrier);
  preempted(2'000, 3'000);
  switches(3'500, leaves(main_thread(), LeftState::sleeping, 0));
  span(5'000, 7'000, phase_handler, 1);
  span(5'010, 6'000, phase_start_barrier, 1);
  wakes_up(5'020, wakes(main_thread(), other_thread()));
  switches(5'030, enters(main_thread(), 0));
  loses(6'900, 8'000, 2);
  begin(9'000, phase_major);
  loses(9'500, 9'900, 0);
  play();
  const auto report = nlohmann::json::parse(pauses->report_json());
  const auto& pause = report["pauses"].at(0);
  ASSERT_FALSE(pause["waits_for_cpu"].empty());
  ASSERT_FALSE(pause["wakers"].empty());
  ASSERT_FALSE(pause["phases"].empty());
  ASSERT_EQ(pause["sections"].at(0)["domains"].size(), 2U);
  ASSERT_FALSE(report["unfinished"].empty());
  expect_documented("pauses", report);
}

using DocumentedStats = StatsTest;

TEST_F(DocumentedStats, EveryKey) {
  process(10, ProcessAction::exec);
  for (const std::string_view counter : heap_counters()) count(20, counter, 1);
  for (const std::string_view counter : trigger_counters()) count(20, counter, 1);
  feed(Events(world.slot).add(30, EventKind::user_unit, 1));
  lose(40, 50, 3);
  const auto report = nlohmann::json::parse(stats_json(stats.report(world.registry), true));
  const auto& figures = report["processes"].at(0);
  ASSERT_EQ(figures["domains"].size(), 1U);
  ASSERT_EQ(figures["heap"].size(), heap_counters().size());
  ASSERT_FALSE(figures["user_event_counts"].empty());
  expect_documented("stats", report);
}

using DocumentedProfile = ProfileTest;

TEST_F(DocumentedProfile, EveryKey) {
  world.user_names = {{1, "request"}, {2, "query"}};
  make({.by = ProfileBy::domain, .in = SpanCondition{.pattern = "request"}});
  play("10 [2 20 [1 30 >major");
  samples(100, {"[kernel] entry", "main", "App.run:1", "caml_call_gc"}, 2);
  StackTable& stacks = world.registry.stacks();
  const FrameIndex nameless = stacks.add_frame({.kind = FrameKind::c, .address = 0x4012});
  sample(110, a_sample(stacks.add_stack(0, nameless), -1));
  const auto found = nlohmann::json::parse(profile_json(report()));
  ASSERT_FALSE(found["groups"].empty());
  ASSERT_FALSE(found["in"]["other_names"].empty());
  ASSERT_EQ(found["gc"]["samples"], 2);
  expect_documented("profile", found);
  make({.by = ProfileBy::line});
  samples(100, {"main", "App.run:1"}, 1);
  expect_documented("profile", nlohmann::json::parse(profile_json(report())));
  const std::set<std::string> words = words_of("## Report: profile");
  expect_values<ProfileBy>(words, static_cast<int>(ProfileBy::user_span) + 1);
  expect_values<WeightUnit>(words, static_cast<int>(WeightUnit::samples) + 1);
  expect_values<FrameKind>(words, static_cast<int>(FrameKind::bytecode) + 1);
  expect_values<SampleKind>(words, static_cast<int>(last_sample_kind) + 1);
}

using DocumentedAllocs = ProfileTest;

TEST_F(DocumentedAllocs, EveryKey) {
  make({.kind = SampleKind::allocation});
  sample(100, a_sample(stack({"main", "App.run:1", "App.make:2", "caml_call_gc"})), SampleKind::allocation);
  const auto found = nlohmann::json::parse(allocs_json(report()));
  ASSERT_TRUE(found["sites"][0].contains("caller"));
  expect_documented("allocs", found);
}

using DocumentedDiff = DiffTest;

TEST_F(DocumentedDiff, EveryKeyAndFigure) {
  const ServerRun a{.allocated = (256 << 10) * 8 * 10 / 11, .full_major_every = 20, .wait_us = 100, .function = "f"};
  ServerRun b = a;
  b.allocated /= 8;
  const auto report = nlohmann::json::parse(diff_json(diff(a, b)));
  const auto& program = report["programs"].at(0);
  ASSERT_FALSE(program["settings"].empty());
  expect_documented("diff", report);
  std::set<std::string> words = words_of("## Report: diff");
  for (const auto& setting : program["settings"]) EXPECT_TRUE(words.contains(setting["id"])) << setting;
  for (const auto& figure : program["figures"]) {
    const std::string id = figure["id"];
    EXPECT_TRUE(words.contains(id.substr(0, id.find(':')))) << id;
  }
  expect_values<DiffRole>(words, static_cast<int>(DiffRole::detail) + 1);
  expect_values<DiffUnit>(words, static_cast<int>(DiffUnit::number) + 1);
  expect_values<DiffVerdict>(words, static_cast<int>(DiffVerdict::too_few) + 1);
}

TEST(DocumentedReport, Top) {
  const AServer server;
  nlohmann::json report;
  top::IntervalSink sink({}, [&](const top::Interval& interval) {
    report = nlohmann::json::parse(top::interval_json(interval, sink.run(), nullptr));
  });
  server.begin(sink);
  server.serve(sink, 1);
  sink.advance(AServer::begin_ns + AServer::second, server.world->registry);
  ASSERT_EQ(report["processes"].size(), 1u);
  expect_documented("top", report);
}

}  // namespace
}  // namespace rtev::test
