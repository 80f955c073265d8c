// SPDX-License-Identifier: MIT
#include "processes/process_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

namespace rtev {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(ProcessFilter, WantsProcessesByPidAndName) {
  EXPECT_TRUE(ProcessFilter{}.wants(7, {"server"}, false));
  EXPECT_FALSE(ProcessFilter{}.wants(::getpid(), {"server"}, true)) << "the tracer itself";
  const ProcessFilter pids{.pids = {7, 9}};
  EXPECT_TRUE(pids.wants(9, {"server"}, false));
  EXPECT_FALSE(pids.wants(8, {"server"}, false));
  const ProcessFilter names{.name_globs = {"ser*"}};
  EXPECT_TRUE(names.wants(7, {"server"}, false));
  EXPECT_FALSE(names.wants(7, {"batch"}, false));
  const ProcessFilter followed{.only_followed = true};
  EXPECT_TRUE(followed.wants(7, {"server"}, true));
  EXPECT_FALSE(followed.wants(7, {"server"}, false));
}

class ProcessTableTest : public testing::Test {
 protected:
  /// A process of the stream that runs this binary.
  TracedProcess& add(std::int32_t pid, std::uint32_t binary, ProcessAction origin = ProcessAction::exec) {
    TracedProcess process{.pid = pid, .start_ticks = 70, .origin = origin, .since_ns = 100};
    ProcessInfo info;
    info.pid = pid;
    process.index = registry_.add_process(std::move(info));
    process.program.binary = std::make_shared<const Binary>(Binary{.id = binary, .runtime = {}});
    return table_.insert(std::move(process));
  }
  Registry registry_;
  ProcessTable table_{[](std::int32_t) { return true; }, registry_};
};

TEST_F(ProcessTableTest, FindsAProcessByPidAndStartTime) {
  add(7, 1);
  EXPECT_TRUE(table_.find(7, 70));
  EXPECT_FALSE(table_.find(7, 71)) << "the pid has another owner";
  EXPECT_FALSE(table_.find(8, 70));
  table_.erase(7);
  EXPECT_FALSE(table_.find(7));
}

TEST_F(ProcessTableTest, CandidatesAreNoPartOfTheStream) {
  table_.insert({.pid = 7});
  EXPECT_FALSE(table_.traces(7));
  EXPECT_FALSE(table_.current_image(7));
  add(7, 1);
  EXPECT_TRUE(table_.traces(7));
}

TEST_F(ProcessTableTest, BeginOfAnImageThatAScanFoundIsUnknown) {
  add(7, 1, ProcessAction::found);
  EXPECT_EQ(table_.current_image(7).value().began_ns, 0u);
  add(8, 1, ProcessAction::fork);
  EXPECT_EQ(table_.current_image(8).value().began_ns, 100u);
}

TEST_F(ProcessTableTest, ProcessesWithoutARing) {
  add(7, 1, ProcessAction::fork);
  add(8, 1).rings.slots = {1};
  add(9, 2, ProcessAction::found);
  const auto ringless = table_.ringless(1);
  ASSERT_EQ(ringless.size(), 1u);
  EXPECT_TRUE(ringless[0].began_then && ringless[0].forked);
  EXPECT_FALSE(table_.ringless_process(8));
  EXPECT_FALSE(table_.ringless_process(9).value().began_then);
  EXPECT_THAT(table_.ringless_binaries(), ElementsAre(1, 2));
  EXPECT_THAT(table_.binaries_in_use(), ElementsAre(1, 2));
  table_.find(7)->rings.slots = {2};
  EXPECT_THAT(table_.ringless(1), IsEmpty());
}

TEST_F(ProcessTableTest, EventsWaitFromWhenTheTracerLearntOfThem) {
  TracedProcess& process = add(7, 1);
  process.learnt_ns = 100 + 2 * naming_timeout_ns;
  table_.set_inspecting(process, FileIdentity{.inode = 5});
  EXPECT_EQ(table_.unnamed_since(process.learnt_ns + 1), 100u);
  EXPECT_EQ(table_.unnamed_since(process.learnt_ns + naming_timeout_ns), std::nullopt);
}

TEST_F(ProcessTableTest, EventsWaitForTheInspectionOfTheirProgram) {
  EXPECT_FALSE(table_.is_inspecting());
  table_.set_inspecting(add(7, 1), FileIdentity{.inode = 5});
  EXPECT_TRUE(table_.is_inspecting());
  EXPECT_EQ(table_.unnamed_since(100 + naming_timeout_ns), std::nullopt);
  EXPECT_EQ(table_.unnamed_since(101), 100u);
  EXPECT_THAT(table_.waiting_for({.inode = 6}), IsEmpty());
  TracedProcess child = *table_.find(7);
  child.pid = 8;
  table_.insert(child);
  EXPECT_THAT(table_.waiting_for({.inode = 5}), ElementsAre(7, 8)) << "a fork waits, too";
  table_.erase(7);
  table_.set_inspecting(*table_.find(8), std::nullopt);
  EXPECT_FALSE(table_.is_inspecting());
}

}  // namespace
}  // namespace rtev
