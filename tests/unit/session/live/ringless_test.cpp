// SPDX-License-Identifier: MIT
#include "session/live/ringless.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <string>
#include <vector>

#include "rtev/names.hpp"
#include "unit/session/live/ringless_world.hpp"

namespace rtev {
namespace {

using test::milli;
using test::probed_id;
using test::second;
using testing::ElementsAre;
using testing::Eq;
using testing::IsEmpty;
using testing::Optional;

constexpr std::int32_t probed_pid = 70;

/// Records that wait for the reader.
class FakeSource : public kernel::RinglessSource {
 public:
  int fd() const override { return -1; }
  void read(const std::function<void(const rtev_probed&)>& consumer) override {
    for (const rtev_probed& record : std::exchange(records, {})) consumer(record);
  }
  void arm_wakeup() override {}
  void ignore(pid_t tgid, std::uint64_t) override { ignored.push_back(tgid); }
  std::uint64_t dropped() const override { return 5; }
  std::uint64_t unattributed() const override { return 10; }

  std::vector<rtev_probed> records;
  std::vector<pid_t> ignored;
};

/// What most records have in common.
struct ProbedDetails {
  std::uint16_t domain = 0;
  std::int32_t pid = probed_pid;
  std::uint64_t value = 0;
  std::uint32_t lost_words = 0;
  rtev_probed_type type = RTEV_PROBED_EVENT;
};

class RinglessTest : public testing::Test, private ProcessEvents {
 protected:
  explicit RinglessTest(const ProcessFilter& filter = {})
      : ringless_(source_, world_.programs,
                  {.registry = world_.registry,
                   .timeline = timeline_,
                   .events = *this,
                   .processes = world_.table,
                   .tasks = world_.timed,
                   .run_later = [this](std::function<bool()> task) { world_.tasks.add(std::move(task)); },
                   .start_ns = start_},
                  filter) {
    ringless_.prepare(STDIN_FILENO, test::probed_binary(probed_id).runtime, {.id = probed_id});
  }

  /// A process that ran before the session, probed from now on.
  ProcessIndex add_probed() {
    const ProcessIndex process = world_.add(probed_pid, probed_id, start_, ProcessAction::found);
    ringless_.consider(probed_id);
    turn(0);
    probed_ns_ = monotonic_ns();
    turn(0);
    return process;
  }
  /// So many ns after the probes were attached.
  void record(std::uint64_t after_ns, rtev_emitter emitter, std::uint16_t id, const ProbedDetails& details = {}) {
    rtev_probed record{};
    record.time_ns = probed_ns_ + after_ns;
    record.value = details.value;
    record.tgid = static_cast<std::uint32_t>(details.pid);
    record.binary = probed_id;
    record.lost_words = details.lost_words;
    record.id = id;
    record.domain = details.domain;
    record.type = static_cast<std::uint8_t>(details.type);
    record.emitter = static_cast<std::uint8_t>(emitter);
    source_.records.push_back(record);
  }
  /// A turn of the session, so many ns after the probes were attached.
  void turn(std::uint64_t after_ns) {
    ringless_.read();
    ringless_.tick({.now_ns = probed_ns_ + after_ns, .records_taken_until_ns = probed_ns_ + after_ns});
    world_.timed.run(probed_ns_ + after_ns);
    world_.tasks.run_all();
  }
  /// "domain: kind id value", of losses "domain: reason words", as they were delivered since the last call.
  std::vector<std::string> events() {
    std::vector<std::string> events;
    timeline_.deliver(std::numeric_limits<std::uint64_t>::max(), [&](const Batch& batch) {
      for (const Event& event : batch.events()) {
        const std::string domain = std::to_string(Source::unpack(event.source).domain) + ": ";
        EXPECT_NE(world_.registry.process_of(event), nullptr);
        if (event.kind == EventKind::lost)
          events.push_back(domain + std::string(to_string(static_cast<LossReason>(event.id))) + ' ' +
                           std::to_string(batch.payload_as<Loss>(event)->words));
        else
          events.push_back(domain + std::string(to_string(event.kind)) + ' ' + std::to_string(event.id) + ' ' +
                           std::to_string(event.value));
      }
    });
    return events;
  }
  std::vector<std::uint32_t> end_image(ProcessIndex process, std::uint64_t after_ns, bool by_exec = false) {
    std::vector<std::uint32_t> slots;
    ringless_.end_image(process, {.time_ns = probed_ns_ + after_ns, .by_exec = by_exec}, slots);
    return slots;
  }

