// SPDX-License-Identifier: MIT
#include "kernel/uprobe_manager.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace rtev::kernel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;

constexpr std::uint32_t binary = 7, other_binary = 8;
constexpr std::uint64_t minute_ns = 60'000'000'000;

const ProbePlan plan{.sites = {{.function = RTEV_PROBE_PAUSE, .file_offset = 64}}};

/// Attaches nothing. A link is the read end of a pipe, so whether it is still held shows at the write end.
class FakePrograms : public UprobePrograms {
 public:
  Result<AttachedUprobes> probe(int file, std::uint32_t binary_id, const ProbePlan& requested,
                                std::uint32_t round) override {
    EXPECT_NE(::fcntl(file, F_GETFD), -1) << "an open file";
    EXPECT_EQ(requested.sites, plan.sites);
    probed.emplace_back(binary_id, round);
    if (manager != nullptr) {
      manager->detach_unused({}, 1);
      manager->detach_unused({}, 2 * minute_ns);
    }
    if (error != 0) return errno_error(error, "cannot probe");
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    write_ends_.emplace_back(ends[1]);
    AttachedUprobes attached{.links = {}, .skipped = skipped};
    attached.links.emplace_back(UniqueFd(ends[0]));
    while (attached.links.size() < links) attached.links.emplace_back(UniqueFd(::fcntl(ends[0], F_DUPFD_CLOEXEC, 0)));
    return attached;
  }
  void forget(std::uint32_t binary_id) override { forgotten.push_back(binary_id); }

  /// Links that the manager still holds.
  std::size_t attached() const {
    std::size_t open = 0;
    for (const UniqueFd& end : write_ends_) {
      pollfd state{.fd = end.get(), .events = POLLOUT, .revents = 0};
      ::poll(&state, 1, 0);
      open += (state.revents & POLLERR) == 0;
    }
    return open;
  }

  int error = 0;
  std::size_t skipped = 0;
  std::size_t links = 1;                                        ///< of each binary
  std::vector<std::pair<std::uint32_t, std::uint32_t>> probed;  ///< binary and round
  std::vector<std::uint32_t> forgotten;
  UprobeManager* manager = nullptr;  ///< detaches what is unused while it attaches

 private:
  std::vector<UniqueFd> write_ends_;
};

