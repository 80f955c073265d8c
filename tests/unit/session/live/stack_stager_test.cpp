// SPDX-License-Identifier: MIT
#include "session/live/stacks/stack_stager.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace rtev {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int32_t pid = 4242;
constexpr std::uint64_t code_begin = 0x400000, code_end = 0x500000, rip = 0x401234;
constexpr std::size_t rip_register = 16, rsp_register = 7;

class FakeStacks final : public kernel::StackSource {
 public:
  int fd() const override { return -1; }
  void read_stacks(const StackConsumer& consumer) override {
    for (const rtev_stack& record : std::exchange(records, {})) consumer(record, payload);
  }
  std::vector<kernel::StackDrop> take_stack_drops(std::uint64_t) override { return std::exchange(drops, {}); }
  Result<void> add_target(pid_t, const rtev_stack_target&) override {
    if (refuses) return std::unexpected(Error{.what = "no room"});
    return {};
  }
  void remove_target(pid_t) override {}
  void set_sampling(bool on) override { samples = on; }
  bool has_slept_since(pid_t tid, std::uint64_t left_ns, std::uint64_t now_ns) const override {
    return asleep.contains({tid, left_ns}) && now_ns - left_ns >= min_sleep_ns;
  }

  static constexpr std::uint64_t min_sleep_ns = 100;
  bool samples = false, refuses = false;
  std::vector<rtev_stack> records;
  std::vector<std::byte> payload;
  std::vector<kernel::StackDrop> drops;
  std::set<std::pair<pid_t, std::uint64_t>> asleep;
};

enum class Found : std::uint8_t { no_tables, unread };

/// Answers when the test calls answer().
class FakeQueries final : public ProcessQueries {
 public:
  void ask(ProcessQuery query, std::uint32_t, Answer answer) override {
    asked.emplace_back(std::move(query), std::move(answer));
  }
  int event_fd() const override { return -1; }
  void process(std::uint64_t) override {}
  std::optional<std::uint64_t> next_deadline_ns() const override { return std::nullopt; }
  bool is_idle() const override { return asked.empty(); }

  /// With one mapping, of a file without tables or one that could not be read.
  void answer(Found found = Found::no_tables, std::uint64_t end = code_end, std::uint64_t inode = 2) {
    auto [query, answer] = std::move(asked.front());
    asked.erase(asked.begin());
    ProcessView view;
    view.code.push_back({.begin = code_begin,
                         .end = end,
                         .offset = 0,
                         .file = {.device = 1, .inode = inode},
                         .path = "/bin/server",
                         .has_none = found == Found::no_tables});
    answer(std::move(view));
  }

  std::vector<std::pair<ProcessQuery, Answer>> asked;
};

rtev_stack record_of(rtev_stack_kind kind, std::uint64_t time_ns, std::uint64_t weight = 0) {
  rtev_stack record{};
  record.time_ns = time_ns;
  record.weight = weight;
  record.tgid = record.tid = pid;
  record.domain = 1;
  record.kind = static_cast<std::uint8_t>(kind);
  record.role = RTEV_ROLE_MUTATOR;
  record.flags = RTEV_STACK_HOLDS_LOCK;
  record.registers[rip_register] = rip;
  record.registers[rsp_register] = 0x7000;
  return record;
}

struct Staged {
  Event event;
  Sample sample;
  std::optional<Loss> loss;
};

class StackStagerTest : public testing::Test {
 protected:
  StackStagerTest() {
    ProcessInfo info;
    info.pid = pid;
    process_ = registry_.add_process(info);
    processes_.insert({.pid = pid, .user = 7, .origin = ProcessAction::exec, .since_ns = 100, .index = process_});
    processes_.find(pid)->program.binary = std::make_shared<Binary>();
  }

  std::vector<Staged> stage(std::vector<rtev_stack> records) {
    source_.records = std::move(records);
    stager_.stage(now_ns);
    std::vector<Staged> staged;
    timeline_.deliver(UINT64_MAX, [&](const Batch& batch) {
      for (const Event& event : batch.events())
        staged.push_back({.event = event,
                          .sample = batch.payload_as<Sample>(event).value_or(Sample{}),
                          .loss = batch.payload_as<Loss>(event)});
    });
    return staged;
  }
  std::string object_of(StackIndex stack) const {
    return std::string(registry_.stacks().frame(registry_.stacks().frame_of(stack)).object);
  }

