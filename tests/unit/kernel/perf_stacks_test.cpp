// SPDX-License-Identifier: MIT
// Samples of perf_event_open(2): as the kernel writes them, cut and damaged ones, and of this process.
#include "kernel/perf_stacks.hpp"

#include <gmock/gmock.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "kernel/stack_records.hpp"

namespace rtev::test {
namespace {

using kernel::PerfStacks;

struct Record {
  std::vector<std::byte> bytes = std::vector<std::byte>(sizeof(perf_event_header));

  template <typename Number>
  Record& put(Number number) {
    const auto* const from = reinterpret_cast<const std::byte*>(&number);
    bytes.insert(bytes.end(), from, from + sizeof number);
    return *this;
  }
  std::vector<std::byte> finish(std::uint32_t type = PERF_RECORD_SAMPLE) {
    const perf_event_header header{.type = type, .misc = 0, .size = static_cast<std::uint16_t>(bytes.size())};
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }
};

constexpr std::uint64_t sp = 0x7ffe'0000;

/// A sample with 32 bytes of stack, of which `copied` are valid.
std::vector<std::byte> a_sample(std::uint32_t tid, std::uint64_t copied = 32) {
  Record record;
  record.put(std::uint32_t{100}).put(tid).put(std::uint64_t{5'000}).put(std::uint32_t{3}).put(std::uint32_t{0});
  record.put(std::uint64_t{10'000'000}).put(std::uint64_t{PERF_SAMPLE_REGS_ABI_64});
#if defined(__x86_64__)
  for (std::uint64_t number = 0; number < 17; ++number) record.put(number == 7 ? sp : 1'000 + number);
#else
  for (std::uint64_t number = 0; number < 33; ++number) record.put(number == 31 ? sp : 1'000 + number);
#endif
  record.put(std::uint64_t{32});
  for (std::uint64_t word = 0; word < 4; ++word) record.put(word + 77);
  return record.put(copied).finish();
}

TEST(PerfStacks, ASampleIsAStack) {
  rtev_stack stack;
  std::vector<std::byte> payload;
  ASSERT_TRUE(PerfStacks::parse(a_sample(100), stack, payload));
  EXPECT_EQ(stack.kind, RTEV_STACK_ON_CPU);
  EXPECT_EQ(stack.time_ns, 5'000u);
  EXPECT_EQ(stack.weight, 10'000'000u);
  EXPECT_EQ(stack.cpu, 3u);
  EXPECT_EQ(stack.domain, 0) << "the main thread runs domain 0";
  EXPECT_EQ(stack.flags & RTEV_STACK_HOLDS_LOCK, 0) << "in C code it may have given it up";
#if defined(__x86_64__)
  EXPECT_EQ(stack.registers[3], 1'001u) << "rbx";
  EXPECT_EQ(stack.registers[16], 1'008u) << "rip";
  EXPECT_EQ(stack.registers[15], 1'016u) << "r15";
#endif
  kernel::StackParts parts;
  kernel::split_stack(stack, payload, parts);
  ASSERT_EQ(parts.copies.size(), 1u);
  EXPECT_EQ(parts.copies[0].address, sp);
  EXPECT_EQ(parts.copies[0].bytes.size(), 32u);
  ASSERT_TRUE(PerfStacks::parse(a_sample(101, 17), stack, payload));
  EXPECT_EQ(stack.domain, -1) << "of other threads it is unknown";
  kernel::split_stack(stack, payload, parts);
  EXPECT_EQ(parts.copies.at(0).bytes.size(), 16u);
  ASSERT_TRUE(PerfStacks::parse(a_sample(101, UINT64_MAX), stack, payload));
  EXPECT_LE(stack.bytes, payload.size());
}

TEST(PerfStacks, DamagedRecordsAreNone) {
  rtev_stack stack;
  std::vector<std::byte> payload;
  Record lost;
  EXPECT_FALSE(PerfStacks::parse(lost.finish(PERF_RECORD_LOST), stack, payload));
  const auto intact = a_sample(100);
  for (std::size_t size = 0; size < intact.size(); ++size)
    EXPECT_FALSE(PerfStacks::parse(std::span(intact).first(size), stack, payload)) << size;
  std::mt19937 random{3};
  for (int round = 0; round < 5'000; ++round) {
    auto damaged = intact;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    if (!PerfStacks::parse(damaged, stack, payload)) continue;
    EXPECT_LE(stack.bytes, payload.size());
  }
}

TEST(PerfStacks, ThreadsOfThisProcessAreSampled) {
  auto stacks = PerfStacks::open(1000);
  if (!stacks) GTEST_SKIP() << stacks.error().message();
  std::atomic<bool> stop = false;
  const auto spin = [&stop] {
    while (!stop) {
    }
  };
  std::thread before(spin);
  ASSERT_TRUE((*stacks)->add_target(::getpid(), {}));
  std::thread after(spin);
  std::map<std::uint32_t, int> seen;
  // Until both of them were: on a busy host that takes a while.
  const std::uint64_t deadline_ns = monotonic_ns() + 20'000'000'000;
  while (seen.size() < 2 && monotonic_ns() < deadline_ns)
    (*stacks)->read_stacks([&](const rtev_stack& stack, std::span<const std::byte>) {
      EXPECT_EQ(stack.tgid, static_cast<std::uint32_t>(::getpid()));
      if (stack.tid != stack.tgid) ++seen[stack.tid];
    });
  stop = true;
  before.join();
  after.join();
  EXPECT_EQ(seen.size(), 2u) << "one that ran already, and one that was started later";
  (*stacks)->remove_target(::getpid());
}

}  // namespace
}  // namespace rtev::test