class UprobeManagerTest : public testing::Test {
 protected:
  UniqueFd file_{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  FakePrograms programs_;
};

/// All files have such mappings.
class UprobeManagerMappingsTest : public UprobeManagerTest {
 protected:
  MappingsCheck check() {
    return [this](int file) {
      EXPECT_NE(::fcntl(file, F_GETFD), -1) << "an open file";
      return mappings_;
    };
  }
  rtev_mappings mappings_ = RTEV_MAPPINGS_FREE;
};

/// Links are given to the test.
class UprobeManagerGivesTest : public UprobeManagerTest {
 protected:
  UprobeManager::GiveLinks give() {
    return [this](std::vector<FileLinks> files) {
      if (!takes_) return files;
      std::ranges::move(files, std::back_inserter(given_));
      return std::vector<FileLinks>();
    };
  }
  bool takes_ = true;
  std::vector<FileLinks> given_;
};

std::vector<std::pair<std::uint32_t, bool>> kinds(const std::vector<UprobeManager::Change>& changes) {
  std::vector<std::pair<std::uint32_t, bool>> kinds;
  for (const auto& change : changes) kinds.emplace_back(change.binary, change.attached);
  return kinds;
}

TEST_F(UprobeManagerTest, AttachesOnceWhenABinaryIsAdded) {
  UprobeManager manager(programs_, AttachPolicy::at_once);
  EXPECT_EQ(manager.attached_since(binary), std::nullopt);
  programs_.skipped = 2;
  for (int i = 0; i < 2; ++i) manager.add(file_.get(), {.id = binary}, plan);
  EXPECT_THAT(programs_.probed, ElementsAre(std::pair(binary, 1U)));
  EXPECT_EQ(programs_.attached(), 1U);
  EXPECT_NE(manager.attached_since(binary), std::nullopt);
  EXPECT_EQ(manager.figures().skipped, 2U);
  EXPECT_EQ(manager.figures().failed, 0U);
  EXPECT_EQ(manager.figures().slow_to_detach, 0U);
  EXPECT_THAT(manager.take_changes(), IsEmpty()) << "only on request";
}

TEST_F(UprobeManagerTest, ABinaryWithoutSitesIsNoFailure) {
  UprobeManager manager(programs_, AttachPolicy::at_once);
  manager.add(-1, {.id = binary}, {});
  EXPECT_EQ(manager.figures().failed, 0U);
  EXPECT_THAT(programs_.probed, IsEmpty());
  manager.add(file_.get(), {.id = binary}, plan);
  EXPECT_EQ(programs_.attached(), 1U);
}

TEST_F(UprobeManagerTest, DetachesAtTheEnd) {
  {
    UprobeManager manager(programs_, AttachPolicy::at_once);
    manager.add(file_.get(), {.id = binary}, plan);
    manager.add(file_.get(), {.id = other_binary}, plan);
    EXPECT_EQ(programs_.attached(), 2U);
  }
  EXPECT_EQ(programs_.attached(), 0U);
}

TEST_F(UprobeManagerTest, DetachesAMinuteAfterTheLastUse) {
  UprobeManager manager(programs_, AttachPolicy::at_once);
  manager.add(file_.get(), {.id = binary}, plan);
  manager.detach_unused({binary}, 1);
  manager.detach_unused({}, 2);
  manager.detach_unused({}, 2 + minute_ns);
  EXPECT_EQ(programs_.attached(), 1U);
  manager.detach_unused({binary}, 3 + minute_ns);
  manager.detach_unused({}, 4 + minute_ns);
  manager.detach_unused({}, 4 + 2 * minute_ns);
  EXPECT_EQ(programs_.attached(), 1U) << "it was in use meanwhile";
  manager.detach_unused({}, 5 + 2 * minute_ns);
  EXPECT_EQ(programs_.attached(), 0U);
  EXPECT_THAT(programs_.forgotten, ElementsAre(binary));
  manager.add(file_.get(), {.id = binary}, plan);
  EXPECT_EQ(programs_.attached(), 1U);
}

TEST_F(UprobeManagerTest, AFailureIsRememberedUntilTheBinaryIsForgotten) {
  UprobeManager manager(programs_, AttachPolicy::at_once);
  programs_.error = EOPNOTSUPP;
  manager.add(file_.get(), {.id = binary}, plan);
  EXPECT_EQ(manager.figures().failed, 1U);
  ASSERT_TRUE(manager.figures().last_error);
  EXPECT_EQ(manager.figures().last_error->code, EOPNOTSUPP);
  EXPECT_THAT(manager.failure(binary), Optional(manager.figures().last_error->why));
  programs_.error = 0;
  manager.add(file_.get(), {.id = binary}, plan);
  EXPECT_EQ(programs_.attached(), 0U);
  manager.detach_unused({}, 1);
  manager.detach_unused({}, 2 + minute_ns);
  manager.add(file_.get(), {.id = binary}, plan);
  EXPECT_EQ(programs_.attached(), 1U);
  EXPECT_EQ(manager.figures().failed, 1U);
  EXPECT_EQ(manager.failure(binary), std::nullopt);
}

TEST_F(UprobeManagerTest, OnRequestAttachesOnlyThen) {
  UprobeManager manager(programs_, AttachPolicy::on_request);
  manager.add(file_.get(), {.id = binary}, plan);
  manager.attach(binary);
  EXPECT_THAT(programs_.probed, IsEmpty());
  EXPECT_TRUE(manager.request(binary));
  EXPECT_FALSE(manager.request(binary)) << "requested already";
  manager.attach(binary);
  manager.attach(binary);
  EXPECT_THAT(programs_.probed, ElementsAre(std::pair(binary, 1U)));
}

TEST_F(UprobeManagerTest, ARequestMayComeBeforeTheBinaryIsAdded) {
  UprobeManager manager(programs_, AttachPolicy::on_request);
  EXPECT_FALSE(manager.request(binary)) << "nothing to attach to yet";
  manager.add(file_.get(), {.id = other_binary}, plan);
  EXPECT_EQ(programs_.attached(), 0U);
  manager.add(file_.get(), {.id = binary}, plan);
  EXPECT_EQ(programs_.attached(), 1U);
}

TEST_F(UprobeManagerTest, DetachAndRequestAlternateInRounds) {
  UprobeManager manager(programs_, AttachPolicy::on_request);
  manager.add(file_.get(), {.id = binary}, plan);
  manager.detach(binary);
  EXPECT_THAT(manager.take_changes(), IsEmpty()) << "it was not attached";
  file_.reset();
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(manager.request(binary));
    manager.attach(binary);
    EXPECT_EQ(programs_.attached(), 1U);
    manager.detach(binary);
    EXPECT_EQ(programs_.attached(), 0U);
    EXPECT_EQ(manager.attached_since(binary), std::nullopt);
  }
  EXPECT_THAT(programs_.probed, ElementsAre(std::pair(binary, 1U), std::pair(binary, 2U)));
  const auto changes = manager.take_changes();
  EXPECT_THAT(kinds(changes), ElementsAre(std::pair(binary, true), std::pair(binary, false), std::pair(binary, true),
                                          std::pair(binary, false)));
  EXPECT_TRUE(std::ranges::is_sorted(changes, {}, &UprobeManager::Change::time_ns));
  EXPECT_THAT(manager.take_changes(), IsEmpty()) << "taken once";
}

