// SPDX-License-Identifier: MIT
#include "processes/rings/ring_opener.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "rtev/ring_reader.hpp"
#include "support/files.hpp"
#include "support/immediate_queries.hpp"
#include "support/ring_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace rtev {
namespace {

struct NoEvents final : ProcessEvents {
  void on_process(std::uint64_t, ProcessAction, const ProcessRecord&) override {}
  void on_ring(ProcessIndex, std::uint32_t, std::shared_ptr<RingReader>) override {}
  void on_image_end(const ImageEnd&) override {}
};

struct Kernel final : NoKernelControl {
  bool is_being_changed(int, FileUse) override { return changing; }
  bool changing = false;
};

class RingOpenerTest : public testing::Test {
 protected:
  /// Opens a new ring for a user.
  std::vector<RingOpener::Ring> open(std::uint32_t user, std::uint32_t domains) {
    ProcessInfo info;
    info.pid = ++last_pid_;
    const ProcessIndex process = registry_.add_process(std::move(info));
    const std::filesystem::path path = dir_ / (std::to_string(process) + ".events");
    const test::RingFileBuilder file(path, {.domains = domains, .words_log2 = 6});
    std::vector<OpenedRing> rings;
    rings.push_back({.fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), .path = path});
    auto opened = opener_.open(process, user, rings, {});
    for (RingOpener::Ring& ring : opened) ring.opened = nullptr;
    return opened;
  }

  std::int32_t last_pid_ = 1000;
  const test::TempDir dir_;
  TimedTasks tasks_;
  Registry registry_;
  NoEvents events_;
  Kernel kernel_;
  test::ImmediateQueries queries_{dir_.path()};
  ProcessTable processes_{[](std::int32_t) { return true; }, registry_};
  BinaryCache cache_;
  Inspector inspector_{cache_, [](int, const std::shared_ptr<const Binary>&, std::uint32_t) { return true; }};
  const DiscoveryContext context_{.queries = queries_,
                                  .registry = registry_,
                                  .processes = processes_,
                                  .cache = cache_,
                                  .inspector = inspector_,
                                  .events = events_,
                                  .kernel = kernel_,
                                  .tasks = tasks_};
  const DiscoveryOptions options_{.rings_memory = std::size_t{1} << 20, .ring_descriptors = 4};
  RingOpener opener_{context_, options_};
};

TEST_F(RingOpenerTest, OneUsersRingsLeaveDescriptorsForThoseOfOthers) {
  auto first = open(1000, 1), second = open(1000, 1), third = open(1000, 1);
  ASSERT_EQ(third.size(), 1u);
  EXPECT_TRUE(open(1000, 1).empty()) << "three quarters of four";
  EXPECT_EQ(opener_.refusal(), Unreadable::memory);
  const auto other = open(1001, 1);
  EXPECT_EQ(other.size(), 1u);
  EXPECT_FALSE(opener_.refusal());
  EXPECT_TRUE(open(1002, 1).empty()) << "nothing is left";
  registry_.remove_ring(first.front().slot);
  first.clear();
  tasks_.run(1);
  EXPECT_EQ(open(1000, 1).size(), 1u) << "the other one is closed";
}

TEST_F(RingOpenerTest, RingsThatWaitHoldDescriptors) {
  auto waiting = opener_.charge_descriptors(1000, 1, 1);
  EXPECT_TRUE(waiting);
  EXPECT_FALSE(opener_.charge_descriptors(1000, 1, 1)) << "of the same process";
  const auto first = open(1000, 1), second = open(1000, 1);
  EXPECT_EQ(second.size(), 1u);
  EXPECT_TRUE(open(1000, 1).empty());
  waiting.reset();
  EXPECT_EQ(open(1000, 1).size(), 1u);
}

TEST_F(RingOpenerTest, ARingIsUnmappedWhenThatDoesNotWait) {
  auto opened = open(1000, 1);
  registry_.remove_ring(opened.front().slot);
  kernel_.changing = true;
  opened.clear();
  tasks_.run(1);
  const auto is_mapped = [] { return test::read_file("/proc/self/maps").contains(".events"); };
  EXPECT_TRUE(is_mapped());
  kernel_.changing = false;
  tasks_.run(tasks_.next_due_ns().value());
  EXPECT_FALSE(is_mapped());
}

TEST_F(RingOpenerTest, OneUsersRingsLeaveMemoryForThoseOfOthers) {
  constexpr std::uint32_t most_domains = 960;  // of 256 bytes: nearly a quarter of the budget
  EXPECT_TRUE(open(1000, 1024).empty()) << "more than one process gets";
  auto first = open(1000, most_domains), second = open(1000, most_domains), third = open(1000, most_domains);
  ASSERT_EQ(third.size(), 1u);
  EXPECT_TRUE(open(1000, most_domains).empty());
  EXPECT_EQ(opener_.refusal(), Unreadable::memory);
  EXPECT_EQ(open(1001, 128).size(), 1u);
  EXPECT_FALSE(opener_.refusal());
  registry_.remove_ring(first.front().slot);
  first.clear();
  tasks_.run(1);
  EXPECT_EQ(open(1000, most_domains).size(), 1u) << "the other one is forgotten";
}

}  // namespace
}  // namespace rtev
