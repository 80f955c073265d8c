// SPDX-License-Identifier: MIT
// Ring files that another user has put where a program creates its own. The owner of such a file can write events there
// that are not the program's.
#include <string>
#include <vector>

#include "live/harness.hpp"

namespace rtev::test {
namespace {

class PlantedRingLive : public LiveTest {
 protected:
  /// A program whose ring file exists already, and belongs to this user.
  Process start(uid_t owner) const {
    Command command = with_events("steady", {"1000", "50"});
    const std::vector<std::string> plant{
        "sh", "-c", R"(ring=$OCAML_RUNTIME_EVENTS_DIR/$$.events; : >"$ring"; chown "$0" "$ring"; exec "$@")",
        std::to_string(owner)};
    command.argv.insert(command.argv.begin(), plant.begin(), plant.end());
    return Process(command, "ready");
  }
  static void expect_unread(const Trace& trace, pid_t pid) {
    EXPECT_EQ(trace.action(pid, "unreadable")["reason"], "other user");
    EXPECT_EQ(trace.process(pid)["ring"], "unreadable");
    EXPECT_EQ(trace.process(pid)["rings_missed"], 1);
    EXPECT_EQ(trace.summary["drops"]["ring_other_user"], 1);
    EXPECT_THAT(trace.of(pid, "user"), IsEmpty());
    EXPECT_THAT(trace.of(pid, "begin"), IsEmpty());
  }
  static constexpr uid_t stranger = 12345;
};

TEST_F(PlantedRingLive, IsNotReadWhenAProgramCreatesItsRing) {
  Tracer tracer;
  Process program = start(stranger);
  const pid_t pid = program.pid();
  program.go();
  EXPECT_EQ(run_through(program).status.code(), 0);
  expect_unread(tracer.stop(), pid);
}

TEST_F(PlantedRingLive, IsNotReadWhenItIsFound) {
  Process program = start(stranger);
  const pid_t pid = program.pid();
  Tracer tracer;
  program.go();
  EXPECT_EQ(run_through(program).status.code(), 0);
  expect_unread(tracer.stop(), pid);
}

TEST_F(PlantedRingLive, IsReadIfItBelongsToTheProgramsUser) {
  Tracer tracer;
  Process program = start(::geteuid());
  const pid_t pid = program.pid();
  program.go();
  EXPECT_EQ(run_through(program).status.code(), 0);
  const Trace trace = tracer.stop();
  EXPECT_EQ(trace.process(pid)["ring"], "stopped");
  EXPECT_GT(trace.of(pid, "user").size(), 10u);
}

}  // namespace
}  // namespace rtev::test
