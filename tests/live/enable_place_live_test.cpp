// SPDX-License-Identifier: MIT
// rtev-bpf enable where programs run: containers, full and read-only file systems, filters of system calls, stopped.

#include <signal.h>
#include <sys/syscall.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "live/harness.hpp"
#include "live/memory_group.hpp"
#include "live/place.hpp"
#include "live/variety.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

constexpr uid_t unprivileged = 12345;

class EnablePlaceLive : public LiveTest {
 protected:
  /// Linked statically, since a container has no libraries.
  static fs::path workloads() {
    return Variety{.ocaml = "5.3", .build = {.kind = "workloads_static", .what = "static"}}.program();
  }
  Command working(const std::string& kind) const {
    return {.argv = {workloads(), kind}, .env = {{"OCAML_RUNTIME_EVENTS_DIR", dir.path()}}};
  }
  static Command enabling(pid_t pid, const Strings& arguments = {}) {
    Command command{.argv = {tool(), "enable", "-p", std::to_string(pid)}};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    return command;
  }
  /// Expects that the program is left alone, and says why; and that it ends as it would have.
  static void expect_refused(Process& process, pid_t pid, const std::string& why) {
    const Outcome refused = run(enabling(pid));
    EXPECT_EQ(refused.status.code(), 1);
    EXPECT_THAT(refused.err, AllOf(HasSubstr(why), HasSubstr("hint:")));
    const Outcome outcome = run_through(process);
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("sum 1000250000000"));
  }
};

/// A program in a place. unshare(1) and sh(1) are its parents.
class Placed {
 public:
  Placed(const Place& place, const fs::path& root, const fs::path& program, const std::string& kind)
      : process_(command(place, root, program, kind), "ready"), pid_(process_.pid()) {
    for (auto children = children_of(pid_); !children.empty(); children = children_of(pid_)) pid_ = children.front();
  }
  Process& process() { return process_; }
  pid_t pid() const { return pid_; }

 private:
  static Command command(const Place& place, const fs::path& root, const fs::path& program, const std::string& kind) {
    create_root(root);
    for (const char* bin : {"bin", "image/bin"}) fs::copy_file(program, root / bin / "workloads");
    // Enabling refuses directories that others may write to.
    fs::permissions(root / "rings", fs::perms(0755));
    EXPECT_EQ(::chown((root / "rings").c_str(), place.user.value_or(0), place.user.value_or(0)), 0);
    return in_place(place, root, {place.path(root, "bin/workloads"), kind});
  }

  Process process_;
  pid_t pid_;
};

class EnableContainerLive : public EnablePlaceLive, public ::testing::WithParamInterface<Place> {};

TEST_P(EnableContainerLive, IsSwitchedOnAndOff) {
  covers("enable", GetParam().what);
  Placed placed(GetParam(), dir.path(), workloads(), "await");
  Process command(enabling(placed.pid()));
  placed.process().go();
  const Outcome enabled = command.wait();
  EXPECT_EQ(enabled.status.code(), 0) << enabled.err;
  // It looks for its ring where it expects it.
  placed.process().line_with("ring is there");
  EXPECT_EQ(run_tool({"disable", "-p", std::to_string(placed.pid())}).status.code(), 0);
  const Outcome outcome = run_through(placed.process());
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("then it is gone"));
}

const char* const rings_script = R"(
mount -t tmpfs -o mode=700 tmpfs "$ROOT/rings"
exec "$@")";

INSTANTIATE_TEST_SUITE_P(
    Places, EnableContainerLive,
    ::testing::Values(
        Place{.label = "Pid", .what = "in a pid namespace", .unshare = {"--pid"}},
        Place{.label = "Mount", .what = "in a mount namespace", .unshare = {"--mount"}, .script = rings_script},
        Place{.label = "Chroot", .what = "in a chroot", .script = R"(exec chroot "$ROOT" "$@")", .own_root = true},
        Place{.label = "User",
              .what = "in a user namespace of an unprivileged user",
              .unshare = {"--user", "--map-root-user"},
              .user = unprivileged},
        Place{.label = "Engine",
              .what = "in all namespaces, of an unprivileged user",
              .unshare = {"--user", "--map-root-user", "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"},
              .script = rings_script,
              .user = unprivileged}),
    by_label);

TEST_F(EnablePlaceLive, AFullFileSystemIsRefused) {
  covers("enable", "full file system");
  const Place place{.label = "Full",
                    .what = "",
                    .unshare = {"--mount"},
                    .script = R"(mount -t tmpfs -o mode=700,size=1m tmpfs "$ROOT/rings"; exec "$@")"};
  Placed placed(place, dir.path(), workloads(), "alloc");
  expect_refused(placed.process(), placed.pid(), "space");
}

TEST_F(EnablePlaceLive, AControlGroupWithoutMemoryForTheRingIsRefused) {
  covers("enable", "a ring in memory that the control group has not");
  const auto group = MemoryGroup::make();
  if (!group) GTEST_SKIP() << "there is no place for a control group";
  const Place place{.label = "Group", .what = "", .unshare = {"--mount"}, .script = rings_script};
  Placed placed(place, dir.path(), workloads(), "alloc");
  constexpr std::uint64_t limit_bytes = 48 << 20;  // a ring has 64 MiB
  ASSERT_TRUE(group->limit(limit_bytes));
  ASSERT_TRUE(group->add(placed.pid()));
  expect_refused(placed.process(), placed.pid(), "memory of its control group: 4");
}

