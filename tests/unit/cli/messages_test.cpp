// SPDX-License-Identifier: MIT
// The messages of a trace, one after the other, as in golden/messages.txt.
#include "cli/messages.hpp"

#include <gtest/gtest.h>

#include "cli/no_match.hpp"
#include "support/files.hpp"
#include "unit/stream/world.hpp"

namespace rtev::cli {
namespace {

Registry registry_with(std::initializer_list<RingState> rings) {
  Registry registry;
  for (const RingState ring : rings) {
    ProcessInfo info;
    info.ring = ring;
    registry.add_process(std::move(info));
  }
  return registry;
}

TEST(Messages, AreAsInTheGoldenFile) {
  const Registry none, without_ring = registry_with({RingState::none}),
                       several = registry_with({RingState::active, RingState::paused, RingState::probed});
  const std::string hostile = "./\x1b[2Jserver", directory = "/tmp/rtev-bpf.a1b2c3";
  const std::string text =
      start_message(none, {}) + start_message(without_ring, {}) + start_message(none, {.selects = true}) +
      start_message(without_ring, {.has_end = true, .probes_all = true, .found_everything = false}) +
      start_message(several, {.probes_all = true}) + start_message(without_ring, {.enables = true}) +
      missing_probes_message({.binaries = 2, .last_error = Error{.what = "cannot probe", .why = "no memory"}}) +
      missing_probes_message({.functions = 1}) + slow_detach_message(40) + no_events_message(hostile, none) +
      no_events_message("server", without_ring) + aborted_message(1, hostile, directory) +
      aborted_message(2, "server", directory) + survivors_message({{.pid = 7, .comm = ""}}, hostile, directory) +
      survivors_message({{1, "one"}, {2, "two\n"}, {3, "three"}, {4, "four"}, {5, "five"}, {6, "six"}}, "server",
                        directory);
  EXPECT_EQ(text, test::golden("cli/golden/messages.txt"));
}

TEST(Messages, AreEmptyIfThereIsNothingToSay) {
  EXPECT_EQ(missing_probes_message({}), "");
  EXPECT_EQ(slow_detach_message(2), "");
  EXPECT_EQ(no_events_message("server", registry_with({RingState::none, RingState::ended})), "");
  EXPECT_EQ(aborted_message(0, "server", "/tmp/rtev-bpf.a1b2c3"), "");
  EXPECT_EQ(aborted_message(1, "server", ""), "") << "the user chose the directory";
  EXPECT_EQ(survivors_message({}, "server", ""), "");
}

TEST(Messages, NameWhatAListOfEventsCouldHaveMeant) {
  EXPECT_EQ(mistyped_kind_note(""), "");
  EXPECT_EQ(mistyped_kind_note("user,request,minor*"), "");
  EXPECT_EQ(mistyped_kind_note("request,usr"),
            "rtev-bpf: 'usr' of --events is taken for a name\nhint: did you mean the kind user?\n");
  test::World world;
  world.user_names = {{1, "re\x1bquest"}};
  test::Events events{world.slot};
  events.add(1, EventKind::begin, test::phase_minor).add(2, EventKind::user_unit, 1);
  auto filter = EventFilter::parse("usr,none*");
  ASSERT_TRUE(filter);
  const std::string kinds = "kinds are phase, counter, alloc, lifecycle, user, process, switch, wakeup\n";
  EXPECT_EQ(no_event_message(*filter), "rtev-bpf: no event matches 'usr', 'none*'\nhint: did you mean user? " + kinds);
  for (const Event& event : events.batch().events()) filter->accepts(event, world.registry);
  EXPECT_EQ(no_event_message(*filter),
            "rtev-bpf: no event matches 'usr', 'none*'\nhint: did you mean user? seen: phase minor; user "
            "\"re\\x1Bquest\"; " +
                kinds);
  EXPECT_EQ(no_event_message(EventFilter::parse("user").value()), "rtev-bpf: no event matches 'user'\nhint: " + kinds);
}

TEST(Messages, NameWhatASelectionCouldHaveMeant) {
  const ProcessOptions typo{.names = {"srever"}}, part{.names = {"serv"}}, pid{.pids = {1}};
  const std::set<std::string> names{"server", "leaky\n"};
  const Error error = no_match_error(typo, names, "t.fxt");
  EXPECT_EQ(error.message(), "no process of t.fxt: -n 'srever' matches none");
  EXPECT_EQ(error.hint, "did you mean -n 'server'? it has leaky\\x0A, server");
  EXPECT_EQ(no_match_error(part, names, "t.fxt").hint, "did you mean -n 'serv*'? it has leaky\\x0A, server");
  EXPECT_EQ(no_match_error(pid, names, "t.fxt").hint, "it has leaky\\x0A, server");
  EXPECT_EQ(no_match_error(pid, {}, "t.fxt").hint, "rtev-bpf ps lists OCaml 5 processes");
}

}  // namespace
}  // namespace rtev::cli
