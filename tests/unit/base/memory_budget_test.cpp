// SPDX-License-Identifier: MIT
#include "base/memory_budget.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace rtev {
namespace {

TEST(MemoryBudget, OneUserGetsThreeQuarters) {
  const MemoryBudget budget(1000);
  const auto first = budget.open_account(1), second = budget.open_account(1), other = budget.open_account(2);
  EXPECT_TRUE(first->grow(400));
  EXPECT_TRUE(second->grow(350));
  EXPECT_FALSE(second->grow(1));
  EXPECT_TRUE(other->grow(250));
  EXPECT_FALSE(other->grow(1)) << "nothing is left";
  EXPECT_EQ(budget.used(), 1000u);
}

TEST(MemoryBudget, AnEmptyAccountMayCloseBeforeAnotherOfItsUser) {
  const MemoryBudget budget(1000);
  const auto first = budget.open_account(1);
  budget.open_account(1).reset();
  EXPECT_TRUE(first->grow(1));
}

TEST(MemoryBudget, IsGivenBack) {
  std::optional<MemoryBudget> budget(1000);
  auto account = budget->open_account(1);
  EXPECT_TRUE(account->grow(750));
  account.reset();
  EXPECT_EQ(budget->used(), 0u);
  account = budget->open_account(1);
  EXPECT_TRUE(account->grow(750));
  budget.reset();
  account.reset();  // after the budget
}

}  // namespace
}  // namespace rtev