TEST_F(UprobeManagerTest, ABinaryThatCannotBeProbedSaysWhyOnRequest) {
  UprobeManager manager(programs_, AttachPolicy::on_request);
  manager.add(file_.get(), {.id = binary}, {.sites = {}, .why_not = "no symbols"});
  EXPECT_EQ(manager.failure(binary), std::nullopt) << "not tried";
  EXPECT_TRUE(manager.request(binary));
  manager.attach(binary);
  EXPECT_THAT(manager.failure(binary), Optional(std::string("no symbols")));
  EXPECT_FALSE(manager.request(binary));
  EXPECT_THAT(programs_.probed, IsEmpty());
  EXPECT_THAT(manager.take_changes(), IsEmpty());
}

TEST_F(UprobeManagerTest, DetachingForLackOfUseIsAChange) {
  UprobeManager manager(programs_, AttachPolicy::on_request);
  manager.request(binary);
  manager.add(file_.get(), {.id = binary}, plan);
  manager.add(file_.get(), {.id = other_binary}, plan);
  manager.take_changes();
  manager.detach_unused({}, 1);
  EXPECT_FALSE(manager.request(binary)) << "a request is a use";
  manager.detach_unused({}, 2 + minute_ns);
  EXPECT_EQ(programs_.attached(), 1U);
  EXPECT_THAT(programs_.forgotten, ElementsAre(other_binary));
  manager.detach_unused({}, 3 + 2 * minute_ns);
  EXPECT_EQ(programs_.attached(), 0U);
  EXPECT_THAT(kinds(manager.take_changes()), ElementsAre(std::pair(binary, false)));
}

constexpr std::size_t user_most = UprobeManager::user_bound.binaries, total_most = UprobeManager::total_bound.binaries;

