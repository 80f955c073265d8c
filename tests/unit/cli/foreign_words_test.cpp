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
      {{"pauses", "--csv"}, "rtev-bpf record -o FILE.csv"},
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
      {{"profile", "-p", "main.exe"}, "rtev-bpf profile --name 'main.exe' selects by name"},
      {{"top", "--pid", "main.exe"}, "rtev-bpf top --name 'main.exe' selects by name"},
      {{"-p", "1,2"}, "rtev-bpf -p PID -p PID, one for each"},
      {{"stats", "--attach", "1"}, "rtev-bpf stats -p PID"},
      {{"attach", "1"}, "rtev-bpf -p PID"},
      {{"stats", "-d", "5", "ms"}, "write a time without a blank: 5ms"},
      {{"stats", "--duration=5", "ms"}, "write a time without a blank: 5ms"},
      {{"record", "-t", "5"}, "rtev-bpf record -d TIME, e.g. -d 5s"},
      {{"record", "-a"}, "rtev-bpf record traces all OCaml processes without an option"},
      {{"record", "-g"}, "rtev-bpf record --stacks"},
      {{"profile", "-g"}, "rtev-bpf profile takes stacks without an option"},
      {{"profile", "-F", "99"}, "rtev-bpf profile --stack-rate N"},
      {{"latency", "--freq", "0.1"},
       "rtev-bpf latency --stack-rate N takes N stacks a second; rings are read as they fill"},
      {{"diff", "a.fxt"}, "rtev-bpf diff BEFORE.fxt AFTER.fxt; of one recording: rtev-bpf stats -i FILE.fxt"},
      {{"dump", "-p", "12"}, "rtev-bpf dump 12"},
      {{"pauses", "-i"}, "rtev-bpf pauses -i FILE.fxt, or without -i to trace what runs now"},
      {{"stats", "--top", "5"},
       "rtev-bpf pauses --top N, rtev-bpf stalls --top N; --full shows all rows of other reports"},
      {{"stats", "--interval", "1s"}, "rtev-bpf top -b --interval TIME, or rtev-bpf latency --interval TIME"},
      {{"trace", "out.fxt", "./prog"}, "rtev-bpf record -o FILE -- CMD, or rtev-bpf -- CMD to see its events now"},
      {{"gc-stats", "./prog"}, "rtev-bpf stats, or rtev-bpf latency --olly as olly prints it"},
      {{"script"}, "rtev-bpf dump FILE"},
      {{"annotate"}, "rtev-bpf profile --by line"},
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
  const auto none = [](const std::string&) { return false; };
  EXPECT_FALSE(hint_for_foreign_word("", "rtev-bpf", none));
  EXPECT_FALSE(hint_for_foreign_word("=", "rtev-bpf", none));
  EXPECT_FALSE(hint_for_foreign_word("--attach", "rtev-bpf diff", none)) << "which has no -p";
}

}  // namespace
}  // namespace rtev::cli
