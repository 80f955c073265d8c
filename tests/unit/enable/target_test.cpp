// SPDX-License-Identifier: MIT
// A program that changes after it was looked at, and entries of the journal that do not fit it. The program is this
// process; its runtime is made up.
#include "enable/target.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

namespace rtev::enable {
namespace {

using ::testing::HasSubstr;

constexpr DomainLayout layout{.young_limit = 0,
                              .young_ptr = 1,
                              .young_start = 2,
                              .young_end = 3,
                              .action_pending = 7,
                              .requested_external_interrupt = 8,
                              .id = 9};

class TargetTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t hook = 0x1000, default_hook = 0x2000, thread_hook = 0x3000, start = 0x4000,
                                 blocking_hook = 0x5000, directory = 0x6000, bias = 0x10000000;

  void SetUp() override {
    auto held = HeldProcess::hold(::getpid(), 0);
    ASSERT_TRUE(held) << held.error().why;
    target_.emplace(Target{.process = std::move(*held), .bias = bias, .layout = layout});
    target_->runtime.start_sites = {.hook = hook,
                                    .default_hook = default_hook,
                                    .thread_hook = thread_hook,
                                    .blocking_hook = blocking_hook,
                                    .start = {start, start + 1},
                                    .directory = directory};
    state_[1] = state_[2] = 0x1000;
    state_[3] = 0x2000;
    state_[0] = 0x1000;
  }
  /// As an attempt on this program leaves it.
  ReplacedHook left() const {
    return {
        .address = hook + bias,
        .original = default_hook + bias,
        .replacement = start + bias,
        .thread_hook = thread_hook + bias,
        .witness = blocking_hook + bias,
        .witness_before = 0,
        .request = reinterpret_cast<std::uint64_t>(&state_[8]),
    };
  }

  std::optional<Target> target_;
  alignas(8) std::array<std::uint64_t, 10> state_{};
};

TEST_F(TargetTest, KnowsItsOwnHook) {
  EXPECT_TRUE(own_hook(*target_, {left()}));
  ReplacedHook of_threads = left();
  of_threads.original = thread_hook + bias;
  EXPECT_TRUE(own_hook(*target_, {of_threads}));
}

TEST_F(TargetTest, RefusesAHookThatAnEntryOnlySays) {
  const auto changed = [&](std::uint64_t ReplacedHook::* field) {
    ReplacedHook forged = left();
    forged.*field += 8;
    return forged;
  };
  for (const auto field : {&ReplacedHook::address, &ReplacedHook::original, &ReplacedHook::replacement,
                           &ReplacedHook::thread_hook, &ReplacedHook::witness})
    EXPECT_FALSE(own_hook(*target_, {changed(field)}));
}

TEST_F(TargetTest, RefusesARequestThatIsNotInTheStateOfADomain) {
  ReplacedHook forged = left();
  std::array<std::uint64_t, 10> other{};
  other[8] = 1;
  forged.request = reinterpret_cast<std::uint64_t>(&other[8]);
  EXPECT_FALSE(own_hook(*target_, {forged})) << "it has no minor heap";
  forged.request = 8;
  EXPECT_FALSE(own_hook(*target_, {forged}));
}

TEST_F(TargetTest, IsACopyOnlyOfTheSameProgramAndUser) {
  const auto copy = [&](std::uint64_t other_bias, FileIdentity file) {
    auto held = HeldProcess::hold(::getpid(), 0);
    return Target{.process = std::move(*held), .file = file, .bias = other_bias, .layout = layout};
  };
  EXPECT_TRUE(target_->is_copy(copy(bias, {})));
  EXPECT_FALSE(target_->is_copy(copy(bias + 4096, {})));
  EXPECT_FALSE(target_->is_copy(copy(bias, {1, 1})));
}

TEST_F(TargetTest, RefusesANullHookOfAProgramWithoutThreads) {
  target_->runtime.start_sites.thread_hook = 0;
  ReplacedHook forged = left();
  forged.thread_hook = 0;
  EXPECT_TRUE(own_hook(*target_, {forged}));
  forged.original = 0;
  EXPECT_FALSE(own_hook(*target_, {forged}));
}

/// A program whose variables are words of this one.
class VariablesTest : public TargetTest {
 protected:
  void SetUp() override {
    TargetTest::SetUp();
    target_->bias = 0;
    target_->runtime.start_sites.hook = address_of(hook_word_);
    target_->runtime.start_sites.blocking_hook = address_of(witness_);
    target_->runtime.start_sites.enabled_flag = address_of(enabled_);
    target_->runtime.paused_flag = address_of(paused_);
  }
  static std::uint64_t address_of(const std::uint64_t& word) { return reinterpret_cast<std::uint64_t>(&word); }
  Checked<EventsState> events(std::uint64_t enabled, std::uint64_t paused) {
    enabled_ = enabled;
    paused_ = paused;
    return target_->events_state();
  }

