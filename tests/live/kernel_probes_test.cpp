// SPDX-License-Identifier: MIT
// The BPF programs on the running kernel: probes. No OCaml: functions of the test itself are probed.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "kernel/probe_keeper.hpp"
#include "live/kernel_fixture.hpp"

namespace rtev::kernel {
namespace {

std::atomic<int> probed_calls = 0;
[[gnu::noinline]] void probed_function() {
  asm volatile("nop");  // an instruction that can be probed comes first
  ++probed_calls;
}

/// Begins with the very breakpoint that a probe would put there, which kernels refuse. Never called.
[[gnu::naked, gnu::noinline]] void unprobable_function() {
#if defined(__x86_64__)
  asm("int3");
#else
  asm("brk #5");
#endif
}

/// Where a function of this program lies in its file.
std::uint64_t file_offset(void (*function)()) {
  return kernel::file_offset(reinterpret_cast<std::uintptr_t>(function));
}

class KernelLiveProbes : public KernelLive, public testing::WithParamInterface<bool> {};

TEST_P(KernelLiveProbes, FireUntilDetached) {
  Programs programs = start({.sched = RTEV_SCHED_OFF, .uprobe_multi = GetParam()});
  EXPECT_TRUE(GetParam() || !programs.uses_uprobe_multi());
  const UniqueFd self{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  const std::array<ProbeSite, 1> site{{{.function = RTEV_PROBE_PAUSE, .file_offset = file_offset(probed_function)}}};
  constexpr std::uint32_t binary = 7, many = 8;
  std::vector<BinaryProbes> probes;
  auto first = programs.attach_probes(self.get(), binary, site);
  ASSERT_TRUE(first) << first.error().message();
  probes.push_back(std::move(*first));
  EXPECT_TRUE(programs.attach_probes(self.get(), binary, {})) << "nothing to probe is no error";

  Records records;
  const auto hits = [&] { return records.of(RTEV_PROBE, ::getpid()); };
  probed_function();
  ASSERT_TRUE(read_until(programs, records, [&] { return !hits().empty(); }));
  ASSERT_EQ(hits().size(), 1U);
  EXPECT_EQ(hits()[0].peer, static_cast<unsigned>(RTEV_PROBE_PAUSE));
  EXPECT_EQ(hits()[0].detail, binary);
  EXPECT_EQ(hits()[0].tid, static_cast<unsigned>(::gettid()));

  // The same file under other identities, as overlay mounts show it: the tracked process counts for one binary only.
  for (std::uint32_t i = 1; i < many; ++i) {
    auto more = programs.attach_probes(self.get(), binary + i, site);
    ASSERT_TRUE(more);
    probes.push_back(std::move(*more));
  }
  rtev_tracked facts{};
  facts.binary = binary + 1;
  ASSERT_TRUE(programs.track(::getpid(), facts));
  records = {};
  probed_function();
  drain(programs, records);
  ASSERT_EQ(hits().size(), 1U);
  EXPECT_EQ(hits()[0].detail, binary + 1);

  const auto before = Clock::now();
  detach_in_parallel(std::move(probes));
  RecordProperty("detach_ms",
                 static_cast<int>(std::chrono::duration<double, std::milli>(Clock::now() - before).count()));
  programs.untrack(::getpid());
  records = {};
  probed_function();
  drain(programs, records);
  EXPECT_TRUE(hits().empty());
}

TEST_P(KernelLiveProbes, BadOnesAreErrors) {
  Programs programs = start({.sched = RTEV_SCHED_OFF, .uprobe_multi = GetParam()});
  const std::array<ProbeSite, 1> site{{{.function = RTEV_PROBE_INIT, .file_offset = 64}}};
  const auto closed = programs.attach_probes(-1, 1, site);
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().code, 0);
  const UniqueFd directory{::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  EXPECT_FALSE(programs.attach_probes(directory.get(), 1, site));
}

TEST_P(KernelLiveProbes, OneThatCannotBeProbedCostsNoOther) {
  Programs programs = start({.sched = RTEV_SCHED_OFF, .uprobe_multi = GetParam()});
  const UniqueFd self{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  const ProbeSite bad{.function = RTEV_PROBE_INIT, .file_offset = file_offset(unprobable_function)};
  const ProbeSite good{.function = RTEV_PROBE_PAUSE, .file_offset = file_offset(probed_function)};
  const auto none = programs.attach_probes(self.get(), 1, std::array{bad});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, EOPNOTSUPP);

  const auto some = programs.attach_probes(self.get(), 2, std::array{bad, good});
  ASSERT_TRUE(some) << some.error().message();
  EXPECT_EQ(some->skipped(), 1U);
  Records records;
  probed_function();
  ASSERT_TRUE(read_until(programs, records, [&] { return !records.of(RTEV_PROBE, ::getpid()).empty(); }));
  EXPECT_EQ(records.of(RTEV_PROBE, ::getpid()).size(), 1U);

  const auto all = programs.attach_probes(self.get(), 3, std::array{good});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->skipped(), 0U);
}

TEST_P(KernelLiveProbes, KeeperTriesEachBinaryOnce) {
  Programs programs = start({.sched = RTEV_SCHED_OFF, .uprobe_multi = GetParam()});
  const UniqueFd self{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  const ProbeSite bad{.function = RTEV_PROBE_INIT, .file_offset = file_offset(unprobable_function)};
  const ProbeSite good{.function = RTEV_PROBE_PAUSE, .file_offset = file_offset(probed_function)};
  constexpr std::uint32_t failing = 1, partial = 2;
  ProbeKeeper keeper{programs};
  EXPECT_FALSE(keeper.last_error());
  keeper.attach(-1, failing, {});
  EXPECT_EQ(keeper.failed(), 0U) << "nothing to probe is no failure";
  keeper.attach(self.get(), failing, std::array{bad});
  EXPECT_EQ(keeper.failed(), 1U);
  ASSERT_TRUE(keeper.last_error());
  EXPECT_EQ(keeper.last_error()->code, EOPNOTSUPP);

  Records records;
  const auto hits = [&] {
    records = {};
    probed_function();
    drain(programs, records);
    return records.of(RTEV_PROBE, ::getpid()).size();
  };
  keeper.attach(self.get(), failing, std::array{good});
  EXPECT_EQ(hits(), 0U) << "known to fail: not tried again";
  for (int i = 0; i < 2; ++i) keeper.attach(self.get(), partial, std::array{good, bad});
  EXPECT_EQ(hits(), 1U) << "attached once";
  EXPECT_EQ(keeper.skipped(), 1U);
  EXPECT_EQ(keeper.slow_to_detach(), programs.uses_uprobe_multi() ? 0U : 1U);

  constexpr std::uint64_t now = 1, later = now + 61'000'000'000;
  keeper.detach_unused({partial}, now);
  keeper.detach_unused({partial}, later);
  EXPECT_EQ(hits(), 1U) << "in use";
  keeper.attach(self.get(), failing, std::array{good});
  EXPECT_EQ(hits(), 2U) << "forgotten after a while: a second chance";
  EXPECT_EQ(keeper.failed(), 1U);
  keeper.detach_unused({}, later);
  keeper.detach_unused({}, 2 * later);
  EXPECT_EQ(hits(), 0U);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutUprobeMulti, KernelLiveProbes, testing::Bool(),
                         [](const auto& with) { return with.param ? "multi" : "perf"; });

}  // namespace
}  // namespace rtev::kernel
