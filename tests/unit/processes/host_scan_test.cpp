// SPDX-License-Identifier: MIT
#include "processes/host_scan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace rtev {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::SizeIs;

/// Keeps queries until the test answers them.
class PendingQueries final : public ProcessQueries {
 public:
  void ask(ProcessQuery query, std::uint32_t, Answer answer) override {
    if (query.all_pids)
      list = std::move(answer);
    else
      (query.user ? users : images).emplace(query.pid, std::move(answer));
  }
  int event_fd() const override { return -1; }
  void process(std::uint64_t) override {}
  std::optional<std::uint64_t> next_deadline_ns() const override { return std::nullopt; }
  bool is_idle() const override { return false; }

  Answer list;
  std::map<std::int32_t, Answer> users, images;  ///< by pid
};

struct NoEvents final : ProcessEvents {
  void on_process(std::uint64_t, ProcessAction, const ProcessRecord&) override {}
  void on_ring(ProcessIndex, std::uint32_t, std::shared_ptr<RingReader>) override {}
  void on_image_end(const ImageEnd&) override {}
};

class HostScanTest : public testing::Test {
 protected:
  static ProcessView view_of(std::uint32_t user) {
    ProcessView view;
    view.stat.emplace();
    view.image.user = user;
    return view;
  }
  void answer_users(std::uint32_t user) {
    for (const auto& [pid, answer] : std::exchange(queries_.users, {})) answer(view_of(user));
  }

  std::uint64_t now_ns_ = 1;
  TimedTasks tasks_;
  Registry registry_;
  NoEvents events_;
  NoKernelControl kernel_;
  PendingQueries queries_;
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
                                  .tasks = tasks_,
                                  .clock = [this] { return now_ns_; }};
  const DiscoveryOptions options_{.ring_descriptors = 64};  // for 8 processes at a time, 2 of one user
  HostScan scan_{context_, options_, {.on_listed = [](const auto&, std::uint64_t) {}, .on_silent = {}}};
};

TEST_F(HostScanTest, ManyProcessesOfOneUserDoNotKeepItFromThoseOfOthers) {
  scan_.begin(ScanScope::all);
  ProcessView list;
  for (std::int32_t pid = 1; pid <= 21; ++pid) list.pids.push_back(pid);
  queries_.list(std::move(list));
  while (!queries_.users.contains(1)) {
    scan_.ask_some(100);
    ASSERT_FALSE(queries_.users.empty());
    if (!queries_.users.contains(1)) answer_users(1000);
  }
  queries_.users.extract(1).mapped()(view_of(1001));
  EXPECT_THAT(queries_.images, Contains(Key(1))) << "although no process of the other user has answered";
  EXPECT_THAT(queries_.images, SizeIs(3));
  queries_.images.extract(1).mapped()(view_of(1001));
  answer_users(1000);
  EXPECT_EQ(scan_.take_found(UINT64_MAX)->pid, 1);
  EXPECT_FALSE(scan_.is_active()) << "what waits does not delay the next scan";

  // Answers make room for those that wait.
  const std::int32_t first = queries_.images.begin()->first;
  queries_.images.extract(first).mapped()(view_of(1000));
  scan_.ask_some(100);
  EXPECT_THAT(queries_.images, SizeIs(2));
  EXPECT_THAT(queries_.images, Not(Contains(Key(first))));
}

TEST_F(HostScanTest, WhatIsNotAnsweredIsAskedAgain) {
  constexpr std::uint64_t second = 1'000'000'000;
  const auto no_answer = [] { return ProcessView{.no_answer = true}; };
  scan_.begin(ScanScope::all);
  std::exchange(queries_.list, {})(no_answer());
  EXPECT_TRUE(scan_.is_active());
  scan_.ask_some(100);
  EXPECT_FALSE(queries_.list) << "not at once: whoever has to answer is overloaded";
  now_ns_ += second;
  scan_.ask_some(100);
  ASSERT_TRUE(queries_.list);
  ProcessView list;
  list.pids = {7};
  queries_.list(std::move(list));
  scan_.ask_some(100);
  queries_.users.extract(7).mapped()(no_answer());
  EXPECT_TRUE(scan_.is_active());
  scan_.ask_some(100);
  EXPECT_THAT(queries_.users, IsEmpty());
  now_ns_ += second;
  scan_.ask_some(100);
  queries_.users.extract(7).mapped()(view_of(1000));
  queries_.images.extract(7).mapped()(view_of(1000));
  EXPECT_EQ(scan_.take_found(UINT64_MAX)->pid, 7);
  EXPECT_FALSE(scan_.is_active());
}

TEST_F(HostScanTest, WhatNeverAnswersEndsTheScan) {
  scan_.begin(ScanScope::all);
  ProcessView list;
  list.pids = {7};
  queries_.list(std::move(list));
  int asked = 0;
  for (; scan_.is_active() && asked < 100; now_ns_ += 1'000'000'000) {
    scan_.ask_some(100);
    if (queries_.users.empty()) continue;
    ++asked;
    queries_.users.extract(7).mapped()(ProcessView{.no_answer = true});
  }
  EXPECT_GT(asked, 1);
  EXPECT_LT(asked, 20);
}

TEST_F(HostScanTest, LaterScansAskOnlyWhatIsNotKnown) {
  const auto ask = [&](ScanScope scope) {
    scan_.begin(scope);
    ProcessView list;
    list.pids = {1, 2, 3};
    queries_.list(std::move(list));
    scan_.ask_some(100);
    std::vector<std::int32_t> asked;
    for (const auto& [pid, answer] : queries_.users) asked.push_back(pid);
    answer_users(1000);
    scan_.ask_some(100);
    return asked;
  };
  const auto answer_all = [&] {
    while (!queries_.images.empty()) {
      queries_.images.extract(queries_.images.begin()).mapped()(view_of(1000));
      scan_.ask_some(100);
    }
    while (scan_.take_found(UINT64_MAX)) {
    }
  };
  EXPECT_THAT(ask(ScanScope::unknown), ElementsAre(1, 2, 3)) << "nothing is known at first";
  answer_all();
  EXPECT_THAT(ask(ScanScope::unknown), IsEmpty());
  scan_.forget_found(2, 1);
  EXPECT_THAT(ask(ScanScope::unknown), ElementsAre(2)) << "it began or ended an image";
  answer_all();
  scan_.forget_known(3);
  EXPECT_THAT(ask(ScanScope::unknown), ElementsAre(3));
  answer_all();
  EXPECT_THAT(ask(ScanScope::all), ElementsAre(1, 2, 3));
}

TEST_F(HostScanTest, AnAnswerIsTakenAgainSomeTimes) {
  scan_.begin(ScanScope::all);
  ProcessView list;
  list.pids = {1};
  queries_.list(std::move(list));
  scan_.ask_some(100);
  answer_users(1000);
  queries_.images.extract(1).mapped()(view_of(1000));
  const std::uint64_t now = context_.clock();
  int tries = 0;
  for (auto found = scan_.take_found(UINT64_MAX); scan_.take_again(*found); found = scan_.take_found(UINT64_MAX)) {
    ++tries;
    EXPECT_TRUE(scan_.is_active());
    EXPECT_FALSE(scan_.take_found(now)) << "not at once";
  }
  EXPECT_EQ(tries, 20);
  EXPECT_FALSE(scan_.is_active());
}

}  // namespace
}  // namespace rtev
