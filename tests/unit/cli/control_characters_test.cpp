// SPDX-License-Identifier: MIT
// What strangers and file names can make of a terminal: nothing. Hostile strings in every field of recordings and rings
// and in the command line, through every command that needs no kernel.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/messages.hpp"
#include "formats/fxt/fxt_sink.hpp"
#include "formats/output/output.hpp"
#include "support/files.hpp"
#include "support/ring_file_builder.hpp"
#include "support/temp_dir.hpp"
#include "support/terminal_check.hpp"
#include "unit/cli/child.hpp"
#include "unit/stream/world.hpp"

namespace rtev::cli {
namespace {

using Arguments = std::vector<std::string>;

std::vector<std::string> hostile_texts() {
  std::vector<std::string> texts = test::hostile_strings();
  texts.insert(texts.end(), {"\r", "\x1b[31m", "\x85", "\xc2\x85",
                             "\xe2\x80\xae"
                             "abc",
                             "\xd8\x9c", "\xe2\x81\xa6"});
  return texts;
}

/// What can be part of a file name.
std::string as_file_name(std::string text) {
  std::erase_if(text, [](char c) { return c == '\0' || c == '/'; });
  return text.substr(0, 100);
}

/// A process whose every string is this, with events of every kind, also from other processes, and losses.
void write_recording(const std::filesystem::path& path, const std::string& text) {
  ProcessInfo info = test::World::default_info();
  info.name = info.comm = info.exe = info.runtime = info.version = info.ring_path = text;
  test::World world(info);
  info.pid = 4243;
  info.runtime = ocaml_runtime;
  const ProcessIndex other = world.registry.add_process(info);
  world.user_names = {{3, text}};
  StringOutput file;
  FxtSink sink(file, {.max_held_ns = 0});
  sink.header(
      {.version = text, .host = text, .kernel = text, .machine = text, .command_line = {text, text}, .start_ns = 1});
  test::Events ring(world.slot), host(0);
  using enum EventKind;
  ring.add("10 >major 15 >minor 20 <minor 2000030 <major 2000040 [3 2000050 ]3 2000060 !ring_start 2000070 ?");
  ring.add(2'000'100, user_unit, 3).add(2'000'110, user_int, 3, 5).add_bytes(2'000'120, user_custom, text, 3);
  ring.add(2'000'130, counter, 5, 7).add(2'000'140, begin, 4000).add(2'000'150, user_begin, 4).late();
  for (std::uint16_t action = 0; action < 9; ++action) {
    for (const ProcessIndex process : {world.process, other})
      host.add_record(2'000'200, EventKind::process, ProcessRecord{.process = process, .peer = 1, .detail = 0}, action);
  }
  Thread ours = test::make_thread(4242, 4242, text, true), stranger = test::make_thread(1, 1, text, false);
  ours.domain = 0;
  ours.role = ThreadRole::mutator;
  const auto change = [](const Thread& from, const Thread& to) {
    return SchedSwitch{.cpu = 1, .state = LeftState::preempted, .prev = from, .next = to};
  };
  test::Events before(0), after(0);
  before.add_record(5, sched_switch, change(stranger, ours)).add_record(7, sched_switch, change(ours, stranger));
  after.add_record(2'000'300, sched_switch, change(stranger, ours));
  after.add_record(2'000'310, wakeup, Wakeup{.cpu = 1, .woken = ours, .by = stranger});
  for (const test::Events* events : {&before, &ring, &host, &after}) sink.consume(events->batch(), world.registry);
  sink.summary({.start_ns = 1, .end_ns = 2'000'400, .drops = {{.kind = text, .count = 1}}}, world.registry);
  std::ofstream(path, std::ios::binary) << file.text();
}

class ControlCharacters : public testing::TestWithParam<std::string> {
 protected:
  struct Printed {
    std::string out, err;
  };

  enum class Run : bool { no, yes };

