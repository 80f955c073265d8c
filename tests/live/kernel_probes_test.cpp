// SPDX-License-Identifier: MIT
// The BPF programs on the running kernel: uprobes. Without OCaml: functions of the test itself are probed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/file_links.hpp"
#include "kernel/uprobe_manager.hpp"
#include "live/kernel_fixture.hpp"

namespace rtev::kernel {
namespace {

std::atomic<int> probed_calls = 0;
[[gnu::noinline]] void probed_function() {
  asm volatile("nop");  // an instruction that can be probed comes first
  ++probed_calls;
}

/// Begins with a breakpoint, which kernels refuse to probe. Never called.
[[gnu::naked, gnu::noinline]] void unprobable_function() {
#if defined(__x86_64__)
  asm("int3");
#else
  asm("brk #5");
#endif
}

ProbeSite site(rtev_probe probe, void (*function)()) {
  return {.function = static_cast<std::uint8_t>(probe),
          .file_offset = file_offset(reinterpret_cast<std::uintptr_t>(function))};
}
ProbeSite good() {
  return site(RTEV_PROBE_PAUSE, probed_function);
}
ProbeSite bad() {
  ProbeSite bad = site(RTEV_PROBE_INIT, unprobable_function);
  // With control-flow protection the compiler puts another instruction before it.
  constexpr std::string_view endbr64 = "\xf3\x0f\x1e\xfa";
  if (std::memcmp(reinterpret_cast<const void*>(unprobable_function), endbr64.data(), endbr64.size()) == 0)
    bad.file_offset += endbr64.size();
  return bad;
}

class KernelLiveProbes : public KernelLive, public testing::WithParamInterface<bool> {};

TEST_P(KernelLiveProbes, FireUntilDetached) {
  Programs programs = start({.sched = RTEV_SCHED_OFF, .uprobe_multi = GetParam()});
  EXPECT_TRUE(GetParam() || !programs.uses_uprobe_multi());
  const UniqueFd self{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  constexpr std::uint32_t binary = 7, many = 8;
  std::vector<UprobeLink> links;
  const auto probe = [&](std::uint32_t id, const ProbePlan& plan) {
    auto attached = programs.probe(self.get(), id, plan, 1);
    ASSERT_TRUE(attached) << attached.error().message();
    std::ranges::move(attached->links, std::back_inserter(links));
  };
  probe(binary, {.sites = {good()}});
  EXPECT_EQ(links.size(), 1U);
  probe(binary, {});
  EXPECT_EQ(links.size(), 1U) << "without sites there is nothing to probe";

  Records records;
  const auto hits = [&] { return records.of(RTEV_PROBE, ::getpid()); };
  probed_function();
  ASSERT_TRUE(read_until(programs, records, [&] { return !hits().empty(); }));
  ASSERT_EQ(hits().size(), 1U);
  EXPECT_EQ(hits()[0].peer, static_cast<unsigned>(RTEV_PROBE_PAUSE));
  EXPECT_EQ(hits()[0].detail, binary);
  EXPECT_EQ(hits()[0].tid, static_cast<unsigned>(::gettid()));

  // The same file under other identities, as overlay mounts show it: a tracked process counts for one binary only.
  for (std::uint32_t i = 1; i < many; ++i) probe(binary + i, {.sites = {good()}});
  rtev_tracked tracked{};
  tracked.binary = binary + 1;
  ASSERT_TRUE(programs.track(::getpid(), tracked));
  records = {};
  probed_function();
  read(programs, records);
  ASSERT_EQ(hits().size(), 1U);
  EXPECT_EQ(hits()[0].detail, binary + 1);

  const auto before = Clock::now();
  std::vector<UniqueFd> fds;
  for (UprobeLink& link : links) fds.push_back(std::move(link.fd));
  close_in_parallel(std::move(fds));
  RecordProperty("detach_ms",
                 static_cast<int>(std::chrono::duration<double, std::milli>(Clock::now() - before).count()));
  programs.untrack(::getpid());
  records = {};
  probed_function();
  read(programs, records);
  EXPECT_TRUE(hits().empty());
}

TEST_P(KernelLiveProbes, ABadFileIsAnError) {
  Programs programs = start({.sched = RTEV_SCHED_OFF, .uprobe_multi = GetParam()});
  const ProbePlan plan{.sites = {{.function = RTEV_PROBE_INIT, .file_offset = 64}}};
  const auto closed = programs.probe(-1, 1, plan, 1);
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().code, 0);
  const UniqueFd directory{::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  EXPECT_FALSE(programs.probe(directory.get(), 1, plan, 1));
}

TEST_P(KernelLiveProbes, ASiteThatCannotBeProbedIsSkipped) {
  Programs programs = start({.sched = RTEV_SCHED_OFF, .uprobe_multi = GetParam()});
  const UniqueFd self{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  const auto none = programs.probe(self.get(), 1, {.sites = {bad()}}, 1);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, EOPNOTSUPP);

  const auto some = programs.probe(self.get(), 2, {.sites = {bad(), good()}}, 1);
  ASSERT_TRUE(some) << some.error().message();
  EXPECT_EQ(some->skipped, 1U);
  Records records;
  probed_function();
  ASSERT_TRUE(read_until(programs, records, [&] { return !records.of(RTEV_PROBE, ::getpid()).empty(); }));
  EXPECT_EQ(records.of(RTEV_PROBE, ::getpid()).size(), 1U);

  const auto all = programs.probe(self.get(), 3, {.sites = {good()}}, 1);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->skipped, 0U);
}

TEST_P(KernelLiveProbes, TheManagerAttachesEachBinaryOnce) {
  Programs programs = start({.sched = RTEV_SCHED_OFF, .uprobe_multi = GetParam()});
  const UniqueFd self{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  constexpr std::uint32_t failing = 1, partial = 2;
  UprobeManager manager{programs, AttachPolicy::at_once};
  EXPECT_FALSE(manager.figures().last_error);
  manager.add(-1, {.id = failing}, {});
  EXPECT_EQ(manager.figures().failed, 0U) << "nothing to probe is no failure";
  manager.add(self.get(), {.id = failing}, {.sites = {bad()}});
  EXPECT_EQ(manager.figures().failed, 1U);
  ASSERT_TRUE(manager.figures().last_error);
  EXPECT_EQ(manager.figures().last_error->code, EOPNOTSUPP);

  Records records;
  const auto hits = [&] {
    records = {};
    probed_function();
    read(programs, records);
    return records.of(RTEV_PROBE, ::getpid()).size();
  };
  manager.add(self.get(), {.id = failing}, {.sites = {good()}});
  EXPECT_EQ(hits(), 0U) << "known to fail: not tried again";
  for (int i = 0; i < 2; ++i) manager.add(self.get(), {.id = partial}, {.sites = {good(), bad()}});
  EXPECT_EQ(hits(), 1U) << "attached once";
  EXPECT_EQ(manager.figures().skipped, 1U);
  EXPECT_EQ(manager.figures().slow_to_detach, programs.uses_uprobe_multi() ? 0U : 1U);

  constexpr std::uint64_t now = 1, later = now + 61'000'000'000;
  manager.detach_unused({partial}, now);
  manager.detach_unused({partial}, later);
  EXPECT_EQ(hits(), 1U) << "in use";
  manager.add(self.get(), {.id = failing}, {.sites = {good()}});
  EXPECT_EQ(hits(), 2U) << "forgotten after a minute, so it is tried again";
  EXPECT_EQ(manager.figures().failed, 1U);
  manager.detach_unused({}, later);
  manager.detach_unused({}, 2 * later);
  EXPECT_EQ(hits(), 0U);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutUprobeMulti, KernelLiveProbes, testing::Bool(),
                         [](const auto& with) { return with.param ? "multi" : "perf"; });

}  // namespace
}  // namespace rtev::kernel
