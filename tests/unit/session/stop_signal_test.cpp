// SPDX-License-Identifier: MIT
#include "session/stop_signal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "session/command/command.hpp"
#include "support/temp_dir.hpp"

namespace rtev::test {
namespace {

/// A signal as the terminal's driver sends it. A process may forge that for itself.
void send_from_terminal(int number) {
  siginfo_t info{};
  info.si_signo = number;
  info.si_code = SI_KERNEL;
  ASSERT_EQ(::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), number, &info), 0);
  ::kill(::getpid(), 0);  // the thread sanitizer runs handlers in functions that it intercepts
}

bool is_readable(int fd) {
  pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, 0) == 1;
}

void (*handler_of(int number))(int) {
  struct sigaction action{};
  ::sigaction(number, nullptr, &action);
  return action.sa_handler;
}

std::optional<ProcessView> view_of(const ProcessQuery& query) {
  return look_at(Procfs(), query);
}

Command prepare(const char* program) {
  auto command = Command::prepare({program}, view_of);
  if (!command) throw std::runtime_error(command.error().message());
  return std::move(*command);
}

/// Signals as in a terminal, also when the tests themselves run under nohup or in the background.
class StopSignalTest : public testing::Test {
 protected:
  StopSignalTest() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(number, SIG_DFL);
  }
};
using StopSignalDeathTest = StopSignalTest;

TEST_F(StopSignalTest, IsTakenOnce) {
  StopSignal stop;
  EXPECT_FALSE(is_readable(stop.event_fd()));
  EXPECT_EQ(stop.take(), 0);
  ::raise(SIGTERM);
  EXPECT_TRUE(is_readable(stop.event_fd()));
  EXPECT_EQ(stop.received(), SIGTERM);
  EXPECT_EQ(stop.take(), SIGTERM);
  EXPECT_FALSE(stop.from_terminal());
  EXPECT_FALSE(is_readable(stop.event_fd()));
  EXPECT_EQ(stop.take(), 0);
  EXPECT_EQ(stop.received(), SIGTERM) << "taken or not";
}

TEST_F(StopSignalTest, KnowsTheTerminal) {
  StopSignal stop;
  send_from_terminal(SIGINT);
  EXPECT_EQ(stop.take(), SIGINT);
  EXPECT_TRUE(stop.from_terminal());
}

TEST_F(StopSignalTest, RestoresHandlers) {
  const auto interrupt = handler_of(SIGINT), pipe = handler_of(SIGPIPE), user = handler_of(SIGUSR1);
  {
    const StopSignal stop;
    EXPECT_NE(handler_of(SIGINT), interrupt);
    EXPECT_EQ(handler_of(SIGPIPE), SIG_IGN);
    EXPECT_EQ(handler_of(SIGUSR1), user) << "no business of ours without a command";
  }
  EXPECT_EQ(handler_of(SIGINT), interrupt);
  EXPECT_EQ(handler_of(SIGPIPE), pipe);
}

TEST_F(StopSignalTest, ACommandGetsWhatCameBeforeItWasStarted) {
  StopSignal stop;
  Command command = prepare("true");
  stop.accompany(command);
  // As the terminal does it, with the whole group.
  ::raise(SIGINT);
  command.send(SIGINT);
  EXPECT_EQ(stop.received(), SIGINT);
  EXPECT_TRUE(command.start()) << "the child has not ended by it";
  EXPECT_EQ(command.wait(), 128 + SIGINT);
}

TEST_F(StopSignalTest, ACommandHasTheSignalsOfTheCaller) {
  ::signal(SIGPIPE, SIG_DFL);
  const StopSignal stop;
  auto command = Command::prepare({"sh", "-c", "kill -PIPE $$"}, view_of);
  ASSERT_TRUE(command && command->start());
  EXPECT_EQ(command->wait(), 128 + SIGPIPE) << "neither blocked nor ignored";
}

TEST_F(StopSignalTest, HangUpStaysIgnored) {
  const auto before = ::signal(SIGHUP, SIG_IGN);
  {
    StopSignal stop;
    ::raise(SIGHUP);
    ::raise(SIGHUP);
    EXPECT_EQ(stop.received(), 0);
    EXPECT_EQ(stop.take(), 0);
    ::raise(SIGTERM);
    EXPECT_EQ(stop.take(), SIGTERM);
  }
  EXPECT_EQ(handler_of(SIGHUP), SIG_IGN);
  ::signal(SIGHUP, before);
}

TEST_F(StopSignalTest, InterruptEndsAlsoWhatAScriptStartedInTheBackground) {
  ::signal(SIGINT, SIG_IGN);
  {
    StopSignal stop;
    ::raise(SIGINT);
    EXPECT_EQ(stop.take(), SIGINT);
  }
  EXPECT_EQ(handler_of(SIGINT), SIG_IGN);
}