  /// Parses and runs a command line, and checks what it prints.
  Printed run(Arguments arguments, Run run = Run::yes) const {
    const std::string shown = testing::PrintToString(arguments);
    arguments.insert(arguments.begin(), "rtev-bpf");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    if (const auto parsed = CommandLine().parse(std::move(arguments)); parsed && run == Run::yes)
      test::run_in_child(*parsed);
    Printed printed{testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
    EXPECT_EQ(test::terminal_danger(printed.err), "") << shown;
    return printed;
  }
  void run_text(const Arguments& arguments) const {
    EXPECT_EQ(test::terminal_danger(run(arguments).out), "") << testing::PrintToString(arguments);
  }
  void parse(const Arguments& arguments) const {
    EXPECT_EQ(test::terminal_danger(run(arguments, Run::no).out), "") << testing::PrintToString(arguments);
  }
  void run_json(const Arguments& arguments) const {
    const std::string out = run(arguments).out;
    EXPECT_TRUE(nlohmann::json::accept(out)) << out;
    EXPECT_EQ(test::terminal_danger(out, test::Deception::allowed), "") << testing::PrintToString(arguments);
  }

  const std::string text_ = GetParam(), name_ = as_file_name(text_);
  test::TempDir dir_;
};

TEST_P(ControlCharacters, OfARecordingReachNoTerminal) {
  const std::string file = dir_ / (name_ + ".fxt");
  write_recording(file, text_);
  run_text({"dump", file});
  for (const char* report : {"stats", "pauses", "latency", "stalls", "tasks", "profile", "allocs"}) {
    run_text({report, "-i", file});
    run_json({report, "-i", file, "-f", "json"});
  }
  run_text({"latency", "-i", file, "--full", "--interval", "1ms"});
  run_text({"latency", "-i", file, "--span", "*"});
  run_json({"latency", "-i", file, "--span", "*", "-f", "json"});
  run_text({"latency", "-i", file, "--span", name_});
  run_text({"pauses", "-i", file, "--full", "--from", "0", "--to", "1s"});
  run_text({"summary", "-i", file});
  run_json({"dump", file, "-f", "chrome"});
  const std::string lines = run({"dump", file, "-f", "jsonl"}).out;
  for (std::string_view rest = lines; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1)) {
    EXPECT_TRUE(nlohmann::json::accept(rest.substr(0, rest.find('\n')))) << rest;
    EXPECT_EQ(test::terminal_danger(rest.substr(0, rest.find('\n')), test::Deception::allowed), "");
  }
  for (const char* suffix : {".json", ".pftrace", ".jsonl.gz", ".fxt"})
    run_text({"convert", file, "-o", dir_ / (name_ + "-2" + suffix)});

  // Its end is missing, and it is no recording any more.
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 30);
  run_text({"stats", "-i", file});
  std::ofstream(file, std::ios::binary) << text_;
  run_text({"dump", file});
}

TEST_P(ControlCharacters, OfARingReachNoTerminal) {
  const std::string file = dir_ / (name_ + ".events");
  test::RingFileBuilder ring(file, {});
  ring.set_name(1, text_);
  ring.append(0, test::make::user_begin(1, 1));
  ring.append(0, test::make::user_custom(2, 1, text_));
  ring.append(0, test::make::user_end(3, 1));
  run_text({"dump", file});
  run_text({"stats", "-i", file});
  run_text({"dump", file, "-n", name_});
}

TEST_P(ControlCharacters, OfTheCommandLineReachNoTerminal) {
  for (const char* option : {"-p", "-d", "-f", "--events", "--color", "--buffer", "--sched", "--save-rings",
                             "--ocaml-version", "--ringless-limit", "--no-such-option"}) {
    parse({"record", "-o", "-", option, name_});
    parse({"record", "-o", "-", std::string(option) + "=" + name_});
    parse({"latency", option, name_, "stray"});
  }
  parse({name_});
  parse({"-" + name_});
  parse({"--" + name_});
  parse({"latency", "--phase", name_});
  parse({"dump", name_, name_});
  parse({"doctor", "--", name_});
}

TEST_P(ControlCharacters, OfMissingFilesReachNoTerminal) {
  const std::string missing = dir_ / "missing" / name_;
  run_text({"dump", missing});
  run_text({"stats", "-i", missing});
  run_text({"convert", "/dev/null", "-o", missing + ".fxt"});
  run_text({"record", "-o", missing + "." + name_});
  run_text({"--", missing});
}

TEST_P(ControlCharacters, OfMessagesReachNoTerminal) {
  testing::internal::CaptureStderr();
  const Registry registry;
  report({.what = "cannot read", .subject = text_, .why = text_, .hint = text_});
  say(missing_probes_message({.binaries = 1, .last_error = Error{.what = "a", .why = text_}}));
  say(no_events_message(text_, registry));
  say(aborted_message(1, text_, text_));
  say(survivors_message({{.pid = 1, .comm = text_}}, text_, text_));
  EXPECT_EQ(test::terminal_danger(testing::internal::GetCapturedStderr()), "");
}

INSTANTIATE_TEST_SUITE_P(Strings, ControlCharacters, testing::ValuesIn(hostile_texts()),
                         [](const auto& text) { return std::to_string(text.index); });

}  // namespace
}  // namespace rtev::cli
