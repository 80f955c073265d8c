// SPDX-License-Identifier: MIT
// What the figures say about the parameters of the garbage collector.
#include "analysis/stats/gc_tuning.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/files.hpp"
#include "unit/analysis/stats/stats_fixture.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t second = 1'000'000'000, mega_words = std::uint64_t{1} << 20;

class GcTuningTest : public StatsTest {
 protected:
  std::string text() { return stats_text(stats.report(world.registry), false, true); }
  nlohmann::json json() {
    return nlohmann::json::parse(stats_json(stats.report(world.registry), true))["processes"].at(0)["gc_tuning"];
  }

  /// Minor collections of two domains, one each 10 ms. One allocates all of a heap of `bytes` each time, the other a
  /// half.
  void collect(int times, std::uint64_t bytes) {
    for (int i = 0; i < times; ++i) {
      const std::uint64_t time = second + static_cast<std::uint64_t>(i) * second / 100;
      for (const std::uint16_t domain : {std::uint16_t{0}, std::uint16_t{1}}) {
        count(time, "minor_allocated", domain == 0 ? bytes : bytes / 2, domain);
        count(time, "minor_promoted", bytes / 8, domain);
        span(time, time + 1000, "minor", domain);
      }
    }
  }
  void run() {
    process(second, ProcessAction::exec);
    life(second, Lifecycle::ring_start);
    life(second, Lifecycle::domain_spawn, 1);
    change(second, stranger(), thread(pid, 0));
    collect(48, 2'090'000);
    span(second * 3 / 2, second * 17 / 10, "major");
    count(second * 17 / 10, "major_heap_pool_words", 20 * mega_words);
    count(second * 17 / 10, "major_heap_pool_live_words", 10 * mega_words);
    count(second * 17 / 10, "major_heap_large_words", 5 * mega_words);
    count(second * 18 / 10, "major_heap_words", 30 * mega_words);
    span(second * 19 / 10, second * 19 / 10 + 1, "major_gc_stw");
    change(2 * second, thread(pid, 0), stranger());
    process(2 * second, ProcessAction::exit, 0);
  }
};

TEST_F(GcTuningTest, TextHasTheArithmetic) {
  run();
  EXPECT_EQ(text(), test::golden("analysis/golden/stats_gc_tuning.txt"));
}

TEST_F(GcTuningTest, JsonHasTheFigures) {
  run();
  const auto tuning = json();
  const auto& heap = tuning["minor_heap"];
  EXPECT_EQ(heap["words"], 262'144);
  EXPECT_EQ(heap["fullest_words"], 261'250);
  EXPECT_EQ(heap["busiest_domain"], 0);
  EXPECT_DOUBLE_EQ(heap["collections_per_s"], 48);
  EXPECT_DOUBLE_EQ(heap["allocated_bytes_per_s"], 48 * 2'090'000);
  EXPECT_NEAR(heap["survival"], 1.0 / 6, 1e-6);
  EXPECT_NEAR(heap["fills_per_s"], 47.84, 0.01);
  EXPECT_EQ(heap["with"]["words"], mega_words);
  EXPECT_NEAR(heap["with"]["fills_per_s"], 11.96, 0.01);
  EXPECT_EQ(heap["with"]["more_bytes_per_domain"], 3 * 262'144 * 8);
  const auto& overhead = tuning["space_overhead"];
  EXPECT_EQ(overhead["live_bytes"], 15 * mega_words * 8);
  EXPECT_EQ(overhead["heap_bytes"], 30 * mega_words * 8);
  EXPECT_DOUBLE_EQ(overhead["cycles_per_s"], 1);
  EXPECT_NEAR(overhead["major_cpu_share"], 0.2, 0.001);
}

TEST_F(GcTuningTest, SaysWhatIsNotInTheData) {
  span(100, 200, "major");
  EXPECT_THAT(text(), HasSubstr("\n  s, the minor heap of a domain: not in the data: no minor collection\n"));
  EXPECT_THAT(text(), HasSubstr("\n  o, space_overhead: not in the data: no major cycle reported what is live\n"));
  EXPECT_THAT(text(), HasSubstr("\n    not in the data: CPU time of major slices\n"));
  EXPECT_TRUE(json()["minor_heap"]["words"].is_null());
  EXPECT_TRUE(json()["minor_heap"]["survival"].is_null());
  EXPECT_TRUE(json()["space_overhead"]["live_bytes"].is_null());
  EXPECT_TRUE(json()["space_overhead"]["major_cpu_share"].is_null());
}

TEST_F(GcTuningTest, DoesNotGuessTheSizeOfAMinorHeapThatWasNeverFull) {
  collect(10, 1'500'000);
  EXPECT_THAT(text(), HasSubstr("not in the data: no collection found it full (1.50 MB at most)"));
  EXPECT_THAT(text(), Not(HasSubstr("with s=")));
  EXPECT_TRUE(json()["minor_heap"]["words"].is_null());
}

TEST_F(GcTuningTest, StaysFiniteWithAnyFigures) {
  for (const std::string_view counter : heap_counters()) count(100, counter, UINT64_MAX);
  count(100, "minor_allocated", UINT64_MAX);
  count(100, "minor_promoted", UINT64_MAX);
  span(100, 100, "minor");
  EXPECT_THAT(text(), Not(HasSubstr("nan")));
  EXPECT_THAT(text(), Not(HasSubstr("inf")));
  EXPECT_EQ(json().size(), 2U);
}

TEST_F(GcTuningTest, ListsFewProcesses) {
  for (int i = 0; i < 5; ++i) process(100, ProcessAction::found, world.registry.add_process(World::default_info()), 0);
  EXPECT_THAT(text(), HasSubstr("\nand 2 more: select with -p or -n\n"));
}

}  // namespace
}  // namespace rtev::test
