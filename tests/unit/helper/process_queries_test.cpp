// SPDX-License-Identifier: MIT
#include "helper/process_queries.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "helper/channel.hpp"

namespace rtev::helper {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t ms = 1'000'000;

ProcessView full_view() {
  ProcessView view;
  view.stat = {.comm = "a\nb", .state = 'S', .ending = true, .threads = 3, .start_code = 4096, .start_ticks = 7};
  view.image = {.start_ticks = 7,
                .user = 1000,
                .start_code = 4096,
                .ns_pid = 2,
                .comm = "c",
                .exe = "/e",
                .script = "s",
                .file = UniqueFd(::memfd_create("program", MFD_CLOEXEC))};
  view.rings.push_back({.fd = UniqueFd(::memfd_create("ring", MFD_CLOEXEC)), .path = "/1.events", .begin = 1});
  view.rings.push_back({.fd = {}, .path = "/mnt/2.events", .clock_offset_ns = -5, .length = 9});
  view.runtime = {.fd = UniqueFd(::memfd_create("library", MFD_CLOEXEC)), .begin = 77};
  view.word = 11;
  return view;
}

TEST(Archive, WhatIsWrittenIsRead) {
  Message message;
  ProcessView view = full_view();
  Writer{message}(view);
  EXPECT_EQ(message.fds.size(), 3u);
  ProcessView read;
  Reader reader(message);
  reader(read);
  EXPECT_TRUE(reader.is_complete());
  EXPECT_EQ(read.stat->comm, "a\nb");
  EXPECT_EQ(read.stat->start_code, 4096u);
  EXPECT_EQ(read.image.user, 1000u);
  EXPECT_TRUE(read.image.file);
  ASSERT_EQ(read.rings.size(), 2u);
  EXPECT_TRUE(read.rings[0].fd);
  EXPECT_FALSE(read.rings[1].fd);
  EXPECT_EQ(read.rings[1].clock_offset_ns, -5);
  EXPECT_EQ(read.runtime->begin, 77u);
  EXPECT_EQ(read.word, 11u);
  EXPECT_FALSE(read.peak_memory_bytes);
}

TEST(Archive, CutMessagesAreRefused) {
  Message whole;
  ProcessView view = full_view();
  Writer{whole}(view);
  for (std::size_t size = 0; size < whole.bytes.size(); ++size) {
    Message cut{.bytes = {whole.bytes.begin(), whole.bytes.begin() + static_cast<std::ptrdiff_t>(size)}, .fds = {}};
    for (std::size_t fd = 0; fd < whole.fds.size(); ++fd) cut.fds.emplace_back(::memfd_create("fd", MFD_CLOEXEC));
    ProcessView read;
    Reader reader(cut);
    reader(read);
    EXPECT_FALSE(reader.is_complete()) << size;
  }
  whole.fds.pop_back();
  ProcessView read;
  Reader reader(whole);
  reader(read);
  EXPECT_FALSE(reader.is_complete()) << "a descriptor is missing";
}

class HelperQueriesTest : public testing::Test {
 protected:
  /// Processes answers until there are no more, at the speed of this test's clock.
  void settle() {
    while (!queries_->is_idle()) {
      pollfd wait{.fd = queries_->event_fd(), .events = POLLIN, .revents = 0};
      ::poll(&wait, 1, 10'000);
      queries_->process(now_ns_);
    }
  }
  /// Processes answers until there are as many.
  bool poll_until_answered(std::size_t count) {
    while (answered_.size() < count) {
      pollfd wait{.fd = queries_->event_fd(), .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, 10'000) == 0) return false;
      queries_->process(now_ns_);
    }
    return true;
  }
  /// Asks for the user of a process, and notes the answer.
  void ask(std::int32_t pid, std::uint32_t user) {
    queries_->ask({.pid = pid, .user = true}, user, [this, pid](const ProcessView& view) {
      answered_.push_back(pid);
      silent_ += view.no_answer;
    });
  }
  void restart(const HelperQueries::Limits& limits) {
    queries_ = std::make_unique<HelperQueries>(helper_, Priority::raised, limits);
    queries_->process(now_ns_);
  }

  std::uint64_t now_ns_ = 1'000 * ms;
  HelperProcess helper_ = HelperProcess::start().value();
  std::unique_ptr<HelperQueries> queries_ = std::make_unique<HelperQueries>(helper_, Priority::raised);
  std::vector<std::int32_t> answered_;
  std::size_t silent_ = 0;
};

TEST_F(HelperQueriesTest, AnswersWithStateAndFiles) {
  ProcessView view;
  queries_->ask({.pid = ::getpid(), .user = true, .image = true}, 0,
                [&](ProcessView answer) { view = std::move(answer); });
  EXPECT_FALSE(view.stat) << "later";
  settle();
  ASSERT_TRUE(view.stat);
  EXPECT_EQ(view.image.user, ::getuid());
  EXPECT_EQ(view.image.ns_pid, ::getpid());
  EXPECT_TRUE(view.image.file) << "/proc/PID/exe, opened by another process";
  EXPECT_FALSE(view.no_answer);
}

TEST_F(HelperQueriesTest, ProcessesThatAreGone) {
  bool has_stat = true;
  queries_->ask({.pid = 0x3fffffff, .image = true, .mapped_rings = true}, 0,
                [&](const ProcessView& view) { has_stat = view.stat.has_value(); });
  settle();
  EXPECT_FALSE(has_stat);
}

TEST_F(HelperQueriesTest, UsersTakeTurnsAndSoDoTheirProcesses) {
  restart({.workers = 1});
  ask(10, 1);  // at once
  for (const std::int32_t pid : {11, 11, 11, 12}) ask(pid, 1);
  ask(21, 2);
  ask(31, 3);
  settle();
  EXPECT_THAT(answered_, ElementsAre(10, 21, 31, 11, 12, 11, 11));
}

TEST_F(HelperQueriesTest, AProcessMayAskForALittleOnly) {
  restart({.workers = 1, .waiting_of_process = 2});
  for (int queries = 0; queries < 5; ++queries) ask(10, 1);
  ask(11, 1);
  settle();
  EXPECT_EQ(answered_.size(), 6u) << "all are answered, some with nothing";
}

TEST(HelperProcess, ARealTimeWorkerThatIsLoweredEnds) {
  const sched_param lowest{.sched_priority = 1}, none{};
  if (::sched_setscheduler(0, SCHED_FIFO, &lowest) != 0) GTEST_SKIP() << "needs CAP_SYS_NICE";
  ::sched_setscheduler(0, SCHED_OTHER, &none);
  const HelperProcess helper = HelperProcess::start().value();
  const auto channel = helper.start_worker(Priority::real_time);
  ASSERT_TRUE(channel);
  for (Priority priority : {Priority::real_time, Priority::raised}) {
    ProcessQuery query{.pid = ::getpid(), .user = true};
    Message message;
    Writer{message}(query, priority);
    ASSERT_TRUE(send(channel->get(), message));
    auto answer = receive(channel->get(), false);
    ASSERT_TRUE(answer);
    ProcessView view;
    std::uint64_t cpu_ns = 0;
    bool ends = false;
    Reader reader(*answer);
    reader(view, cpu_ns, ends);
    EXPECT_TRUE(reader.is_complete());
    EXPECT_GT(cpu_ns, 0u);
    EXPECT_EQ(ends, priority == Priority::raised);
  }
  EXPECT_FALSE(receive(channel->get(), false));
}

/// Children of all processes, as `ps` finds them.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

TEST(HelperProcess, LoweredWorkersLetOthersGoFirst) {
  const HelperProcess helper = HelperProcess::start().value();
  const auto channel = helper.start_worker(Priority::lowered);
  ASSERT_TRUE(channel);
  ProcessQuery query{.pid = ::getpid(), .user = true};
  Priority priority = Priority::lowered;
  Message message;
  Writer{message}(query, priority);
  ASSERT_TRUE(send(channel->get(), message));
  ASSERT_TRUE(receive(channel->get(), false));
  std::vector<pid_t> workers;
  for (const pid_t child : children_of(::getpid()))
    for (const pid_t worker : children_of(child)) workers.push_back(worker);
  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(::getpriority(PRIO_PROCESS, static_cast<id_t>(workers[0])), 5);
  EXPECT_EQ(::sched_getscheduler(workers[0]), SCHED_OTHER);
  EXPECT_EQ(::getsid(workers[0]), workers[0]) << "where sessions are what the scheduler groups by";
}

TEST_F(HelperQueriesTest, AUserWhoTookTooMuchTimeIsAnsweredNevertheless) {
  const HelperQueries::Limits limits{.share_of_user{1'000'000, 1}};
  queries_ = std::make_unique<HelperQueries>(helper_, Priority::real_time, limits);
  queries_->process(now_ns_);
  for (std::int32_t pid = 10; pid < 20; ++pid) ask(pid, 1);
  settle();
  EXPECT_EQ(answered_.size(), 10u);
  EXPECT_EQ(silent_, 0u);
}

/// Queries that take long are for lowered workers. Who has used up his share waits, and others go first.
TEST_F(HelperQueriesTest, AUserWhoseShareOfLoweredWorkersIsUsedUpWaits) {
  constexpr std::uint64_t divisor = 1'000'000'000;
  const HelperQueries::Limits limits{.share_of_user{divisor, 1}, .workers = 1};
  queries_ = std::make_unique<HelperQueries>(helper_, Priority::lowered, limits);
  queries_->process(now_ns_);
  for (std::int32_t pid = 10; pid < 13; ++pid) ask(pid, 1);
  ask(20, 2);
  EXPECT_TRUE(poll_until_answered(2));
  EXPECT_THAT(answered_, ElementsAre(10, 20));
  EXPECT_FALSE(queries_->is_idle());
  const auto next_ns = queries_->next_deadline_ns();
  ASSERT_TRUE(next_ns);
  EXPECT_GT(*next_ns, now_ns_);
  now_ns_ = *next_ns - 1;
  queries_->process(now_ns_);
  EXPECT_EQ(queries_->next_deadline_ns(), next_ns);
  queries_->process(++now_ns_);
  EXPECT_TRUE(poll_until_answered(3));
  EXPECT_THAT(answered_, ElementsAre(10, 20, 11));
  EXPECT_EQ(silent_, 0u);
}

/// Workers that do not answer: see AMountThatHangsAndCannotBeRecognizedStopsAHelperOnly (live/hostile_live_test.cpp).
TEST_F(HelperQueriesTest, AStoppedTracerDoesNotTakeItsWorkersForSilent) {
  restart({.timeout_ns = 200 * ms, .workers = 1, .workers_of_user = 1, .left_behind_of_user = 1});
  ask(10, 1);
  ask(11, 1);
  ask(20, 2);
  // Nothing was processed for 10 s.
  now_ns_ += 10'000 * ms;
  settle();
  EXPECT_EQ(answered_.size(), 3u);
  EXPECT_EQ(silent_, 0u);
}

}  // namespace
}  // namespace rtev::helper
