// SPDX-License-Identifier: MIT
// What the screen shows, and what keys do.
#include "top/view.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/utf8.hpp"
#include "support/terminal_check.hpp"

namespace rtev::top {
namespace {

using Kind = Key::Kind;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ProcessFigures process(ProcessIndex index, const std::string& name, std::uint64_t worst_ns, double gc_share) {
  return {.index = index,
          .pid = static_cast<std::int32_t>(1000 + index),
          .comm = name,
          .version = "5.3",
          .interval_ns = 1'000'000'000,
          .domains = 2,
          .gc_share = gc_share,
          .pauses = 1,
          .worst_ns = worst_ns,
          .heap_bytes = 1'000'000 * index};
}

Interval interval(std::uint64_t second, std::uint64_t worst_ns = 5'000'000) {
  Interval made{.time_ns = second * 1'000'000'000, .elapsed_ns = second * 1'000'000'000, .length_ns = 1'000'000'000};
  made.processes = {process(1, "alpha", 100'000, 0.6), process(2, "beta", worst_ns, 0.1),
                    process(3, "gamma", 20'000, 0.2)};
  made.worst = "5.00ms in beta/1002, domain 0: own work";
  return made;
}

class ViewTest : public testing::Test {
 protected:
  View live{{.sorted_by = column_named("worst"), .details = [](ProcessIndex index) {
               return ProcessDetails{.index = index,
                                     .domains = {{.name = "0", .state = "running"}},
                                     .causes = {"3 × own work (1.00ms)"},
                                     .worst = "5.00ms"};
             }}};

  static View::Wish press(View& view, char character) {
    return view.press({.kind = Kind::character, .character = character}, 24);
  }
  static View::Wish press(View& view, Key::Kind kind) { return view.press({.kind = kind}, 24); }
  static std::vector<std::string> screen(View& view, std::size_t width = 80, std::size_t height = 24) {
    std::vector<std::string> lines;
    for (const Line& line : view.draw(width, height)) lines.push_back(line.text());
    return lines;
  }
  static std::string all(View& view, std::size_t width = 80) {
    std::string text;
    for (const std::string& line : screen(view, width)) text += line + "\n";
    return text;
  }
  /// Names of the list, from above.
  static std::string order(View& view) {
    std::string names;
    for (const std::string& line : screen(view))
      for (const char* const name : {"alpha", "beta", "gamma"})
        if (line.find(std::string(" ") + name + " ") != std::string::npos && line.find("longest") == std::string::npos)
          names += std::string(name) + " ";
    return names;
  }
};

TEST_F(ViewTest, AScreenHasItsSizeWhateverThatIs) {
  live.add(interval(1));
  for (const char key : {'?', '?', 'p'}) {
    for (const std::size_t width : {1u, 2u, 7u, 20u, 80u, 120u, 200u, 500u}) {
      for (const std::size_t height : {1u, 2u, 3u, 10u, 24u, 60u}) {
        const Lines lines = live.draw(width, height);
        EXPECT_EQ(lines.size(), height);
        for (const Line& line : lines) EXPECT_LE(line.columns(), width);
      }
    }
    press(live, key);
  }
}

TEST_F(ViewTest, SaysWhatItWaitsForBeforeTheFirstInterval) {
  EXPECT_THAT(all(live), HasSubstr("looking for OCaml processes"));
  press(live, Kind::enter);
  press(live, Kind::left);
  press(live, Kind::down);
  EXPECT_THAT(all(live), HasSubstr("looking for OCaml processes"));
}

TEST_F(ViewTest, ListsTheLongestPausesFirstAndSortsByOtherColumns) {
  live.add(interval(1));
  EXPECT_EQ(order(live), "beta alpha gamma ");
  EXPECT_THAT(all(live), AllOf(HasSubstr("▼WORST"), HasSubstr("longest pause: 5.00ms in beta/1002")));
  press(live, 's');
  EXPECT_THAT(all(live), HasSubstr("▼GC%"));
  EXPECT_EQ(order(live), "alpha gamma beta ");
  press(live, 'S');
  EXPECT_EQ(order(live), "beta alpha gamma ");
  for (std::size_t i = 0; i < sort_names().size(); ++i) press(live, 's');
  EXPECT_THAT(all(live), HasSubstr("▼WORST")) << "all columns in turn";
}

TEST_F(ViewTest, EnterShowsTheProcessesOfAProgram) {
  Interval made = interval(1);
  ProcessFigures sum = process(0, "gamma", 50'000'000, 0.3);
  sum.pid = 0;
  sum.program = 7;
  sum.processes = 6;
  made.processes.clear();
  for (ProcessIndex index = 1; index <= 6; ++index) {
    made.processes.push_back(process(index, "gamma", index * 1'000'000, 0.3));
    made.processes.back().program = 7;
  }
  made.processes.push_back(process(7, "alpha", 100'000, 0.1));
  made.programs = {sum};
  live.add(std::move(made));
  EXPECT_EQ(order(live), "gamma alpha ");
  EXPECT_THAT(all(live), HasSubstr("x6"));
  press(live, Kind::enter);
  EXPECT_EQ(order(live), "gamma gamma gamma gamma gamma gamma ");
  EXPECT_THAT(all(live), HasSubstr("gamma, 6 processes"));
  press(live, Kind::enter);
  EXPECT_THAT(all(live), HasSubstr("gamma/1006, OCaml 5.3"));
  press(live, Kind::escape);
  press(live, Kind::escape);
  EXPECT_EQ(order(live), "gamma alpha ");
  for (const char key : {'/', '1', '0', '0', '3'}) press(live, key);
  press(live, Kind::enter);
  EXPECT_EQ(order(live), "gamma ") << "a pid finds the process";
  EXPECT_THAT(all(live), testing::ContainsRegex("1003"));
}

TEST_F(ViewTest, WiderScreensHaveMoreColumns) {
  live.add(interval(1));
  const auto titles = [&](std::size_t width) { return screen(live, width)[2]; };
  EXPECT_THAT(titles(80), AllOf(HasSubstr("WORST"), HasSubstr("GC%"), HasSubstr("HEAP"), HasSubstr("LAST MIN"),
                                Not(HasSubstr("ARRIVE"))));
  EXPECT_THAT(titles(120), AllOf(HasSubstr("LOST"), HasSubstr("WAIT%"), HasSubstr("WORST PAUSE, LAST MINUTE")));
  for (const Column& column : all_columns())
    EXPECT_THAT(titles(200), HasSubstr(std::string(column.title))) << column.title;
}

TEST_F(ViewTest, WideCharactersTakeTwoColumns) {
  Interval named = interval(1);
  named.processes[0].comm = "漢字の名前";
  live.add(std::move(named));
  const std::vector<std::string> lines = screen(live, 120);
  std::vector<std::size_t> ends;
  for (const std::string& line : lines)
    if (const std::size_t at = line.find(" B "); at != std::string::npos)
      ends.push_back(columns_of(line.substr(0, at)));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("漢字の名前")));
  EXPECT_THAT(ends, testing::Each(ends.at(0)));
}

TEST_F(ViewTest, AlarmingValuesAreMarkedWithoutColours) {
  live.add(interval(1, 200'000'000));
  EXPECT_THAT(all(live), AllOf(HasSubstr("60.0!"), HasSubstr("200ms!"), Not(HasSubstr("20.0!"))));
}

TEST_F(ViewTest, FiltersByNameAndPid) {
  live.add(interval(1));
  press(live, '/');
  for (const char c : {'g', 'a', 'q'}) press(live, c);
  EXPECT_EQ(order(live), "") << "q is a letter here";
  EXPECT_THAT(all(live), HasSubstr("no process matches the filter"));
  press(live, Kind::backspace);
  press(live, Kind::enter);
  EXPECT_EQ(order(live), "gamma ");
  EXPECT_THAT(all(live), HasSubstr("filter: ga (1 of 3)"));
  press(live, '/');
  press(live, 'x');
  press(live, Kind::escape);
  EXPECT_EQ(order(live), "gamma ") << "as before it was edited";
  press(live, Kind::escape);
  EXPECT_EQ(order(live), "beta alpha gamma ");
}

TEST_F(ViewTest, ASelectedProcessStaysSelected) {
  live.add(interval(1));
  press(live, Kind::down);
  EXPECT_THAT(all(live), HasSubstr(">    1001 alpha"));
  press(live, 's');
  EXPECT_THAT(all(live), HasSubstr(">    1001 alpha"));
  press(live, Kind::end);
  EXPECT_THAT(all(live), HasSubstr(">    1002 beta"));
  press(live, Kind::page_up);
  EXPECT_THAT(all(live), HasSubstr(">    1001 alpha"));
}

TEST_F(ViewTest, ALongListScrollsWithTheSelection) {
  Interval many = interval(1);
  for (ProcessIndex index = 4; index < 100; ++index) many.processes.push_back(process(index, "more", 10, 0));
  live.add(std::move(many));
  for (int i = 0; i < 60; ++i) press(live, Kind::down);
  EXPECT_THAT(all(live), HasSubstr(">"));
  press(live, Kind::end);
  EXPECT_THAT(all(live), HasSubstr(">    1099 more"));
  press(live, Kind::home);
  EXPECT_THAT(all(live), HasSubstr(">    1002 beta"));
}

TEST_F(ViewTest, ShowsOneProcess) {
  live.add(interval(1));
  press(live, Kind::enter);
  EXPECT_THAT(all(live), AllOf(HasSubstr("beta/1002, OCaml 5.3, 2 domains"), HasSubstr("WORST 5.00ms"),
                               HasSubstr("LONGEST PAUSES SINCE THE START"), HasSubstr("3 × own work"),
                               HasSubstr("running"), Not(HasSubstr("alpha"))));
  EXPECT_EQ(press(live, 'q'), View::Wish::none) << "back to the list";
  EXPECT_EQ(order(live), "beta alpha gamma ");
  EXPECT_EQ(press(live, 'q'), View::Wish::quit);
}

TEST_F(ViewTest, DetailsScrollToTheirEnd) {
  live.add(interval(1));
  press(live, Kind::enter);
  EXPECT_THAT(screen(live, 80, 10)[1], HasSubstr("beta/1002"));
  press(live, Kind::end);
  EXPECT_THAT(screen(live, 80, 10)[8], HasSubstr("the longest: 5.00ms"));
  press(live, Kind::home);
  EXPECT_THAT(screen(live, 80, 10)[1], HasSubstr("beta/1002"));
}

TEST_F(ViewTest, AReplayDoesNotEndInAnIntervalOfMilliseconds) {
  View replay({.sorted_by = column_named("worst"), .input = "a.fxt"});
  for (std::uint64_t second = 1; second <= 3; ++second) replay.add(interval(second));
  Interval rest = interval(4);
  rest.length_ns = 2'000'000;
  rest.is_partial = true;
  replay.add(std::move(rest));
  for (int i = 0; i < 9; ++i) replay.step();
  EXPECT_THAT(screen(replay)[0], AllOf(HasSubstr("[3 of 4, at its end]"), HasSubstr(" 3 s ")));
  press(replay, Kind::right);
  EXPECT_THAT(screen(replay, 120)[0], AllOf(HasSubstr("[4 of 4, paused]"), HasSubstr("of the last 2.00ms only")));
}

TEST_F(ViewTest, PausesAndGoesBackInTime) {
  for (std::uint64_t second = 1; second <= 5; ++second) live.add(interval(second));
  EXPECT_THAT(screen(live)[0], HasSubstr(" 5 s "));
  press(live, 'p');
  live.add(interval(6));
  EXPECT_THAT(screen(live)[0], AllOf(HasSubstr(" 5 s "), HasSubstr("[paused 1.00s ago]")));
  press(live, Kind::left);
  press(live, Kind::left);
  EXPECT_THAT(screen(live)[0], HasSubstr(" 3 s "));
  press(live, Kind::right);
  EXPECT_THAT(screen(live)[0], HasSubstr(" 4 s "));
  press(live, Kind::enter);
  EXPECT_THAT(all(live), HasSubstr("details are shown of now only"));
  press(live, 'p');
  EXPECT_THAT(screen(live)[0], AllOf(HasSubstr(" 6 s "), Not(HasSubstr("paused"))));
  EXPECT_THAT(all(live), HasSubstr("LONGEST PAUSES SINCE THE START"));
}

TEST_F(ViewTest, AReplayGoesOnByStepsUntilItsEnd) {
  View replay({.sorted_by = column_named("worst"), .input = "trace.fxt"});
  for (std::uint64_t second = 1; second <= 3; ++second) {
    Interval one = interval(second);
    one.details = {{.index = 2, .causes = {"cause of second " + std::to_string(second)}}};
    replay.add(std::move(one));
  }
  EXPECT_THAT(screen(replay)[0], AllOf(HasSubstr("trace.fxt"), HasSubstr("[1 of 3]")));
  press(replay, Kind::enter);
  EXPECT_THAT(all(replay), HasSubstr("cause of second 1"));
  replay.step();
  EXPECT_THAT(all(replay), HasSubstr("cause of second 2"));
  press(replay, 'p');
  replay.step();
  EXPECT_THAT(screen(replay)[0], HasSubstr("[2 of 3, paused]"));
  press(replay, 'p');
  for (int i = 0; i < 5; ++i) replay.step();
  EXPECT_THAT(screen(replay)[0], HasSubstr("[3 of 3, at its end]"));
  EXPECT_THAT(all(replay), Not(HasSubstr("d record")));
}

TEST_F(ViewTest, AProcessThatEndedIsSaidToHave) {
  live.add(interval(1));
  press(live, Kind::enter);
  Interval next = interval(2);
  std::erase_if(next.processes, [](const ProcessFigures& one) { return one.index == 2; });
  live.add(std::move(next));
  EXPECT_THAT(all(live), HasSubstr("the process has ended"));
}

TEST_F(ViewTest, AMessageStaysUntilTheNextKey) {
  live.add(interval(1));
  EXPECT_EQ(press(live, 'd'), View::Wish::dump);
  live.show_message("recording: /x.fxt.gz");
  EXPECT_THAT(screen(live).back(), "recording: /x.fxt.gz");
  press(live, Kind::other);
  EXPECT_THAT(screen(live).back(), StartsWith("Enter details"));
}

TEST_F(ViewTest, AnyKeysOnAnyScreenDoNoHarm) {
  std::mt19937 random(1);
  for (std::uint64_t step = 0; step < 3000; ++step) {
    if (step % 10 == 0) {
      Interval next = interval(step);
      std::erase_if(next.processes, [&](const ProcessFigures&) { return random() % 3 == 0; });
      live.add(std::move(next));
    }
    const auto kind = static_cast<Key::Kind>(random() % (static_cast<unsigned>(Kind::other) + 1));
    const Key key{.kind = kind, .character = kind == Kind::character ? static_cast<char>(' ' + random() % 95) : '\0'};
    live.press(key, random() % 30);
    for (const Line& line : live.draw(random() % 150, random() % 40)) ASSERT_EQ(test::terminal_danger(line.text()), "");
  }
}

TEST(IntervalHistory, ShowsTheLongestPauseOfEachMoment) {
  IntervalHistory history;
  for (const std::uint64_t worst_ns : {0, 50'000, 500'000, 5'000'000, 500'000'000}) history.add(interval(1, worst_ns));
  EXPECT_EQ(history.pauses_line({.index = 2}, 4, 5, 5), " ▁▃▅█");
  EXPECT_EQ(history.pauses_line({.index = 2}, 3, 5, 5), "  ▁▃▅") << "until an earlier one";
  EXPECT_EQ(history.pauses_line({.index = 2}, 4, 6, 3), " ▃█") << "two in a character: the longer one";
  EXPECT_EQ(history.pauses_line({.index = 7}, 4, 5, 5), "     ") << "not there";
}

TEST(IntervalHistory, ShowsTheHeapBetweenItsLeastAndItsGreatest) {
  IntervalHistory history;
  for (const std::uint64_t bytes : {10u, 20u, 80u}) {
    Interval one = interval(1);
    one.processes[0].heap_bytes = bytes;
    history.add(std::move(one));
  }
  EXPECT_EQ(history.heap_line(1, 2, 3, 3), "▁▂█");
  EXPECT_EQ(history.heap_line(2, 2, 3, 3), "▁▁▁") << "always the same";
}

TEST(IntervalHistory, ForgetsTheOldestIntervalsWhenThereIsNoRoom) {
  IntervalHistory history(10 * interval(1).bytes());
  for (std::uint64_t second = 1; second <= 100; ++second) history.add(interval(second));
  EXPECT_LE(history.size(), 10u);
  EXPECT_EQ(history.size() + history.forgotten(), 100u);
  EXPECT_EQ(history[history.size() - 1].elapsed_ns, 100'000'000'000u);
}

}  // namespace
}  // namespace rtev::top
