// SPDX-License-Identifier: MIT
#include "rtev/names.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rtev {
namespace {

constexpr Family old_family = Family::before_5_3, new_family = Family::since_5_3;

TEST(Names, PhasesThatMovedInOcaml53) {
  const struct {
    std::string_view name;
    int before, since;
  } cases[] = {
      {"explicit_gc_set", 0, 0},
      {"major_mark_roots", 8, 8},
      {"major_memprof_roots", -1, 9},
      {"major_mark", 9, 10},
      {"minor", 10, 11},
      {"minor_local_roots", 11, 12},
      {"minor_memprof_roots", -1, 13},
      {"minor_memprof_clean", -1, 14},
      {"minor_finalized", 12, 15},
      {"explicit_gc_major_slice", 13, 16},
      {"interrupt_remote", 16, 19},
      {"major_slice", 24, 27},
      {"minor_global_roots", 28, 31},
      {"stw_leader", 32, 35},
      {"major_finish_sweeping", 33, 36},
      {"major_memprof_clean", -1, 37},
      {"minor_finalizers_admin", 34, 38},
      {"minor_remembered_set", 35, 39},
      {"domain_resize_heap_reservation", 39, 43},
      {"compaction", 40, 44},
      {"compaction_evacuate", 41, 45},
      {"compaction_forward", 42, 46},
      {"compaction_release", 43, 47},
      {"empty_minor", -1, 48},
      {"minor_ephe_clean", -1, 49},
  };
  for (const auto& expected : cases) {
    if (expected.before >= 0) {
      EXPECT_EQ(phase_name(old_family, static_cast<std::uint16_t>(expected.before)), expected.name);
    }
    EXPECT_EQ(phase_name(new_family, static_cast<std::uint16_t>(expected.since)), expected.name);
  }
}

template <typename NameOf>
std::size_t count_names(NameOf name_of) {
  std::set<std::string_view> names;
  std::size_t count = 0;
  for (unsigned id = 0; id <= UINT16_MAX; ++id) {
    const std::string_view name = name_of(static_cast<std::uint16_t>(id));
    if (name.empty()) continue;
    EXPECT_EQ(id, count) << "no gaps";
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
    ++count;
  }
  return count;
}

TEST(Names, NoNamesBeyondTheTables) {
  EXPECT_EQ(count_names([](std::uint16_t id) { return phase_name(old_family, id); }), 44u);
  EXPECT_EQ(count_names([](std::uint16_t id) { return phase_name(new_family, id); }), 50u);
  EXPECT_EQ(count_names([](std::uint16_t id) { return counter_name(old_family, id); }), 17u);
  EXPECT_EQ(count_names([](std::uint16_t id) { return counter_name(new_family, id); }), 28u);
  EXPECT_EQ(count_names([](std::uint16_t id) { return lifecycle_name(id); }), 8u);
}

TEST(Names, Counters) {
  EXPECT_EQ(counter_name(old_family, 0), "force_minor_alloc_small");
  EXPECT_EQ(counter_name(old_family, 16), "major_heap_large_blocks");
  EXPECT_EQ(counter_name(old_family, 17), "");
  EXPECT_EQ(counter_name(new_family, 17), "major_heap_words");
  EXPECT_EQ(counter_name(new_family, 25), "major_slice_budget");
  EXPECT_EQ(counter_name(new_family, 27), "minor_promoted_words");
}

TEST(Names, CounterUnits) {
  const struct {
    std::uint16_t id;
    std::string_view unit;
  } cases[] = {{0, ""},        {4, "bytes"},   {5, "bytes"},  {10, ""},     {11, "words"}, {14, "words"},
               {15, "blocks"}, {16, "blocks"}, {18, "words"}, {19, "work"}, {21, "work"},  {22, ""},
               {24, ""},       {26, "words"},  {27, "words"}, {28, ""}};
  for (const auto& expected : cases) EXPECT_EQ(counter_unit(new_family, expected.id), expected.unit) << expected.id;
  EXPECT_EQ(counter_unit(old_family, 16), "blocks");
  EXPECT_EQ(counter_unit(old_family, 18), "");
}

TEST(Names, Lifecycle) {
  EXPECT_EQ(lifecycle_name(static_cast<std::uint16_t>(Lifecycle::ring_start)), "ring_start");
  EXPECT_EQ(lifecycle_name(static_cast<std::uint16_t>(Lifecycle::ring_stop)), "ring_stop");
  EXPECT_EQ(lifecycle_name(static_cast<std::uint16_t>(Lifecycle::fork_child)), "fork_child");
  EXPECT_EQ(lifecycle_name(static_cast<std::uint16_t>(Lifecycle::domain_terminate)), "domain_terminate");
  EXPECT_EQ(lifecycle_name(8), "");
}

TEST(Names, VersionGivesTheFamily) {
  for (const char* version : {"5.0", "5.1.1", "5.2.0+trunk", "5.2.0~rc1"})
    EXPECT_EQ(family_of_version(version), old_family) << version;
  for (const char* version : {"5.3", "5.3.0~alpha1", "5.10", "5.22.1", "5.6.0+dev0-2026"})
    EXPECT_EQ(family_of_version(version), new_family) << version;
  for (const char* version : {"", "5", "5.3x", "4.14.2", "6.0", "15.3"})
    EXPECT_EQ(family_of_version(version), std::nullopt) << version;
}

Event event(EventKind kind, std::uint16_t id, std::uint32_t source = 1) {
  return {.time = 1, .value = 0, .source = source, .id = id, .kind = kind, .flags = 0};
}

std::optional<Family> guess(std::initializer_list<Event> events) {
  FamilyGuess result;
  for (const Event& each : events) result.add(each);
  return result.family();
}

TEST(FamilyGuess, NothingFromIdsOfBothFamilies) {
  EXPECT_EQ(guess({}), std::nullopt);
  EXPECT_EQ(guess({event(EventKind::begin, 10), event(EventKind::end, 10), event(EventKind::counter, 16),
                   event(EventKind::begin, 43), event(EventKind::lifecycle, 0), event(EventKind::user_begin, 48)}),
            std::nullopt);
  EXPECT_EQ(guess({event(EventKind::counter, 28), event(EventKind::begin, 50), event(EventKind::end, 8191)}),
            std::nullopt)
      << "unknown ids prove nothing";
}

TEST(FamilyGuess, ByIdsThatOnlyTheLaterFamilyHas) {
  EXPECT_EQ(guess({event(EventKind::counter, 17)}), new_family);
  EXPECT_EQ(guess({event(EventKind::counter, 27)}), new_family);
  EXPECT_EQ(guess({event(EventKind::begin, 44)}), new_family);
  EXPECT_EQ(guess({event(EventKind::end, 49)}), new_family);
}

TEST(FamilyGuess, ByThePhasesInsideAMinorCollection) {
  for (const std::uint16_t inner : std::initializer_list<std::uint16_t>{28, 35})
    EXPECT_EQ(guess({event(EventKind::begin, 10), event(EventKind::begin, inner)}), old_family);
  for (const std::uint16_t inner : std::initializer_list<std::uint16_t>{31, 39})
    EXPECT_EQ(guess({event(EventKind::begin, 11), event(EventKind::begin, inner)}), new_family);
  EXPECT_EQ(guess({event(EventKind::begin, 10), event(EventKind::end, 10), event(EventKind::begin, 28)}), std::nullopt);
  EXPECT_EQ(guess({event(EventKind::begin, 10, 1), event(EventKind::begin, 28, 2)}), std::nullopt)
      << "domains do not mix";
}

TEST(FamilyGuess, FirstAnswerStays) {
  EXPECT_EQ(guess({event(EventKind::begin, 10), event(EventKind::begin, 28), event(EventKind::counter, 20)}),
            old_family);
}

}  // namespace
}  // namespace rtev
