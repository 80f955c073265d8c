// SPDX-License-Identifier: MIT
#include "formats/jsonl/jsonl_sink.hpp"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "formats/output/output.hpp"
#include "unit/stream/world.hpp"

namespace rtev {
namespace {

using nlohmann::json;
using test::Events;

class Jsonl : public testing::Test {
 protected:
  std::vector<json> lines_of(const Events& events) {
    StringOutput output;
    JsonlSink sink{output};
    sink.consume(events.batch(), world_.registry);
    sink.flush();
    return parse(output.text());
  }
  json line_of(const Events& events) {
    const auto lines = lines_of(events);
    EXPECT_EQ(lines.size(), 1U);
    return lines.empty() ? json{} : lines.front();
  }
  static std::vector<json> parse(const std::string& text) {
    std::vector<json> lines;
    std::istringstream stream{text};
    for (std::string line; std::getline(stream, line);) {
      EXPECT_TRUE(json::accept(line)) << line;
      lines.push_back(json::parse(line, nullptr, false));
    }
    return lines;
  }
  Events events() const { return Events{world_.slot}; }

  test::World world_;
};

TEST_F(Jsonl, Header) {
  StringOutput output;
  JsonlSink sink{output};
  sink.header({.version = "0.1.0",
               .host = "box",
               .kernel = "6.18.0",
               .machine = "x86_64",
               .command_line = {"rtev-bpf", "-p", "a\"b\xFF"},
               .start_ns = 17,
               .start_realtime_ns = 1'700'000'000'000'000'000});
  sink.flush();
  EXPECT_EQ(parse(output.text()).at(0), json::parse(R"({"type":"header","schema":2,"version":"0.1.0","host":"box",
      "kernel":"6.18.0","machine":"x86_64","command_line":["rtev-bpf","-p","a\"b\ufffd"],"clock":"monotonic","start":17,
      "start_realtime":1700000000000000000})"));
}

TEST_F(Jsonl, TimesOfDayAreUtc) {
  StringOutput output;
  JsonlSink sink{output};
  constexpr std::uint64_t start = 5'000'000'000, second = 1'000'000'000;
  sink.header({.start_ns = start, .start_realtime_ns = 1'764'165'802'411'123'456});
  sink.consume(events()
                   .add(start, EventKind::begin, test::phase_minor)
                   .add(start + second - 411'123'457, EventKind::end, test::phase_minor)
                   .add(start + second - 411'123'456, EventKind::end, test::phase_minor)
                   .add(start - 1, EventKind::end, test::phase_minor)
                   .add(UINT64_MAX, EventKind::end, test::phase_minor)
                   .batch(),
               world_.registry);
  sink.flush();
  const auto lines = parse(output.text());
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[1]["time"], "2025-11-26T14:03:22.411123456Z");
  EXPECT_EQ(lines[2]["time"], "2025-11-26T14:03:22.999999999Z");
  EXPECT_EQ(lines[3]["time"], "2025-11-26T14:03:23.000000000Z");
  EXPECT_EQ(lines[4]["time"], "2025-11-26T14:03:22.411123455Z");
  EXPECT_EQ(lines[5]["time"].get<std::string>().size(), UtcTime::length);
}

TEST_F(Jsonl, BeginAndEnd) {
  const auto lines = lines_of(events()
                                  .add(UINT64_MAX, EventKind::begin, test::phase_minor, 0, 3)
                                  .add(6, EventKind::end, test::phase_minor, 0, 3));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], json::parse(R"({"ts":18446744073709551615,"type":"begin","pid":4242,"comm":"server","domain":3,
      "name":"minor"})"));
  EXPECT_EQ(lines[1], json::parse(R"({"ts":6,"type":"end","pid":4242,"comm":"server","domain":3,"name":"minor"})"));
}

TEST_F(Jsonl, UnknownIdsAreNumbers) {
  EXPECT_EQ(line_of(events().add(5, EventKind::begin, test::unknown_phase)),
            json::parse(R"({"ts":5,"type":"begin","pid":4242,"comm":"server","domain":0,"name":null,"id":4000})"));
  EXPECT_EQ(line_of(events().add(5, EventKind::lifecycle, 77, 1))["id"], 77);
  const json counter = line_of(events().add(5, EventKind::counter, 999, 1));
  EXPECT_EQ(counter["id"], 999);
  EXPECT_FALSE(counter.contains("unit"));
}

