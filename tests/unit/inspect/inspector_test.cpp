// SPDX-License-Identifier: MIT
#include "inspect/inspector.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <fstream>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_dir.hpp"

namespace rtev {
namespace {

class InspectorTest : public testing::Test {
 protected:
  /// A file that is no program, as one of its own.
  bool inspect(std::uint64_t inode, std::uint32_t user, bool urgent = false) {
    return inspector_.inspect(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), {.inode = inode}, user, urgent);
  }
  /// Files in the order in which they are inspected. Nothing is, while `requests` runs.
  template <typename Requests>
  std::vector<std::uint64_t> order(std::size_t count, Requests requests) {
    // It may wait for longer than this call takes.
    const auto requested = std::make_shared<std::latch>(1);
    inspector_.run_later([requested] { requested->wait(); });
    requests();
    requested->count_down();
    std::vector<std::uint64_t> inodes;
    while (inodes.size() < count) {
      pollfd event{.fd = inspector_.event_fd(), .events = POLLIN, .revents = 0};
      if (::poll(&event, 1, 10'000) != 1) break;
      for (const FileIdentity& identity : inspector_.take_inspected()) inodes.push_back(identity.inode);
    }
    return inodes;
  }

  BinaryCache cache_;
  std::vector<std::uint32_t> prepared_;
  std::atomic<int> changes_ = 0;        ///< how often a file is found to be changed
  std::atomic<int> postponements_ = 0;  ///< how often a binary cannot be prepared
  Inspector inspector_{cache_,
                       [this](int, const std::shared_ptr<const Binary>& binary, std::uint32_t) {
                         prepared_.push_back(binary->id);
                         return postponements_-- <= 0;
                       },
                       [this](int, FileUse) { return changes_-- > 0; }};
};

TEST_F(InspectorTest, UsersTakeTurns) {
  const auto inodes = order(5, [&] {
    for (const std::uint64_t inode : {1, 2, 3}) inspect(inode, 1000);
    inspect(4, 1001);
    inspect(5, 1000, true);
  });
  EXPECT_THAT(inodes, testing::ElementsAre(5, 4, 1, 2, 3)) << "a ring waits for the name of 5";
}

TEST_F(InspectorTest, OneUsersFilesAreRefusedBeyondABound) {
  constexpr std::uint64_t bound = 256;
  order(bound + 1, [&] {
    for (std::uint64_t inode = 1; inode <= bound; ++inode) EXPECT_TRUE(inspect(inode, 1000));
    EXPECT_FALSE(inspect(bound + 1, 1000));
    EXPECT_TRUE(inspect(bound + 2, 1001)) << "another user's";
  });
}

TEST_F(InspectorTest, AFileThatIsBeingChangedIsInspectedLater) {
  changes_ = 3;
  const auto inodes = order(2, [&] {
    inspector_.inspect(UniqueFd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), {.inode = 1}, 1000, false);
    inspect(2, 1001);
  });
  EXPECT_THAT(inodes, testing::ElementsAre(2, 1));
  EXPECT_LE(changes_, 0);
}

TEST_F(InspectorTest, AFileThatIsChangedAllTheTimeIsNotInspected) {
  changes_ = 1'000'000;
  const auto inodes = order(1, [&] {
    inspector_.inspect(UniqueFd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), {.inode = 1}, 1000, false);
    inspector_.prepare(UniqueFd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)),
                       std::make_shared<const Binary>(Binary{.id = 7, .runtime = {}}), 1000);
  });
  EXPECT_THAT(inodes, testing::ElementsAre(1));
  EXPECT_TRUE(cache_.find({.inode = 1}));
  EXPECT_THAT(prepared_, testing::IsEmpty());
}

TEST_F(InspectorTest, PartsOfFilesAreReadIntoMemory) {
  const test::TempDir dir;
  const auto path = dir / "file";
  constexpr std::size_t bytes = 1 << 20;
  std::ofstream(path) << std::string(bytes, 'x');
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::fsync(file.get()), 0);
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  order(1, [&] {
    inspect(1, 1000);
    inspector_.load(UniqueFd(), 0, bytes, 1000);
    inspector_.load(UniqueFd(::dup(file.get())), 0, bytes, 1000);
  });
  void* const mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  ASSERT_NE(mapping, MAP_FAILED);
  std::vector<unsigned char> in_memory(bytes / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(::mincore(mapping, bytes, in_memory.data()), 0);
  ::munmap(mapping, bytes);
  EXPECT_THAT(in_memory, testing::Each(testing::Eq(1)));
}

TEST_F(InspectorTest, ABinaryThatCannotBePreparedIsTriedAgainForAWhile) {
  const auto binary = std::make_shared<const Binary>(Binary{.id = 7, .runtime = {}});
  const auto prepare = [&](int postponements) {
    postponements_ = postponements;
    prepared_.clear();
    inspector_.prepare(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), binary, 1000);
    while (!inspector_.idle()) std::this_thread::yield();
    return prepared_.size();
  };
  EXPECT_EQ(prepare(3), 4u);
  const auto most = prepare(1'000'000);
  EXPECT_GT(most, 50u);
  EXPECT_EQ(prepare(1), 2u) << "requested again after it was given up";
}

TEST_F(InspectorTest, ATaskThatIsNotDoneIsRunAgainForAWhile) {
  constexpr int needed = 3;
  int runs = 0, vain_runs = 0, later_runs = 0;
  inspector_.run_until_done([&] { return ++runs == needed; });
  inspector_.run_until_done([&] { return ++vain_runs < 0; });
  inspector_.run_later([&] { ++later_runs; });
  while (!inspector_.idle()) std::this_thread::yield();
  EXPECT_EQ(runs, needed);
  EXPECT_GT(vain_runs, 50);
  EXPECT_LT(vain_runs, 500);
  EXPECT_EQ(later_runs, 1);
}

TEST_F(InspectorTest, TasksAreNeitherRefusedNorLate) {
  std::vector<int> ran;
  const auto inodes = order(1, [&] {
    inspect(1, 1000);
    for (int task = 0; task < 10'000; ++task) inspector_.run_later([&ran, task] { ran.push_back(task); });
  });
  EXPECT_EQ(inodes.size(), 1u);
  EXPECT_EQ(ran.size(), 10'000u) << "before the file";
  EXPECT_TRUE(std::ranges::is_sorted(ran));
}

TEST_F(InspectorTest, ABinaryIsPreparedOnceForManyRequests) {
  const auto binary = std::make_shared<const Binary>(Binary{.id = 7, .runtime = {}});
  order(1, [&] {
    for (int i = 0; i < 100; ++i) inspector_.prepare(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), binary, 1000);
    inspect(1, 1000);
  });
  EXPECT_EQ(prepared_, std::vector{7u});
}

TEST_F(InspectorTest, UsersTakeTurnsWithKnownBinariesAndOneUsersAreBounded) {
  constexpr std::uint32_t bound = 256, others = 1000;
  const auto prepare = [&](std::uint32_t id, std::uint32_t user) {
    inspector_.prepare(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
                       std::make_shared<const Binary>(Binary{.id = id, .runtime = {}}), user);
  };
  order(0, [&] {
    for (std::uint32_t id = 1; id <= 2 * bound; ++id) prepare(id, 1000);
    prepare(others, 1001);
  });
  while (!inspector_.idle()) std::this_thread::yield();
  EXPECT_EQ(prepared_.size(), bound + 1);
  EXPECT_LE(std::ranges::find(prepared_, others) - prepared_.begin(), 1);
}

}  // namespace
}  // namespace rtev
