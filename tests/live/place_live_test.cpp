// SPDX-License-Identifier: MIT
// Programs in containers: every event and correct process info, for all namespaces, root directories and file systems.
#include <algorithm>
#include <deque>

#include "live/place.hpp"

namespace rtev::test {
namespace {

constexpr uid_t unprivileged = 12345;

/// What container engines mount, as far as the kernel allows it in a user namespace and in a new root directory.
const char* const pivot_script = R"(
mount --bind "$ROOT" "$ROOT"
cd "$ROOT"
pivot_root . old
exec "$@")";
const char* const tmpfs_script = R"(
mount -t tmpfs -o mode=1777 tmpfs "$ROOT/rings"
exec "$@")";
const char* const overlay_script = R"(
mount -t tmpfs tmpfs "$ROOT/mnt"
mkdir "$ROOT/mnt/upper" "$ROOT/mnt/work" "$ROOT/mnt/all"
mount -t overlay -o "lowerdir=$ROOT/image,upperdir=$ROOT/mnt/upper,workdir=$ROOT/mnt/work" overlay "$ROOT/mnt/all"
exec chroot "$ROOT/mnt/all" "$@")";

const std::vector<Place> places{
    {.label = "Plain", .what = "no namespace"},
    {.label = "Pid", .what = "pid namespace", .unshare = {"--pid"}},
    {.label = "NestedPid",
     .what = "pid namespace in a pid namespace",
     .unshare = {"--pid"},
     .script = R"(exec unshare --pid --fork --kill-child "$@")"},
    {.label = "Mount", .what = "mount namespace, ring on its tmpfs", .unshare = {"--mount"}, .script = tmpfs_script},
    {.label = "TimeAhead",
     .what = "time namespace, clock ahead",
     .unshare = {"--time", "--monotonic", "100000", "--boottime", "200000"},
     .clock_offset_s = 100000},
    {.label = "TimeBehind",
     .what = "time namespace, clock behind",
     .unshare = {"--time", "--monotonic", "-30", "--boottime", "-20"},
     .clock_offset_s = -30},
    {.label = "User",
     .what = "user namespace of an unprivileged user",
     .unshare = {"--user", "--map-root-user"},
     .user = unprivileged},
    {.label = "UserUnmapped", .what = "user namespace without a mapping", .unshare = {"--user"}, .user = unprivileged},
    {.label = "Chroot", .what = "chroot", .script = R"(exec chroot "$ROOT" "$@")", .own_root = true},
    {.label = "PivotRoot", .what = "pivot_root", .unshare = {"--mount"}, .script = pivot_script, .own_root = true},
    {.label = "Overlay", .what = "overlayfs", .unshare = {"--mount"}, .script = overlay_script, .own_root = true},
    engine_place(),
    {.label = "All",
     .what = "all namespaces, of an unprivileged user",
     .unshare = {"--user", "--map-root-user", "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--time",
                 "--monotonic", "5000"},
     .script = tmpfs_script,
     .user = unprivileged,
     .clock_offset_s = 5000},
};

class PlaceLive : public LiveTest, public ::testing::WithParamInterface<Place> {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) create_root(dir.path());
  }
};

TEST_P(PlaceLive, IsTracedFromItsStart) {
  covers("place", GetParam().what);
  Tracer tracer;
  Contained program(GetParam(), dir.path());
  EXPECT_EQ(program.inner_pid() != program.pid(), GetParam().has_pid_namespace());
  program.run();
  const Trace trace = tracer.stop();
  EXPECT_THAT(trace.actions(program.pid()), Contains("ring"));
  program.expect_in(trace);
}

TEST_P(PlaceLive, IsFoundRunning) {
  covers("place", GetParam().what + ", found running");
  Contained program(GetParam(), dir.path());
  Tracer tracer({"--history"});
  program.run();
  const Trace trace = tracer.stop();
  EXPECT_THAT(trace.actions(program.pid()), ElementsAre("found", "ring", "pause", "resume", "stop", "exit"));
  program.expect_in(trace);
}

/// Several places at the same time.
class PlacesLive : public LiveTest {
 protected:
  static const Place& place(std::string_view label) { return *std::ranges::find(places, label, &Place::label); }
  fs::path make_root(const std::string& name) const {
    create_root(dir / name);
    return dir / name;
  }
};

