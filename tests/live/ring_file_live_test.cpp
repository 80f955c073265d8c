// SPDX-License-Identifier: MIT
// Ring files in all places, of all sizes, renamed or deleted: found, and read to the last event.

#include <fstream>
#include <functional>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

class RingFileLive : public LiveTest {
 protected:
  /// Makes a hard link of a ring file for the oracle, in case the first name is removed.
  void keep(pid_t pid) const {
    fs::create_directories(kept());
    fs::create_hard_link(ring_of(pid), kept() / ring_of(pid).filename());
  }
  fs::path kept() const { return dir / "kept"; }

  /// A program found running, and one started under the tracer.
  struct Two {
    Trace trace;
    std::vector<pid_t> pids;
  };
  static Two trace_two(const Command& command) {
    Process early(command, "ready");
    Tracer tracer({"--sched", "off", "--history"});
    Process late(command);
    run_through(early);
    run_through(late);
    return {.trace = tracer.stop(), .pids = {early.pid(), late.pid()}};
  }
  /// Two programs whose ring files are renamed or removed: by `change`, once found running and once under the tracer.
  void expect_found(const std::function<void(const fs::path&)>& change) {
    Process early(preserved("busy_alloc", {"3"}), "ready"), late(preserved("busy_alloc", {"3"}), "ready");
    keep(early.pid());
    change(ring_of(early.pid()));
    Tracer tracer({"--sched", "off", "--history"});
    keep(late.pid());
    change(ring_of(late.pid()));
    run_through(early);
    run_through(late);
    const Trace trace = tracer.stop();
    for (const pid_t pid : {early.pid(), late.pid()}) expect_exact(trace, kept(), pid);
  }
};

struct Parameters {
  const char* label;
  const char* value;
  const char* what;
};

class ParametersLive : public RingFileLive, public ::testing::WithParamInterface<Parameters> {};

TEST_P(ParametersLive, DeliversAllEvents) {
  Command command = preserved("domains", {"2", "2"});
  command.env["OCAMLRUNPARAM"] = GetParam().value;
  const auto [trace, pids] = trace_two(command);
  for (const pid_t pid : pids) expect_exact(trace, dir.path(), pid);
  covers("ring", GetParam().what);
}

INSTANTIATE_TEST_SUITE_P(All, ParametersLive,
                         ::testing::Values(Parameters{"LargeRings", "e=20", "`OCAMLRUNPARAM=e=20`"},
                                           Parameters{"SmallRings", "e=12", "`OCAMLRUNPARAM=e=12`"},
                                           Parameters{"FewDomains", "d=3", "`OCAMLRUNPARAM=d=3`"},
                                           Parameters{"ManyDomains", "d=1024,e=12", "`OCAMLRUNPARAM=d=1024,e=12`"},
                                           Parameters{"AllDomains", "d=4096,e=12", "`OCAMLRUNPARAM=d=4096,e=12`"}),
                         by_label);

TEST_F(RingFileLive, LossOfATooSmallRingIsCounted) {
  Command command = preserved("domains", {"2", "20"});
  command.env["OCAMLRUNPARAM"] = "e=6,d=3";
  const auto [trace, pids] = trace_two(command);
  for (const pid_t pid : pids) {
    auto words = trace.words(pid);
    EXPECT_EQ(words["lost"], trace.lost_words(pid));
    for (const Json& loss : trace.of(pid, "lost")) {
      EXPECT_GE(loss["ts"], loss["to"]);
      EXPECT_TRUE(loss["from"].is_null() || loss["from"] <= loss["to"]) << loss;
    }
    EXPECT_GT(words["delivered"], 0u);
    EXPECT_EQ(words["corrupt"], 0u);
    EXPECT_EQ(words["delivered"] + words["lost"], words["written"]);
  }
  covers("ring", "`OCAMLRUNPARAM=e=6,d=3`, which loses words: all counted");
}

struct RingPlace {
  const char* label;
  const char* directory;  ///< OCAML_RUNTIME_EVENTS_DIR in the test's folder; empty: absolute path of that folder
  bool chdir;             ///< whether the program changes to another folder
  const char* what;
};

class RingPlaceLive : public RingFileLive, public ::testing::WithParamInterface<RingPlace> {};

TEST_P(RingPlaceLive, DeliversAllEvents) {
  const RingPlace& place = GetParam();
  Command command = preserved("chdir_relative", {place.chdir ? "/" : "."});
  command.directory = dir.path();
  fs::path rings = dir.path();
  if (*place.directory != '\0') {
    rings /= place.directory;
    fs::create_directories(rings);
    command.env["OCAML_RUNTIME_EVENTS_DIR"] = place.directory;
  }
  const auto [trace, pids] = trace_two(command);
  for (const pid_t pid : pids) {
    expect_exact(trace, rings, pid);
    EXPECT_EQ(trace.action(pid, "ring")["path"], fs::canonical(rings / (std::to_string(pid) + ".events")).string());
  }
  covers("ring", place.what);
}

