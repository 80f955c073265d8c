// SPDX-License-Identifier: MIT
#include "kernel/stack_records.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace rtev::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StackPayload {
 public:
  template <typename T>
  void put(const T& value) {
    const auto* const begin = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof value);
  }
  void put_copy(std::uint64_t address, std::initializer_list<std::uint64_t> words) {
    put(rtev_stack_copy{.address = address, .bytes = static_cast<std::uint32_t>(8 * words.size()), .pad = 0});
    for (const std::uint64_t word : words) put(word);
  }

  std::vector<std::byte> bytes;
};

std::uint64_t word_of(const MemoryCopy& copy, std::size_t index) {
  std::uint64_t word = 0;
  std::memcpy(&word, copy.bytes.data() + index * sizeof word, sizeof word);
  return word;
}

TEST(StackRecords, APayloadHasFramesThenCopies) {
  StackPayload payload;
  payload.put(std::uint64_t{0xffff1});
  payload.put(std::uint64_t{0xffff2});
  payload.put_copy(0x7000, {1, 2, 3});
  payload.put_copy(0x9000, {4});
  rtev_stack record{};
  record.kernel_frames = 2;
  record.copies = 2;
  StackParts parts{.kernel_frames = {9}, .copies = {{}}};  // of the stack before
  split_stack(record, payload.bytes, parts);
  EXPECT_THAT(parts.kernel_frames, ElementsAre(0xffff1, 0xffff2));
  ASSERT_EQ(parts.copies.size(), 2U);
  EXPECT_EQ(parts.copies[0].address, 0x7000U);
  EXPECT_EQ(word_of(parts.copies[0], 2), 3U);
  EXPECT_EQ(word_of(parts.copies[1], 0), 4U);
  EXPECT_TRUE(parts.copies[0].contains(0x7010, 8));
  EXPECT_FALSE(parts.copies[0].contains(0x7014, 8));
  EXPECT_FALSE(parts.copies[0].contains(0x6fff, 8));
  EXPECT_FALSE(parts.copies[0].contains(0x7000, ~std::uint64_t{0}));
}

TEST(StackRecords, NumbersThatDoNotFitEndThePayload) {
  StackPayload payload;
  payload.put_copy(0x7000, {1});
  payload.put(rtev_stack_copy{.address = 0x8000, .bytes = 16, .pad = 0});
  payload.put(std::uint64_t{2});
  rtev_stack record{};
  record.copies = 0xffff;
  StackParts parts;
  split_stack(record, payload.bytes, parts);
  EXPECT_EQ(parts.copies.size(), 1U);
  record.kernel_frames = 255;
  split_stack(record, payload.bytes, parts);
  EXPECT_EQ(parts.kernel_frames.size(), payload.bytes.size() / 8);
  EXPECT_THAT(parts.copies, IsEmpty());
  split_stack(record, {}, parts);
  EXPECT_THAT(parts.kernel_frames, IsEmpty());
}

class StackDropsTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t ms = 1'000'000;

  /// As the BPF programs do it.
  void drop(rtev_stack_kind kind, rtev_stack_loss loss, std::uint64_t time_ns) {
    rtev_stack_drops& drops = shared[kind][loss];
    if (drops.count == drops.taken) drops.first_ns = time_ns;
    drops.last_ns = time_ns;
    ++drops.count;
  }

  StackDropCounters::Shared shared{};
  StackDropCounters counters;
};

TEST_F(StackDropsTest, AreReportedOnceByKindAndReason) {
  EXPECT_THAT(counters.take(shared, 10 * ms), IsEmpty());
  drop(RTEV_STACK_ON_CPU, RTEV_STACK_FULL, 20 * ms);
  drop(RTEV_STACK_ON_CPU, RTEV_STACK_FULL, 22 * ms);
  drop(RTEV_STACK_ALLOCATION, RTEV_STACK_LIMITED, 21 * ms);
  EXPECT_THAT(
      counters.take(shared, 30 * ms),
      ElementsAre(
          StackDrop{
              .kind = RTEV_STACK_ON_CPU, .loss = RTEV_STACK_FULL, .count = 2, .first_ns = 20 * ms, .last_ns = 22 * ms},
          StackDrop{.kind = RTEV_STACK_ALLOCATION,
                    .loss = RTEV_STACK_LIMITED,
                    .count = 1,
                    .first_ns = 21 * ms,
                    .last_ns = 21 * ms}));
  EXPECT_THAT(counters.take(shared, 31 * ms), IsEmpty());
}

TEST_F(StackDropsTest, ADropDuringTheCallDoesNotReachBackBeforeIt) {
  drop(RTEV_STACK_OFF_CPU, RTEV_STACK_LIMITED, 20 * ms);
  counters.take(shared, 30 * ms);
  // Counted by BPF before it saw that the first one had been taken.
  shared[RTEV_STACK_OFF_CPU][RTEV_STACK_LIMITED].count = 2;
  shared[RTEV_STACK_OFF_CPU][RTEV_STACK_LIMITED].last_ns = 40 * ms;
  const auto drops = counters.take(shared, 50 * ms);
  ASSERT_EQ(drops.size(), 1U);
  EXPECT_EQ(drops[0].count, 1U);
  EXPECT_GE(drops[0].first_ns, 29 * ms);
  EXPECT_EQ(drops[0].last_ns, 40 * ms);
}

}  // namespace
}  // namespace rtev::kernel
