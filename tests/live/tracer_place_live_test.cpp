// SPDX-License-Identifier: MIT
// The tracer in a container: it works, or says what is missing and what to do.

#include "live/place.hpp"

namespace rtev::test {
namespace {

/// The place of the traced program, as container engines make it.
const Place engine{.label = "Engine",
                   .what = "",
                   .unshare = {"--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"},
                   .script = R"(
mount -t tmpfs tmpfs "$ROOT/rings"
mount --bind "$ROOT" "$ROOT"
mount --bind "$ROOT/rings" "$ROOT/rings"
cd "$ROOT"
pivot_root . old
exec "$@")",
                   .own_root = true};

/// A command that execs the command after it, in a place of its own.
struct Wrapper {
  std::string label;
  std::string what;
  Strings command;
};

Strings in_shell(const Strings& unshare, const std::string& script) {
  Strings command{"unshare"};
  command.insert(command.end(), unshare.begin(), unshare.end());
  command.insert(command.end(), {"sh", "-ec", script + "\nexec \"$@\"", "sh"});
  return command;
}

class TracerPlaceLive : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) create_root(dir.path());
  }
};

class WorkingTracerLive : public TracerPlaceLive, public ::testing::WithParamInterface<Wrapper> {};

TEST_P(WorkingTracerLive, TracesContainers) {
  covers("place", "the tracer " + GetParam().what);
  Tracer::Options options;
  options.wrapper = GetParam().command;
  options.env["ROOT"] = dir.path();
  Tracer tracer({}, options);
  Contained program(engine, dir.path());
  program.run();
  program.expect_in(tracer.stop());
}

TEST_P(WorkingTracerLive, DoctorAgrees) {
  Strings doctor = GetParam().command;
  doctor.insert(doctor.end(), {tool(), "doctor"});
  const Outcome outcome = run({.argv = doctor, .env = {{"ROOT", dir.path()}}});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("rtev-bpf can trace this host"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("MISSING")));
}

