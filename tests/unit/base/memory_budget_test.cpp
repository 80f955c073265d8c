// SPDX-License-Identifier: MIT
#include "base/memory_budget.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace rtev {
namespace {

TEST(MemoryBudget, OneUserGetsThreeQuarters) {
  const MemoryBudget budget(1000);
  std::vector<std::shared_ptr<MemoryBudget::Account>> accounts;
  for (const std::int32_t process : {10, 11, 12}) {
    accounts.push_back(budget.open_account(1, process));
    EXPECT_TRUE(accounts.back()->grow(250));
  }
  EXPECT_FALSE(budget.open_account(1, 13)->grow(1));
  const auto other = budget.open_account(2, 14);
  EXPECT_TRUE(other->grow(250));
  EXPECT_FALSE(budget.open_account(3, 15)->grow(1)) << "nothing is left";
  EXPECT_EQ(budget.used(), 1000u);
}

TEST(MemoryBudget, OneProcessGetsAQuarter) {
  const MemoryBudget budget(1000);
  const auto first = budget.open_account(1, 10), second = budget.open_account(1, 10);
  EXPECT_TRUE(first->grow(150));
  EXPECT_TRUE(second->grow(100));
  EXPECT_FALSE(second->grow(1));
  EXPECT_TRUE(budget.open_account(1, 11)->grow(250)) << "another one of the user";
}

TEST(MemoryBudget, AnEmptyAccountMayCloseBeforeAnotherOfItsUser) {
  const MemoryBudget budget(1000);
  const auto first = budget.open_account(1, 10);
  budget.open_account(1, 10).reset();
  EXPECT_TRUE(first->grow(1));
}

TEST(MemoryBudget, IsGivenBack) {
  std::optional<MemoryBudget> budget(1000);
  auto account = budget->open_account(1, 10);
  EXPECT_TRUE(account->grow(250));
  account.reset();
  EXPECT_EQ(budget->used(), 0u);
  account = budget->open_account(1, 10);
  EXPECT_TRUE(account->grow(250));
  budget.reset();
  account.reset();  // after the budget
}

}  // namespace
}  // namespace rtev
