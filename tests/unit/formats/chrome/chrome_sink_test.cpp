// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <array>
#include <sstream>

#include "unit/formats/chrome/chrome_fixture.hpp"

namespace rtev::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::SizeIs;

const ChromeTrace::Row main_row{chrome_pid, chrome_pid};

TEST_F(Chrome, AnEmptyTraceIsAnArrayOfHeaderAndSummary) {
  const ChromeTrace trace = finish_well(77);
  EXPECT_THAT(trace.events, SizeIs(2));
  EXPECT_EQ(
      trace.header,
      json::parse(R"({"version":"0.1.0","host":"box","kernel":"6.18.0","machine":"x86_64","command_line":["rtev-bpf"],
      "clock":"monotonic","ts_origin":0,"start":5000000,"start_realtime":0})"));
  EXPECT_EQ(trace.summary["end"], 77);
  EXPECT_EQ(trace.summary["drops"], json::parse(R"({"switch":3})"));
}

TEST_F(Chrome, OneEventALine) {
  add(ring().add("10 >minor 20 <minor"));
  finish();
  std::istringstream stream{output_.text()};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  EXPECT_EQ(lines.front(), "[");
  EXPECT_EQ(lines.back(), "]");
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
    const bool is_last = i + 2 == lines.size();
    EXPECT_EQ(lines[i].back(), is_last ? '}' : ',');
    if (!is_last) lines[i].pop_back();
    EXPECT_TRUE(json::accept(lines[i])) << lines[i];
  }
}