  const std::uint64_t start_ = monotonic_ns();
  std::uint64_t probed_ns_ = start_;
  test::RinglessWorld world_;
  FakeSource source_;
  Timeline timeline_{[] { return std::numeric_limits<std::uint64_t>::max(); }};
  std::vector<ProcessAction> actions_;
  std::vector<std::uint64_t> action_ns_;
  Ringless ringless_;

 private:
  void on_process(std::uint64_t time_ns, ProcessAction action, const ProcessRecord&) override {
    actions_.push_back(action);
    action_ns_.push_back(time_ns);
  }
  void on_ring(ProcessIndex, std::uint32_t, std::shared_ptr<RingReader>) override {}
  void on_image_end(const ImageEnd&) override {}
};

TEST_F(RinglessTest, RecordsBecomeEventsOfTheProcess) {
  const ProcessIndex process = add_probed();
  EXPECT_THAT(actions_, ElementsAre(ProcessAction::probe));
  EXPECT_EQ(world_.registry.process(process).ring, RingState::probed);
  record(30, RTEV_EMIT_END, 3, {.domain = 2});
  record(10, RTEV_EMIT_BEGIN, 3, {.domain = 2});
  record(20, RTEV_EMIT_COUNTER, 4, {.value = 50});
  record(40, RTEV_EMIT_LIFECYCLE, 1, {.value = 60});
  turn(50);
  EXPECT_THAT(events(), ElementsAre("2: begin 3 0", "0: counter 4 50", "2: end 3 0", "0: lifecycle 1 60"));
  EXPECT_EQ(end_image(process, 60).size(), 1u);
  const ProcessInfo& info = world_.registry.process(process);
  EXPECT_EQ(info.words.events, 4u);
  EXPECT_EQ(info.words.written, 2u + 2 + 3 + 3) << "words that they would take in a ring";
  EXPECT_TRUE(info.words.balanced());
  EXPECT_EQ(info.domains, 2u);
  EXPECT_THAT(events(), IsEmpty()) << "nothing was missed";
}

TEST_F(RinglessTest, EventsThatDidNotFitAreALoss) {
  const ProcessIndex process = add_probed();
  record(10, RTEV_EMIT_BEGIN, 3, {.lost_words = 20});
  record(20, RTEV_EMIT_BEGIN, 0, {.lost_words = 7, .type = RTEV_PROBED_END});
  turn(50);
  EXPECT_THAT(events(), ElementsAre("0: overflow 20", "0: begin 3 0", "0: overflow 7"));
  end_image(process, 60);
  const Accounting& words = world_.registry.process(process).words;
  EXPECT_EQ(words.lost, 27u);
  EXPECT_TRUE(words.balanced());
}

TEST_F(RinglessTest, RecordsWaitUntilTheirProcessIsKnown) {
  add_probed();
  record(10, RTEV_EMIT_BEGIN, 3, {.pid = 71});
  turn(20);
  EXPECT_THAT(events(), IsEmpty());
  EXPECT_THAT(ringless_.waiting_since(), Optional(probed_ns_ + 10));
  world_.add(71, probed_id, probed_ns_ + 5);
  turn(30);
  EXPECT_THAT(events(), ElementsAre("0: begin 3 0"));
  EXPECT_THAT(ringless_.waiting_since(), Eq(std::nullopt));

  record(40, RTEV_EMIT_BEGIN, 3, {.pid = 72});
  turn(500 * milli);
  EXPECT_THAT(world_.timed.next_due_ns(), Optional(probed_ns_ + 40 + 500 * milli));
  turn(501 * milli);
  EXPECT_THAT(ringless_.waiting_since(), Eq(std::nullopt)) << "its process does not come";
  EXPECT_EQ(ringless_.figures().unplaced, 1u + source_.unattributed());
  EXPECT_EQ(ringless_.figures().dropped, source_.dropped());
}

TEST_F(RinglessTest, EventsBeforeAnExecAreNotThoseOfTheNewImage) {
  add_probed();
  world_.add(71, probed_id, probed_ns_ + 100);
  record(50, RTEV_EMIT_BEGIN, 3, {.pid = 71});
  turn(200);
  EXPECT_THAT(events(), IsEmpty());
}

class FilteredRinglessTest : public RinglessTest {
 protected:
  FilteredRinglessTest() : RinglessTest(ProcessFilter{.pids = {probed_pid}}) {}
};

TEST_F(FilteredRinglessTest, ProcessesThatAreNotSelectedAreIgnored) {
  add_probed();
  record(10, RTEV_EMIT_BEGIN, 3, {.pid = 71});
  turn(20);
  EXPECT_THAT(source_.ignored, ElementsAre(71));
  EXPECT_EQ(ringless_.figures().unplaced, source_.unattributed()) << "they are not missing";
}

TEST_F(RinglessTest, AProcessThatEndedBeforeItsProbesIsALossAndTheNextOneIsProbed) {
  const ProcessIndex process = world_.add(probed_pid, probed_id, start_ + milli);
  EXPECT_EQ(end_image(process, 2 * milli).size(), 1u);
  EXPECT_THAT(events(), ElementsAre("0: unprobed 0"));
  turn(3 * milli);
  EXPECT_THAT(world_.programs.probed, ElementsAre(probed_id));
  EXPECT_EQ(ringless_.unprobed().processes(), 0u);
}

TEST_F(RinglessTest, AProcessThatBeganAfterItsProbesWereAttachedIsNoLoss) {
  world_.add(probed_pid, probed_id, start_ + 1);
  ringless_.consider(probed_id);
  turn(second);
  const std::uint64_t forked_ns = monotonic_ns() + second;
  world_.add(71, probed_id, forked_ns, ProcessAction::fork);
  turn(second);
  EXPECT_THAT(events(), ElementsAre("0: unprobed 0")) << "of the first process";
  ASSERT_THAT(actions_, ElementsAre(ProcessAction::probe, ProcessAction::probe));
  EXPECT_THAT(action_ns_, testing::Contains(forked_ns)) << "not before it is there";
}

TEST_F(RinglessTest, AChildThatOnlyExecsIsNoLoss) {
  const ProcessIndex process = world_.add(probed_pid, probed_id, start_ + milli, ProcessAction::fork);
  EXPECT_THAT(end_image(process, 2 * milli, true), IsEmpty());
  EXPECT_THAT(events(), IsEmpty());
}

TEST_F(RinglessTest, AProgramThatCannotBeProbedIsListed) {
  Binary stripped = test::probed_binary(8);
  stripped.runtime.version.clear();
  ringless_.prepare(STDIN_FILENO, stripped.runtime, {.id = stripped.id});
  world_.add(probed_pid, 8, start_ + milli);
  ringless_.consider(8);
  turn(100 * milli);
  ringless_.finish(probed_ns_ + 200 * milli);
  EXPECT_EQ(ringless_.unprobed().processes(), 1u);
  EXPECT_THAT(events(), ElementsAre("0: unprobed 0"));
}

TEST_F(RinglessTest, TheGapOfAProgramThatIsTooFastIsALoss) {
  const ProcessIndex process = add_probed();
  record(10, RTEV_EMIT_BEGIN, 3, {.domain = 1, .type = RTEV_PROBED_LIMITED});
  turn(20);
  EXPECT_EQ(ringless_.figures().gaps, 1u);
  EXPECT_THAT(events(), ElementsAre("1: begin 3 0"));
  turn(20 + second);
  turn(30 + second);
  EXPECT_THAT(events(), ElementsAre("1: unprobed 0")) << "attached again";
  end_image(process, 40 + second);
  EXPECT_THAT(events(), IsEmpty());
}

TEST_F(RinglessTest, AGapThatLastsUntilTheEndIsALoss) {
  add_probed();
  record(10, RTEV_EMIT_BEGIN, 3, {.domain = 1, .type = RTEV_PROBED_LIMITED});
  turn(20);
  events();
  ringless_.finish(probed_ns_ + milli);
  EXPECT_THAT(events(), ElementsAre("1: unprobed 0"));
}

TEST_F(RinglessTest, ADomainThatEndedBeforeAGapHasNone) {
  constexpr auto spawn = static_cast<std::uint16_t>(Lifecycle::domain_spawn),
                 terminate = static_cast<std::uint16_t>(Lifecycle::domain_terminate);
  add_probed();
  for (std::uint16_t domain = 1; domain <= 3; ++domain) record(5, RTEV_EMIT_LIFECYCLE, terminate, {.domain = domain});
  record(10, RTEV_EMIT_BEGIN, 3, {.type = RTEV_PROBED_LIMITED});
  turn(20);
  events();
  turn(20 + second);
  turn(30 + second);
  EXPECT_THAT(events(), ElementsAre("0: unprobed 0")) << "or it would count as another domain";
  const std::uint64_t since_probed = monotonic_ns() - probed_ns_ + second;
  record(since_probed, RTEV_EMIT_BEGIN, 5, {.domain = 1});
  record(since_probed + 1, RTEV_EMIT_LIFECYCLE, spawn, {.domain = 2});
  turn(since_probed + 10);
  EXPECT_THAT(events(), ElementsAre("1: unprobed 0", "1: begin 5 0", "2: lifecycle 6 0"))
      << "of domain 1 another one began in the gap";
}

/// A process that is too fast while another user runs its binary.
class SharedRinglessTest : public RinglessTest {
 protected:
  SharedRinglessTest() {
    fast_ = add_probed();
    other_ = world_.add(71, probed_id, start_, ProcessAction::found, 1001);
    record(5, RTEV_EMIT_BEGIN, 4, {.pid = 71});
    record(10, RTEV_EMIT_BEGIN, 3, {.domain = 1});
    record(20, RTEV_EMIT_END, 3, {.domain = 1, .type = RTEV_PROBED_LIMITED});
    turn(30);
    EXPECT_THAT(events(), ElementsAre("0: begin 4 0", "1: begin 3 0", "1: end 3 0"));
  }