INSTANTIATE_TEST_SUITE_P(
    All, RingPlaceLive,
    ::testing::Values(RingPlace{"Absolute", "", false, "absolute `OCAML_RUNTIME_EVENTS_DIR`"},
                      RingPlace{"AbsoluteChdir", "", true, "absolute `OCAML_RUNTIME_EVENTS_DIR`, then chdir"},
                      RingPlace{"Relative", "some/rings of mine", false, "relative `OCAML_RUNTIME_EVENTS_DIR`"},
                      RingPlace{"RelativeChdir", "some/rings", true,
                                "relative `OCAML_RUNTIME_EVENTS_DIR`, then chdir"}),
    by_label);

/// A file at the path of the new ring, left by a process of the same pid.
struct Stale {
  const char* label;
  const char* what;
  std::size_t bytes;       ///< size of the invalid file
  const char* parameters;  ///< else: OCAMLRUNPARAM of the program that left its ring
};

class StaleLive : public RingFileLive, public ::testing::WithParamInterface<Stale> {};

TEST_P(StaleLive, IsNotTakenForTheNewRing) {
  const Stale& stale = GetParam();
  const fs::path left = dir / "left";
  if (stale.parameters != nullptr) {
    Command command = preserved("user_events");
    command.env["OCAMLRUNPARAM"] = stale.parameters;
    fs::rename(ring_of(run_to_end(command)), left);
  } else {
    std::ofstream(left) << std::string(stale.bytes, '\x5a');
  }
  // The shell execs the program, so both have the same pid.
  Command command = preserved("domains", {"2", "2"});
  const std::string copy_and_run =
      R"(cp ")" + left.string() + R"(" "$OCAML_RUNTIME_EVENTS_DIR/$$.events" && exec "$@")";
  command.argv.insert(command.argv.begin(), {"/bin/sh", "-c", copy_and_run, "sh"});
  const auto [trace, pids] = trace_two(command);
  for (const pid_t pid : pids) expect_exact(trace, dir.path(), pid);
  covers("ring", stale.what);
}

INSTANTIATE_TEST_SUITE_P(All, StaleLive,
                         ::testing::Values(Stale{"Empty", "an empty file of the same pid exists", 0, nullptr},
                                           Stale{"Invalid", "an invalid file of the same pid exists", 3 << 20, nullptr},
                                           Stale{"Same", "a stale ring of the same pid exists", 0, "e=16"},
                                           Stale{"Larger", "a larger stale ring of the same pid exists", 0, "e=18"},
                                           Stale{"Smaller", "a smaller stale ring of the same pid exists", 0,
                                                 "e=10,d=2"}),
                         by_label);

/// The runtime makes a file that is too short, and writes beyond its end.
TEST_F(RingFileLive, RingsThatAreTooLargeAreReported) {
  Command command = with_events("busy_alloc", {"1"});
  command.env["OCAMLRUNPARAM"] = "e=22";
  Process process(command, "ready");
  const std::string pid = std::to_string(process.pid());
  EXPECT_THAT(run({.argv = {tool(), "ps", "-p", pid}}).out, HasSubstr(" too large "));
  const Outcome enabled = run({.argv = {tool(), "enable", "--dry-run", "-p", pid}});
  EXPECT_EQ(enabled.status.code(), 1) << enabled.out;
  EXPECT_THAT(enabled.err, HasSubstr("too large"));
  const Outcome dumped = run({.argv = {tool(), "dump", pid}});
  EXPECT_THAT(dumped.err, AllOf(HasSubstr("larger than OCaml's runtime can make"), HasSubstr("hint: start")));
  const Outcome stats = run({.argv = {tool(), "stats", "-p", pid, "-d", "1ms"}});
  EXPECT_THAT(stats.out, HasSubstr("its ring was not read"));
  EXPECT_THAT(stats.err, HasSubstr("cannot make rings that large"));
}

TEST_F(RingFileLive, UnlinkedRingIsDelivered) {
  expect_found([](const fs::path& ring) { fs::remove(ring); });
  covers("ring", "unlinked while the program runs");
}

TEST_F(RingFileLive, RenamedRingIsDelivered) {
  expect_found([](const fs::path& ring) { fs::rename(ring, ring.string() + ".old"); });
  covers("ring", "renamed while the program runs");
}

TEST_F(RingFileLive, PausedRingIsFoundAndDelivered) {
  Command command = program("api_start");
  command.env["OCAML_RUNTIME_EVENTS_PRESERVE"] = "1";
  Process process(command);
  for (const char* step : {"ready", "started"}) {
    process.lines_until(step);
    process.go();
  }
  process.lines_until("paused");
  EXPECT_THAT(ps_line(process.pid()), HasSubstr(" paused "));
  Tracer tracer({"--sched", "off", "--history"});
  run_through(process);
  const Trace trace = tracer.stop();
  expect_exact(trace, dir.path(), process.pid());
  EXPECT_THAT(trace.actions(process.pid()), ElementsAre("found", "ring", "resume", "stop", "exit"));
  covers("ring", "paused before the tracer started");
}

TEST_F(RingFileLive, RingRemovedByTheProgramIsDelivered) {
  Process process(with_events("busy_alloc", {"3"}), "ready");
  keep(process.pid());
  Tracer tracer({"--sched", "off", "--history"});
  process.go_until("done");
  run_through(process);
  const Trace trace = tracer.stop();
  expect_exact(trace, kept(), process.pid());
  EXPECT_THAT(trace.actions(process.pid()), ElementsAre("found", "ring", "stop", "exit"));
  covers("ring", "removed by the program itself at its end");
}

}  // namespace
}  // namespace rtev::test
