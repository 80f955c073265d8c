// SPDX-License-Identifier: MIT
// All kinds of binaries: a program built in every way by every installed version of OCaml, found running and started
// under the tracer.

#include <algorithm>
#include <set>

#include "live/harness.hpp"
#include "live/variety.hpp"

namespace rtev::test {
namespace {

class VarietyLive : public LiveTest {
 protected:
  void need(const Variety& variety) {
    if (fs::exists(variety.program())) return;
    const std::string obstacle =
        "no OCaml " + std::string(variety.ocaml) + " was found when the tests were built (scripts/test gets it)";
    if (std::getenv("CI") != nullptr) FAIL() << obstacle;
    GTEST_SKIP() << obstacle;
  }
};

/// Returns when the tracer has reported a process, and so has inspected its program.
void wait_until_known(Tracer& tracer, pid_t pid) {
  const std::string mark = "\"pid\":" + std::to_string(pid) + ",";
  while (!tracer.process().line_with(mark).contains(R"("type":"process")")) {
  }
}

/// Probed events of a run of the program: work in three domains, then a full collection.
void expect_probed(const Trace& trace, pid_t pid) {
  std::set<int> domains;
  int full_collections = 0;
  for (const Json& event : trace.from_rings(pid)) {
    EXPECT_NE(event["type"], "lost") << event;
    domains.insert(event["domain"].get<int>());
    if (event["type"] == "begin" && event["name"] == "explicit_gc_full_major") {
      ++full_collections;
      EXPECT_EQ(event["domain"], 0);
    }
  }
  EXPECT_EQ(full_collections, 1);
  // The third domain gets the number of the second if that one has ended.
  EXPECT_THAT(domains, AnyOf((std::set{0, 1, 2}), (std::set{0, 1})));
}

class BuildLive : public VarietyLive, public ::testing::WithParamInterface<Variety> {
 protected:
  void SetUp() override {
    VarietyLive::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) need(GetParam());
  }

  /// Once found running, once started under the tracer.
  void expect_every_event(const Strings& argv);
  void expect_probes(const Strings& argv, const std::string& name);
};

void BuildLive::expect_every_event(const Strings& argv) {
  const Variety& variety = GetParam();
  Command command = preserved("");
  command.argv = argv;
  Process early(command, "ready");
  Tracer tracer({"--history"});
  Process late(command, "ready");
  wait_until_known(tracer, late.pid());
  const std::string version = variety.build.named ? variety.ocaml : "5.?";
  for (const pid_t pid : {early.pid(), late.pid()})
    EXPECT_THAT(ps_line(pid), AllOf(HasSubstr(" " + version + " "), HasSubstr(" active ")));
  const std::string early_out = run_through(early).out, late_out = run_through(late).out;
  const Trace trace = tracer.stop();

  expect_whole(trace, variety, dir.path(), early.pid(), early_out);
  expect_whole(trace, variety, dir.path(), late.pid(), late_out);
  for (const pid_t pid : {early.pid(), late.pid()}) {
    EXPECT_EQ(trace.action(pid, "ring")["path"], ring_of(pid).string());
    EXPECT_EQ(trace.process(pid)["version"], variety.build.named ? Json(variety.ocaml) : Json());
  }
}

void BuildLive::expect_probes(const Strings& argv, const std::string& name) {
  const Variety& variety = GetParam();
  Command command = program("");
  command.argv = argv;
  Process early(command, "ready");
  EXPECT_THAT(ps_line(early.pid()), HasSubstr(" none "));
  Tracer tracer({"--ringless", "-n", name});
  Process late(command);
  run_through(early);
  run_through(late);
  const Outcome outcome = tracer.interrupt();
  const Trace trace = Trace::parse(outcome.out);
  if (!variety.build.named) {
    // The addresses of its functions are unknown; the process itself is known.
    EXPECT_GE(trace.summary["drops"]["unprobed"], 2);
    EXPECT_THAT(outcome.err, HasSubstr("  " + variety.program().string() + " (pid "));
    return;
  }
  EXPECT_EQ(trace.summary["drops"]["unprobed"], 0);
  expect_probed(trace, early.pid());
  expect_probed(trace, late.pid());
  EXPECT_THAT(trace.actions(early.pid()), ElementsAre("found", "probe", "exit"));
  EXPECT_THAT(trace.actions(late.pid()), ElementsAre("exec", "probe", "exit"));
}

TEST_P(BuildLive, DeliversEveryEventWithItsName) {
  const Variety& variety = GetParam();
  expect_every_event({variety.program()});
  covers("binary", variety.build.what, variety.ocaml);
}

TEST_P(BuildLive, IsProbedWithoutARing) {
  const Variety& variety = GetParam();
  expect_probes({variety.program()}, variety.build.kind);
  const char* const limit = variety.build.named ? "" : ": reported as impossible to probe";
  covers("ringless", variety.build.what + std::string(limit), variety.ocaml);
}

INSTANTIATE_TEST_SUITE_P(All, BuildLive, ::testing::ValuesIn(all_varieties()), [](const auto& variety) {
  std::string name = variety.param.ocaml + std::string("_") + variety.param.build.kind;
  std::ranges::replace(name, '.', '_');
  return name;
});

/// `ld.so PROGRAM`: the kernel sees the loader as the executable.
class LoaderLive : public BuildLive {
 protected:
#ifdef __x86_64__
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
#else
  const std::string loader = "/lib/ld-linux-aarch64.so.1";
#endif
};

TEST_P(LoaderLive, DeliversEveryEventWithItsName) {
  const Variety& variety = GetParam();
  expect_every_event({loader, variety.program()});
  covers("binary", variety.build.what + std::string(", run by the dynamic loader"), variety.ocaml);
}

TEST_P(LoaderLive, IsProbedWithoutARing) {
  const Variety& variety = GetParam();
  expect_probes({loader, variety.program()}, variety.build.kind);
  covers("ringless", variety.build.what + std::string(", run by the dynamic loader"), variety.ocaml);
}

/// Position-independent, not position-independent, and with the runtime in a library.
std::vector<Variety> loadable() {
  std::vector<Variety> varieties = all_varieties();
  std::erase_if(varieties, [](const Variety& variety) {
    const std::string_view ocaml = variety.ocaml, kind = variety.build.kind;
    return ocaml != "5.3" || (kind != "native" && kind != "no_pie" && kind != "shared");
  });
  return varieties;
}

INSTANTIATE_TEST_SUITE_P(All, LoaderLive, ::testing::ValuesIn(loadable()),
                         [](const auto& variety) { return std::string(variety.param.build.kind); });

}  // namespace
}  // namespace rtev::test