TEST_F(UprobeManagerTest, ForANewBinaryTheOldestUnusedOfItsUserAreForgotten) {
  UprobeManager manager(programs_, AttachPolicy::at_once);
  manager.add(file_.get(), {.id = 1, .user = 1, .in_use = [] { return true; }}, plan);
  manager.add(file_.get(), {.id = 2, .user = 2}, plan);
  for (std::uint32_t id = 3; id <= user_most + 1; ++id) manager.add(file_.get(), {.id = id, .user = 1}, plan);
  EXPECT_THAT(programs_.forgotten, IsEmpty());
  manager.add(file_.get(), {.id = 3, .user = 1}, plan);  // a use

  const std::uint32_t next = user_most + 2;
  manager.add(file_.get(), {.id = next, .user = 1}, plan);
  EXPECT_EQ(programs_.forgotten.size(), user_most / 4 + 1) << "many at a time";
  EXPECT_TRUE(std::ranges::is_sorted(programs_.forgotten));
  EXPECT_EQ(programs_.forgotten.front(), 4U);
  for (const std::uint32_t kept : {1U, 2U, 3U, next}) EXPECT_TRUE(manager.attached_since(kept)) << kept;
  EXPECT_EQ(programs_.probed.size() - programs_.forgotten.size(), user_most - user_most / 4 + 1);
  EXPECT_EQ(manager.figures().failed, 0U);

  for (std::uint32_t id = next; id < next + 4 * user_most; ++id) {
    manager.add(file_.get(), {.id = id, .user = 1}, plan);
    ASSERT_LE(programs_.probed.size() - programs_.forgotten.size(), user_most + 1);
  }
}

TEST_F(UprobeManagerTest, ANewBinaryIsRefusedWhileTooManyAreInUse) {
  UprobeManager manager(programs_, AttachPolicy::on_request);
  bool in_use = true;
  const auto add = [&](std::uint32_t id, std::uint32_t user) {
    manager.request(id);
    manager.add(file_.get(), {.id = id, .user = user, .in_use = [&] { return in_use; }}, plan);
  };
  for (std::uint32_t id = 1; id <= user_most; ++id) add(id, 1);
  for (int i = 0; i < 2; ++i) add(user_most + 1, 1);
  EXPECT_EQ(programs_.attached(), user_most);
  EXPECT_EQ(manager.figures().failed, 1U) << "counted once";
  ASSERT_TRUE(manager.figures().last_error);
  EXPECT_THAT(manager.failure(user_most + 1), Optional(manager.figures().last_error->why));
  EXPECT_FALSE(manager.request(user_most + 1));
  add(user_most + 2, 2);
  EXPECT_EQ(programs_.attached(), user_most + 1) << "another user's";

  in_use = false;
  add(user_most + 1, 1);
  EXPECT_EQ(manager.failure(user_most + 1), std::nullopt);
  EXPECT_TRUE(manager.request(user_most + 1));
  manager.attach(user_most + 1);
  EXPECT_TRUE(manager.attached_since(user_most + 1));
}

TEST_F(UprobeManagerTest, ManyLinksOfOneBinaryCount) {
  UprobeManager manager(programs_, AttachPolicy::on_request);
  programs_.links = 64;
  const std::size_t fit = UprobeManager::user_bound.descriptors / programs_.links;
  for (std::uint32_t id = 1; id < 4 * fit; ++id) {
    manager.add(file_.get(), {.id = id, .user = 1}, plan);
    manager.request(id);
    manager.attach(id);
    ASSERT_LE(programs_.probed.size() - programs_.forgotten.size(), fit);
  }
  EXPECT_GE(programs_.probed.size() - programs_.forgotten.size(), fit / 2);
  EXPECT_LT(programs_.attached(), 2 * fit) << "others are being detached";
}