TEST_F(Chrome, SpansLieOnTheThreadOfTheirDomain) {
  change(5, 0, idle(), thread(4243, 3, ThreadRole::mutator));
  add(
      ring().add("1000000010 >minor@3 1000000020 >minor_local_roots@3 1000000030 <minor_local_roots@3 "
                 "1000000041 <minor@3 1000000041 [1@3 1000000050 ]1@3"));
  const ChromeTrace trace = finish_well(2'000'000'000);
  EXPECT_THAT(texts(trace.spans.at({chrome_pid, 4243})),
              ElementsAre("minor gc 1000000010-1000000041", " minor_local_roots gc 1000000020-1000000030",
                          "request user 1000000041-1000000050"));
  EXPECT_EQ(trace.process_names.at(chrome_pid), "server");
  EXPECT_EQ(trace.row_names.at({chrome_pid, 4243}), "domain 3");
}

TEST_F(Chrome, DomainsComeInTheirOrderEachWithItsBackupAndOthersLast) {
  const std::array threads{thread(chrome_pid, 0, ThreadRole::mutator),
                           thread(4250, 0, ThreadRole::backup),
                           thread(4251, 0, ThreadRole::tick),
                           thread(4249, 1, ThreadRole::mutator),
                           thread(4248, 1, ThreadRole::backup),
                           thread(4247, 10, ThreadRole::mutator),
                           thread(4246)};
  for (std::uint32_t cpu = 0; cpu < threads.size(); ++cpu) change(10 + cpu, cpu, idle(), threads[cpu]);
  add(ring().add_record(100, EventKind::process, ProcessRecord{world_.process, 0, 0}));
  const ChromeTrace trace = finish_well();
  for (std::size_t i = 1; i < threads.size(); ++i) {
    EXPECT_LT(trace.row_order.at({chrome_pid, threads[i - 1].tid}), trace.row_order.at({chrome_pid, threads[i].tid}))
        << i;
  }
  EXPECT_LT(trace.process_order.at(chrome_pid), trace.process_order.at(cpus_pid));
  EXPECT_LT(trace.process_order.at(cpus_pid), 0);
}

TEST_F(Chrome, TimesAreExactForAsLongAsAHostRuns) {
  // Uptimes beyond what a double of microseconds holds to the ns.
  for (const std::uint64_t uptime : {std::uint64_t{0}, std::uint64_t{1} << 50, std::uint64_t{1} << 62}) {
    StringOutput output;
    ChromeSink sink{output};
    sink.header({.version = "1", .host = "", .kernel = "", .command_line = {}, .start_ns = uptime});
    Events events = ring();
    for (std::uint64_t i = 0; i < 2000; ++i) events.add(uptime + 1 + i * 999'999'937, EventKind::user_unit, 1);
    sink.consume(events.batch(), world_.registry);
    sink.summary({}, world_.registry);
    const ChromeTrace trace = read_chrome_trace(output.text());
    EXPECT_TRUE(trace.problems.empty()) << trace.problems.front();
    const std::uint64_t origin = trace.header["ts_origin"];
    EXPECT_EQ(origin, uptime == 0 ? 0 : uptime - 86'400'000'000'000);
    const auto& instants = trace.instants.at(main_row);
    ASSERT_THAT(instants, SizeIs(2000));
    for (std::uint64_t i = 0; i < instants.size(); ++i)
      ASSERT_EQ(origin + instants[i].time, uptime + 1 + i * 999'999'937);
  }
}

TEST_F(Chrome, WhatRingsRememberFromBeforeTheStartHasItsTime) {
  constexpr std::uint64_t start = std::uint64_t{100} * 86'400'000'000'000;
  StringOutput output;
  ChromeSink sink{output};
  sink.header({.version = "1", .host = "", .kernel = "", .command_line = {}, .start_ns = start});
  sink.consume(ring().add(17, EventKind::user_unit, 1).add(start - 3, EventKind::user_unit, 1).batch(),
               world_.registry);
  sink.summary({}, world_.registry);
  const ChromeTrace trace = read_chrome_trace(output.text());
  const auto& instants = trace.instants.at(main_row);
  EXPECT_EQ(instants[0].time, 0U);  // older than a day
  EXPECT_EQ(trace.header["ts_origin"].get<std::uint64_t>() + instants[1].time, start - 3);
}

TEST_F(Chrome, CountersOfADomainByUnit) {
  add(ring()
          .add(10, EventKind::counter, counter_minor_allocated, UINT64_MAX, 2)
          .add(20, EventKind::counter, counter_minor_allocated, 7, 2)
          .add(20, EventKind::counter, counter_minor_allocated, 8, 0)
          .add(30, EventKind::counter, 999, 9, 2)
          .late());
  const ChromeTrace trace = finish_well();
  const auto& values = trace.counters.at({chrome_pid, "minor_allocated domain 2 bytes"});
  ASSERT_THAT(values, SizeIs(2));
  EXPECT_EQ(values[0].value, UINT64_MAX);
  EXPECT_EQ(values[1].time, 20U);
  EXPECT_THAT(trace.counters.at({chrome_pid, "minor_allocated domain 0 bytes"}), SizeIs(1));
  EXPECT_THAT(trace.counters.at({chrome_pid, "#999 domain 2 value"}), SizeIs(1));
}

TEST_F(Chrome, UserIntsAreInstantsAndGraphs) {
  add(ring().add(10, EventKind::user_int, 1, static_cast<std::uint64_t>(INT64_MIN)));
  const ChromeTrace trace = finish_well();
  EXPECT_THAT(texts(trace.instants.at(main_row)), ElementsAre(R"(request 10 t {"value":-9223372036854775808})"));
  EXPECT_EQ(trace.counters.at({chrome_pid, "request domain 0 value"}).at(0).value, INT64_MIN);
}

TEST_F(Chrome, InstantsOfEveryKind) {
  std::array<std::uint64_t, alloc_bucket_count> buckets{};
  buckets[19] = 5;
  add(ring()
          .add(1, EventKind::user_unit, 1)
          .add_bytes(2, EventKind::user_custom, std::string_view{"\x00\xff\x1bz", 4}, 2)
          .add_record(3, EventKind::alloc, buckets)
          .add(4, Lifecycle::fork_parent, 4300)
          .add(5, EventKind::user_unit, 8000)
          .late()
          .add_bytes(6, EventKind::user_custom, "\x05" + std::string(7, '\0') + std::string(8, '\xff'), 2));
  EXPECT_THAT(texts(finish_well().instants.at(main_row)),
              ElementsAre("request 1 t", R"(query 2 t {"bytes":"00ff1b7a"})",
                          R"(alloc 3 t {"buckets":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,5]})",
                          R"(fork_parent 4 t {"value":4300})", R"(#8000 5 t {"late":true})",
                          R"(query 6 t {"bytes":"0500000000000000ffffffffffffffff","integers":"5 -1"})"));
}

TEST_F(Chrome, ArrowsFromTheLeaderToThoseThatTakePart) {
  add(ring()
          .add(1, EventKind::counter, counter_minor_allocated, 1, 0)
          .add(2, EventKind::counter, counter_minor_allocated, 1, 1)
          .add(3, EventKind::counter, counter_minor_allocated, 1, 2)
          .add("10 >stw_leader 11 >stw_handler@2 12 <stw_handler@2 20 <stw_leader"));
  const ChromeTrace trace = finish_well();
  ASSERT_THAT(trace.arrows, SizeIs(1));  // the other domain took no part
  EXPECT_EQ(trace.arrows[0].from, main_row);
  EXPECT_EQ(trace.arrows[0].to, trace.row("domain 2"));
  EXPECT_EQ(trace.arrows[0].from_span, "stw_leader");
  EXPECT_EQ(trace.arrows[0].to_span, "stw_handler");
}

TEST_F(Chrome, LossIsAMarkAndEndsWhatWasOpen) {
  add(ring()
          .add(10, EventKind::begin, phase_major)
          .add_record(90, EventKind::lost, Loss{.words = 12, .from_ns = 40, .to_ns = 90})
          .add(95, EventKind::end, phase_minor));
  const ChromeTrace trace = finish_well();
  EXPECT_THAT(texts(trace.spans.at(main_row)),
              ElementsAre(R"(major gc 10-40 {"end":"lost"})", R"(minor gc 89-95 {"begin":"began before"})"));
  EXPECT_THAT(texts(trace.instants.at(main_row)),
              ElementsAre(R"(lost 90 p {"domain":0,"from":0.04,"reason":"overwritten","to":0.09,"words":12})"));
}

TEST_F(Chrome, DroppedSchedulerEventsAreAMarkOfAllRows) {
  add(Events{0}.add_record(40, EventKind::lost, Loss{.words = 12, .from_ns = 40, .to_ns = 90},
                           static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream));
  EXPECT_THAT(texts(finish_well().instants.at({cpus_pid, cpus_pid})),
              ElementsAre(R"(scheduler events dropped 40 g {"from":0.04,"records":12,"to":0.09})"));
}

TEST_F(Chrome, WhatIsOpenIsClosedAtTheEnd) {
  add(ring().add("10 >major 20 [1"));
  EXPECT_THAT(
      texts(finish_well(500).spans.at(main_row)),
      ElementsAre(R"(major gc 10-500 {"end":"recording ended"})", R"( request user 20-500 {"end":"recording ended"})"));
}

TEST_F(Chrome, ProcessesTellWhatTheyAreAndHowTheyEnded) {
  const auto event = [&](std::uint64_t time, ProcessAction action, std::int64_t detail = 0) {
    add(ring().add_record(time, EventKind::process, ProcessRecord{world_.process, 12, detail},
                          static_cast<std::uint16_t>(action)));
  };
  event(1, ProcessAction::fork);
  event(2, ProcessAction::ring, 128);
  event(3, ProcessAction::exit, 9);
  event(4, ProcessAction::exit, 2 << 8);
  event(5, ProcessAction::exit, exit_by_exec);
  event(6, ProcessAction::exit, exit_unseen);
  EXPECT_THAT(texts(finish_well().instants.at(main_row)),
              ElementsAre(R"(fork 1 p {"exe":"/usr/bin/server","family":"5.3+","ns_pid":7,"parent":12,)"
                          R"("runtime":"ocaml","version":"5.3"})",
                          R"(ring 2 p {"max_domains":128,"path":"/run/4242.events"})", R"(exit 3 p {"signal":9})",
                          R"(exit 4 p {"code":2})", R"(exit 5 p {"exec":true})", "exit 6 p"));
}

TEST_F(Chrome, BrokenRecordsAreMarks) {
  add(ring().add_bytes(5, EventKind::lost, "short"));
  add(Events{0}.add_bytes(6, EventKind::sched_switch, "short"));
  const ChromeTrace trace = finish_well();
  EXPECT_THAT(trace.instants.at({cpus_pid, cpus_pid}), SizeIs(2));
}

TEST_F(Chrome, SummaryAddsUpWhatAllProcessesLost) {
  world_.registry.process(world_.process).words = {.written = 100, .delivered = 70, .lost = 30};
  ProcessInfo other = World::default_info();
  other.words = {.written = 10, .delivered = 9, .corrupt = 1};
  world_.registry.add_process(other);
  const ChromeTrace trace = finish_well();
  EXPECT_EQ(trace.summary["processes"], 2);
  EXPECT_EQ(trace.summary["words"],
            json::parse(R"({"written":110,"delivered":79,"lost":30,"before_attach":0,"corrupt":1,
      "unread":0})"));
}

TEST_F(Chrome, HostileStringsStayInsideTheirStrings) {
  for (const std::string& text : hostile_strings()) {
    StringOutput output;
    ChromeSink sink{output};
    sink.header({.version = text, .host = text, .kernel = text, .command_line = {text, text}});
    ProcessInfo& info = world_.registry.process(world_.process);
    info.name = info.comm = info.exe = info.version = info.ring_path = info.runtime = text;
    world_.user_names = {{1, text}};
    SchedSwitch change{};
    change.prev = make_thread(1, 1, "x" + text, true);
    change.next = make_thread(1, 2, "x" + text, true);
    const auto events = ring()
                            .add(1, EventKind::user_unit, 1)
                            .add(2, EventKind::user_int, 1)
                            .add(2, EventKind::user_begin, 1)
                            .add_bytes(3, EventKind::user_custom, text, 1)
                            .add_record(4, EventKind::process, ProcessRecord{world_.process, 0, 0},
                                        static_cast<std::uint16_t>(ProcessAction::exec))
                            .add_record(5, EventKind::process, ProcessRecord{world_.process, 0, 0},
                                        static_cast<std::uint16_t>(ProcessAction::ring))
                            .add_record(6, EventKind::sched_switch, change)
                            .add_record(7, EventKind::wakeup, Wakeup{0, change.prev, change.next});
    sink.consume(events.batch(), world_.registry);
    sink.summary({.end_ns = 10, .drops = {{text, 1}}}, world_.registry);
    const ChromeTrace trace = read_chrome_trace(output.text());
    EXPECT_TRUE(trace.problems.empty()) << trace.problems.front();
    for (const char c : output.text())
      EXPECT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F)) << static_cast<int>(c);
  }
}

