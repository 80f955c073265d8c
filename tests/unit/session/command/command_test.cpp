// SPDX-License-Identifier: MIT
#include "session/command/command.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <sstream>

#include "support/files.hpp"
#include "support/temp_dir.hpp"

namespace rtev::test {
namespace {

using Session = Command::Session;

std::optional<ProcessView> look(const ProcessQuery& query) {
  return look_at(Procfs(), query);
}

TEST(CommandSession, IsItsOwnWhereTheTerminalCouldBeInjectedInto) {
  EXPECT_EQ(Command::session_for(true, true, std::nullopt), Session::own) << "before Linux 6.2";
  EXPECT_EQ(Command::session_for(true, true, "1\n"), Session::own);
  EXPECT_EQ(Command::session_for(true, true, "0\n"), Session::shared);
  EXPECT_EQ(Command::session_for(false, true, "1\n"), Session::shared) << "the same user";
  EXPECT_EQ(Command::session_for(true, false, "1\n"), Session::shared) << "no terminal";
}

/// The session of a command, from the process itself.
pid_t session_of_command(Session session, bool& is_leader) {
  const TempDir dir;
  const std::string file = dir / "session";
  // Field 6 of stat.
  auto command = Command::prepare({"sh", "-c", "cut -d ' ' -f 6 < /proc/$$/stat > \"$0\"", file}, look,
                                  Command::Stdout::own, session);
  EXPECT_TRUE(command && command->release());
  if (!command) return -1;
  EXPECT_EQ(command->wait(), 0);
  pid_t found = -1;
  std::istringstream(read_file(file)) >> found;
  is_leader = found == command->pid();
  return found;
}

TEST(CommandSession, IsWhatWasAskedFor) {
  bool is_leader = false;
  EXPECT_EQ(session_of_command(Session::shared, is_leader), ::getsid(0));
  EXPECT_FALSE(is_leader);
  EXPECT_NE(session_of_command(Session::own, is_leader), ::getsid(0));
  EXPECT_TRUE(is_leader);
}

TEST(CommandSession, GroupGetsTheSignalsOfTheTerminal) {
  auto command = Command::prepare({"sleep", "100"}, look, Command::Stdout::own, Session::own);
  ASSERT_TRUE(command && command->release());
  command->send_to_group(SIGINT);
  EXPECT_EQ(command->wait(), 128 + SIGINT);
}

}  // namespace
}  // namespace rtev::test
