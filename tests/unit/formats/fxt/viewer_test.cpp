// SPDX-License-Identifier: MIT
// What a viewer that knows nothing of recordings finds in one.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "unit/analysis/tasks/eio_events.hpp"
#include "unit/recording/recording.hpp"

namespace rtev::test {
namespace {

namespace parsed = fxt::parsed;

/// The events of a trace as text, "type pid/tid category name", and what else viewers look at.
struct Viewed {
  std::vector<std::string> events{};
  std::map<std::uint64_t, std::string> processes{};
  std::map<std::uint64_t, std::pair<std::uint64_t, std::string>> threads{};  ///< pid and name by tid
  std::vector<std::tuple<std::uint64_t, std::uint64_t, bool>> switches{};    ///< from, to, whether `to` is idle
  int buffer_full = 0;
};

Viewed view(const Recording& recording) {
  Viewed viewed;
  FxtReader reader;
  const auto look = [&](const fxt::Record& record) {
    if (const auto* const event = std::get_if<parsed::EventRecord>(&record)) {
      std::string text = std::string(to_string(event->type)) + ' ' + std::to_string(event->thread.pid) + '/' +
                         std::to_string(event->thread.tid) + ' ' + std::string(event->category.text) + ' ' +
                         std::string(event->name.text);
      if (const auto* const mark = parsed::find(event->arguments, "mark"))
        text += " (" + std::string(std::get<parsed::Text>(mark->value).text) + ")";
      viewed.events.push_back(std::move(text));
    } else if (const auto* const object = std::get_if<parsed::KernelObject>(&record)) {
      if (object->type == fxt::KernelObjectType::process) {
        viewed.processes[object->koid] = object->name.text;
      } else {
        const auto* const process = parsed::find(object->arguments, "process");
        ASSERT_NE(process, nullptr);
        viewed.threads[object->koid] = {std::get<fxt::Koid>(process->value).id, std::string(object->name.text)};
      }
    } else if (const auto* const change = std::get_if<parsed::ContextSwitch>(&record)) {
      const auto* const weight = parsed::find(change->arguments, "incoming_weight");
      ASSERT_NE(weight, nullptr);
      viewed.switches.emplace_back(change->outgoing_tid, change->incoming_tid,
                                   std::get<std::int32_t>(weight->value) == fxt::idle_weight);
    } else if (std::holds_alternative<parsed::BufferFull>(record)) {
      ++viewed.buffer_full;
    }
  };
  const auto fed = reader.feed(bytes_of(recording.recorded()), look);
  EXPECT_TRUE(fed) << fed.error().message();
  return viewed;
}

TEST(RecordingInViewers, SpansNestAndIncompleteOnesAreMarked) {
  World world;
  Recording recording;
  recording.header(make_header());
  Events events(world.slot);
  events.add("2000 >major 2010 >minor")
      .add_record(2030, EventKind::lost, Loss{.words = 9, .from_ns = 2010, .to_ns = 2030})
      .add(2040, EventKind::begin, phase_minor);
  recording.consume(events.batch(), world.registry);
  recording.end(world.registry);
  const Viewed viewed = view(recording);
  const auto names = [](std::uint16_t id) { return std::string(phase_name(Family::since_5_3, id)); };
  const std::string thread = " 4242/4242 ";
  EXPECT_EQ(viewed.events, (std::vector<std::string>{
                               "duration begin" + thread + "gc " + names(phase_major),
                               "duration begin" + thread + "gc " + names(phase_minor),
                               "duration end" + thread + "rtev:drawn " + names(phase_minor) + " (lost)",
                               "duration end" + thread + "rtev:drawn " + names(phase_major) + " (lost)",
                               "instant" + thread + "gc lost", "duration begin" + thread + "gc " + names(phase_minor),
                               "duration end" + thread + "rtev:drawn " + names(phase_minor) + " (recording ended)"}));
  EXPECT_EQ(viewed.buffer_full, 1);
  EXPECT_EQ(viewed.processes.at(4242), "server");
  EXPECT_EQ(viewed.threads.at(4242), (std::pair<std::uint64_t, std::string>(4242, "domain 0")));
}

TEST(RecordingInViewers, ThreadsBelongToProcessesAndCpusGoIdle) {
  World world;
  Recording recording;
  recording.header(make_header());
  Thread domain = make_thread(4242, 4250, "server", true);
  domain.domain = 3;
  domain.role = ThreadRole::backup;
  const Thread idle = make_thread(0, 0, "swapper/1", false), other = make_thread(7, 8, "cc1", false);
  Events events(0);
  events
      .add_record(2000, EventKind::sched_switch,
                  SchedSwitch{.cpu = 1, .state = LeftState::sleeping, .prev = domain, .next = idle})
      .add_record(2010, EventKind::sched_switch,
                  SchedSwitch{.cpu = 1, .state = LeftState::preempted, .prev = idle, .next = other});
  recording.consume(events.batch(), world.registry);
  recording.end(world.registry);
  const Viewed viewed = view(recording);
  EXPECT_EQ(viewed.threads.at(4250), (std::pair<std::uint64_t, std::string>(4242, "domain 3 backup")));
  EXPECT_EQ(viewed.threads.at(8), (std::pair<std::uint64_t, std::string>(7, "cc1")));
  EXPECT_FALSE(viewed.threads.contains(0));
  // The last one is no event: the recording ends while the thread runs.
  EXPECT_EQ(viewed.switches, (std::vector<std::tuple<std::uint64_t, std::uint64_t, bool>>{
                                 {4250, 0, true}, {0, 8, false}, {8, 0, true}}));
}

TEST(RecordingInViewers, FibersAreThreadsOfTheirProcess) {
  World world;
  Recording recording;
  recording.header(make_header());
  TaskScript script(world);
  script.at(2000).fiber(1).name(1, "main").create_fiber(2, 0).at(2010).fiber(2).error(2, "no").at(2020).exit_fiber(2);
  recording.consume(script.batch(), world.registry);
  recording.end(world.registry);
  expect_same(recording);
  const Viewed viewed = view(recording);
  std::vector<std::string> drawn;
  for (const std::string& event : viewed.events)
    if (event.contains("rtev:drawn")) drawn.push_back(event);
  const std::string first = " 4242/" + std::to_string(first_task_tid + 1) + " rtev:drawn ",
                    second = " 4242/" + std::to_string(first_task_tid) + " rtev:drawn ";
  EXPECT_EQ(
      drawn,
      (std::vector<std::string>{
          "duration begin" + first + "domain 0", "flow begin" + first + "creates", "duration end" + first + "domain 0",
          "duration begin" + second + "runnable", "duration end" + second + "runnable",
          "duration begin" + second + "domain 0", "flow end" + second + "creates", "duration end" + second + "domain 0",
          "instant" + second + "failed", "duration begin" + first + "runnable", "duration end" + first + "runnable"}));
  EXPECT_EQ(viewed.threads.at(first_task_tid + 1), (std::pair<std::uint64_t, std::string>(4242, "fiber 1 \"main\"")));
}

TEST(RecordingInViewers, ArrowsLeadFromLeadersToFollowers) {
  World world;
  Recording recording;
  recording.header(make_header());
  Events events(world.slot);
  events.add(
      "2000 >minor@1 2005 <minor@1 2010 >stw_leader 2020 >stw_handler@1 2030 <stw_handler@1 "
      "2040 <stw_leader");
  recording.consume(events.batch(), world.registry);
  recording.end(world.registry);
  std::vector<std::string> flows;
  for (const std::string& event : view(recording).events) {
    if (event.starts_with("flow")) flows.push_back(event.substr(0, event.find(' ', 5)));
  }
  EXPECT_EQ(flows, (std::vector<std::string>{"flow begin", "flow end"}));
}

}  // namespace
}  // namespace rtev::test