TEST_F(Jsonl, Counter) {
  EXPECT_EQ(line_of(events().add(5, EventKind::counter, test::counter_minor_allocated, UINT64_MAX)),
            json::parse(R"({"ts":5,"type":"counter","pid":4242,"comm":"server","domain":0,"name":"minor_allocated",
                "value":18446744073709551615,"unit":"bytes"})"));
}

TEST_F(Jsonl, Alloc) {
  std::array<std::uint64_t, alloc_bucket_count> buckets{};
  for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] = i * i;
  buckets[19] = UINT64_MAX;
  const json line = line_of(events().add_record(5, EventKind::alloc, buckets));
  EXPECT_EQ(line["type"], "alloc");
  EXPECT_EQ(line["buckets"].get<std::vector<std::uint64_t>>(),
            std::vector<std::uint64_t>(buckets.begin(), buckets.end()));
  EXPECT_FALSE(line.contains("name"));
}

TEST_F(Jsonl, Lifecycle) {
  EXPECT_EQ(line_of(events().add(5, Lifecycle::fork_parent, 4243)),
            json::parse(R"({"ts":5,"type":"lifecycle","pid":4242,"comm":"server","domain":0,"name":"fork_parent",
                "value":4243})"));
  EXPECT_EQ(line_of(events().add(5, Lifecycle::ring_stop, static_cast<std::uint64_t>(-1)))["value"], -1);
}

TEST_F(Jsonl, UserEventsOfEveryKind) {
  world_.user_names = {{3, "request"}};
  const auto lines = lines_of(events()
                                  .add(1, EventKind::user_unit, 3)
                                  .add(2, EventKind::user_int, 3, static_cast<std::uint64_t>(INT64_MIN))
                                  .add(3, EventKind::user_begin, 3)
                                  .add(4, EventKind::user_end, 3)
                                  .add_bytes(5, EventKind::user_custom, std::string_view{"\x00\xff\x1bz", 4}, 3)
                                  .add_bytes(6, EventKind::user_custom, "", 8191));
  ASSERT_EQ(lines.size(), 6U);
  const std::array kinds = {"unit", "int", "begin", "end", "custom", "custom"};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["type"], "user");
    EXPECT_EQ(lines[i]["kind"], kinds[i]);
    EXPECT_EQ(lines[i].contains("value"), i == 1);
    EXPECT_EQ(lines[i].contains("bytes"), i >= 4);
    if (i < 5) {
      EXPECT_EQ(lines[i]["name"], "request");
      EXPECT_EQ(lines[i]["id"], 3);
    }
  }
  EXPECT_EQ(lines[1]["value"].get<std::int64_t>(), INT64_MIN);
  EXPECT_EQ(lines[4]["bytes"], "00ff1b7a");
  EXPECT_EQ(lines[5]["bytes"], "");
  EXPECT_TRUE(lines[5]["name"].is_null());
  EXPECT_EQ(lines[5]["id"], 8191);
}

TEST_F(Jsonl, PayloadsOfKnownLibrariesAreFields) {
  world_.user_names = {{3, "eio.name"}, {4, "message"}};
  const auto lines =
      lines_of(events()
                   .add_bytes(1, EventKind::user_custom, std::string("\x05\0\0\0\0\0\0\0a\x1b\xff", 11), 3)
                   .add_bytes(2, EventKind::user_custom, "short", 3)
                   .add_bytes(3, EventKind::user_custom, "hello", 4)
                   .add_bytes(4, EventKind::user_custom, "\x01", 4));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0]["fields"], json::parse(R"({"id":5,"name":"a\u001b\ufffd"})"));
  EXPECT_EQ(lines[0]["bytes"], "0500000000000000611bff");
  EXPECT_FALSE(lines[0].contains("text"));
  EXPECT_FALSE(lines[1].contains("fields"));
  EXPECT_EQ(lines[1]["text"], "short");
  EXPECT_EQ(lines[2]["text"], "hello");
  EXPECT_FALSE(lines[3].contains("text"));
}

