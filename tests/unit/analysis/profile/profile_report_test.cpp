// SPDX-License-Identifier: MIT
// What profile and allocs print, as in golden/profile*.txt and golden/allocs.txt.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/files.hpp"
#include "unit/analysis/profile/profile_fixture.hpp"

namespace rtev::test {
namespace {

using testing::AllOf, testing::HasSubstr;

/// A server that spends its time in a C stub, in the GC and in parsing.
class ProfileReportTest : public ProfileTest {
 protected:
  void serve() {
    const std::vector<std::string> base{"_start",           "main",           "caml_main",       "caml_start_program",
                                        "Server.entry:140", "Server.loop:77", "Server.handle:42"};
    const auto on = [&](std::initializer_list<const char*> inner) {
      std::vector<std::string> frames = base;
      frames.insert(frames.end(), inner.begin(), inner.end());
      return frames;
    };
    samples(1000, on({"Upload.store:42", "Stdlib.Digest.string:68", "caml_md5_string", "caml_MD5Transform"}), 310);
    samples(2000, on({"Upload.store:42", "Stdlib.Digest.string:68", "caml_md5_string"}), 20);
    samples(3000, on({"Json.parse:12", "Json.value:31", "Json.list:50", "Json.value:33"}), 60);
    samples(4000, on({"Json.parse:12", "Json.value:31", "Json.string:61"}), 25);
    feed(Events(world.slot).add("4900 >minor"));
    samples(5000, on({"Json.parse:12", "Json.value:31", "caml_call_gc", "caml_empty_minor_heap"}), 40);
    feed(Events(world.slot).add("6000 <minor"));
    samples(7000, on({"Log.write:9", "caml_ml_flush", "[kernel] do_syscall_64", "[kernel] vfs_write"}), 18);
    for (int i = 0; i < 12; ++i) samples(8000, on({("Plugin" + std::to_string(i) + ".run:1").c_str()}), 2);
    samples(9000, {"[unknown]", "memcpy"}, 3);
  }
};

TEST_F(ProfileReportTest, Text) {
  serve();
  EXPECT_EQ(screen(profile_text(report())), golden("analysis/golden/profile.txt"));
}

TEST_F(ProfileReportTest, FullText) {
  make({.full = true});
  serve();
  EXPECT_EQ(profile_text(report()), golden("analysis/golden/profile_full.txt"));
}

TEST_F(ProfileReportTest, TextByPhase) {
  make({.by = ProfileBy::gc_phase});
  serve();
  EXPECT_EQ(screen(profile_text(report())), golden("analysis/golden/profile_phases.txt"));
}

TEST_F(ProfileReportTest, Comparison) {
  world.user_names = {{1, "request"}};
  make({.in = SpanCondition{.pattern = "request", .min_ns = 100}});
  feed(Events(world.slot).add("990 [1"));
  samples(1000, {"Server.loop:77", "Upload.store:42", "Stdlib.Digest.string:68", "caml_md5_string"}, 200);
  samples(1200, {"Server.loop:77", "Json.parse:12"}, 60);
  feed(Events(world.slot).add("1500 ]1"));
  samples(2000, {"Server.loop:77", "Upload.store:42", "Stdlib.Digest.string:68", "caml_md5_string"}, 30);
  samples(2200, {"Server.loop:77", "Json.parse:12"}, 400);
  EXPECT_EQ(screen(profile_text(report())), golden("analysis/golden/profile_in.txt"));
}

TEST_F(ProfileReportTest, OffCpu) {
  make({.kind = SampleKind::off_cpu});
  const StackIndex lock = stack({"Server.loop:77", "Cache.find:20", "Stdlib.Mutex.lock:30", "caml_ml_mutex_lock",
                                 "pthread_mutex_lock", "[kernel] futex_wait"});
  for (int i = 0; i < 9; ++i) sample(100, a_sample(lock), SampleKind::off_cpu);
  sample(100, a_sample(stack({"Server.loop:70", "Unix.select:5", "[kernel] do_select"})), SampleKind::off_cpu);
  EXPECT_EQ(screen(profile_text(report())), golden("analysis/golden/profile_off_cpu.txt"));
}

TEST_F(ProfileReportTest, WithoutSamplesItSaysWhatWasSeen) {
  EXPECT_THAT(profile_text(report()),
              AllOf(HasSubstr("there are no scheduler events"), testing::Not(HasSubstr("--off-cpu"))));
  SchedSwitch change{};
  change.next.tracked = true;
  feed(Events(0).add_record(100 * ms, EventKind::sched_switch, change));
  change.prev = std::exchange(change.next, {});
  feed(Events(0).add_record(107 * ms, EventKind::sched_switch, change));
  feed(Events(0).add_record(200 * ms, EventKind::sched_switch, change));  // it came unseen
  EXPECT_THAT(
      profile_text(report()),
      HasSubstr("no samples of CPU time: 1 OCaml process used 7.00ms of CPU time\nhint: rtev-bpf profile --off-cpu"));
  change.prev = {};
  change.next.tracked = true;
  change.next.pid = world.registry.process(world.process).pid;
  feed(Events(0).add_record(300 * ms, EventKind::sched_switch, change));
  feed(Events(0).add_record(301 * ms, EventKind::process,
                            ProcessRecord{.process = world.process, .peer = 0, .detail = 0},
                            static_cast<std::uint16_t>(ProcessAction::exit)));
  feed(Events(0).add(400 * ms, EventKind::user_unit, 0));
  EXPECT_THAT(profile_text(report()), HasSubstr("used 8.00ms of CPU time")) << "not until the end of the run";
  make({.of_recording = true});
  EXPECT_EQ(profile_text(report()),
            "no samples of CPU time: the recording holds no stacks\nhint: rtev-bpf record --stacks takes them\n");
  make({.kind = SampleKind::allocation});
  EXPECT_THAT(allocs_text(report()), HasSubstr(" ran\nhint: programs without symbols"));
  world.registry = Registry();
  EXPECT_THAT(allocs_text(report()), HasSubstr("no OCaml process was seen\n"));
}

TEST_F(ProfileReportTest, ProgramsThatSleepAreToldFromThoseThatAreNotTraced) {
  for (const SampleKind kind : {SampleKind::on_cpu, SampleKind::off_cpu}) {
    make({.kind = kind, .traces_switches = true});
    feed(Events(0).add_record(50 * ms, EventKind::process,
                              ProcessRecord{.process = world.process, .peer = 0, .detail = 0},
                              static_cast<std::uint16_t>(ProcessAction::found)));
    EXPECT_THAT(profile_text(report()),
                HasSubstr(": no thread of 1 OCaml process ran or was woken in 1.00s: they slept"));
    feed(Events(0).add_record(60 * ms, EventKind::lost, Loss{.words = 1, .from_ns = 1, .to_ns = 2},
                              static_cast<std::uint16_t>(LossReason::dropped)));
    EXPECT_THAT(profile_text(report()), HasSubstr("it is unknown whether threads of 1"));
  }
  make({.traces_switches = true});
  feed(Events(0).add_record(50 * ms, EventKind::process,
                            ProcessRecord{.process = world.process, .peer = 0, .detail = 0},
                            static_cast<std::uint16_t>(ProcessAction::exec)));
  EXPECT_THAT(profile_text(report()), HasSubstr("unknown whether")) << "who starts has run";
}

TEST_F(ProfileReportTest, RowsOfTwoProgramsAreToldApart) {
  StackTable& stacks = world.registry.stacks();
  const auto stack_of = [&](std::string_view path, std::string_view build_id, std::string_view function) {
    const StackIndex main = stacks.add_stack(0, stacks.add_frame({.kind = FrameKind::ocaml,
                                                                  .line = 2,
                                                                  .address = 1,
                                                                  .function = "Main",
                                                                  .file = "bin/main.ml",
                                                                  .object = path,
                                                                  .build_id = build_id}));
    return stacks.add_stack(main, stacks.add_frame({.kind = FrameKind::ocaml,
                                                    .line = 1,
                                                    .address = 2,
                                                    .function = function,
                                                    .file = "bin/main.ml",
                                                    .object = path,
                                                    .build_id = build_id}));
  };
  const auto play = [&](ProfileOptions options) {
    const SampleKind kind = options.kind;
    make(std::move(options));
    for (int i = 0; i < 20; ++i) sample(1000, a_sample(stack_of("/home/a/one/bin/main.exe", "aa", "Main.fib")), kind);
    for (int i = 0; i < 12; ++i) sample(1000, a_sample(stack_of("/home/a/two/bin/main.exe", "bb", "Main.fib")), kind);
    sample(1000, a_sample(stack_of("/home/a/two/bin/main.exe", "bb", "Main.other")), kind);
    return report();
  };
  EXPECT_THAT(
      screen(profile_text(play({}))),
      AllOf(HasSubstr("in Main.fib main.ml:1 of one/main.exe, called from Main main.ml:2\n"),
            HasSubstr("Main.fib    main.ml:1 of one/main.exe\n"), HasSubstr("Main.fib    main.ml:1 of two/main.exe\n"),
            HasSubstr("Main.other  main.ml:1\n"), HasSubstr("61%  Main main.ml:2 of one/main.exe\n")));
  EXPECT_THAT(screen(allocs_text(play({.kind = SampleKind::allocation}))),
              AllOf(HasSubstr("Main.fib    main.ml:1 of one/main.exe  Main main.ml:2\n"),
                    HasSubstr("Main.fib    main.ml:1 of two/main.exe  Main main.ml:2\n")));
  make({});
  for (const std::string_view path : {"/home/a/one/bin/main.exe", "/home/a/two/bin/main.exe"})
    sample(1000, a_sample(stacks.add_stack(0, stacks.add_frame({.kind = FrameKind::c,
                                                                .address = 3,
                                                                .function = "caml_c_call",
                                                                .object = path,
                                                                .build_id = path.substr(8)}))));
  EXPECT_THAT(profile_text(report()),
              AllOf(HasSubstr("caml_c_call  one/main.exe\n"), HasSubstr("caml_c_call  two/main.exe\n")));
  make({});
  sample(1000, a_sample(stack_of("/app/main.exe", "0123456789", "Main.fib")));
  sample(1000, a_sample(stack_of("/app/main.exe", "9876543210", "Main.fib")));
  EXPECT_THAT(profile_text(report()),
              AllOf(HasSubstr("main.ml:1 of main.exe 01234567\n"), HasSubstr("main.ml:1 of main.exe 98765432\n")))
      << "in two containers, say";
}

TEST_F(ProfileReportTest, FewSamplesHaveNoShares) {
  samples(1000, {"Server.loop:77"}, 1);
  EXPECT_THAT(profile_text(report()), HasSubstr("only 1 sample, in Server.loop server.ml:77\n"));
  samples(1100, {"Json.parse:12"}, 2);
  EXPECT_THAT(profile_text(report()),
              HasSubstr("only 3 samples, too few for shares: 2 of them in Json.parse json.ml:12\n"));
  EXPECT_THAT(profile_text(report()), testing::Not(HasSubstr("%")));
  EXPECT_EQ(nlohmann::json::parse(profile_json(report()))["gc"]["samples"], nullptr) << "there are no phases";
}

TEST_F(ProfileReportTest, Json) {
  serve();
  const auto json = nlohmann::json::parse(profile_json(report()));
  EXPECT_EQ(json["type"], "profile");
  EXPECT_EQ(json["samples"], 500);
  EXPECT_EQ(json["functions"][0]["function"], "caml_MD5Transform");
  EXPECT_EQ(json["functions"][0]["self"]["weight"], 310 * period);
  EXPECT_EQ(json["paths"][0]["frames"][0]["function"], "caml_MD5Transform");
  EXPECT_EQ(json["paths"][0]["frames"][3]["line"], 42);
}

TEST_F(ProfileReportTest, NamesAreEscaped) {
  StackTable& stacks = world.registry.stacks();
  for (const std::string& name : hostile_strings()) {
    make({.by = ProfileBy::user_span, .full = true});
    world.user_names[1] = world.registry.process(world.process).comm = name;
    const StackIndex index = stacks.add_stack(
        0, stacks.add_frame({.kind = FrameKind::ocaml, .function = name, .file = name, .object = name}));
    play("10 [1");
    sample(100, a_sample(index));
    const ProfileReport found = report();
    for (const char c : profile_text(found) + allocs_text(found))
      EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ');
    EXPECT_TRUE(nlohmann::json::accept(profile_json(found)));
    EXPECT_TRUE(nlohmann::json::accept(allocs_json(found)));
  }
}

class AllocsTest : public ProfileTest {
 protected:
  AllocsTest() { make({.kind = SampleKind::allocation}); }
  void allocates(const std::vector<std::string>& frames, int count, std::int32_t domain = 0) {
    const StackIndex index = stack(frames);
    for (int i = 0; i < count; ++i) {
      Sample sample = a_sample(index, domain);
      sample.weight = 3;
      this->sample(100, sample, SampleKind::allocation);
    }
  }
  void counts(std::uint64_t bytes, std::uint16_t domain = 0) {
    feed(Events(world.slot).add(100, EventKind::counter, counter_minor_allocated, bytes, domain));
  }
};

TEST_F(AllocsTest, SharesAreThoseWithinADomainTimesItsCounter) {
  allocates({"App.run:1", "App.cheap:5", "caml_call_gc"}, 30, 0);
  allocates({"App.run:1", "App.dear:6", "caml_alloc_small_dispatch"}, 10, 0);
  allocates({"App.run:1", "App.dear:6"}, 1, 1);
  counts(4000, 0);
  counts(2000, 0);
  counts(12000, 1);
  const ProfileReport found = report();
  EXPECT_EQ(found.unit, WeightUnit::bytes);
  ASSERT_EQ(found.lines.at(0).self[0].samples, 11u);
  EXPECT_EQ(found.lines[0].self[0].weight, 1500u + 12000u);
  EXPECT_EQ(found.lines.at(1).self[0].weight, 4500u);
  EXPECT_EQ(found.memory.minor_bytes, 18000u);
}

TEST_F(AllocsTest, WithoutCountersSamplesCount) {
  allocates({"App.run:1"}, 3);
  const ProfileReport found = report();
  EXPECT_EQ(found.unit, WeightUnit::samples);
  EXPECT_EQ(found.all[0].weight, 3u);
  EXPECT_THAT(allocs_text(found), HasSubstr("they cannot be compared"));
  EXPECT_THAT(allocs_text(found), HasSubstr("only 3 samples, too few for shares: 3 of them in App.run app.ml:1\n"));
  EXPECT_EQ(nlohmann::json::parse(allocs_json(found))["minor_bytes"], nullptr);
}

TEST_F(AllocsTest, ADomainWithoutACounterIsEstimated) {
  allocates({"App.run:1"}, 4, 0);
  allocates({"App.walk:1"}, 2, 1);
  counts(4000, 0);
  const ProfileReport found = report();
  EXPECT_EQ(found.all[0].weight, 6000u);
  EXPECT_THAT(allocs_text(found), HasSubstr("1 of 2 domains without a counter: estimated"));
}

TEST_F(AllocsTest, LargeBlocksAreFoundOnACpu) {
  allocates({"App.run:1"}, 3);
  const StackIndex makes =
      stack({"App.run:1", "Session.make:4", "Stdlib.Bytes.make:42", "caml_create_bytes", "caml_alloc_shr", "malloc"});
  for (int i = 0; i < 5; ++i) sample(100, a_sample(makes));
  sample(100, a_sample(stack({"App.run:1", "caml_alloc_shr"})));
  sample(100, a_sample(stack({"App.run:1", "memcpy"})));
  sample(100, a_sample(stack({"App.run:1", "caml_alloc_shr", "App.back:3", "md5"})));
  counts(4000);
  const ProfileReport found = report();
  EXPECT_EQ(found.all[0].samples, 3u);
  EXPECT_THAT(
      allocs_text(found),
      HasSubstr("most is in\nStdlib.Bytes.make bytes.ml:42, called from Session.make session.ml:4 (5 of 6 samples)"));
  const auto json = nlohmann::json::parse(allocs_json(found));
  EXPECT_EQ(json["major_blocks"]["caller"]["function"], "Session.make");
  EXPECT_EQ(json["major_blocks"]["of_samples"], 6);
}

TEST_F(AllocsTest, TheRuntimeIsNoSite) {
  allocates({"main", "caml_main", "caml_interprete", "[bytecode]", "caml_alloc_small_dispatch"}, 30);
  allocates({"main", "make_block", "caml_alloc_small_dispatch", "caml_minor_collection"}, 10);
  allocates({"caml_alloc_small_dispatch"}, 5);
  counts(4000);
  EXPECT_THAT(functions_of(report()),
              testing::UnorderedElementsAre("[bytecode] 30/30", "make_block 10/10", "[unknown] 5/5", "main 0/40",
                                            "caml_main 0/30", "caml_interprete 0/30"));
}

TEST_F(AllocsTest, Text) {
  allocates({"Server.loop:77", "Json.parse:12", "Json.value:31", "caml_call_gc"}, 300);
  allocates({"Server.loop:77", "Log.format:8", "Stdlib.Bytes.create:20", "caml_alloc_string"}, 100);
  for (int i = 0; i < 12; ++i) allocates({"Server.loop:77", "Plugin" + std::to_string(i) + ".run:1"}, 2);
  counts(2'000'000'000);
  feed(Events(world.slot)
           .add(100, EventKind::counter,
                static_cast<std::uint16_t>(*find_counter(Family::since_5_3, "major_allocated_words")), 50'000'000));
  EXPECT_EQ(screen(allocs_text(report())), golden("analysis/golden/allocs.txt"));
  const auto json = nlohmann::json::parse(allocs_json(report()));
  EXPECT_EQ(json["major_bytes"], 400'000'000);
  EXPECT_EQ(json["sites"][0]["function"], "Json.value");
}

}  // namespace
}  // namespace rtev::test