TEST_F(StopSignalDeathTest, SecondOneEndsAtOnce) {
  EXPECT_EXIT(
      {
        StopSignal stop;
        ::raise(SIGINT);
        ::raise(SIGTERM);
        ::_exit(0);
      },
      ::testing::ExitedWithCode(128 + SIGTERM), "exiting at once");
}

TEST_F(StopSignalTest, SameSignalAtOnceIsOneRequest) {
  // As timeout(1) sends it. The handler exits if it counts two.
  {
    StopSignal stop;
    ::raise(SIGTERM);
    ::raise(SIGTERM);
    EXPECT_EQ(stop.received(), SIGTERM);
  }
  StopSignal stop;
  send_from_terminal(SIGINT);
  ::raise(SIGINT);
  EXPECT_EQ(stop.received(), SIGINT);
}

TEST_F(StopSignalDeathTest, SameSignalTypedTwiceEndsAtOnce) {
  EXPECT_EXIT(
      {
        StopSignal stop;
        send_from_terminal(SIGINT);
        send_from_terminal(SIGINT);
        ::_exit(0);
      },
      ::testing::ExitedWithCode(128 + SIGINT), "exiting at once");
}

TEST_F(StopSignalTest, CommandGetsAllSignalsOfProcesses) {
  const Command command = prepare("true");
  StopSignal stop;
  stop.accompany(command);
  const int numbers[] = {SIGHUP, SIGUSR1, SIGHUP, SIGQUIT, SIGTERM, SIGUSR2, SIGTERM};
  for (const int number : numbers) ::raise(number);
  EXPECT_EQ(stop.received(), SIGHUP);
  for (const int number : numbers) {
    EXPECT_EQ(stop.take(), number) << "in order";
    EXPECT_FALSE(stop.from_terminal());
  }
  EXPECT_EQ(stop.take(), 0);
}

TEST_F(StopSignalTest, ThirdRequestOfAProcessLeavesTheCommand) {
  const Command command = prepare("true");
  StopSignal stop;
  stop.accompany(command);
  for (const int number : {SIGTERM, SIGHUP, SIGINT}) {
    EXPECT_FALSE(stop.leaves_command());
    ::raise(number);
  }
  EXPECT_FALSE(stop.leaves_command());
  ::raise(SIGTERM);
  EXPECT_TRUE(stop.leaves_command());
}

TEST_F(StopSignalTest, DistinguishesTheTerminalFromProcesses) {
  const Command command = prepare("true");
  StopSignal stop;
  stop.accompany(command);
  ::raise(SIGINT);
  send_from_terminal(SIGINT);
  send_from_terminal(SIGQUIT);
  ::raise(SIGINT);
  const std::pair<int, bool> expected[] = {{SIGINT, false}, {SIGINT, true}, {SIGQUIT, true}, {SIGINT, false}};
  for (const auto& [number, from_terminal] : expected) {
    EXPECT_EQ(stop.take(), number);
    EXPECT_EQ(stop.from_terminal(), from_terminal);
  }
}

TEST_F(StopSignalDeathTest, SecondCtrlCRemovesTheDirectoryOfACommandThatDoesNotRun) {
  const TempDir base;
  EXPECT_EXIT(
      {
        ::setenv("TMPDIR", base.path().c_str(), 1);
        ::unsetenv("OCAML_RUNTIME_EVENTS_DIR");
        const Command command = prepare("true");
        if (std::filesystem::is_empty(base.path())) ::_exit(1);
        StopSignal stop;
        stop.accompany(command);
        send_from_terminal(SIGINT);
        send_from_terminal(SIGINT);
        ::_exit(0);
      },
      ::testing::ExitedWithCode(128 + SIGINT), "exiting at once");
  EXPECT_TRUE(std::filesystem::is_empty(base.path()));
}

TEST_F(StopSignalDeathTest, SecondCtrlCLeavesTheDirectoryToACommandThatRuns) {
  const TempDir base;
  EXPECT_EXIT(
      {
        ::setenv("TMPDIR", base.path().c_str(), 1);
        ::unsetenv("OCAML_RUNTIME_EVENTS_DIR");
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0 || ::dup2(ends[0], STDIN_FILENO) != STDIN_FILENO) ::_exit(1);
        Command command = prepare("cat");  // until this process, which holds the other end, has gone
        if (!command.start()) ::_exit(2);
        StopSignal stop;
        stop.accompany(command);
        send_from_terminal(SIGINT);
        send_from_terminal(SIGINT);
        ::_exit(0);
      },
      ::testing::ExitedWithCode(128 + SIGINT), "exiting at once");
  EXPECT_FALSE(std::filesystem::is_empty(base.path()));
}

}  // namespace
}  // namespace rtev::test
