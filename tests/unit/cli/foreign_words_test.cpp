// SPDX-License-Identifier: MIT
// What is said to who knows other tools. Each command of a hint has to exist.
#include "cli/foreign_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace rtev::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using WordList = std::vector<std::string>;

std::string refusal(WordList arguments) {
  arguments.insert(arguments.begin(), "rtev-bpf");
  ::testing::internal::CaptureStderr();
  const auto parsed = CommandLine().parse(std::move(arguments));
  EXPECT_FALSE(parsed);
  return ::testing::internal::GetCapturedStderr();
}

TEST(ForeignWords, GetTheCommandThatIsMeant) {
  const struct {
    WordList arguments;
    std::string hint;
  } cases[] = {
      {{"stats", "--json", "-d", "1s"}, "rtev-bpf stats -f json"},
      {{"--json"}, "rtev-bpf -f json"},
      {{"ps", "-j"}, "rtev-bpf ps -f json"},
      {{"pauses", "--csv"}, "rtev-bpf record -o FILE.csv has the events; reports are text or JSON (-f json)"},
      {{"stats", "--csv"}, "rtev-bpf record -o FILE.csv has the events; reports are text or JSON (-f json)"},
      {{"dump", "-i", "a.fxt"}, "rtev-bpf dump FILE"},
      {{"-i", "a.fxt"}, "rtev-bpf dump FILE shows its events, rtev-bpf summary -i FILE sums them up"},
      {{"diff", "-i", "a.fxt", "b.fxt"}, "rtev-bpf diff A.fxt B.fxt"},
      {{"diff", "a.fxt", "b.fxt", "c.fxt"}, "rtev-bpf diff A.fxt B.fxt compares two"},
      {{"convert", "a.fxt", "b.json"}, "rtev-bpf convert a.fxt -o b.json"},
      {{"convert", "a.fxt", "b"}, "rtev-bpf convert a.fxt -o b"},
      {{"record", "a.fxt"}, "rtev-bpf record -o a.fxt"},
      {{"report", "-i", "a.fxt", "b.html"}, "rtev-bpf report -o b.html"},
      {{"report", "a.fxt"}, "rtev-bpf report -i a.fxt"},
      {{"stats", "-i", "a.fxt", "b.fxt"}, "rtev-bpf stats reads one file at a time; rtev-bpf diff compares two"},
      {{"dump", "a.fxt", "b.fxt"}, "rtev-bpf dump reads one file at a time; rtev-bpf diff compares two"},
      {{"-e", "gc"}, "rtev-bpf --events LIST, e.g. --events 'user,minor*'"},
      {{"stats", "-e", "gc"}, "rtev-bpf --events LIST, e.g. --events 'user,minor*'"},
      {{"stats", "--table"}, "rtev-bpf stats -f text"},
      {{"top", "--once"}, "rtev-bpf top -b -n 1"},
      {{"stats", "--once"}, "rtev-bpf stats -d 1s"},
      {{"flame"}, "rtev-bpf profile -o FILE.html writes a flame graph, -o FILE.folded its input for other tools"},
      {{"olly", "gc-stats", "./prog"},
       "rtev-bpf latency --olly -- CMD is like olly gc-stats, rtev-bpf record -o FILE.fxt -- CMD like olly trace"},
      {{"perf", "record"},
       "rtev-bpf profile is like perf record and report, rtev-bpf stats like perf stat, rtev-bpf top like perf top"},
      {{"top", "-n", "main.exe"}, "rtev-bpf top --name 'main.exe' selects by name, -b -n N ends after N intervals"},
      {{"stats", "-d", "5", "sec"}, "write a time without a blank: 5s"},
      {{"-d", "1.5", "minutes"}, "write a time without a blank: 1.5m"},
      {{"stats", "-d", "5sec"}, "rtev-bpf stats -d 5s"},
      {{"-f", "./prog"}, "children are traced without an option: rtev-bpf -- CMD, or rtev-bpf -p PID"},
      {{"-ff"}, "children are traced without an option: rtev-bpf -- CMD, or rtev-bpf -p PID"},
      {{"-f", "-p", "1"}, "children are traced without an option: rtev-bpf -- CMD, or rtev-bpf -p PID"},
      {{"-c", "./prog"}, "rtev-bpf -- CMD starts and traces a program, rtev-bpf summary -- CMD sums it up"},
      {{"-s", "200"}, "rtev-bpf top --sort gc, or another column: --help lists them"},
      {{"top", "--delay", "5"}, "rtev-bpf top --interval TIME, e.g. --interval 5s"},
      {{"sched", "latency"}, "rtev-bpf latency shows waits for a CPU, rtev-bpf --sched all each switch"},
      {{"--tool=massif", "./x"}, "rtev-bpf allocs: who allocates; rtev-bpf stats: heaps"},
      {{"profile", "--flamegraph"},
       "rtev-bpf profile -o FILE.html writes a flame graph, -o FILE.folded its input for other tools"},
      {{"profile", "--flame=x.svg"},
       "rtev-bpf profile -o FILE.html writes a flame graph, -o FILE.folded its input for other tools"},
      {{"profile", "-f", "flamegraph"},
       "rtev-bpf profile -o FILE.html writes a flame graph, -o FILE.folded its input for other tools"},
      {{"record", "--perfetto"}, "rtev-bpf record -o FILE.fxt, or FILE.pftrace: ui.perfetto.dev opens both"},
      {{"convert", "a.fxt", "--perfetto"}, "rtev-bpf record -o FILE.fxt, or FILE.pftrace: ui.perfetto.dev opens both"},
      {{"-f", "fuchsia"}, "rtev-bpf record -o FILE.fxt, or FILE.pftrace: ui.perfetto.dev opens both"},
      {{"stats", "--html"}, "rtev-bpf report -o FILE.html"},
      {{"record", "-o", "x.html"},
       "rtev-bpf report -o FILE.html writes one, rtev-bpf profile -o FILE.html a flame graph, both also of a "
       "recording (-i)"},
      {{"profile", "-p", "main.exe"}, "rtev-bpf profile --name 'main.exe'"},
      {{"top", "--pid", "main.exe"}, "rtev-bpf top --name 'main.exe'"},
      {{"-p", "12,34"}, "rtev-bpf -p 12 -p 34"},
      {{"--pid", "a,b"}, "rtev-bpf --name 'a' --name 'b'"},
      {{"stats", "-p", "12,main.exe"}, "rtev-bpf stats --name '12' --name 'main.exe'"},
      {{"stats", "--attach", "1"}, "rtev-bpf stats -p PID"},
      {{"attach", "1"}, "rtev-bpf -p PID"},
      {{"start", "1"}, "rtev-bpf -- CMD starts a program, rtev-bpf enable -p PID the events of one that runs"},
      {{"stop"}, "rtev-bpf disable -p PID"},
      {{"stats", "-d", "5", "ms"}, "write a time without a blank: 5ms"},
      {{"stats", "--duration=5", "ms"}, "write a time without a blank: 5ms"},
      {{"record", "-t", "5"}, "rtev-bpf record -d TIME, e.g. -d 5s"},
      {{"record", "-a"}, "rtev-bpf record traces all OCaml processes without an option"},
      {{"record", "-g"}, "rtev-bpf record --stacks"},
      {{"profile", "-g"}, "rtev-bpf profile takes stacks without an option"},
      {{"profile", "-F", "99"}, "rtev-bpf profile --stack-rate N"},
      {{"record", "-F", "99"}, "rtev-bpf record --stacks --stack-rate N"},
      {{"latency", "--freq", "0.1"},
       "rtev-bpf latency --stacks --stack-rate N takes N stacks a second; rings are read as they fill"},
      {{"diff", "a.fxt"}, "rtev-bpf diff BEFORE.fxt AFTER.fxt; of one recording: rtev-bpf stats -i FILE.fxt"},
      {{"dump", "-p", "12"}, "rtev-bpf dump 12"},
      {{"pauses", "-i"}, "rtev-bpf pauses -i FILE.fxt, or without -i to trace what runs now"},
      {{"stats", "--top", "5"},
       "rtev-bpf pauses --top N, rtev-bpf stalls --top N; --full shows all rows of other reports"},
      {{"stats", "--interval", "1s"}, "rtev-bpf top -b --interval TIME, or rtev-bpf latency --interval TIME"},
      {{"trace", "out.fxt", "./prog"}, "rtev-bpf record -o FILE.fxt -- CMD, or rtev-bpf -- CMD to see its events now"},
      {{"gc-stats", "./prog"}, "rtev-bpf stats, or rtev-bpf latency --olly as olly prints it"},
      {{"script"}, "rtev-bpf dump FILE"},
      {{"profile", "--folded"}, "rtev-bpf profile -o FILE.folded"},
      {{"profile", "-f", "folded"}, "rtev-bpf profile -o FILE.folded"},
      {{"convert", "a.fxt", "-f", "folded", "-o", "x"}, "rtev-bpf profile -o FILE.folded"},
      {{"hist"}, "rtev-bpf latency --full shows percentiles, rtev-bpf agent has histograms"},
      {{"latency", "--histogram"}, "rtev-bpf latency --full shows percentiles, rtev-bpf agent has histograms"},
      {{"convert", "a.fxt", "--to", "perfetto"},
       "rtev-bpf convert FILE -o OTHER: the suffix of OTHER says the format, or -f does; --to is a time"},
      {{"annotate"}, "rtev-bpf profile --by line"},
      {{"allocs", "--by", "line"}, "rtev-bpf profile --by line, or another word: --help lists them"},
      {{"pauses", "--phase", "minor"}, "rtev-bpf latency --phase NAME"},
      {{"spans"}, "rtev-bpf latency --span '*' has the spans that programs mark"},
      {{"-V"}, "rtev-bpf --version"},
  };
  for (const auto& expected : cases)
    EXPECT_THAT(refusal(expected.arguments), EndsWith("\nhint: " + expected.hint + "\n"))
        << ::testing::PrintToString(expected.arguments);
}

TEST(ForeignWords, DoNotHideWhatIsKnown) {
  EXPECT_THAT(refusal({"stat"}), HasSubstr("did you mean stats?"));
  EXPECT_THAT(refusal({"stats", "-p", "-1"}), Not(HasSubstr("--name")));
  EXPECT_THAT(refusal({"stats", "ms"}), Not(HasSubstr("blank")));
  EXPECT_THAT(refusal({"-y"}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(refusal({"stats", "-p", "0,1"}), Not(HasSubstr("-p 0")));
  const auto none = [](const std::string&) { return false; };
  EXPECT_FALSE(hint_for_foreign_word("", "rtev-bpf", none));
  EXPECT_FALSE(hint_for_foreign_word("=", "rtev-bpf", none));
  EXPECT_FALSE(hint_for_foreign_word("--attach", "rtev-bpf diff", none)) << "which has no -p";
}

}  // namespace
}  // namespace rtev::cli