TEST_F(Jsonl, PayloadsOf8And16BytesAreIntegers) {
  const std::string zeros(7, '\0');
  const auto lines =
      lines_of(events()
                   .add_bytes(1, EventKind::user_custom, "\x05" + zeros, 3)
                   .add_bytes(2, EventKind::user_custom, std::string(7, '\xff') + "\x7f" + std::string(8, '\xff'), 3)
                   .add_bytes(3, EventKind::user_custom, zeros, 3)
                   .add_bytes(4, EventKind::user_custom, "8 bytes!", 3));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0]["integers"], json::parse(R"(["5"])"));
  EXPECT_EQ(lines[0]["bytes"], "0500000000000000");
  EXPECT_EQ(lines[1]["integers"], json::parse(R"(["9223372036854775807","-1"])"));
  EXPECT_FALSE(lines[2].contains("integers"));
  EXPECT_FALSE(lines[3].contains("integers"));
  EXPECT_EQ(lines[3]["text"], "8 bytes!");
}

TEST_F(Jsonl, Lost) {
  EXPECT_EQ(line_of(events().add_record(9, EventKind::lost, Loss{.words = 12, .from_ns = 4, .to_ns = 9}, 0, 2)),
            json::parse(R"({"ts":9,"type":"lost","pid":4242,"comm":"server","domain":2,"words":12,"from":4,"to":9,
                "reason":"overwritten"})"));
  EXPECT_TRUE(line_of(events().add_record(9, EventKind::lost, Loss{12, 0, 9}))["from"].is_null());
  const json gap =
      line_of(events().add_record(9, EventKind::lost, Loss{0, 4, 9}, static_cast<std::uint16_t>(LossReason::unprobed)));
  EXPECT_TRUE(gap.at("words").is_null());
}

TEST_F(Jsonl, DroppedSchedulerEvents) {
  EXPECT_EQ(
      line_of(test::Events(0).add_record(4, EventKind::lost, Loss{.words = 12, .from_ns = 4, .to_ns = 9},
                                         static_cast<std::uint16_t>(LossReason::dropped), first_sched_stream + 1)),
      json::parse(R"({"ts":4,"type":"lost","buffer":1,"records":12,"from":4,"to":9,"reason":"dropped"})"));
}

TEST_F(Jsonl, ProcessFoundExecAndFork) {
  const auto line = [&](ProcessAction action, std::int32_t peer) {
    return line_of(events().add_record(5, EventKind::process, ProcessRecord{world_.process, peer, 0},
                                       static_cast<std::uint16_t>(action)));
  };
  json expected = json::parse(R"({"ts":5,"type":"process","action":"found","pid":4242,"comm":"server",
      "exe":"/usr/bin/server","runtime":"ocaml","version":"5.3","family":"5.3+","family_source":"symbols","ns_pid":7,"start_ticks":99,
      "exec_generation":1})");
  EXPECT_EQ(line(ProcessAction::found, 0), expected);
  expected["action"] = "exec";
  EXPECT_EQ(line(ProcessAction::exec, 0), expected);
  expected["action"] = "fork";
  expected["parent"] = 12;
  EXPECT_EQ(line(ProcessAction::fork, 12), expected);
  world_.registry.process(world_.process).version.clear();
  world_.registry.process(world_.process).family = Family::before_5_3;
  EXPECT_TRUE(line(ProcessAction::found, 0)["version"].is_null());
  EXPECT_EQ(line(ProcessAction::found, 0)["family"], "5.0-5.2");
  world_.registry.process(world_.process).runtime = "librtev";
  world_.registry.process(world_.process).family_source = FamilySource::producer;
  EXPECT_EQ(line(ProcessAction::found, 0)["runtime"], "librtev");
  EXPECT_EQ(line(ProcessAction::found, 0)["family_source"], "producer");
}

TEST_F(Jsonl, ProcessRingAndItsStates) {
  const auto line = [&](ProcessAction action, std::int64_t detail) {
    return line_of(events().add_record(5, EventKind::process, ProcessRecord{world_.process, 0, detail},
                                       static_cast<std::uint16_t>(action)));
  };
  EXPECT_EQ(line(ProcessAction::ring, 128), json::parse(R"({"ts":5,"type":"process","action":"ring","pid":4242,
      "comm":"server","path":"/run/4242.events","runtime":"ocaml","version":"5.3","family":"5.3+",
      "family_source":"symbols","max_domains":128})"));
  for (const auto action : {ProcessAction::pause, ProcessAction::resume, ProcessAction::stop}) {
    EXPECT_EQ(line(action, 0)["action"], to_string(action));
  }
  const auto enable = line(ProcessAction::enable, static_cast<std::int64_t>(EnableResult::no_symbols));
  EXPECT_EQ(enable["action"], "enable");
  EXPECT_EQ(enable["result"], "no symbols");
}

