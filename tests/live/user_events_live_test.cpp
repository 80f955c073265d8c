// SPDX-License-Identifier: MIT
// User events of every type, and names with terminal control characters.

#include "live/harness.hpp"

namespace rtev::test {
namespace {

class UserEventsLive : public LiveTest {
 protected:
  /// Everything that user_events writes, as rtev-bpf shows it.
  Outcome trace_text(const Tracer::Options& options, const Command& command) {
    Tracer tracer({"--sched", "off"}, options);
    Process process(command);
    run_through(process);
    return tracer.interrupt();
  }

  /// The program with a hostile file name, which is also its comm.
  Command hostile() const {
    const auto link = dir / "\x1b[31mred\x07\nx";
    std::filesystem::create_symlink(ocaml_program("user_events"), link);
    Command command = with_events("user_events");
    command.argv[0] = link;
    return command;
  }
};

std::vector<Json> of_kind(const std::vector<Json>& events, const std::string& kind) {
  std::vector<Json> found;
  for (const Json& event : events)
    if (event["kind"] == kind) found.push_back(event);
  return found;
}

std::vector<std::string> names(const std::vector<Json>& events) {
  std::vector<std::string> found;
  for (const Json& event : events) found.push_back(event["name"]);
  return found;
}

TEST_F(UserEventsLive, EveryTypeHasItsValue) {
  Tracer tracer({"--sched", "off"});
  Process process(with_events("user_events"));
  run_through(process);
  const auto events = tracer.stop().of(process.pid(), "user");

  auto units = names(of_kind(events, "unit"));
  ASSERT_THAT(units, SizeIs(5));
  const std::string ill_formed = units.back();
  units.pop_back();
  EXPECT_THAT(units, ElementsAre("plain", "say \"hi\" \\ done", "esc\x1b[31mred\nline\ttab\x07", "αβγ – 事件"));
  EXPECT_THAT(ill_formed, HasSubstr("\uFFFD"));
  EXPECT_TRUE(ill_formed.starts_with("ill-") && ill_formed.ends_with("formed")) << ill_formed;

  std::vector<std::int64_t> numbers;
  for (const Json& event : of_kind(events, "int")) numbers.push_back(event["value"]);
  EXPECT_THAT(numbers, ElementsAre(0, 1, -1, 42, 2147483647, -2147483648));

  EXPECT_THAT(names(of_kind(events, "begin")), ElementsAre("request", "nested"));
  EXPECT_THAT(names(of_kind(events, "end")), ElementsAre("nested", "request"));

  const auto blobs = of_kind(events, "custom");
  EXPECT_THAT(names(blobs), Each("blob"));
  std::vector<std::size_t> sizes;
  for (const Json& event : blobs) {
    const std::string hex = event["bytes"];
    sizes.push_back(hex.size() / 2);
    std::string expected;
    for (std::size_t i = 0; i < hex.size() / 2; ++i) {
      expected += "0123456789abcdef"[(i & 255) >> 4];
      expected += "0123456789abcdef"[i & 15];
    }
    EXPECT_EQ(hex, expected);
  }
  EXPECT_THAT(sizes, ElementsAre(0, 1, 7, 8, 9, 255, 1023, 1024));

  for (const Json& event : events) EXPECT_EQ(event["domain"], 0);
  EXPECT_EQ(of_kind(events, "begin")[0]["id"], of_kind(events, "end")[1]["id"]);
}

void expect_no_control_character(const std::string& text) {
  for (const char c : text)
    ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << int(c) << " in:\n" << text;
}

TEST_F(UserEventsLive, NoControlCharacterReachesAPipe) {
  const Outcome outcome = trace_text({.format = {"-f", "text"}}, hostile());
  expect_no_control_character(outcome.out + outcome.err);
  EXPECT_THAT(outcome.out, HasSubstr("esc\\x1B[31mred"));
  EXPECT_THAT(outcome.out, HasSubstr("αβγ"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\xff")));
}

TEST_F(UserEventsLive, PsShowsNoControlCharacter) {
  Process process(copied(with_events("busy_alloc"), "\x1b[31mred\x07\nx"), "ready");
  const Outcome outcome = run_tool({"ps"});
  expect_no_control_character(outcome.out + outcome.err);
  EXPECT_THAT(outcome.out, HasSubstr("\\x1B[31mred"));
}

TEST_F(UserEventsLive, ATerminalGetsNoControlCharactersButColours) {
  const Outcome outcome = trace_text({.format = {"-f", "text"}, .terminal = true}, hostile());
  ASSERT_THAT(outcome.out, HasSubstr("esc\\x1B[31mred"));
  for (std::size_t i = 0; i < outcome.out.size(); ++i) {
    if (outcome.out[i] != '\x1b') {
      ASSERT_TRUE(static_cast<unsigned char>(outcome.out[i]) >= 0x20 || outcome.out[i] == '\n') << int(outcome.out[i]);
      continue;
    }
    const std::size_t end = outcome.out.find_first_not_of("0123456789;", i + 2);
    ASSERT_TRUE(outcome.out[i + 1] == '[' && end != std::string::npos && outcome.out[end] == 'm')
        << outcome.out.substr(i + 1, 20);
    i = end;
  }
}

TEST_F(UserEventsLive, JsonKeepsHostileNamesExactly) {
  Tracer tracer({"--sched", "off"});
  Process process(hostile());
  run_through(process);
  const Trace trace = tracer.stop();
  const Json exec = trace.action(process.pid(), "exec");
  EXPECT_EQ(exec["comm"], "\x1b[31mred\x07\nx");
  EXPECT_EQ(exec["exe"], ocaml_program("user_events"));
}

}  // namespace
}  // namespace rtev::test
