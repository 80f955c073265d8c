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
    return {.address = hook + bias,
            .original = default_hook + bias,
            .replacement = start + bias,
            .thread_hook = thread_hook + bias,
            .witness = blocking_hook + bias,
            .witness_before = 0,
            .request = reinterpret_cast<std::uint64_t>(&state_[8]),
            .directory = directory + bias,
            .directory_text = 0x7000};
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
                           &ReplacedHook::thread_hook, &ReplacedHook::witness, &ReplacedHook::directory})
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

}  // namespace
}  // namespace rtev::enable
