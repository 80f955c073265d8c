// SPDX-License-Identifier: MIT
#include "session/live/enabling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace rtev {
namespace {

using enable::EnableAnswer;
using enable::EnableRequest;
using testing::ElementsAre;
using testing::Eq;
using testing::IsEmpty;
using testing::Optional;

class EnablingTest : public testing::Test {
 protected:
  static constexpr std::uint64_t ms = 1'000'000, start = 1'000'000 * ms, delay = Enabling::start_delay_ns;

  ProcessIndex add_process() {
    ProcessInfo info;
    info.pid = ++last_pid_;
    info.runtime = ocaml_runtime;
    return registry_.add_process(std::move(info));
  }
  void end(ProcessIndex process) {
    registry_.process(process).ended = true;
    enabling_.forget(process);
  }
  void answer(ProcessIndex process, EnableResult result) {
    answers_.push_back({.pid = registry_.process(process).pid, .id = process, .result = result, .is_ours = true});
    enabling_.take_answers(now_ns_);
  }
  /// Runs what is due at this time. Returns the processes that were asked for.
  std::vector<ProcessIndex> asked_at(std::uint64_t now_ns) {
    now_ns_ = now_ns;
    tasks_.run(now_ns);
    std::vector<ProcessIndex> asked;
    for (const EnableRequest& request : std::exchange(requests_, {})) asked.push_back(request.id);
    return asked;
  }

  std::int32_t last_pid_ = 1000;
  std::uint64_t now_ns_ = start;
  Registry registry_;
  TimedTasks tasks_;
  bool is_busy_ = false, is_gone_ = false;
  std::vector<EnableRequest> requests_;
  std::vector<EnableAnswer> answers_;
  std::vector<std::pair<ProcessIndex, EnableResult>> reports_;
  Enabling enabling_{{.ask =
                          [this](const EnableRequest& request) {
                            if (!is_busy_) requests_.push_back(request);
                            return !is_busy_;
                          },
                      .take = [this]() -> Result<std::vector<EnableAnswer>> {
                        if (is_gone_) return std::unexpected(Error{.what = "cannot switch events on"});
                        return std::exchange(answers_, {});
                      }},
                     registry_,
                     tasks_,
                     [this](ProcessIndex process, EnableResult result) { reports_.emplace_back(process, result); }};
};

TEST_F(EnablingTest, AsksForAProgramWhenItIsDue) {
  const ProcessIndex program = add_process();
  enabling_.consider(program, start + delay);
  EXPECT_THAT(tasks_.next_due_ns(), Optional(start + delay));
  EXPECT_THAT(asked_at(start + delay - 1), IsEmpty());
  EXPECT_THAT(asked_at(start + delay), ElementsAre(program));
  EXPECT_THAT(tasks_.next_due_ns(), Eq(std::nullopt));
  answer(program, EnableResult::done);
  EXPECT_THAT(reports_, ElementsAre(std::pair(program, EnableResult::done)));
}

/// Else the time would stay in the past, and the session would never sleep again.
TEST_F(EnablingTest, AChildThatEndsBeforeItIsDueLeavesNothingDue) {
  const ProcessIndex parent = add_process();
  enabling_.consider(parent, start);
  EXPECT_THAT(asked_at(start), ElementsAre(parent));
  answer(parent, EnableResult::done);
  for (std::uint64_t i = 0; i < 8; ++i) {
    const ProcessIndex child = add_process();
    enabling_.consider_child(child, parent, start + i * ms + delay);
    end(child);
  }
  EXPECT_THAT(asked_at(start + 2 * delay), IsEmpty());
  EXPECT_THAT(tasks_.next_due_ns(), Eq(std::nullopt));
}

TEST_F(EnablingTest, AProgramThatEndedDoesNotDelayTheNext) {
  const ProcessIndex first = add_process(), second = add_process();
  enabling_.consider(first, start + delay);
  enabling_.consider(second, start + delay + ms);
  end(first);
  EXPECT_THAT(asked_at(start + delay), IsEmpty());
  EXPECT_THAT(tasks_.next_due_ns(), Optional(start + delay + ms));
  EXPECT_THAT(asked_at(start + delay + ms), ElementsAre(second));
}

TEST_F(EnablingTest, AChildOfAnEnabledProgramIsKnownAsSuchAlsoIfItsParentEnded) {
  const ProcessIndex parent = add_process(), child = add_process();
  answer(parent, EnableResult::done);
  enabling_.consider_child(child, parent, start + delay);
  end(parent);
  tasks_.run(start + delay);
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_TRUE(requests_[0].is_child_of_enabled);
}

TEST_F(EnablingTest, AsksAgainSoonIfTheEnablerIsBusy) {
  const ProcessIndex program = add_process();
  enabling_.consider(program, start);
  is_busy_ = true;
  EXPECT_THAT(asked_at(start), IsEmpty());
  EXPECT_THAT(tasks_.next_due_ns(), Optional(start + 10 * ms));
  is_busy_ = false;
  EXPECT_THAT(asked_at(start + 10 * ms), ElementsAre(program));
  EXPECT_THAT(tasks_.next_due_ns(), Eq(std::nullopt));
}

/// Else who takes all descriptors of a server for a moment would keep its events off for the whole run.
TEST_F(EnablingTest, WhatAProgramLacksMayBeThereLater) {
  constexpr std::uint64_t retry = 10'000 * ms;
  const ProcessIndex program = add_process();
  enabling_.consider(program, start);
  EXPECT_THAT(asked_at(start), ElementsAre(program));
  answer(program, EnableResult::limit);
  EXPECT_THAT(enabling_.failure_text(), testing::HasSubstr("1 process could not"));
  EXPECT_THAT(asked_at(start + retry - 1), IsEmpty());
  EXPECT_THAT(asked_at(start + retry), ElementsAre(program));
  answer(program, EnableResult::space);
  EXPECT_THAT(asked_at(start + 3 * retry - 1), IsEmpty()) << "twice as long";
  EXPECT_THAT(asked_at(start + 3 * retry), ElementsAre(program));
  answer(program, EnableResult::done);
  EXPECT_EQ(enabling_.failure_text(), "");
  EXPECT_THAT(reports_, ElementsAre(std::pair(program, EnableResult::limit), std::pair(program, EnableResult::done)))
      << "what is lacking is said once";
  answer(program, EnableResult::limit);
  EXPECT_THAT(asked_at(start + 7 * retry - 1), IsEmpty())
      << "after 30 s and 40 s more: else it is switched on and off for ever";
  EXPECT_THAT(asked_at(start + 7 * retry), ElementsAre(program));
  answer(program, EnableResult::limit);
  end(program);
  EXPECT_THAT(asked_at(start + 100 * retry), IsEmpty());
  EXPECT_THAT(enabling_.failure_text(), testing::HasSubstr("1 process could not"))
      << "of a program that has ended, too";
}

TEST_F(EnablingTest, AsksForNothingOnceTheEnablerIsGone) {
  const ProcessIndex program = add_process();
  enabling_.consider(program, start);
  is_gone_ = true;
  enabling_.take_answers(now_ns_);
  EXPECT_TRUE(enabling_.has_failed());
  EXPECT_THAT(asked_at(start), IsEmpty());
  enabling_.consider(program, start);
  EXPECT_THAT(asked_at(start), IsEmpty());
  EXPECT_THAT(tasks_.next_due_ns(), Eq(std::nullopt));
}

}  // namespace
}  // namespace rtev