TEST_F(Jsonl, ProcessExitHasAStatus) {
  const auto status = [&](std::int64_t wait_status) {
    return line_of(events().add_record(5, EventKind::process, ProcessRecord{world_.process, 0, wait_status},
                                       static_cast<std::uint16_t>(ProcessAction::exit)))["status"];
  };
  EXPECT_EQ(status(0), json::parse(R"({"code":0})"));
  EXPECT_EQ(status(2 << 8), json::parse(R"({"code":2})"));
  EXPECT_EQ(status(9), json::parse(R"({"signal":9})"));
  EXPECT_EQ(status(0x80 | 11), json::parse(R"({"signal":11})"));  // core dumped
  EXPECT_TRUE(status(-1).is_null());
}

TEST_F(Jsonl, Switch) {
  SchedSwitch change{.cpu = 1, .state = LeftState::preempted, .prev = {}, .next = {}};
  change.prev = test::make_thread(4242, 4250, "server", true);
  change.prev.domain = 2;
  change.prev.role = ThreadRole::mutator;
  change.prev.holds_lock = true;
  change.next = test::make_thread(99, 99, "python3", false);
  change.next.priority = -1;
  EXPECT_EQ(line_of(Events{0}.add_record(5, EventKind::sched_switch, change)),
            json::parse(R"({"ts":5,"type":"switch","cpu":1,
                "prev":{"pid":4242,"tid":4250,"comm":"server","prio":120,"state":"preempted","domain":2,
                        "role":"mutator","lock":true,"tracked":true},
                "next":{"pid":99,"tid":99,"comm":"python3","prio":-1}})"));
}

TEST_F(Jsonl, Wakeup) {
  Wakeup wakeup{.cpu = 3, .woken = test::make_thread(4242, 4250, "server", true), .by = {}};
  wakeup.woken.domain = 0;
  wakeup.by = test::make_thread(1, 2, "bash", false);
  EXPECT_EQ(
      line_of(Events{0}.add_record(5, EventKind::wakeup, wakeup)),
      json::parse(R"({"ts":5,"type":"wakeup","pid":4242,"tid":4250,"comm":"server","cpu":3,"domain":0,"tracked":true,
                "by":{"pid":1,"tid":2,"comm":"bash"}})"));
}

TEST_F(Jsonl, Sample) {
  StackTable& stacks = world_.registry.stacks();
  const StackIndex outer = stacks.add_stack(
      0, stacks.add_frame({.kind = FrameKind::c, .address = 64, .function = "main", .object = "/bin/server"}));
  const StackIndex stack = stacks.add_stack(
      outer, stacks.add_frame(
                 {.kind = FrameKind::ocaml, .inlined = true, .line = 42, .function = "Web.handle", .file = "web.ml"}));
  Sample sample{.process = world_.process,
                .pid = 4242,
                .tid = 4250,
                .domain = 1,
                .cpu = 3,
                .stack = stack,
                .weight = 1'000'000,
                .role = ThreadRole::mutator,
                .holds_lock = true,
                .zero = {}};
  EXPECT_EQ(line_of(Events{0}.add_record(5, EventKind::sample, sample)),
            json::parse(R"({"ts":5,"type":"sample","kind":"on-cpu","pid":4242,"comm":"server","tid":4250,"domain":1,
                "role":"mutator","lock":true,"cpu":3,"ns":1000000,
                "stack":[{"kind":"ocaml","function":"Web.handle","file":"web.ml","line":42,"inlined":true},
                         {"kind":"c","function":"main","object":"/bin/server","address":64}]})"));
  sample.stack = 0;
  const auto allocation = static_cast<std::uint16_t>(SampleKind::allocation);
  EXPECT_EQ(line_of(Events{0}.add_record(5, EventKind::sample, sample, allocation))["words"], 1'000'000);
  sample.weight = 0;
  EXPECT_FALSE(line_of(Events{0}.add_record(5, EventKind::sample, sample, allocation)).contains("words"));
}

