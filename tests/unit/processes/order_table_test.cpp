// SPDX-License-Identifier: MIT
// Orders of records and scans that matter, each with the stream that comes of it. What live tests can only provoke with
// luck (exec, end, short-lived programs, programs that follow each other in one process) has its twin here.
#include <gtest/gtest.h>

#include <string>

#include "unit/processes/fake_host.hpp"

namespace rtev::test {
namespace {

struct Case {
  std::string name;
  std::string steps;  ///< see FakeHost::play()
  std::string story;  ///< FakeHost::story() at the end
  std::uint64_t missed = 0;
  FakeHostOptions host{};
  Attribution attribution = Attribution::known;
};

std::ostream& operator<<(std::ostream& out, const Case& order) {
  return out << order.name;
}

class OrderTable : public testing::TestWithParam<Case> {};

TEST_P(OrderTable, GivesTheStream) {
  const Case& order = GetParam();
  FakeHost host(order.host);
  host.play(order.steps);
  host.settle();
  EXPECT_EQ(host.story(), order.story);
  EXPECT_EQ(host.rings_missed(), order.missed);
  EXPECT_EQ(host.rings_charged(), order.missed);
  check_invariants(host, order.name, order.attribution);
}

constexpr FakeHostOptions unsaved{.saving = Saving::off}, incomplete{.saving = Saving::incomplete},
    unusable{.saving = Saving::unusable}, shared{.same_paths = true};

const std::vector<Case> cases{
    {"Prompt", "A lt r lt u x . lt", "A: exec ring exit 3"},
    {"WithoutARing", "A lt x lt .", "A: exec exit"},
    {"NoOCamlProgram", "s lt n t x lt .", ""},
    {"ShortLived_RecordsAreReadAfterTheEnd", "A r u x . L t", "A: exec ring exit 3"},
    {"ShortLived_NothingSavedAndFileRemoved", "A r u x . L t", "A: exec exit", 1, unsaved},
    {"ShortLived_FileLeftOnDisk", "A r x . L t", "A: exec ring exit 3", 0, unsaved},
    {"RingOpenedInTimeAndFileRemoved", "A lt r l u x . L t", "A: exec ring exit 3", 0, unsaved},
    {"RingAnnouncedBeforeTheScan", "A l r n lt x .", "A: exec ring exit 3"},
    {"RingRecordTwice", "A l r l R t x .", "A: exec ring exit 3"},
    {"RingRecordDropped_ScanFindsTheRing", "A lt r d t n tt x .", "A: exec ring exit 3"},
    {"ExecRecordDropped_RingRevealsTheProcess", "A d r l t x .", "A: found ring exit 3"},
    {"ExecRecordDropped_ScanSeesAnotherProgram", "A l r lt s d n tt x .", "A: exec ring replaced 3"},
    {"ExitRecordDropped_ScanNoticesTheEnd", "A l r lt x d . n tt", "A: exec ring unseen 3"},
    {"ExitRecordTwice", "A l r lt x l R t .", "A: exec ring exit 3"},
    {"ExitRecordIsReadWhileTheProcessIsInProc", "A l r lt x l t n tt .", "A: exec ring exit 3"},
    {"ExitRecordIsWrittenWhenTheScanSeesTheProcess", "A r x n t L t .", "A: exec ring exit 3"},
    {"ExitRecordIsReadBetweenScanAndTick", "A lt r lt n x l t .", "A: exec ring exit 3"},

    {"Scan_FindsWhatBeganWithoutRecords", "A d r d n tt x .", "A: found ring exit 3"},
    {"Scan_SeesAProgramBeforeTheRecordOfItsExec", "A lt b n B lt r lt x .", "A: exec replaced; B: exec ring exit 3"},
    {"Scan_SeesAFirstProgramBeforeTheRecordOfItsExec", "s lt b n B lt r lt x .", "B: exec ring exit 3"},
    {"Scan_SeesANextProgramWhoseExecAndEarlierRingAreNotReadYet", "A lt r B n t L t r lt x .",
     "A: exec ring replaced 3; B: exec ring exit 3"},
    {"Scan_SeesANextProgramAndItsRing", "A lt r B r n t L t x .", "A: exec ring replaced 3; B: exec ring exit 3"},
    {"Scan_SeesTheNextOwnerOfThePid", "A lt r x . B r n t L t x .", "A: exec exit; B: exec ring exit 3", 1},
    {"Scan_SeesTheNextOwnerOfThePidAndNoneBefore", "A r u x . B r n t L t x .",
     "A: exec ring exit 3; B: exec ring exit 3"},
    {"Scan_SeesTheSameProgramAgain", "A lt A r n t L t x .", "A: exec replaced; A: exec ring exit 3"},

    {"PidReuse_ExitRecordDropped", "A l r lt x d u . B l r lt x .", "A: exec ring replaced 3; B: exec ring exit 3"},
    {"Succession_Prompt", "A lt r lt B lt r lt x .", "A: exec ring replaced 3; B: exec ring exit 3"},
    {"Succession_NextImageTakesTheFileOverBeforeItIsRead", "A lt r l B r L t x .",
     "A: exec ring replaced 3; B: exec ring exit 3"},
    {"Succession_AllRecordsLate", "A r B r x . L t", "A: exec ring replaced 3; B: exec ring exit 3"},
    {"Succession_AllRecordsLateAndNothingSaved", "A r B r x . L t", "A: exec replaced; B: exec ring exit 3", 1,
     unsaved},
    {"Succession_CopyWithoutItsEnd", "A lt r B r L t x .", "A: exec ring replaced 3; B: exec ring exit 3", 1,
     incomplete},
    {"Succession_UnusableCopy", "A r B r x . L t", "A: exec replaced; B: exec ring exit 3", 1, unusable},
    {"ExecOfAnotherProgram", "A l r lt s lt x .", "A: exec ring replaced 3"},

    {"Fork_ChildWithARing", "A lt r lt f1 r1 L t x1 .1 x .", "A: exec ring exit 3; A1: fork ring exit 3"},
    {"Fork_ChildWithoutARing", "A lt r lt f1 lt x1 lt .1 x .", "A: exec ring exit 3; A1: fork exit"},
    {"Fork_RecordsAfterTheEndOfBoth", "A r f1 r1 x1 .1 x . L t", "A: exec ring exit 3; A1: fork ring exit 3"},
    {"Fork_RecordDroppedAndRingRevealsTheChild", "A lt r lt f1 d r1 L t x1 .1 x .",
     "A: exec ring exit 3; A1: found ring exit 3"},
    {"Fork_ScanSeesTheParentsRingInTheChild", "A lt r lt f1 n t L t x1 .1 x .", "A: exec ring exit 3; A1: fork exit"},
    {"Fork_ChildRunsAnotherProgram", "A lt r lt f1 B1 r1 L t x1 .1 x .",
     "A: exec ring exit 3; A1: fork replaced; B1: exec ring exit 3"},

    {"SamePath_OneAfterTheOther", "A lt r lt x l t . B1 lt r1 lt x1 .1", "A: exec ring exit 3; B1: exec ring exit 3", 0,
     shared},
    {"SamePath_NextProcessTakesTheFileOverBeforeItIsRead", "A lt r x . B1 r1 L t x1 .1",
     "A: exec exit; B1: exec ring exit 3", 1, shared},
    {"SamePath_AtTheSameTime", "A lt r lt B1 lt r1 lt x1 .1 x .", "A: exec ring exit 3; B1: exec exit", 0, shared,
     Attribution::unknown},
};

INSTANTIATE_TEST_SUITE_P(Orders, OrderTable, testing::ValuesIn(cases),
                         [](const auto& order) { return order.param.name; });

/// The stream may have been delivered up to the tick.
TEST(OrderOfAScan, WhatItFindsIsReportedAsOfTheTickThatTakesIt) {
  FakeHost host;
  host.play("A d n t");
  ASSERT_EQ(host.images().size(), 1u);
  EXPECT_EQ(host.images().begin()->second.times.front(), host.now_ns());
}

TEST(RingsOfAProgram, ThoseBeyondTheLimitAreMissed) {
  FakeHost host;
  host.play("A lt");
  for (int ring = 0; ring < 20; ++ring) host.play("r lt");
  EXPECT_EQ(host.rings_opened(), 16u);
  EXPECT_EQ(host.rings_missed(), 4u);
  EXPECT_EQ(host.rings_charged(), 4u);
}

}  // namespace
}  // namespace rtev::test