  static constexpr std::uint64_t now_ns = 1'000'000;
  FakeStacks source_;
  FakeQueries queries_;
  Registry registry_;
  ProcessTable processes_{[](std::int32_t) { return true; }, registry_};
  Timeline timeline_{[] { return std::uint64_t{2'000'000}; }, std::size_t{1} << 20};
  ProcessIndex process_ = 0;
  std::uint64_t clock_ns_ = 5'000'000'000;
  StackStager stager_{{.source = source_,
                       .readers = queries_,
                       .builders = queries_,
                       .processes = processes_,
                       .registry = registry_,
                       .timeline = timeline_,
                       .clock = [this] { return clock_ns_; }},
                      KernelSymbols()};
};

TEST_F(StackStagerTest, StagesSamplesBeforeTheirCodeIsKnown) {
  const auto staged = stage({record_of(RTEV_STACK_ON_CPU, 500, 10'000)});
  ASSERT_EQ(staged.size(), 1U);
  EXPECT_EQ(staged[0].event.kind, EventKind::sample);
  EXPECT_EQ(staged[0].event.id, static_cast<std::uint16_t>(SampleKind::on_cpu));
  EXPECT_EQ(staged[0].event.time, 500U);
  const Sample& sample = staged[0].sample;
  EXPECT_EQ(std::tuple(sample.process, sample.pid, sample.tid, sample.domain, sample.weight, sample.role),
            std::tuple(process_, pid, pid, 1, 10'000U, ThreadRole::mutator));
  EXPECT_TRUE(sample.holds_lock);
  EXPECT_TRUE(registry_.stacks().is_reserved(sample.stack));
  EXPECT_TRUE(stager_.has_waiting());
  EXPECT_EQ(stager_.waiting_since(), 500U);

  queries_.answer();
  EXPECT_FALSE(registry_.stacks().is_reserved(sample.stack));
  EXPECT_EQ(object_of(sample.stack), "/bin/server");
  EXPECT_FALSE(registry_.stacks().is_complete(sample.stack)) << "the file has no tables";
  EXPECT_FALSE(stager_.has_waiting());
  EXPECT_FALSE(stager_.waiting_since());
  EXPECT_THAT(queries_.asked, IsEmpty());
}

TEST_F(StackStagerTest, SamplesWhileThereIsAProcess) {
  EXPECT_FALSE(source_.samples);
  stager_.add_process(1);
  EXPECT_FALSE(source_.samples) << "it is not part of the stream";
  stager_.add_process(pid);
  EXPECT_TRUE(source_.samples);
  EXPECT_EQ(queries_.asked.size(), 1U) << "its code is asked for before the first sample";
  stager_.add_process(pid);  // more is known of it
  stager_.forget(process_);
  EXPECT_FALSE(source_.samples);
}

TEST_F(StackStagerTest, CountsProcessesThatTheKernelDoesNotSample) {
  stager_.add_process(pid);
  EXPECT_EQ(stager_.unsampled(), 0u);
  stager_.forget(process_);
  source_.refuses = true;
  stager_.add_process(pid);
  stager_.add_process(pid);  // its program is known better now
  EXPECT_EQ(stager_.unsampled(), 1u);
}

TEST_F(StackStagerTest, ForgetsTheCodeOfProcessesThatEnded) {
  stager_.add_process(pid);
  queries_.answer();
  stager_.add_process(pid);
  EXPECT_THAT(queries_.asked, IsEmpty()) << "it is known";
  stager_.forget(process_);
  stager_.add_process(pid);
  EXPECT_EQ(queries_.asked.size(), 1U);

  stager_.forget(process_);
  EXPECT_EQ(queries_.asked.size(), 1U) << "an answer is awaited";
  queries_.answer();
  stager_.add_process(pid);
  EXPECT_EQ(queries_.asked.size(), 1U) << "it was forgotten when the answer had come";
}

TEST_F(StackStagerTest, GivesUpAtTheEnd) {
  const auto staged = stage({record_of(RTEV_STACK_ON_CPU, 500)});
  stager_.give_up();
  EXPECT_FALSE(stager_.has_waiting());
  EXPECT_FALSE(registry_.stacks().is_reserved(staged.at(0).sample.stack));
  EXPECT_FALSE(registry_.stacks().is_complete(staged.at(0).sample.stack));
}

TEST_F(StackStagerTest, TakesASleepWhenItHasEnded) {
  EXPECT_THAT(stage({record_of(RTEV_STACK_OFF_CPU, 500)}), IsEmpty());
  rtev_stack woken = record_of(RTEV_STACK_WOKEN, 900, 400);
  woken.left_ns = 500;
  const auto staged = stage({woken});
  ASSERT_EQ(staged.size(), 1U);
  EXPECT_EQ(staged[0].event.id, static_cast<std::uint16_t>(SampleKind::off_cpu));
  EXPECT_EQ(staged[0].event.time, 900U);
  EXPECT_EQ(staged[0].sample.weight, 400U);
  queries_.answer();
  EXPECT_EQ(object_of(staged[0].sample.stack), "/bin/server");
}

TEST_F(StackStagerTest, TakesSleepsThatLastUntilTheEnd) {
  rtev_stack other = record_of(RTEV_STACK_OFF_CPU, 600), later = record_of(RTEV_STACK_OFF_CPU, 890);
  other.tid = 7;
  later.tid = 8;
  EXPECT_THAT(stage({record_of(RTEV_STACK_OFF_CPU, 500), other, later}), IsEmpty());
  source_.asleep = {{pid, 500}, {8, 890}};
  stager_.end_sleeps(900);
  const auto staged = stage({});
  ASSERT_EQ(staged.size(), 1U) << "one woke up, and one has not slept for long";
  EXPECT_EQ(staged[0].event.id, static_cast<std::uint16_t>(SampleKind::off_cpu));
  EXPECT_EQ(staged[0].sample.tid, pid);
  EXPECT_EQ(staged[0].sample.weight, 400U);
}

TEST_F(StackStagerTest, LeavesOutSleepsWhoseStackIsMissing) {
  rtev_stack woken = record_of(RTEV_STACK_WOKEN, 900, 400);
  EXPECT_THAT(stage({woken}), IsEmpty());
  woken.left_ns = 499;
  EXPECT_THAT(stage({record_of(RTEV_STACK_OFF_CPU, 500), woken}), IsEmpty()) << "of an earlier sleep";
}

TEST_F(StackStagerTest, IgnoresWhatIsNotOfTheImage) {
  rtev_stack stranger = record_of(RTEV_STACK_ON_CPU, 500);
  stranger.tgid = 1;
  EXPECT_THAT(stage({stranger, record_of(RTEV_STACK_ON_CPU, 99)}), IsEmpty());
  EXPECT_THAT(queries_.asked, IsEmpty());
}

TEST_F(StackStagerTest, AsksForAllThatIsNotKnown) {
  stager_.add_process(pid);
  ASSERT_EQ(queries_.asked.size(), 1U);
  ASSERT_TRUE(queries_.asked[0].first.code_but);
  EXPECT_EQ(queries_.asked[0].first.pid, pid);
  EXPECT_FALSE(queries_.asked[0].first.builds_tables) << "that takes longer";
  queries_.answer(Found::unread);
  ASSERT_EQ(queries_.asked.size(), 1U);
  EXPECT_TRUE(queries_.asked[0].first.builds_tables);
  EXPECT_THAT(*queries_.asked[0].first.code_but, IsEmpty());
  queries_.answer();
  // Code that was mapped since.
  rtev_stack elsewhere = record_of(RTEV_STACK_ON_CPU, 600);
  elsewhere.registers[rip_register] = code_end + 8;
  stage({elsewhere});
  EXPECT_THAT(queries_.asked, IsEmpty()) << "not at once";
  clock_ns_ += 1'000'000'000;
  stage({elsewhere});
  ASSERT_EQ(queries_.asked.size(), 1U);
  queries_.answer(Found::unread, code_end + 4096, 3);
  ASSERT_EQ(queries_.asked.size(), 1U);
  EXPECT_THAT(*queries_.asked[0].first.code_but, ElementsAre(MappedFile{.device = 1, .inode = 2}));
}

TEST_F(StackStagerTest, StacksAreLookedAtSoonAfterTheStartOfAProcess) {
  EXPECT_FALSE(stager_.next_look_ns());
  stager_.add_process(pid);
  constexpr std::uint64_t ms = 1'000'000;
  for (const std::uint64_t interval : {10, 20, 40, 80, 160}) {
    EXPECT_EQ(stager_.next_look_ns(), clock_ns_ + interval * ms);
    clock_ns_ += interval * ms;
    stager_.stage(clock_ns_ - 1);
    EXPECT_TRUE(stager_.next_look_ns());
    stager_.stage(clock_ns_);
  }
  EXPECT_FALSE(stager_.next_look_ns()) << "it was seen for long enough";
}

TEST_F(StackStagerTest, AsksLessAndLessOften) {
  stager_.add_process(pid);
  queries_.answer();
  rtev_stack elsewhere = record_of(RTEV_STACK_ON_CPU, 600);
  elsewhere.registers[rip_register] = code_end + 8;
  constexpr std::uint64_t ms = 1'000'000;
  for (const std::uint64_t interval : {5, 10, 20, 40, 80, 160, 320, 500, 500}) {
    clock_ns_ += interval * ms - 1;
    stage({elsewhere});
    EXPECT_THAT(queries_.asked, IsEmpty()) << interval;
    clock_ns_ += 1;
    stage({elsewhere});
    ASSERT_EQ(queries_.asked.size(), 1U) << interval;
    queries_.answer();
  }
}

TEST_F(StackStagerTest, AsksAgainForFilesThatWereNotRead) {
  stager_.add_process(pid);
  for (int i = 0; i < 2; ++i) queries_.answer(Found::unread);
  EXPECT_THAT(queries_.asked, IsEmpty());
  clock_ns_ += 1'000'000'000;
  const auto staged = stage({record_of(RTEV_STACK_ON_CPU, 600)});
  ASSERT_EQ(queries_.asked.size(), 1U);
  queries_.answer(Found::unread);
  ASSERT_EQ(queries_.asked.size(), 1U);
  EXPECT_THAT(*queries_.asked[0].first.code_but, IsEmpty());
  EXPECT_TRUE(registry_.stacks().is_reserved(staged.at(0).sample.stack));
  queries_.answer();
  EXPECT_EQ(object_of(staged[0].sample.stack), "/bin/server");
}

TEST_F(StackStagerTest, AsksAgainForCodeThatWasMappedAfterTheQuestion) {
  stager_.add_process(pid);
  rtev_stack before = record_of(RTEV_STACK_ON_CPU, clock_ns_ - 1), after = record_of(RTEV_STACK_ON_CPU, clock_ns_ + 1);
  before.registers[rip_register] = after.registers[rip_register] = code_end + 8;
  const auto staged = stage({before, after});
  ASSERT_EQ(staged.size(), 2U);
  stager_.forget(process_);  // it ends, and its last stacks wait
  clock_ns_ += 10'000'000;
  queries_.answer();
  EXPECT_FALSE(registry_.stacks().is_reserved(staged[0].sample.stack)) << "no answer can say more";
  EXPECT_TRUE(registry_.stacks().is_reserved(staged[1].sample.stack));
  ASSERT_EQ(queries_.asked.size(), 1U);
  queries_.answer(Found::no_tables, code_end + 4096);
  EXPECT_EQ(object_of(staged[1].sample.stack), "/bin/server");
  EXPECT_FALSE(stager_.has_waiting());
  EXPECT_THAT(queries_.asked, IsEmpty());
}

TEST_F(StackStagerTest, CountsSleepsThatItForgot) {
  std::vector<rtev_stack> sleeps((1 << 16) + 1, record_of(RTEV_STACK_OFF_CPU, 500));
  for (std::size_t i = 0; i < sleeps.size(); ++i) sleeps[i].tid = static_cast<std::uint32_t>(i + 1);
  sleeps.back().time_ns = 600;
  EXPECT_THAT(stage(sleeps), IsEmpty());
  rtev_stack woken = record_of(RTEV_STACK_WOKEN, 900, 400);
  woken.tid = 1;
  woken.left_ns = 500;
  const auto staged = stage({woken});
  ASSERT_EQ(staged.size(), 1U);
  ASSERT_TRUE(staged[0].loss);
  EXPECT_EQ(staged[0].loss->words, 1U);
  EXPECT_EQ(staged[0].event.id, static_cast<std::uint16_t>(LossReason::sleep_samples));
  EXPECT_EQ(stager_.dropped(), (StackStager::Dropped{0, 1, 0}));
}

TEST_F(StackStagerTest, BoundsWhatWaits) {
  source_.payload.resize(30'000);
  std::vector<rtev_stack> records(1000, record_of(RTEV_STACK_ON_CPU, 500));
  for (rtev_stack& record : records) record.bytes = static_cast<std::uint32_t>(source_.payload.size());
  std::size_t reserved = 0;
  for (const Staged& staged : stage(records)) reserved += registry_.stacks().is_reserved(staged.sample.stack) ? 1 : 0;
  EXPECT_GT(reserved, 50U);
  EXPECT_LT(reserved, 80U) << "2 MiB";
}

/// Queries of a user who asked for too much wait: his stacks do not take the room of others.
TEST_F(StackStagerTest, BoundsWhatWaitsOfAUser) {
  source_.payload.resize(30'000);
  std::vector<rtev_stack> records;
  for (std::int32_t other = pid + 1; other <= pid + 8; ++other) {
    const std::uint32_t user = other == pid + 8 ? 8 : 7;
    const ProcessIndex index = registry_.add_process({});
    processes_.insert({.pid = other, .user = user, .origin = ProcessAction::exec, .since_ns = 100, .index = index});
    rtev_stack record = record_of(RTEV_STACK_ON_CPU, 500);
    record.tgid = record.tid = static_cast<std::uint32_t>(other);
    record.bytes = static_cast<std::uint32_t>(source_.payload.size());
    records.insert(records.end(), 60, record);
  }
  std::map<std::int32_t, std::size_t> reserved;
  for (const Staged& staged : stage(records))
    reserved[staged.sample.pid] += registry_.stacks().is_reserved(staged.sample.stack) ? 1 : 0;
  EXPECT_EQ(reserved[pid + 1], 60U);
  EXPECT_EQ(reserved[pid + 7], 0U) << "4 MiB";
  EXPECT_EQ(reserved[pid + 8], 60U) << "of another user";
}

TEST_F(StackStagerTest, PutsDropsIntoTheStream) {
  source_.drops = {
      {.kind = RTEV_STACK_ALLOCATION, .loss = RTEV_STACK_LIMITED, .count = 9, .first_ns = 500, .last_ns = 700},
      {.kind = RTEV_STACK_ON_CPU, .loss = RTEV_STACK_FULL, .count = 3, .first_ns = 600, .last_ns = 700},
      {.kind = RTEV_STACK_OFF_CPU, .loss = RTEV_STACK_LIMITED, .count = 4, .first_ns = 601, .last_ns = 700},
      {.kind = RTEV_STACK_WOKEN, .loss = RTEV_STACK_FULL, .count = 5, .first_ns = 602, .last_ns = 700},
      {.kind = RTEV_STACK_ALLOCATION, .loss = RTEV_STACK_FULL, .count = 6, .first_ns = 603, .last_ns = 700}};
  const auto staged = stage({});
  ASSERT_EQ(staged.size(), 4U);
  EXPECT_EQ(staged[0].event.kind, EventKind::lost);
  EXPECT_EQ(staged[0].event.id, static_cast<std::uint16_t>(LossReason::samples));
  EXPECT_FALSE(is_sched_loss(staged[0].event));
  ASSERT_TRUE(staged[0].loss);
  EXPECT_EQ(staged[0].loss->words, 3U);
  EXPECT_EQ(staged[1].event.id, static_cast<std::uint16_t>(LossReason::sleep_samples));
  EXPECT_EQ(staged[3].event.id, static_cast<std::uint16_t>(LossReason::allocation_samples));
  EXPECT_EQ(stager_.dropped(), (StackStager::Dropped{3, 9, 6}));
}

}  // namespace
}  // namespace rtev