TEST_F(Jsonl, LateEventsOfEveryKindAreFlagged) {
  for (std::size_t kind = 0; kind < event_kind_count; ++kind) {
    const auto flagged = events().add(5, static_cast<EventKind>(kind), 0, 0).late();
    EXPECT_EQ(line_of(flagged)["late"], true) << kind;
    EXPECT_FALSE(line_of(events().add(5, static_cast<EventKind>(kind), 0, 0)).contains("late")) << kind;
  }
}

TEST_F(Jsonl, EventsOfARemovedRingHaveNoProcess) {
  const json line = line_of(Events{999}.add(5, EventKind::begin, test::phase_minor, 0, 1));
  EXPECT_EQ(line, json::parse(R"({"ts":5,"type":"begin","domain":1,"name":null,"id":11})"));
}

TEST_F(Jsonl, EscapesHostileStrings) {
  for (const std::string& text : test::hostile_strings()) {
    ProcessInfo& info = world_.registry.process(world_.process);
    info.comm = info.exe = info.version = info.ring_path = text;
    world_.user_names = {{3, text}};
    SchedSwitch change{};
    change.prev = test::make_thread(1, 1, text, true);
    change.next = change.prev;
    StringOutput output;
    JsonlSink sink{output};
    sink.header({.version = "1", .host = text, .kernel = text, .command_line = {text}});
    const auto batch = events()
                           .add(1, EventKind::user_unit, 3)
                           .add_bytes(2, EventKind::user_custom, text, 3)
                           .add_record(3, EventKind::process, ProcessRecord{world_.process, 0, 0},
                                       static_cast<std::uint16_t>(ProcessAction::exec))
                           .add_record(4, EventKind::process, ProcessRecord{world_.process, 0, 0},
                                       static_cast<std::uint16_t>(ProcessAction::ring))
                           .add_record(5, EventKind::sched_switch, change);
    sink.consume(batch.batch(), world_.registry);
    sink.summary({.drops = {{text, 1}}}, world_.registry);
    EXPECT_EQ(parse(output.text()).size(), 7U);
    for (const char c : output.text()) {
      EXPECT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F));
    }
    EXPECT_EQ(output.text().find("\xC2\x9B"), std::string::npos);
  }
}

TEST_F(Jsonl, Summary) {
  ProcessInfo& info = world_.registry.process(world_.process);
  info.words = {
      .written = 100, .delivered = 60, .lost = 20, .before_attach = 10, .corrupt = 7, .unread = 3, .events = 25};
  info.domains = 2;
  info.missed = {.file_system = 1, .gone = 2};
  info.left_alone = {.times = 4, .ns = 500};
  StringOutput output;
  JsonlSink sink{output};
  sink.header({.version = "1", .host = "h", .kernel = "k", .command_line = {}, .start_ns = 1000});
  RunSummary summary{.end_ns = 6000, .late = 3, .forced = 1, .own_cpu_ns = 55, .own_max_rss_bytes = 4096};
  summary.events[static_cast<std::size_t>(EventKind::begin)] = 25;
  summary.drops = {{"switch", 0}, {"exec", 2}};
  summary.announcers = {{.pid = 7, .comm = "flood", .dropped = 6}};
  sink.summary(summary, world_.registry);
  const auto lines = parse(output.text());  // flushed by itself
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], json::parse(R"({"type":"summary","end":6000,"duration_ns":5000,
      "events":{"begin":25,"end":0,"counter":0,"alloc":0,"lifecycle":0,"user_unit":0,"user_int":0,"user_begin":0,
                "user_end":0,"user_custom":0,"lost":0,"process":0,"switch":0,"wakeup":0,"sample":0,"usage":0},
      "late":3,"forced":1,"rings_missed":0,"drops":{"switch":0,"exec":2},
      "announcers":[{"pid":7,"comm":"flood","dropped":6}],
      "processes":[{"pid":4242,"comm":"server","exe":"/usr/bin/server","runtime":"ocaml","version":"5.3","family_source":"symbols",
                    "exec_generation":1,"ring":"active","domains":2,"max_rss_bytes":null,
                    "words":{"written":100,"delivered":60,"lost":20,"before_attach":10,"corrupt":7,"unread":3},
                    "events":25,"rings_missed":3,"left_alone":{"times":4,"ns":500}}],
      "others":{"processes":0,
                "words":{"written":0,"delivered":0,"lost":0,"before_attach":0,"corrupt":0,"unread":0},"events":0},
      "self":{"cpu_ns":55,"max_rss_bytes":4096}})"));
}

}  // namespace
}  // namespace rtev