INSTANTIATE_TEST_SUITE_P(
    Places, WorkingTracerLive,
    ::testing::Values(Wrapper{"MountNamespace", "in a mount namespace that hides the program's files",
                              in_shell({"--mount"}, R"(mount -t tmpfs tmpfs "$ROOT";)")},
                      Wrapper{"HostPids", "in a container with the host's pid namespace",
                              in_shell({"--mount", "--uts", "--ipc", "--net", "--cgroup"}, "")},
                      Wrapper{"Chroot", "in its own root directory with /proc and /sys", in_shell({"--mount"}, R"(
mount -t tmpfs tmpfs "$ROOT/mnt"
mkdir "$ROOT/mnt/all"
mount --rbind / "$ROOT/mnt/all"
set -- chroot "$ROOT/mnt/all" "$@")")},
                      Wrapper{"ReadOnlyTmp", "with a read-only /tmp",
                              in_shell({"--mount"}, "mount --bind /tmp /tmp; mount -o remount,bind,ro /tmp;")},
                      Wrapper{"FewCapabilities",
                              "with CAP_BPF, CAP_PERFMON, CAP_CHECKPOINT_RESTORE, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH",
                              {"setpriv", "--inh-caps=-all",
                               "--bounding-set=-all,+bpf,+perfmon,+checkpoint_restore,+sys_ptrace,+dac_read_search"}}),
    by_label);

struct Refusal {
  std::string label;
  std::string what;
  Strings command;
  std::string missing;  ///< name of the feature in the message
  std::string hint;     ///< part of the hint
  bool ps_works;
};

class RefusingTracerLive : public TracerPlaceLive, public ::testing::WithParamInterface<Refusal> {
 protected:
  static Outcome run_inside(const Strings& arguments) {
    Strings argv = GetParam().command;
    argv.push_back(tool());
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run({.argv = argv});
  }
};

TEST_P(RefusingTracerLive, NamesWhatIsMissing) {
  covers("place", "the tracer " + GetParam().what + ": says what is missing");
  const Outcome traced = run_inside({"-d", "1ms"});
  EXPECT_EQ(traced.status.code(), 1) << traced.out;
  EXPECT_THAT(traced.err, HasSubstr("cannot trace this host: " + GetParam().missing + ": "));
  EXPECT_THAT(traced.err, AllOf(HasSubstr("hint: "), HasSubstr(GetParam().hint)));

  const Outcome doctor = run_inside({"doctor"});
  EXPECT_EQ(doctor.status.code(), 1);
  EXPECT_THAT(doctor.out, HasSubstr("cannot trace this host: see " + GetParam().missing));
  EXPECT_THAT(doctor.out, HasSubstr(GetParam().hint));
}

TEST_P(RefusingTracerLive, PsListsProcessesOrNamesWhatIsMissing) {
  const Outcome listed = run_inside({"ps", "-d", "1ms"});
  EXPECT_EQ(listed.status.code(), GetParam().ps_works ? 0 : 1) << listed.out << listed.err;
  if (GetParam().ps_works) {
    EXPECT_THAT(listed.out, HasSubstr("PID"));
  } else {
    EXPECT_THAT(listed.err, AllOf(HasSubstr("cannot inspect processes: " + GetParam().missing), HasSubstr("hint: ")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Places, RefusingTracerLive,
    ::testing::Values(Refusal{"PidNamespace",
                              "in a pid namespace",
                              {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"},
                              "pid namespace",
                              "--pid=host",
                              true},
                      Refusal{"PidNamespaceHostsProc",
                              "in a pid namespace with the host's /proc",
                              {"unshare", "--pid", "--fork", "--kill-child"},
                              "pid namespace",
                              "--pid=host",
                              true},
                      Refusal{"ForeignProc", "with another pid namespace's /proc",
                              in_shell({"--mount"}, "unshare --pid --fork mount -t proc proc /proc;"), "/proc",
                              "--pid=host", false},
                      Refusal{"NoProc", "without /proc", in_shell({"--mount"}, "mount -t tmpfs tmpfs /proc;"), "/proc",
                              "mount -t proc", false},
                      Refusal{"UserNamespace",
                              "in a user namespace",
                              {"unshare", "--user", "--map-root-user"},
                              "user namespace",
                              "--userns=host",
                              true},
                      Refusal{"TimeNamespace",
                              "in a time namespace",
                              {"unshare", "--time", "--monotonic", "100", "--fork", "--kill-child"},
                              "time namespace",
                              "nsenter --target 1 --time",
                              true},
                      Refusal{"NoBtf", "without the kernel's BTF",
                              in_shell({"--mount"}, "mount -t tmpfs tmpfs /sys/kernel/btf;"), "BTF",
                              "CONFIG_DEBUG_INFO_BTF", true},
                      Refusal{"NoSysfs", "without /sys", in_shell({"--mount"}, "mount -t tmpfs tmpfs /sys;"), "BTF",
                              "/sys:/sys:ro", true},
                      Refusal{"NoBpf",
                              "without CAP_BPF",
                              {"setpriv", "--inh-caps=-all", "--bounding-set=-bpf,-sys_admin"},
                              "CAP_BPF",
                              "--cap-add=BPF",
                              true},
                      Refusal{"NoPerfmon",
                              "without CAP_PERFMON",
                              {"setpriv", "--inh-caps=-all", "--bounding-set=-perfmon,-sys_admin"},
                              "CAP_PERFMON",
                              "--cap-add=PERFMON",
                              true},
                      Refusal{"NoCheckpointRestore",
                              "without CAP_CHECKPOINT_RESTORE",
                              {"setpriv", "--inh-caps=-all", "--bounding-set=-checkpoint_restore,-sys_admin"},
                              "CAP_CHECKPOINT_RESTORE",
                              "--cap-add=CHECKPOINT_RESTORE",
                              true}),
    by_label);

TEST_F(TracerPlaceLive, CommandInAPidNamespaceIsTracedWithoutBpf) {
  covers("place", "-- CMD in a pid namespace");
  const Outcome outcome =
      run({.argv = {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", tool(), "latency", "-f", "json", "-o",
                    dir / "report.json", "--", ocaml_program("busy_alloc"), "20"}});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("threads' states are unknown here"));
  const std::string report = read_file(dir / "report.json");
  EXPECT_THAT(report, HasSubstr("busy_alloc"));
}

TEST_F(TracerPlaceLive, PsInAContainerListsItsOwn) {
  covers("place", "ps in a container");
  Place place = engine;
  place.unshare.emplace_back("--mount-proc");
  place.script = R"(exec "$@")";
  place.own_root = false;
  Contained inside(place, dir.path());
  Process outside(with_events("busy_alloc"), "ready");
  const Outcome outcome =
      run({.argv = {"nsenter", "--target", std::to_string(inside.pid()), "--pid", "--mount", tool(), "ps"}});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex(R"( 1 +root +contained +5\.3 +active )"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("busy_alloc")));
  EXPECT_THAT(outcome.err, HasSubstr("processes outside of it are not found"));
}

TEST_F(TracerPlaceLive, CommandWithoutARingDirectoryGetsAHint) {
  covers("place", "-- CMD with a read-only /tmp");
  Strings argv = in_shell({"--mount"}, "mount --bind /tmp /tmp; mount -o remount,bind,ro /tmp;");
  argv.insert(argv.end(), {tool(), "--", "true"});
  const Outcome refused = run({.argv = argv});
  EXPECT_EQ(refused.status.code(), 1);
  EXPECT_THAT(refused.err, HasSubstr("cannot create a directory for rings /tmp/rtev-bpf."));
  EXPECT_THAT(refused.err, HasSubstr("TMPDIR"));
}

}  // namespace
}  // namespace rtev::test