TEST_F(UprobeManagerTest, InAllTheUserWithTheMostBinariesMakesRoom) {
  UprobeManager manager(programs_, AttachPolicy::at_once);
  programs_.error = EOPNOTSUPP;  // a failure is remembered, too
  constexpr std::uint32_t honest = 1000, users = 10;
  std::uint32_t id = 1;
  manager.add(file_.get(), {.id = id, .user = honest}, plan);
  for (std::uint32_t user = 1; user <= users; ++user)
    for (std::size_t i = 0; i < user_most; ++i) manager.add(file_.get(), {.id = ++id, .user = user}, plan);
  EXPECT_GT(id, 2 * total_most);
  EXPECT_LE(id - programs_.forgotten.size(), total_most);
  EXPECT_THAT(programs_.forgotten, Not(testing::Contains(1U)));
}

TEST_F(UprobeManagerMappingsTest, AFileIsAttachedToWhenNoMapIsLocked) {
  UprobeManager manager(programs_, AttachPolicy::at_once, check());
  mappings_ = RTEV_MAPPINGS_LOCKED;
  EXPECT_FALSE(manager.add(file_.get(), {.id = binary}, plan));
  EXPECT_FALSE(manager.attach(binary));
  EXPECT_THAT(programs_.probed, IsEmpty());
  EXPECT_EQ(manager.failure(binary), std::nullopt) << "it is tried again";
  EXPECT_EQ(manager.figures().failed, 1U) << "so far";
  EXPECT_TRUE(manager.figures().last_error);
  mappings_ = RTEV_MAPPINGS_FREE;
  EXPECT_TRUE(manager.add(file_.get(), {.id = binary}, plan));
  EXPECT_THAT(programs_.probed, ElementsAre(std::pair(binary, 1U)));
  EXPECT_EQ(manager.figures().failed, 0U);
  EXPECT_FALSE(manager.figures().last_error);
}

TEST_F(UprobeManagerMappingsTest, AScanTriesAgain) {
  UprobeManager manager(programs_, AttachPolicy::on_request, check());
  mappings_ = RTEV_MAPPINGS_LOCKED;
  manager.request(binary);
  EXPECT_FALSE(manager.add(file_.get(), {.id = binary}, plan));
  manager.detach_unused({binary}, 1);
  EXPECT_EQ(manager.attached_since(binary), std::nullopt);
  mappings_ = RTEV_MAPPINGS_FREE;
  manager.detach_unused({binary}, 2);
  EXPECT_TRUE(manager.attached_since(binary));
}

TEST_F(UprobeManagerMappingsTest, AFileThatIsMappedTooOftenIsAFailure) {
  UprobeManager manager(programs_, AttachPolicy::at_once, check());
  mappings_ = RTEV_MAPPINGS_MANY;
  EXPECT_TRUE(manager.add(file_.get(), {.id = binary}, plan)) << "not to be tried again";
  EXPECT_THAT(programs_.probed, IsEmpty());
  EXPECT_TRUE(manager.failure(binary));
  EXPECT_EQ(manager.figures().failed, 1U);
}

TEST_F(UprobeManagerTest, WhatTakesLongIsTriedAgain) {
  UprobeManager manager(programs_, AttachPolicy::on_request);
  manager.request(binary);
  programs_.error = EINPROGRESS;
  EXPECT_FALSE(manager.add(file_.get(), {.id = binary}, plan));
  EXPECT_EQ(manager.failure(binary), std::nullopt);
  EXPECT_EQ(manager.figures().failed, 1U) << "so far";
  programs_.error = 0;
  manager.detach_unused({binary}, 1);
  EXPECT_TRUE(manager.attached_since(binary));
  EXPECT_EQ(manager.figures().failed, 0U);
  EXPECT_THAT(programs_.probed, ElementsAre(std::pair(binary, 1U), std::pair(binary, 1U))) << "the same round";
}