TEST_F(PlacesLive, EightContainersWithOneRingPathAreDelivered) {
  covers("place", "eight containers with the same 1.events");
  const fs::path root = make_root("root");
  std::deque<Contained> containers;
  for (int i = 0; i < 4; ++i) containers.emplace_back(place("Engine"), root, "20");
  Tracer tracer({"--history"});
  for (int i = 0; i < 4; ++i) containers.emplace_back(place("Engine"), root, "20");
  for (Contained& container : containers) {
    EXPECT_EQ(container.inner_pid(), 1);
    container.run();
  }
  const Trace trace = tracer.stop();
  std::set<std::string> paths;
  for (Contained& container : containers) {
    container.expect_in(trace);
    paths.insert(trace.action(container.pid(), "ring").value("path", ""));
  }
  EXPECT_EQ(paths.size(), 1u) << "as the containers see it";
}

/// The kernel probes the one underlying file for all containers: each must get only its own hits.
TEST_F(PlacesLive, TwoOverlaysOfOneImageAreProbedOnceEach) {
  covers("place", "two overlayfs containers of one image");
  const fs::path root = make_root("root");
  Contained known(place("Overlay"), root);
  Tracer tracer({"--history"});
  Contained first(place("Overlay"), root), second(place("Overlay"), root);
  for (Contained* container : {&known, &first, &second}) container->run();
  const Trace trace = tracer.stop();
  for (Contained* container : {&known, &first, &second}) container->expect_in(trace);
  EXPECT_THAT(trace.actions(known.pid()), ElementsAre("found", "ring", "pause", "resume", "stop", "exit"));
}

/// Times are corrected although the process is gone and only its ring file is left.
TEST_F(PlacesLive, RingLeftInATimeNamespaceIsConvertedToHostTime) {
  covers("place", "time namespace, program ended before it was inspected");
  const Place& ahead = place("TimeAhead");
  const fs::path root = make_root("root");
  Tracer tracer({"--sched", "off"});
  tracer.process().stop();
  Command command = in_place(ahead, root, {root / "bin/contained", "10"});
  command.env["OCAML_RUNTIME_EVENTS_START"] = "1";
  command.env["OCAML_RUNTIME_EVENTS_PRESERVE"] = "1";
  ASSERT_EQ(run(command).status.code(), 0);
  tracer.process().resume();
  const Trace trace = tracer.stop();

  const fs::directory_iterator ring(root / "rings");
  const pid_t pid = std::stoi(ring->path().stem());
  EXPECT_EQ(
      difference(on_host_clock(oracle(root / "rings", pid), ahead.clock_offset_s), records(trace.from_rings(pid))), "");
  const std::uint64_t end = trace.action(pid, "exit")["ts"];
  for (const Json& event : trace.from_rings(pid)) EXPECT_LE(event["ts"], end);
}

/// The ring directory of `-- CMD`, used from a pid namespace.
TEST_F(PlacesLive, CommandThatEntersAContainerIsTraced) {
  covers("place", "-- CMD that enters a pid namespace");
  const Outcome outcome = run_tool({"-f", "jsonl", "-o", dir / "out", "--", "unshare", "--pid", "--fork",
                                    "--kill-child", ocaml_program("contained"), "10"});
  ASSERT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("wrote 20"));
  const Trace trace = Trace::parse(read_file(dir / "out"));
  EXPECT_THAT(trace.of("user"), SizeIs(20));
  for (const Json& process : trace.of("process")) EXPECT_EQ(process["comm"], "contained");
  EXPECT_EQ(trace.of("process").front()["ns_pid"], 1);
}

/// Two pid namespaces share a folder: both programs have pid 1 and open the same ring file.
TEST_F(PlacesLive, RingFileSharedByTwoProgramsIsReported) {
  covers("place", "two pid namespaces that share one ring folder");
  const fs::path root = make_root("root");
  Contained first(place("Pid"), root);
  Tracer tracer({"--history"});
  Contained second(place("Pid"), root);
  const Outcome listed = run_tool({"ps"});
  EXPECT_THAT(listed.out, ContainsRegex(std::to_string(second.pid()) + " +root +contained +5\\.3 +shared"));
  second.end();
  first.end();
  const Trace trace = tracer.stop();
  std::map<pid_t, std::string> rings;
  for (const Json& process : trace.summary["processes"]) rings[process["pid"]] = process["ring"];
  EXPECT_EQ(rings[first.pid()], "shared");
  EXPECT_EQ(rings[second.pid()], "shared");
  EXPECT_EQ(trace.summary["rings_missed"], 0);
}

INSTANTIATE_TEST_SUITE_P(Places, PlaceLive, ::testing::ValuesIn(places), by_label);

}  // namespace
}  // namespace rtev::test