class FullGroupLive : public EnablePlaceLive {
 protected:
  /// Looks whether a program can be enabled in a control group that `fill`, a script, has filled.
  void expect_room_after(const std::string& fill, std::uint64_t limit_bytes) {
    const auto group = MemoryGroup::make();
    if (!group) GTEST_SKIP() << "there is no place for a control group";
    ASSERT_TRUE(group->limit(limit_bytes));
    Process filler({.argv = {"sh", "-c", "echo ready; read go; " + fill}}, "ready");
    ASSERT_TRUE(group->add(filler.pid()));
    filler.go();
    ASSERT_EQ(filler.wait().status.code(), 0);
    const Place place{.label = "Group", .what = "", .unshare = {"--mount"}, .script = rings_script};
    Placed placed(place, dir.path(), workloads(), "alloc");
    ASSERT_TRUE(group->add(placed.pid()));
    const Strings dry_run{tool(), "enable", "--dry-run", "-p", std::to_string(placed.pid())};
    Outcome outcome;
    EXPECT_TRUE(poll_until([&] {
      outcome = run({.argv = dry_run});
      return outcome.status.code() == 0;
    })) << outcome.out
        << outcome.err << "the kernel sums up such pages every two seconds";
    EXPECT_EQ(run_through(placed.process()).status.code(), 0);
  }
};

TEST_F(FullGroupLive, PagesOfFilesAreMemoryThatIsLeft) {
  covers("enable", "a control group that is full of pages of files");
  constexpr std::uint64_t limit_bytes = 256 << 20;
  const std::string file = dir / "large";
  std::ofstream(file).close();
  fs::resize_file(file, 2 * limit_bytes);
  expect_room_after("exec cat " + file + " >/dev/null", limit_bytes);
}

TEST_F(FullGroupLive, NamesThatNobodyUsesAreMemoryThatIsLeft) {
  covers("enable", "a control group that is full of names of files");
  // Each takes 700 bytes or so.
  const std::string prefix = (dir / std::string(200, 'x')).string();
  expect_room_after("i=0; while [ $i -lt 200000 ]; do [ -e " + prefix + "$i ]; i=$((i + 1)); done", 80 << 20);
}

TEST_F(EnablePlaceLive, AReadOnlyFileSystemIsRefused) {
  covers("enable", "read-only file system");
  const Place place{.label = "ReadOnly",
                    .what = "",
                    .unshare = {"--mount"},
                    .script = R"(mount -t tmpfs -o ro,mode=700 tmpfs "$ROOT/rings"; exec "$@")"};
  Placed placed(place, dir.path(), workloads(), "alloc");
  expect_refused(placed.process(), placed.pid(), "Read-only");
}

TEST_F(EnablePlaceLive, AFileSystemInMemoryThatOthersMayFillIsRefused) {
  covers("enable", "a directory of the program's user on a tmpfs that others may write to");
  const Place place{.label = "Shared",
                    .what = "",
                    .unshare = {"--mount"},
                    .script = R"(mount -t tmpfs -o mode=1777 tmpfs "$ROOT/rings"; mkdir -m 700 "$ROOT/rings/own"
export OCAML_RUNTIME_EVENTS_DIR="$ROOT/rings/own"; exec "$@")"};
  Placed placed(place, dir.path(), workloads(), "alloc");
  expect_refused(placed.process(), placed.pid(), "others may fill it");
}

TEST_F(EnablePlaceLive, AFilterOfSystemCallsIsRefusedUnlessAllowed) {
  covers("enable", "seccomp");
  Command command = working("alloc");
  command.refused_call = SYS_kexec_load;
  Process refused(command, "ready");
  expect_refused(refused, refused.pid(), "seccomp");
  command.argv.back() = "await";
  Process allowed(command, "ready");
  Process enable(enabling(allowed.pid(), {"--allow-confined"}));
  allowed.go();
  EXPECT_EQ(enable.wait().status.code(), 0);
  EXPECT_THAT(run_through(allowed).out, HasSubstr("ring is there"));
}

TEST_F(EnablePlaceLive, AStoppedProgramIsTakenWhenItGoesOn) {
  covers("enable", "stopped");
  Process process(working("await"), "ready");
  process.go();
  process.lines_until("waits");
  process.signal(SIGSTOP);
  EXPECT_THAT(run(enabling(process.pid(), {"-d", "200ms"})).err, HasSubstr("did not run, or"));
  EXPECT_FALSE(fs::exists(ring_of(process.pid())));
  Process command(enabling(process.pid()));
  process.signal(SIGCONT);
  EXPECT_EQ(command.wait().status.code(), 0);
  EXPECT_THAT(run_through(process).out, HasSubstr("ring is there"));
}

}  // namespace
}  // namespace rtev::test
