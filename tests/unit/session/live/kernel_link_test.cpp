// SPDX-License-Identifier: MIT
#include "session/live/kernel_link.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "ring/layout.hpp"
#include "support/ring_file_builder.hpp"

namespace rtev {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Records its calls. Saved rings become readable one at a time.
class FakeKernel : public kernel::TrackedProcesses, public kernel::SavedRingSource {
 public:
  Result<void> track(pid_t tgid, const rtev_tracked&) override {
    tracked.push_back(tgid);
    if (is_full) return errno_error(E2BIG, "cannot track");
    return {};
  }
  void untrack(pid_t tgid) override { std::erase(tracked, tgid); }
  void ring_opened(pid_t, std::uint64_t) override {}
  void ring_found(pid_t, const rtev_ring&) override {}
  bool is_latest_ring(pid_t, std::uint64_t) const override { return true; }
  std::uint64_t announcements() const override { return 0; }
  bool is_being_changed(int, FileUse) const override { return false; }
  void look_at_pages(std::span<PageRange>) override {}

  void read_saved(const SavedConsumer& consumer) override {
    if (unread.empty()) return;
    const auto header = file.bytes().first(sizeof(FileHeader));
    consumer({.announced_ns = 100,
              .begin = 0,
              .end = file.bytes().size(),
              .tgid = unread.front(),
              .uid = 0,
              .type = RTEV_SAVED_RING,
              .domain = 0,
              .bytes = static_cast<std::uint32_t>(header.size())},
             header);
    unread.erase(unread.begin());
  }
  bool has_unread_saved() const override { return !unread.empty(); }

  std::vector<pid_t> tracked;
  bool is_full = false;
  std::vector<std::uint32_t> unread;  ///< processes whose saved ring was not read yet
  test::RingFileBuilder file{{.domains = 1, .words_log2 = 6}};
};

class KernelLinkTest : public testing::Test {
 protected:
  FakeKernel kernel_;
  std::vector<std::uint32_t> ringless_;
  int tracked_ = 0;
  KernelLink link_{kernel_, kernel_, [this](std::int32_t) { ++tracked_; },
                   [this](std::uint32_t binary) { ringless_.push_back(binary); }, 1 << 20};
};

TEST_F(KernelLinkTest, ReportsBinariesOfProcessesWithoutARing) {
  for (const auto& [slot, binary] : {std::pair{0u, 7u}, {3u, 8u}, {0u, 0u}}) {
    rtev_tracked tracked{};
    tracked.slot = slot;
    tracked.binary = binary;
    link_.track(static_cast<std::int32_t>(10 + binary), tracked);
  }
  EXPECT_THAT(kernel_.tracked, ElementsAre(17, 18, 10));
  EXPECT_EQ(tracked_, 3);
  EXPECT_THAT(ringless_, ElementsAre(7)) << "the others have a ring or no known binary";
}

TEST_F(KernelLinkTest, GoesOnIfTheKernelTracksTooManyProcesses) {
  kernel_.is_full = true;
  rtev_tracked tracked{};
  tracked.binary = 7;
  link_.track(17, tracked);
  EXPECT_THAT(ringless_, ElementsAre(7));
  link_.untrack(17);
  EXPECT_THAT(kernel_.tracked, IsEmpty());
}

TEST_F(KernelLinkTest, WaitsForASavedRingBehindUnfinishedRecords) {
  kernel_.unread = {5, 6, 7};
  EXPECT_TRUE(link_.take_saved_ring(7, 100, 100));
  EXPECT_FALSE(kernel_.has_unread_saved());
  EXPECT_FALSE(link_.take_saved_ring(7, 100, 100)) << "taken once";
  EXPECT_TRUE(link_.take_saved_ring(5, 0, 100));
}

TEST_F(KernelLinkTest, ForgetsSavedRings) {
  kernel_.unread = {7, 8};
  link_.collect_saved_rings();
  link_.collect_saved_rings();
  link_.forget_saved_rings(7, 99);
  link_.forget_saved_rings(8, 100);
  EXPECT_TRUE(link_.take_saved_ring(7, 0, 100)) << "announced later";
  EXPECT_FALSE(link_.take_saved_ring(8, 0, 100));
}

}  // namespace
}  // namespace rtev