  alignas(8) std::uint64_t hook_word_ = default_hook, witness_ = 7, enabled_ = 0, paused_ = 0;
};

TEST_F(VariablesTest, SayWhatEventsDo) {
  EXPECT_EQ(events(0, 0), EventsState::off);
  EXPECT_EQ(events(0, 1), EventsState::off);
  EXPECT_EQ(events(1, 0), EventsState::active);
  EXPECT_EQ(events(1, 1), EventsState::paused);
}

/// The size of rings is an int, in either half of a word.
TEST_F(VariablesTest, SayWhetherTheRuntimeHasSetUpItsEvents) {
  alignas(8) std::array<std::uint32_t, 2> sizes{};
  EXPECT_TRUE(target_->is_initialised()) << "where that is not known";
  for (std::uint32_t& size : sizes) {
    target_->runtime.start_sites.ring_words = reinterpret_cast<std::uint64_t>(&size);
    sizes = {7, 7};
    size = 0;
    EXPECT_FALSE(target_->is_initialised());
    sizes = {};
    size = 1 << 16;
    EXPECT_TRUE(target_->is_initialised());
  }
}

TEST_F(VariablesTest, ThatAreNoFlagsAreRefused) {
  for (const auto& [enabled, paused] :
       std::initializer_list<std::pair<std::uint64_t, std::uint64_t>>{{2, 0}, {0, 2}, {UINT64_MAX, 0}, {1, 1ull << 32}})
    EXPECT_EQ(events(enabled, paused).error().result, EnableResult::unexpected_value);
}

TEST_F(VariablesTest, ThatCannotBeReadAreOfAProgramThatEnded) {
  target_->runtime.start_sites.enabled_flag = 8;
  EXPECT_EQ(target_->events_state().error().result, EnableResult::gone);
  target_->runtime.start_sites.blocking_hook = 8;
  EXPECT_EQ(plan_hook(*target_).error().result, EnableResult::gone);
  target_->runtime.start_sites.hook = 8;
  EXPECT_EQ(plan_hook(*target_).error().result, EnableResult::gone);
}

TEST_F(VariablesTest, SayWhichHookIsPutBack) {
  for (const std::uint64_t known : {default_hook, thread_hook}) {
    hook_word_ = known;
    const auto planned = plan_hook(*target_);
    ASSERT_TRUE(planned) << planned.error().why;
    EXPECT_EQ(*planned, (ReplacedHook{.address = address_of(hook_word_),
                                      .original = known,
                                      .replacement = start,
                                      .thread_hook = thread_hook,
                                      .witness = address_of(witness_),
                                      .witness_before = 7}));
  }
}

TEST_F(VariablesTest, WithAnUnknownHookAreRefused) {
  for (const std::uint64_t unknown : {default_hook + 1, std::uint64_t{0}, std::uint64_t{0x1234}}) {
    hook_word_ = unknown;
    const auto planned = plan_hook(*target_);
    ASSERT_FALSE(planned);
    EXPECT_EQ(planned.error().result, EnableResult::unexpected_value);
    EXPECT_FALSE(planned.error().is_passing);
  }
  target_->runtime.start_sites.thread_hook = 0;
  hook_word_ = 0;
  EXPECT_FALSE(plan_hook(*target_)) << "it has no threads library, whose hook that could be";
}

TEST_F(VariablesTest, WithAHookThatAnotherRunReplacedAreRefusedForNow) {
  hook_word_ = start;
  const auto planned = plan_hook(*target_);
  ASSERT_FALSE(planned);
  EXPECT_TRUE(planned.error().is_passing);
}

/// A thread of a program: its variables lie at these words.
class ThreadTest : public TargetTest {
 protected:
  void SetUp() override {
    TargetTest::SetUp();
    target_->runtime.caml_state_tls = 8;
    target_->runtime.domain_self_tls = 16;
    target_->runtime.stack_sites.layout.domain_state = 1;
    thread_ = {0, address_of(state_), address_of(domain_)};
    domain_ = {3, address_of(state_)};
    state_[9] = 3;
  }
  template <typename Words>
  static std::uint64_t address_of(const Words& words) {
    return reinterpret_cast<std::uint64_t>(words.data());
  }
  std::optional<std::uint64_t> found() const { return domain_state_of(*target_, address_of(thread_)); }

  alignas(8) std::array<std::uint64_t, 3> thread_{};
  alignas(8) std::array<std::uint64_t, 2> domain_{};
};

TEST_F(ThreadTest, HasTheStateOfItsDomain) {
  EXPECT_EQ(found(), address_of(state_));
  thread_[1] = 0;
  EXPECT_EQ(found(), address_of(state_)) << "it is in a system call";
}

TEST_F(ThreadTest, WithoutADomainHasNone) {
  thread_[1] = thread_[2] = 0;
  EXPECT_FALSE(found());
}

TEST_F(ThreadTest, WithTheStateOfAnotherDomainIsNotTrusted) {
  domain_[0] = 4;
  EXPECT_FALSE(found());
}

TEST_F(ThreadTest, WithAValueThatNoDomainHasIsNotTrusted) {
  const auto good = state_;
  const auto is_found_with = [&](std::size_t word, std::uint64_t value) {
    state_ = good;
    state_.at(word) = value;
    return found().has_value();
  };
  EXPECT_TRUE(is_found_with(0, UINT64_MAX)) << "it was asked to look at its pending actions";
  EXPECT_FALSE(is_found_with(0, 0x2008)) << "the limit is above the heap";
  EXPECT_FALSE(is_found_with(1, 0x0ff8));
  EXPECT_FALSE(is_found_with(1, 0x2008));
  EXPECT_FALSE(is_found_with(2, 0));
  EXPECT_FALSE(is_found_with(3, 0x1ull << 41)) << "no heap is so large";
  EXPECT_FALSE(is_found_with(3, 0x2004)) << "not aligned";
  EXPECT_FALSE(is_found_with(7, 2));
  EXPECT_FALSE(is_found_with(8, 2));
  EXPECT_FALSE(is_found_with(9, RTEV_MAX_DOMAINS));
  state_ = good;
  thread_[1] += 4;
  EXPECT_FALSE(found());
}

}  // namespace
}  // namespace rtev::enable