  ProcessIndex fast_ = 0, other_ = 0;
};

TEST_F(SharedRinglessTest, OnlyTheFastProcessHasAGap) {
  EXPECT_EQ(ringless_.figures().gaps, 1u);
  record(second, RTEV_EMIT_END, 4, {.pid = 71});
  record(second + 30, RTEV_EMIT_BEGIN, 5, {.domain = 2, .lost_words = 3, .type = RTEV_PROBED_RESUMED});
  record(second + 40, RTEV_EMIT_BEGIN, 6, {.domain = 1});
  turn(second + 50);
  EXPECT_THAT(events(), ElementsAre("0: end 4 0", "1: unprobed 0", "2: overflow 3", "2: begin 5 0", "1: begin 6 0"));
  EXPECT_THAT(world_.programs.probed, ElementsAre(probed_id)) << "the probes stayed";
  record(second + 60, RTEV_EMIT_END, 6, {.domain = 1, .type = RTEV_PROBED_LIMITED});
  turn(second + 70);
  EXPECT_EQ(ringless_.figures().gaps, 2u);
  EXPECT_THAT(events(), ElementsAre("1: end 6 0"));
  end_image(other_, second + 80);
  EXPECT_THAT(events(), IsEmpty());
  end_image(fast_, second + 80);
  EXPECT_THAT(events(), ElementsAre("1: unprobed 0", "2: unprobed 0")) << "it ended in a pause";
  EXPECT_TRUE(world_.registry.process(fast_).words.balanced());
}

TEST_F(SharedRinglessTest, TheGapBeginsWithThePauseEvenIfOtherThreadsWriteOneMoreEvent) {
  record(25, RTEV_EMIT_BEGIN, 5, {.domain = 1});
  record(second + 30, RTEV_EMIT_BEGIN, 6, {.domain = 1, .type = RTEV_PROBED_RESUMED});
  turn(second + 50);
  std::vector<Loss> losses;
  timeline_.deliver(std::numeric_limits<std::uint64_t>::max(), [&](const Batch& batch) {
    for (const Event& event : batch.events())
      if (event.kind == EventKind::lost) losses.push_back(*batch.payload_as<Loss>(event));
  });
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].from_ns, probed_ns_ + 20);
  EXPECT_EQ(losses[0].to_ns, probed_ns_ + second + 30);
}