TEST_F(Chrome, NamelessThingsHaveANameAllTheSame) {
  world_.registry.process(world_.process).name = world_.registry.process(world_.process).comm = "";
  change(1, 0, idle(), make_thread(50, 50, "", false));
  add(ring().add(2, EventKind::user_unit, 1).add(3, EventKind::user_unit, 9));
  const ChromeTrace trace = finish();
  for (const auto& [row, name] : trace.row_names) EXPECT_FALSE(name.empty());
  for (const auto& [row, spans] : trace.spans) {
    for (const auto& span : spans) EXPECT_FALSE(span.name.empty());
  }
}

TEST_F(Chrome, ReadableHoweverItIsCut) {
  change(5, 0, idle(), thread(chrome_pid, 0, ThreadRole::mutator));
  add(ring()
          .add(10, EventKind::begin, phase_major)
          .add(15, EventKind::counter, counter_minor_allocated, 1)
          .add("20 [1 25 <minor")
          .add_record(30, EventKind::lost, Loss{1, 28, 30}));
  change(40, 0, thread(chrome_pid, 0, ThreadRole::mutator), stranger());
  finish();
  const std::string text = output_.text();
  std::size_t lines = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', end + 1), ++lines) {
    const ChromeTrace trace = read_cut_chrome_trace(text.substr(0, end + 1));
    EXPECT_TRUE(trace.problems.empty()) << text.substr(0, end + 1) << trace.problems.front();
  }
  EXPECT_GT(lines, 20U);
}

}  // namespace
}  // namespace rtev::test
