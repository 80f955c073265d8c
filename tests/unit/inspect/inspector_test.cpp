// SPDX-License-Identifier: MIT
#include "inspect/inspector.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

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
  Inspector inspector_{cache_, [this](int, const std::shared_ptr<const Binary>& binary, std::uint32_t) {
                         prepared_.push_back(binary->id);
                       }};
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
