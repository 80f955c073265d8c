// SPDX-License-Identifier: MIT
// Orders of records and scans that matter, each with the stream that comes of it. What live tests can only provoke with
// luck (exec, end, short-lived programs, programs that follow each other in one process) has its twin here.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "unit/processes/fake_host.hpp"

namespace rtev::test {
namespace {

/// A step of the host or of the tracer.
enum class Step {
  exec_a,
  exec_b,
  exec_sh,
  ring,
  remove_file,
  exit,
  abort,
  vanish,
  look_up,      ///< one record
  look_up_all,  ///< what waits
  drop,         ///< the newest record finds no room
  repeat,       ///< the newest record that was looked up is delivered twice
  tick,
  scan,
};
using enum Step;

void take(FakeHost& host, Step step) {
  switch (step) {
    case exec_a:
      return host.exec("A");
    case exec_b:
      return host.exec("B");
    case exec_sh:
      return host.exec("sh");
    case ring:
      return host.create_ring();
    case remove_file:
      return host.remove_ring_file();
    case Step::exit:
      return host.exit();
    case Step::abort:
      return host.exit(SIGABRT);
    case vanish:
      return host.vanish();
    case look_up:
      host.look_up();
      return;
    case look_up_all:
      while (host.look_up()) {
      }
      return;
    case drop:
      return host.drop_record(host.records_waiting() - 1);
    case repeat: {
      const LifecycleEvent& last = host.events().back();
      LifecycleEvent again{.record = last.record, .image = {}, .rings = {}, .files = last.files, .image_ended = false};
      host.events().push_back(std::move(again));
      return;
    }
    case tick:
      return host.tick();
    case scan:
      return host.scan();
  }
}

struct Case {
  std::string name;
  Saving saving;
  std::vector<Step> steps;
  std::string story;  ///< FakeHost::story() at the end
  std::uint64_t missed = 0;
};

std::ostream& operator<<(std::ostream& out, const Case& order) {
  return out << order.name;
}

class OrderTable : public testing::TestWithParam<Case> {};

TEST_P(OrderTable, GivesTheStream) {
  const Case& order = GetParam();
  FakeHost host(order.saving);
  for (const Step step : order.steps) take(host, step);
  host.settle();
  EXPECT_EQ(host.story(), order.story);
  EXPECT_EQ(host.rings_missed(), order.missed);
  check_invariants(host, order.name);
}

const std::vector<Case> cases{
    {"Prompt",
     Saving::known,
     {exec_a, look_up, tick, ring, look_up, tick, remove_file, Step::exit, vanish, look_up, tick},
     "A: exec ring exit 3"},
    {"ShortLived_RecordsAreReadAfterTheEnd",
     Saving::known,
     {exec_a, ring, remove_file, Step::exit, vanish, look_up_all, tick},
     "A: found ring exit 3"},
    {"ShortLived_NothingSavedAndFileRemoved",
     Saving::off,
     {exec_a, ring, remove_file, Step::exit, vanish, look_up_all, tick},
     "A: found exit",
     1},
    {"ShortLived_FileLeftOnDisk",
     Saving::off,
     {exec_a, ring, Step::exit, vanish, look_up_all, tick},
     "A: found ring exit 3"},
    {"RingOpenedInTimeAndFileRemoved",
     Saving::off,
     {exec_a, look_up, tick, ring, look_up, remove_file, Step::exit, vanish, look_up_all, tick},
     "A: exec ring exit 3"},
    {"RingAnnouncedBeforeTheScanFoundTheProcess",
     Saving::known,
     {exec_a, look_up, ring, scan, look_up, tick, Step::exit, vanish},
     "A: found ring exit 3"},
    {"RingRecordDropped_ScanFindsTheRing",
     Saving::known,
     {exec_a, look_up, tick, ring, drop, tick, scan, tick, Step::exit, vanish},
     "A: exec ring exit 3"},
    {"ExecRecordDropped_RingRevealsTheProcess",
     Saving::known,
     {exec_a, drop, ring, look_up, tick, Step::exit, vanish},
     "A: found ring exit 3"},
    {"ExitRecordDropped_ScanNoticesTheEnd",
     Saving::known,
     {exec_a, look_up, ring, look_up, tick, Step::exit, drop, vanish, scan, tick},
     "A: exec ring exit 3"},
    {"ScanSeesAProcessWhoseExitWasRead",
     Saving::known,
     {exec_a, look_up, ring, look_up, tick, Step::exit, look_up, tick, scan, tick, vanish},
     "A: exec ring exit 3"},
    {"ScanSeesAProcessWhoseExitRecordIsOnItsWay",
     Saving::known,
     {exec_a, ring, Step::exit, scan, tick, look_up_all, tick, vanish},
     "A: found ring exit 3"},
    {"RingRecordTwice",
     Saving::known,
     {exec_a, look_up, ring, look_up, repeat, tick, Step::exit, vanish},
     "A: exec ring exit 3"},
    {"ExitRecordTwice",
     Saving::known,
     {exec_a, look_up, ring, look_up, tick, Step::exit, look_up, repeat, tick, vanish},
     "A: exec ring exit 3"},
    {"PidReuse_ExitRecordDropped",
     Saving::known,
     {exec_a, look_up, ring, look_up, tick, Step::exit, drop, remove_file, vanish, exec_b, look_up, ring, look_up, tick,
      Step::exit, vanish},
     "A: exec ring exit 3; B: exec ring exit 3"},
    {"PidReuse_ExitRecordIsReadAfterTheScanFoundTheNextOwner",
     Saving::known,
     {exec_a, look_up, ring, look_up, tick, Step::exit, remove_file, vanish, exec_b, ring, scan, look_up_all, tick,
      Step::exit, vanish},
     "A: exec ring exit 3; B: found ring exit 3"},
    {"Succession_Prompt",
     Saving::known,
     {exec_a, look_up, tick, ring, look_up, tick, exec_b, look_up, tick, ring, look_up, tick, Step::exit, vanish},
     "A: exec ring exit 3; B: exec ring exit 3"},
    {"Succession_NextImageTakesTheFileOverBeforeItIsRead",
     Saving::known,
     {exec_a, look_up, tick, ring, look_up, exec_b, ring, look_up_all, tick, Step::exit, vanish},
     "A: exec ring exit 3; B: exec ring exit 3"},
    {"Succession_AllRecordsLate",
     Saving::known,
     {exec_a, ring, exec_b, ring, Step::exit, vanish, look_up_all, tick},
     "A: found ring exit 3; B: found ring exit 3"},
    {"Succession_AllRecordsLateAndNothingSaved",
     Saving::off,
     {exec_a, ring, exec_b, ring, Step::exit, vanish, look_up_all, tick},
     "A: found exit; B: found ring exit 3",
     1},
    {"Succession_ScanFindsTheSecondImage",
     Saving::known,
     {exec_a, ring, exec_b, ring, scan, tick, look_up_all, tick, Step::exit, vanish},
     "B: found ring exit 3; A: found ring exit 3"},
    {"ExecOfAnotherProgram",
     Saving::known,
     {exec_a, look_up, ring, look_up, tick, exec_sh, look_up, tick, Step::exit, vanish},
     "A: exec ring exit 3"},
    {"ExecRecordDropped_ScanSeesAnotherProgram",
     Saving::known,
     {exec_a, look_up, ring, look_up, tick, exec_sh, drop, scan, tick, Step::exit, vanish},
     "A: exec ring exit 3"},
    {"WithoutARing", Saving::known, {exec_a, look_up, tick, Step::exit, look_up, tick, vanish}, "A: exec exit"},
    {"NoOCamlProgram", Saving::known, {exec_sh, look_up, tick, scan, Step::exit, look_up, tick, vanish}, ""},
};

INSTANTIATE_TEST_SUITE_P(Orders, OrderTable, testing::ValuesIn(cases),
                         [](const auto& order) { return order.param.name; });

}  // namespace
}  // namespace rtev::test