TEST_F(UprobeManagerGivesTest, ABinaryIsAttachedAgainWhenItsLinksAreClosed) {
  UprobeManager manager(programs_, AttachPolicy::on_request, {}, give());
  manager.request(binary);
  manager.add(file_.get(), {.id = binary}, plan);
  manager.detach(binary);
  EXPECT_EQ(manager.attached_since(binary), std::nullopt);
  ASSERT_EQ(given_.size(), 1U);
  EXPECT_NE(::fcntl(given_[0].file->get(), F_GETFD), -1) << "to see whether its mappings allow it";
  EXPECT_EQ(given_[0].links.size(), 1U);
  EXPECT_TRUE(manager.request(binary));
  EXPECT_FALSE(manager.attach(binary)) << "it would have its probes twice";
  EXPECT_EQ(programs_.probed.size(), 1U);
  given_.clear();
  EXPECT_TRUE(manager.attach(binary));
  EXPECT_EQ(programs_.probed.size(), 2U);
  EXPECT_EQ(programs_.attached(), 1U);
}

TEST_F(UprobeManagerGivesTest, LinksThatAreNotTakenAreGivenAgain) {
  UprobeManager manager(programs_, AttachPolicy::at_once, {}, give());
  manager.add(file_.get(), {.id = binary}, plan);
  takes_ = false;
  manager.detach_unused({}, 1);
  manager.detach_unused({}, 2 + minute_ns);
  EXPECT_THAT(programs_.forgotten, ElementsAre(binary));
  EXPECT_THAT(given_, IsEmpty());
  EXPECT_EQ(programs_.attached(), 1U);
  takes_ = true;
  manager.detach_unused({}, 3 + minute_ns);
  EXPECT_EQ(given_.size(), 1U);
}

TEST_F(UprobeManagerGivesTest, LinksThatCannotBeClosedNowCount) {
  rtev_mappings mappings = RTEV_MAPPINGS_FREE;
  UprobeManager manager(programs_, AttachPolicy::at_once, [&](int) { return mappings; }, give());
  for (std::uint32_t id = 1; id <= user_most; ++id) manager.add(file_.get(), {.id = id, .user = 1}, plan);
  mappings = RTEV_MAPPINGS_MANY;
  manager.detach_unused({}, 1);
  manager.detach_unused({}, 2 + minute_ns);
  EXPECT_EQ(programs_.attached(), user_most);
  mappings = RTEV_MAPPINGS_FREE;
  manager.add(file_.get(), {.id = 1000, .user = 1}, plan);
  EXPECT_TRUE(manager.failure(1000));
  manager.add(file_.get(), {.id = 1001, .user = 2}, plan);
  EXPECT_TRUE(manager.attached_since(1001)) << "another user's";
  given_.clear();
  manager.add(file_.get(), {.id = 1002, .user = 1}, plan);
  EXPECT_TRUE(manager.attached_since(1002));
}

TEST_F(UprobeManagerGivesTest, TheEndGivesAllLinksAway) {
  {
    UprobeManager manager(programs_, AttachPolicy::at_once, {}, give());
    for (const std::uint32_t id : {binary, other_binary}) manager.add(file_.get(), {.id = id}, plan);
  }
  EXPECT_EQ(given_.size(), 2U);
  EXPECT_EQ(programs_.attached(), 2U);
}

TEST_F(UprobeManagerGivesTest, TheEndClosesLinksThatAreNotTaken) {
  {
    UprobeManager manager(programs_, AttachPolicy::at_once, {}, give());
    manager.add(file_.get(), {.id = binary}, plan);
    takes_ = false;
  }
  EXPECT_EQ(programs_.attached(), 0U);
}

TEST_F(UprobeManagerTest, ABinaryIsNotForgottenWhileAttaching) {
  UprobeManager manager(programs_, AttachPolicy::at_once);
  programs_.manager = &manager;
  manager.add(file_.get(), {.id = binary}, plan);
  programs_.manager = nullptr;
  EXPECT_EQ(programs_.attached(), 1U);
  manager.detach_unused({}, 10 * minute_ns);
  EXPECT_EQ(programs_.attached(), 0U);
}

}  // namespace
}  // namespace rtev::kernel
