// SPDX-License-Identifier: MIT
// Command lines of rtev-bpf: what is accepted, and the exit status and messages of what is not.
#include "cli/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "support/temp_dir.hpp"
#include "unit/cli/child.hpp"

namespace rtev::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::PrintToString;
using ::testing::StartsWith;
using Strings = std::vector<std::string>;

struct Outcome {
  std::optional<int> status;  ///< nothing: accepted, and not run
  std::string out, err;
};

enum class Run : bool { no, yes };

Outcome command_line(Strings arguments, Run run = Run::no) {
  arguments.insert(arguments.begin(), "rtev-bpf");
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const auto parsed = CommandLine().parse(std::move(arguments));
  Outcome outcome;
  if (!parsed)
    outcome.status = parsed.error();
  else if (run == Run::yes)
    outcome.status = test::run_in_child(*parsed);
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(CommandLine, AcceptsOptionsOfEachSubcommand) {
  const Strings cases[] = {
      {},
      {"-p", "1", "-p", "2", "-n", "web*", "-n", "db", "-d", "1.5s", "-q", "-v"},
      {"-o", "x.jsonl.gz", "-f", "jsonl", "--color", "never", "--events", "user,minor*"},
      {"--sched", "all", "--save-rings", "known", "--history", "--buffer", "64M", "--ocaml-version", "5.2"},
      {"--ringless", "--ringless-limit", "1000"},
      {"--", "sh", "-c", "--no-such-option"},
      {"record", "-o", "x", "-p", "1", "--", "sleep", "5"},
      {"ps", "-p", "1", "-n", "web*", "-d", "1ms"},
      {"record"},
      {"record", "--max-size", "1G"},
      {"record", "-o", "x.fxt", "--sched", "all", "--", "true"},
      {"-f", "json"},
      {"stats", "-f", "jsonl"},
      {"ps", "-f", "json"},
      {"ps", "-q", "-n", "web*"},
      {"record", "-o", "x.fxt", "--max-size", "1G", "--max-files", "2", "--min-free", "10%"},
      {"-o", "x.jsonl", "--max-size", "256k", "--min-free", "0"},
      {"convert", "x.fxt", "-o", "y", "-f", "pftrace", "-p", "1", "--events", "user"},
      {"record", "-o"},
      {"record", "-o", "-d", "1s"},
      {"record", "-o", "--", "true"},
      {"record", "--max-size", "1M", "--output"},
      {"-o"},
      {"stats", "-o", "-f", "json"},
      {"stats", "-o", "x.json"},
      {"stats", "-o", "x.data", "-f", "text"},
      {"-o", "x.json", "-f", "json"},
      {"pauses", "-i", "x.fxt", "-v", "--around", "15:00"},
      {"dump", "1234", "-f", "jsonl", "--color", "always"},
      {"dump", "-"},
      {"latency", "--phase", "minor", "--min", "1ms", "--interval", "1s", "--full", "--olly", "--", "true"},
      {"pauses", "--top", "1000", "--min", "1us", "-i", "x.fxt", "-p", "1"},
      {"stalls", "--top", "100", "--min", "10ms", "-i", "x.fxt", "--full", "--fail-if", "max>1s"},
      {"tasks", "--min", "1ms", "-i", "x.fxt", "--full", "--fail-if", "max>50ms"},
      {"latency", "--span", "request>20ms", "--fail-if", "p99>1s"},
      {"stats", "-f", "json", "-o", "-", "--sched", "off"},
      {"profile", "--by", "gc-phase", "--in", "pause>10ms", "--full", "-i", "x.fxt"},
      {"profile", "--off-cpu", "--stack-rate", "999", "-d", "1s"},
      {"profile", "--off-cpu", "5ms", "-o", "x.folded", "--", "true"},
      {"profile", "-o", "x.speedscope.json"},
      {"allocs", "-o", "x.pb.gz", "-p", "1"},
      {"allocs", "-o", "x.json", "-f", "json"},
      {"diff", "a.fxt", "b.fxt"},
      {"diff", "a.fxt", "-", "-n", "web*", "--from", "10", "--min-change", "10%", "--fail-on-regression", "-f", "json"},
      {"doctor"},
  };
  for (const Strings& arguments : cases) {
    const Outcome outcome = command_line(arguments);
    EXPECT_FALSE(outcome.status) << PrintToString(arguments) << outcome.err;
    EXPECT_EQ(outcome.out + outcome.err, "") << PrintToString(arguments);
  }
}

TEST(CommandLine, RefusesWrongUsage) {
  const struct {
    Strings arguments;
    const char* error;  ///< a regular expression; what the first line has to name
  } cases[] = {
      {{"--no-such-option"}, "--no-such-option"},
      {{"stray", "--other"}, "unexpected argument 'stray'"},
      {{"record", "-o", "-z"}, "unexpected argument '-z'"},
      {{"convert", "x.fxt", "-o"}, "--output"},
      {{"-o", ""}, "--output"},
      {{"-f", "xml"}, "--format: 'xml' .*text\\|json\\|fxt"},
      {{"-d", "banana"}, "--duration: 'banana'"},
      {{"-d", "-1s"}, "--duration"},
      {{"-d", "0"}, "--duration: '0'"},
      {{"-p", "abc"}, "--pid: 'abc'"},
      {{"-p", "0"}, "--pid: '0'"},
      {{"--sched", "some"}, "--sched: 'some' .*off\\|ocaml\\|all"},
      {{"--save-rings", "some"}, "--save-rings: 'some' .*off\\|known\\|all"},
      {{"--drain", "all"}, "--drain"},
      {{"diff", "a.fxt"}, "B is required"},
      {{"diff", "a.fxt", "b.fxt", "--min-change", "5"}, "--min-change: '5'"},
      {{"diff", "a.fxt", "b.fxt", "c.fxt"}, "unexpected argument 'c.fxt'"},
      {{"--color", "red"}, "--color: 'red'"},
      {{"--buffer", "lots"}, "--buffer: 'lots'"},
      {{"--ocaml-version", "4.14"}, "--ocaml-version: '4.14'"},
      {{"--events", "phase,,user"}, "--events"},
      {{"--ringless-limit", "100"}, "--ringless-limit .*--ringless"},
      {{"--ringless", "--ringless-limit", "9"}, "--ringless-limit: '9' .* 10 to "},
      {{"--"}, "--"},
      {{"--sched", "all", "ps"}, "--sched must follow ps"},
      {{"-p", "1", "ps"}, "--pid must follow ps"},
      {{"-f", "jsonl", "dump", "1"}, "--format must follow dump"},
      {{"-q", "doctor"}, "--quiet must follow doctor"},
      {{"ps", "--nope"}, "--nope"},
      {{"ps", "--", "true"}, "ps "},
      {{"dump"}, "INPUT"},
      {{"dump", ""}, "INPUT"},
      {{"dump", "1", "--sched", "all"}, "--sched"},
      {{"convert", "x.fxt"}, "--output"},
      {{"convert", "", "-o", "x"}, "INPUT"},
      {{"record", "-o", "x", "--max-size", "1k"}, "--max-size"},
      {{"record", "-o", "x", "--max-files", "3"}, "--max-size"},
      {{"record", "-o", "x", "--max-size", "1M", "--max-files", "1"}, "--max-files"},
      {{"record", "-o", "x", "--min-free", "101%"}, "--min-free"},
      {{"--max-size", "1M"}, "--output"},
      {{"record", "-o", "x", "-f", "jsonl.gz"}, "--format"},
      {{"latency", "--phase", "lunch"}, "--phase: 'lunch'"},
      {{"latency", "--phase", "mniro"}, "--phase: 'mniro' is not a phase"},
      {{"latency", "--fail-if", "p99>5"}, "--fail-if: 'p99>5' is not a limit"},
      {{"latency", "--interval", "0"}, "--interval"},
      {{"latency", "--top", "3"}, "--top"},
      {{"pauses", "--min", "long"}, "--min: 'long'"},
      {{"pauses", "--top", "0"}, "--top: '0' .* 1 to 1000"},
      {{"pauses", "--top", "ten"}, "--top: 'ten'"},
      {{"pauses", "--top", "1000001"}, "--top: '1000001'"},
      {{"stats", "-f", "fxt"}, "--format: 'fxt' .*text\\|json"},
      {{"-o", "x.foo"}, "x.foo: no format has the suffix '.foo'"},
      {{"record", "-o", "x.fxt", "-f", "json"}, "x.fxt: its suffix is that of fxt, and -f asks for jsonl"},
      {{"dump", "x.fxt", "-o", "x.html"}, "x.html"},
      {{"latency", "-o", "x.foo"}, "x.foo: no report has the suffix '.foo'"},
      {{"stats", "-o", "x.fxt", "-f", "json"}, "x.fxt: no report has the suffix"},
      {{"stats", "-o", "x.json", "-f", "text"}, "x.json: -f asks for text"},
      {{"stats", "-o", "x.txt", "-f", "json"}, "x.txt: -f asks for JSON"},
      {{"stats", "-o", "x.txt.gz"}, "x.txt.gz: reports are not compressed"},
      {{"profile", "-o", "x.foo"}, "x.foo: no report has the suffix '.foo'"},
      {{"profile", "-o", "x.html", "-f", "json"}, "x.html: -f asks for JSON"},
      {{"profile", "--by", "month"}, "--by: 'month' .*function\\|line"},
      {{"profile", "--in", "request>20"}, "--in: 'request>20'"},
      {{"profile", "--off-cpu", "long"}, "--off-cpu: 'long'"},
      {{"profile", "-i", "x.fxt", "--stack-rate", "9"}, "--input .*--stack-rate"},
      {{"latency", "-o", "x.pb.gz"}, "x.pb.gz: reports are not compressed"},
      {{"latncy"}, "latncy"},
      {{"stats", "-i", ""}, "--input"},
      {{"stats", "-i", "1.events", "--sched", "all"}, "--input .*--sched"},
      {{"pauses", "-i", "1.events", "--ringless"}, "--input .*--ringless"},
      {{"latency", "-i", "1.events", "--save-rings", "all"}, "--input .*--save-rings"},
      {{"latency", "-i", "1.events", "--history"}, "--input .*--history"},
      {{"agent", "--max-disk", "1G"}, "--max-disk needs --keep or --on"},
      {{"record", "--exec", "/bin/true"}, "--exec needs --keep or --on"},
      {{"latency", "-i", "1.events", "--buffer", "1M"}, "--input .*--buffer"},
      {{"stats", "-i", "x.fxt", "--", "true"}, "--input"},
  };
  for (const auto& expected : cases) {
    const Outcome outcome = command_line(expected.arguments);
    EXPECT_EQ(outcome.status, 2) << PrintToString(expected.arguments);
    EXPECT_THAT(outcome.out, IsEmpty()) << PrintToString(expected.arguments);
    EXPECT_THAT(outcome.err, AllOf(StartsWith("rtev-bpf: "), HasSubstr("\nhint: ")))
        << PrintToString(expected.arguments);
    EXPECT_THAT(outcome.err.substr(0, outcome.err.find('\n')), ContainsRegex(expected.error))
        << PrintToString(expected.arguments);
  }
}

TEST(CommandLine, SuggestsWhatMayHaveBeenMeant) {
  const struct {
    Strings arguments;
    const char* word;
  } cases[] = {
      {{"latncy"}, "latency"},
      {{"pasues", "-d", "1s"}, "pauses"},
      {{"stats", "--duratoin", "1s"}, "--duration"},
      {{"--pdi=1"}, "--pid"},
  };
  for (const auto& expected : cases)
    EXPECT_THAT(command_line(expected.arguments).err,
                HasSubstr("hint: did you mean " + std::string(expected.word) + "?"))
        << PrintToString(expected.arguments);
  EXPECT_THAT(command_line({"xyz"}).err, Not(HasSubstr("did you mean")));
}

TEST(CommandLine, HintsAtTheOptionThatAStrayArgumentNeeds) {
  const test::TempDir dir;
  const std::string program = dir / "program", file = dir / "file";
  for (const std::string& path : {program, file}) std::ofstream(path) << "content";
  std::filesystem::permissions(program, std::filesystem::perms(0755));
  const struct {
    Strings arguments;
    std::string hint;
  } cases[] = {
      {{"record", program}, "rtev-bpf record -- " + program},
      {{"record", "-d", "5s", "./no/such"}, "rtev-bpf record -- ./no/such"},
      {{program, "--port", "80"}, "rtev-bpf -- " + program},
      {{"pauses", file}, "rtev-bpf pauses -i " + file},
      {{"pauses", "/tmp/x.fxt"}, "rtev-bpf pauses -i /tmp/x.fxt"},
      {{"x.fxt"}, "rtev-bpf dump x.fxt"},
      {{"latency", "1234"}, "rtev-bpf latency -p 1234"},
      {{"ps", "1234"}, "rtev-bpf ps -p 1234"},
      {{"record", "server"}, "rtev-bpf record --help lists options; to start a program, write -- before it"},
      {{"ps", "./server"}, "rtev-bpf ps --help lists options"},
      {{"./x\033"}, "rtev-bpf -- ./x\\x1B"},
  };
  for (const auto& expected : cases)
    EXPECT_THAT(command_line(expected.arguments).err, ::testing::EndsWith("\nhint: " + expected.hint + "\n"))
        << PrintToString(expected.arguments);
}

TEST(CommandLine, MistypedPhaseGetsASuggestionInOneLine) {
  const std::string error = command_line({"latency", "--phase", "mniro"}).err;
  const std::string hint = error.substr(error.find("\nhint: ") + 1);
  EXPECT_THAT(hint, StartsWith("hint: did you mean minor? "));
  EXPECT_LE(hint.size(), 160u);
}

TEST(CommandLine, HelpOfASubcommandIsHelpOrAnOption) {
  EXPECT_EQ(command_line({"help", "stats"}).out, command_line({"stats", "--help"}).out);
  EXPECT_EQ(command_line({"help"}).out, command_line({"--help"}).out);
  EXPECT_EQ(command_line({"help", "stats"}).status, 0);
  const auto mistyped = command_line({"help", "latncy"});
  EXPECT_EQ(mistyped.status, 2);
  EXPECT_EQ(mistyped.err, "rtev-bpf: no subcommand is called 'latncy'\nhint: did you mean latency?\n");
  EXPECT_THAT(command_line({"help", "\033x"}).err,
              AllOf(Not(HasSubstr("\033")), HasSubstr("\nhint: rtev-bpf --help lists subcommands\n")));
}

TEST(CommandLine, HintsAtTheHelpOfTheSubcommand) {
  EXPECT_THAT(command_line({"-d", "x"}).err, HasSubstr("\nhint: rtev-bpf --help\n"));
  EXPECT_THAT(command_line({"pauses", "--top", "x"}).err, HasSubstr("\nhint: rtev-bpf pauses --help\n"));
  EXPECT_THAT(command_line({"record", "-o", "x", "-f", "jsonl.gz"}).err, HasSubstr("\nhint: to compress"));
}

TEST(CommandLine, SaysWhichOptionsCannotBeUsedTogether) {
  EXPECT_EQ(command_line({"record", "--keep", "3s", "-o", "x"}).err,
            "rtev-bpf: --output cannot be used with --keep\nhint: rtev-bpf record --help\n");
}

TEST(CommandLine, FailsWithStatus1AndAHintIfAFileCannotBeUsed) {
  const test::TempDir dir;
  std::ofstream(dir / "garbage.fxt") << "this is not a recording";
  const std::string missing = dir / "missing.events", garbage = dir / "garbage.fxt", folder = dir.path(),
                    no_folder = dir / "no/such/folder/file", self = std::to_string(::getpid());
  const struct {
    Strings arguments;
    std::string subject;
  } cases[] = {{{"dump", missing}, missing},
               {{"dump", garbage}, garbage},
               {{"dump", folder}, folder},
               {{"dump", self}, self},
               {{"dump", garbage, "-p", "1"}, garbage},
               {{"convert", missing, "-o", dir / "out.fxt"}, missing},
               {{"latency", "-i", missing}, missing},
               {{"pauses", "-i", garbage}, garbage},
               {{"stats", "-i", folder}, folder},
               {{"diff", missing, garbage}, missing},
               {{"diff", garbage, garbage}, garbage},
               {{"-d", "1s", "-o", no_folder}, no_folder},
               {{"record", "-d", "1s", "-o", no_folder}, no_folder},
               {{"stats", "-d", "1s", "-o", no_folder}, no_folder}};
  for (const auto& expected : cases) {
    const Outcome outcome = command_line(expected.arguments, Run::yes);
    EXPECT_EQ(outcome.status, 1) << PrintToString(expected.arguments);
    EXPECT_THAT(outcome.out, IsEmpty()) << PrintToString(expected.arguments);
    EXPECT_THAT(outcome.err, AllOf(StartsWith("rtev-bpf: "), HasSubstr(expected.subject), HasSubstr("\nhint: ")))
        << PrintToString(expected.arguments);
  }
  EXPECT_FALSE(std::filesystem::exists(dir / "out.fxt")) << "nothing was read";
}

TEST(CommandLine, PrintsItsVersion) {
  const Outcome outcome = command_line({"--version"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, ::testing::MatchesRegex("rtev-bpf [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

/// The help of rtev-bpf itself and of each subcommand.
std::vector<Strings> all_helps() {
  const CommandLine rtev_bpf;
  std::vector<Strings> helps{{"--help"}, {"--help-all"}};
  for (const CLI::App* app : rtev_bpf.app().get_subcommands({})) {
    helps.push_back({app->get_name(), "-h"});
    helps.push_back({app->get_name(), "--help-all"});
  }
  return helps;
}

TEST(CommandLine, HelpFitsIn100Columns) {
  for (const Strings& arguments : all_helps()) {
    const Outcome help = command_line(arguments);
    EXPECT_EQ(help.status, 0);
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) {
      const auto columns = std::ranges::count_if(line, [](char byte) { return (byte & 0xc0) != 0x80; });
      EXPECT_LE(columns, 100) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
}

TEST(CommandLine, HelpHasEachOptionAndCmd) {
  const CommandLine rtev_bpf;
  for (const CLI::App* app : rtev_bpf.app().get_subcommands({})) {
    const std::string help = command_line({app->get_name(), "--help-all"}).out;
    EXPECT_THAT(help, HasSubstr("Usage: rtev-bpf " + app->get_name()));
    for (const CLI::Option* option : app->get_options())
      EXPECT_THAT(help, HasSubstr(option->get_positional() ? option->get_name(true) : option->get_name()));
    const bool traces =
        app->get_option_no_throw("--sched") != nullptr && app->get_name() != "agent" && app->get_name() != "top";
    EXPECT_EQ(help.contains("[-- CMD ARG...]"), traces) << app->get_name();
  }
  const std::string help = command_line({"--help-all"}).out;
  for (const CLI::Option* option : rtev_bpf.app().get_options()) EXPECT_THAT(help, HasSubstr(option->get_name()));
  EXPECT_LT(help.find("Subcommands:"), help.find("Options:"));
  EXPECT_THAT(command_line({"ps", "--help"}).out, Not(HasSubstr("Examples:"))) << "the footer of rtev-bpf itself";
}

TEST(CommandLine, HelpHasTheOptionsThatMostPeopleNeed) {
  const std::string help = command_line({"--help"}).out;
  for (const char* option :
       {"--pid", "--name", "--duration", "--output", "--format", "--events", "--enable", "--sched"})
    EXPECT_THAT(help, HasSubstr(option));
  for (const char* option : {"--save-rings", "--memory-limit", "--priority", "--min-free"})
    EXPECT_THAT(help, Not(HasSubstr(option)));
  EXPECT_THAT(help, ContainsRegex("\n[0-9]+ more options: rtev-bpf --help-all\n"));
  EXPECT_THAT(help, HasSubstr("\nExamples:\n"));
  EXPECT_LE(std::ranges::count(help, '\n'), 51);
  const std::string options =
      help.substr(help.find("\nOptions:\n"), help.find(" more options: ") - help.find("\nOptions:\n"));
  const std::regex option("\n  (-|    --)");
  EXPECT_EQ(std::distance(std::sregex_iterator(options.begin(), options.end(), option), std::sregex_iterator()), 8);
  const std::string record = command_line({"record", "--help"}).out;
  EXPECT_THAT(record, HasSubstr("more options: rtev-bpf record --help-all\n\nExamples:\n"));
  EXPECT_THAT(command_line({"doctor", "--help"}).out, Not(HasSubstr("more options")));
}

}  // namespace
}  // namespace rtev::cli