TEST_F(SharedRinglessTest, APauseThatLastsUntilProbesAreAttachedAgainIsOneLoss) {
  world_.table.erase(71);
  world_.add(72, probed_id, start_, ProcessAction::found);
  record(40, RTEV_EMIT_BEGIN, 7, {.pid = 72, .type = RTEV_PROBED_LIMITED});
  turn(50);  // now all processes are of one user
  events();
  turn(60 + second);
  turn(70 + second);
  EXPECT_THAT(events(), ElementsAre("1: unprobed 0", "0: unprobed 0"));
  const std::uint64_t since_probed = monotonic_ns() - probed_ns_ + second;
  record(since_probed, RTEV_EMIT_BEGIN, 6, {.domain = 1, .type = RTEV_PROBED_RESUMED});
  turn(since_probed + 10);
  EXPECT_THAT(events(), ElementsAre("1: begin 6 0"));
}

TEST_F(RinglessTest, ARingThatIsOpenedEndsTheGap) {
  const ProcessIndex process = add_probed();
  record(10, RTEV_EMIT_BEGIN, 3, {.type = RTEV_PROBED_LIMITED});
  turn(20);
  events();
  ringless_.on_ring(process, probed_ns_ + 30);
  EXPECT_THAT(events(), ElementsAre("0: unprobed 0"));
  world_.registry.process(process).ring = RingState::active;
  end_image(process, 40);
  EXPECT_THAT(events(), IsEmpty());
}

}  // namespace
}  // namespace rtev
