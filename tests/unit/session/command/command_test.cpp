// SPDX-License-Identifier: MIT
#include "session/command/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
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
  EXPECT_TRUE(command && command->start());
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

/// What a command finds in its environment.
std::string variable_of_command(const std::string& name, Command::RingFiles files) {
  const TempDir dir;
  const std::string file = dir / "value";
  auto command = Command::prepare({"sh", "-c", "echo \"$" + name + "\" > \"$0\"", file}, look, Command::Stdout::own,
                                  Session::shared, files);
  EXPECT_TRUE(command && command->start());
  if (!command) return {};
  EXPECT_EQ(command->wait(), 0);
  return read_file(file);
}

TEST(CommandEnvironment, FilesOfRingsAreKeptOnlyForWhoeverRemovesThem) {
  constexpr const char* preserve = "OCAML_RUNTIME_EVENTS_PRESERVE";
  EXPECT_EQ(variable_of_command(preserve, Command::RingFiles::removed), "\n");
  EXPECT_EQ(variable_of_command(preserve, Command::RingFiles::kept), "1\n");
}

TEST(CommandEnvironment, FilesThatAreToStayAreWhereTheRuntimePutsThem) {
  constexpr const char* preserve = "OCAML_RUNTIME_EVENTS_PRESERVE";
  const std::string here = std::filesystem::current_path();
  for (const auto files : {Command::RingFiles::removed, Command::RingFiles::kept}) {
    ::unsetenv(preserve);
    EXPECT_NE(variable_of_command(ring_directory_variable, files), here + '\n');
    ::setenv(preserve, "1", 1);
    EXPECT_EQ(variable_of_command(ring_directory_variable, files), here + '\n');
    ::setenv(ring_directory_variable, "/chosen", 1);
    EXPECT_EQ(variable_of_command(ring_directory_variable, files), "/chosen\n");
    ::unsetenv(ring_directory_variable);
    ::unsetenv(preserve);
  }
}

TEST(CommandEnvironment, TheCallersParametersOfTheRuntimeAreKept) {
  ::setenv("CAMLRUNPARAM", "v=0", 1);
  EXPECT_THAT(variable_of_command("OCAMLRUNPARAM", Command::RingFiles::removed),
              testing::AnyOf("v=0,e=20\n", "v=0,e=19\n", "v=0,e=18\n", "v=0,e=17\n", "\n"));
  ::setenv("OCAMLRUNPARAM", "e=10", 1);
  EXPECT_EQ(variable_of_command("OCAMLRUNPARAM", Command::RingFiles::removed), "e=10\n");
  ::unsetenv("OCAMLRUNPARAM");
  ::unsetenv("CAMLRUNPARAM");
}

TEST(CommandSession, GroupGetsTheSignalsOfTheTerminal) {
  auto command = Command::prepare({"sleep", "100"}, look, Command::Stdout::own, Session::own);
  ASSERT_TRUE(command && command->start());
  command->send_to_group(SIGTERM);
  EXPECT_EQ(command->wait(), 128 + SIGTERM);
}

}  // namespace
}  // namespace rtev::test
