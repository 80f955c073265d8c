// SPDX-License-Identifier: MIT
// top in a real terminal: what it shows, what keys do, and that the terminal is always as it was.
#include <signal.h>

#include <algorithm>
#include <fstream>

#include "base/utf8.hpp"
#include "live/analysis_fixture.hpp"
#include "live/terminal.hpp"

namespace rtev::test {
namespace {

class TopLive : public AnalysisLive {
 protected:
  /// The commands of a shell that starts it, with what `stty` says before and after, and its exit status.
  std::string command(const std::string& arguments) const {
    return "stty -g > " + (dir / "before").string() + "; " + tool() + " top --dumps " + (dir / "dumps").string() + " " +
           arguments + "; echo status=$?; stty -g > " + (dir / "after").string();
  }
  /// The process in the terminal.
  pid_t pid_of(const Terminal& terminal) const {
    terminal.until("rtev-bpf top  ");
    // Its helpers are younger.
    const Outcome found = run({.argv = {"pgrep", "-o", "-f", "top --dumps " + (dir / "dumps").string()}});
    return std::stoi(found.out);
  }
  /// The terminal is as before it, and shows the shell again.
  void expect_restored(const Terminal& terminal, const std::string& status) const {
    const std::string shown = terminal.until("status=" + status);
    EXPECT_THAT(shown, Not(HasSubstr("rtev-bpf top  "))) << "the screen is gone";
    terminal.until(
        [&](const std::string&) { return fs::exists(dir / "after") && read_file(dir / "after").ends_with('\n'); });
    EXPECT_EQ(read_file(dir / "after"), read_file(dir / "before"));
  }
};

TEST_F(TopLive, ShowsProgramsOnScreensOfAnySize) {
  Process program(with_events("busy_alloc", {"200"}), "ready");
  const std::string row = std::to_string(program.pid()) + " busy_alloc";
  const Terminal terminal(80, 24);
  terminal.type(command("-p " + std::to_string(program.pid())));
  program.go_until("done");
  EXPECT_THAT(terminal.until(row), AllOf(HasSubstr("▼WORST"), HasSubstr("HEAP"), Not(HasSubstr("ARRIVE"))));
  const struct {
    unsigned columns, lines;
    const char* title;
  } sizes[] = {{120, 40, "GROWTH/s"}, {200, 60, "PROMO%"}, {80, 24, "LAST MIN"}, {40, 10, "WORST"}};
  for (const auto& size : sizes) {
    terminal.resize(size.columns, size.lines);
    terminal.until([&](const std::string& shown) {
      const auto lines = lines_of(shown);
      return shown.contains(size.title) && shown.contains(row) && lines.size() >= size.lines - 1 &&
             std::ranges::all_of(lines, [&](const std::string& line) { return columns_of(line) <= size.columns; });
    });
  }
  terminal.press({"q"});
  expect_restored(terminal, "0");
}

TEST_F(TopLive, ShowsAProcessAndGoesBackInTime) {
  Process program(with_events("long_pause", {"0.2"}), "ready");
  const Terminal terminal(100, 40);
  terminal.type(command("-p " + std::to_string(program.pid())));
  terminal.until(std::to_string(program.pid()) + " long_pause");
  program.go_until("paused");
  terminal.until([](const std::string& shown) { return shown.contains("longest pause: 2") && shown.contains("ms!"); });
  terminal.press({"p", "Enter"});
  terminal.until([](const std::string& shown) { return shown.contains("[paused") && shown.contains("long_pause/"); });
  terminal.press({"p"});
  EXPECT_THAT(terminal.until("LONGEST PAUSES SINCE THE START"),
              AllOf(HasSubstr("DOMAIN"), HasSubstr("the longest: 2")));
  terminal.press({"Left"});
  terminal.until("[paused 1");
  terminal.press({"Escape", "/", "n", "o", "n", "e", "Enter"});
  terminal.until("no process matches the filter");
  terminal.press({"Escape", "s"});
  terminal.until("▼GC%");
  terminal.press({"h"});
  terminal.until("longest pause in the last minute:");
  terminal.press({"q", "q"});
  expect_restored(terminal, "0");
}

TEST_F(TopLive, TheTerminalIsRestoredWhateverEndsIt) {
  Process program(with_events("busy_alloc"), "ready");
  const std::string options = "-p " + std::to_string(program.pid());
  const struct {
    int signal;  // 0: Ctrl-C
    const char* status;
  } ends[] = {{0, "0"},         {SIGTERM, "0"},   {SIGHUP, "0"},   {SIGSEGV, "139"},
              {SIGABRT, "134"}, {SIGQUIT, "131"}, {SIGUSR1, "138"}};
  for (const auto& end : ends) {
    const Terminal terminal(80, 24);
    fs::remove(dir / "after");
    terminal.type(command(options));
    const pid_t pid = pid_of(terminal);
    terminal.until("busy_alloc");
    if (end.signal == 0) {
      terminal.press({"C-c"});
    } else {
      ::kill(pid, end.signal);
    }
    expect_restored(terminal, end.status);
  }
}

TEST_F(TopLive, StopsAndGoesOn) {
  Process program(with_events("busy_alloc"), "ready");
  const Terminal terminal(80, 24);
  terminal.type(command("-p " + std::to_string(program.pid())));
  terminal.until("busy_alloc");
  terminal.press({"C-z"});
  terminal.until(
      [](const std::string& shown) { return shown.contains("Stopped") && !shown.contains("rtev-bpf top  "); });
  terminal.type("stty -g > " + (dir / "stopped").string() + "; fg");
  terminal.until(
      [](const std::string& shown) { return shown.contains("rtev-bpf top  ") && shown.contains("busy_alloc"); });
  EXPECT_EQ(read_file(dir / "stopped"), read_file(dir / "before"));
  terminal.press({"q"});
  terminal.until([](const std::string& shown) { return !shown.contains("rtev-bpf top  "); });
}

TEST_F(TopLive, EndsInTheBackground) {
  Process program(with_events("busy_alloc"), "ready");
  const Terminal terminal(80, 24);
  terminal.type(command("-p " + std::to_string(program.pid())));
  terminal.until("busy_alloc");
  terminal.press({"C-z"});
  terminal.until("Stopped");
  terminal.type("kill %1; wait; stty -g > " + (dir / "ended").string() + "; echo all=$?");
  EXPECT_THAT(terminal.until("all=0"), Not(HasSubstr("rtev-bpf top  ")));
  EXPECT_EQ(read_file(dir / "ended"), read_file(dir / "before"));
}

TEST_F(TopLive, WritesARecordingOfTheLastSeconds) {
  Process program(with_events("busy_alloc"), "ready");
  const Terminal terminal(200, 24);
  terminal.type(command("-p " + std::to_string(program.pid())));
  terminal.until(std::to_string(program.pid()) + " busy_alloc");
  program.go_until("done");
  terminal.until("longest pause: ");
  terminal.press({"d"});
  const std::string shown = terminal.until("recording: ");
  const std::size_t begin = shown.find("recording: ") + std::string("recording: ").size();
  const std::string path = shown.substr(begin, shown.find('\n', begin) - begin);
  EXPECT_THAT(dumped(path).from_rings(program.pid()), Not(IsEmpty())) << path;
  terminal.press({"q"});
  expect_restored(terminal, "0");
}

TEST_F(TopLive, ReplaysARecording) {
  const std::string path = record("trace.fxt", {ocaml_program("growing"), "1000"}).path;
  const Terminal terminal(100, 30);
  terminal.type(command("--interval 100ms -i " + path));
  terminal.until("at its end]");
  // In the last ones the program has ended.
  terminal.press({"Left", "Left", "Left", "Left", "Enter"});
  EXPECT_THAT(terminal.until("growing/"), AllOf(HasSubstr("heap"), HasSubstr(", paused]")));
  terminal.press({"d"});
  terminal.until("it is a recording already");
  terminal.press({"Escape", "q"});
  expect_restored(terminal, "0");
}

TEST_F(TopLive, FramesOfARecordingAddUpToItsReports) {
  const std::string path = record("trace.fxt", {ocaml_program("growing"), "1500"}).path;
  // The program goes on longer: else it would have ended within an interval.
  const Strings part{"-d", "1s", "-i", path};
  const auto with = [&](Strings command) {
    command.insert(command.end(), part.begin(), part.end());
    return command;
  };
  std::uint64_t pauses = 0, worst_ns = 0, minor = 0;
  for (const Json& interval : json_lines(run_tool(with({"top", "-f", "json", "--interval", "100ms"})).out)) {
    for (const Json& process : interval["processes"]) {
      pauses += process["pauses"].get<std::uint64_t>();
      minor += process["collections"]["minor"].get<std::uint64_t>();
      worst_ns = std::max(worst_ns, process["worst_ns"].get<std::uint64_t>());
    }
  }
  const Json latency = report(with({"latency"})), stats = report(with({"stats"}));
  EXPECT_GT(pauses, 100u);
  EXPECT_EQ(pauses, latency["processes"][0]["count"]);
  EXPECT_EQ(worst_ns, latency["processes"][0]["max_ns"]);
  EXPECT_EQ(minor, stats["processes"][0]["collections"]["minor"]);
}

TEST_F(TopLive, PrintsTextWithoutATerminal) {
  Process program(with_events("busy_alloc"), "ready");
  const std::string pid = std::to_string(program.pid());
  const Outcome text = run_tool({"top", "-n", "2", "--interval", "200ms", "-p", pid});
  EXPECT_EQ(text.status.code(), 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("1 OCaml process, "), HasSubstr(pid + "  busy_alloc"), HasSubstr("PROMO%"),
                              Not(HasSubstr("\033"))));
  const auto intervals = json_lines(run_tool({"top", "-n", "3", "-f", "json", "--interval", "100ms", "-p", pid}).out);
  ASSERT_THAT(intervals, SizeIs(3));
  EXPECT_EQ(intervals[2]["processes"][0]["pid"], program.pid());
  const Terminal terminal(250, 50);
  terminal.type("TERM=dumb " + tool() + " top -n 1 --interval 100ms -p " + pid + "; echo status=$?");
  EXPECT_THAT(terminal.until("status=0"), HasSubstr(pid + "  busy_alloc"));
}

}  // namespace
}  // namespace rtev::test
