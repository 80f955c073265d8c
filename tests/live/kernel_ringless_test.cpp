// SPDX-License-Identifier: MIT
// The BPF programs of --ringless on the running kernel. Without OCaml: a function of the test itself is probed instead
// of the runtime's.
#include <gtest/gtest.h>
#include <link.h>

#include <array>
#include <cstdio>
#include <thread>

#include "base/clock.hpp"
#include "kernel/ringless_programs.hpp"
#include "live/kernel_fixture.hpp"
#include "support/poll_until.hpp"

namespace rtev::kernel {
namespace {

constexpr std::uint32_t binary = 7;
constexpr std::uint16_t domain = 3;

// As in the runtime: the flag, and the variable that leads from a thread to the id of its domain.
volatile std::uint64_t events_enabled = 0;
const int domain_number = domain;
thread_local const int* domain_pointer = &domain_number;

/// The TLS module id, which the dynamic linker writes for a library.
std::uint64_t tls_module = 0;

/// This thread's block of thread-local variables of the test program. Sets tls_module.
std::intptr_t own_tls_block() {
  std::intptr_t block = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        tls_module = info->dlpi_tls_modid;
        *static_cast<std::intptr_t*>(found) = reinterpret_cast<std::intptr_t>(info->dlpi_tls_data);
        return 1;  // the program comes first
      },
      &block);
  return block;
}

// Neither inlined nor cloned, so there is one address to probe.
#ifdef __clang__
[[gnu::noinline]]
#else
[[gnu::noipa]]
#endif
void write_counter(int id, std::uint64_t value) {
  asm volatile("nop" : : "r"(id), "r"(value));  // an instruction that can be probed comes first
}

/// With uprobe_multi where the kernel has it, and without.
class KernelLiveRingless : public KernelLive, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    KernelLive::SetUp();
    events_enabled = 0;
    // BPF can read only pages that are in memory. Which pages around the used ones are depends on the address.
    ASSERT_EQ(static_cast<const volatile int&>(*domain_pointer), domain);
  }

  static RinglessPrograms load(RinglessOptions options) {
    options.uprobe_multi = GetParam();
    auto loaded = RinglessPrograms::load(options);
    if (!loaded) throw std::runtime_error(loaded.error().message());
    return std::move(*loaded);
  }

  /// How domain_pointer is found: from the thread pointer, or as in a shared runtime.
  enum class Place { program, library };

  static rtev_ringless_binary described(std::uint32_t round, Place place = Place::program) {
    const auto function = reinterpret_cast<std::uintptr_t>(&write_counter);
    rtev_ringless_binary description{};
    const auto variable = reinterpret_cast<std::intptr_t>(&domain_pointer);
    if (place == Place::program) {
      description.domain_self_tls = variable - reinterpret_cast<std::intptr_t>(__builtin_thread_pointer());
    } else {
      description.domain_self_tls = variable - own_tls_block() + 1;
      description.tls_module_word[RTEV_EMIT_COUNTER] =
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(&tls_module) - function);
    }
    description.enabled[RTEV_EMIT_COUNTER] =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(&events_enabled) - function);
    description.round = round;
    return description;
  }

  static std::vector<UprobeLink> attach(RinglessPrograms& programs, Place place = Place::program) {
    const UniqueFd self{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
    const ProbePlan plan{.sites = {{.function = RTEV_EMIT_COUNTER,
                                    .file_offset = file_offset(reinterpret_cast<std::uintptr_t>(&write_counter))}},
                         .ringless = described(0, place)};
    auto attached = programs.probe(self.get(), binary, plan, 1);
    EXPECT_TRUE(attached) << attached.error().message();
    return attached ? std::move(attached->links) : std::vector<UprobeLink>{};
  }

  static std::vector<rtev_probed> read(RinglessPrograms& programs) {
    std::vector<rtev_probed> records;
    programs.read([&](const rtev_probed& record) { records.push_back(record); });
    return records;
  }
};

TEST_P(KernelLiveRingless, SeesCallsUntilThereIsARing) {
  RinglessPrograms programs = load({});
  {
    const auto links = attach(programs);
    write_counter(5, 99);
    const auto records = read(programs);
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].tgid, static_cast<unsigned>(::getpid()));
    EXPECT_EQ(records[0].binary, binary);
    EXPECT_EQ(records[0].domain, domain);
    EXPECT_EQ(records[0].emitter, RTEV_EMIT_COUNTER);
    EXPECT_EQ(records[0].id, 5);
    EXPECT_EQ(records[0].value, 99U);
    EXPECT_EQ(records[0].lost_words, 0U);

    events_enabled = 1;
    write_counter(6, 1);
    events_enabled = 0;
    write_counter(7, 1);
    EXPECT_TRUE(read(programs).empty()) << "the process has a ring now";
  }
  EXPECT_EQ(programs.dropped() + programs.unattributed(), 0U);
}

TEST_P(KernelLiveRingless, FindsTheDomainOfASharedRuntime) {
  RinglessPrograms programs = load({});
  {
    const auto links = attach(programs, Place::library);
    write_counter(5, 99);
    std::thread([] { write_counter(6, 100); }).join();
    tls_module = 0;
    write_counter(7, 101);
  }
  const auto records = read(programs);
  ASSERT_EQ(records.size(), 2U);
  for (const rtev_probed& record : records) EXPECT_EQ(record.domain, domain);
  EXPECT_EQ(programs.unattributed(), 1U) << "the module id was unknown";
}

TEST_P(KernelLiveRingless, StopsBeyondTheLimitUntilTheNextRound) {
  constexpr std::uint64_t in_a_window = 10;
  RinglessPrograms programs = load({.limit = 10 * in_a_window});
  const auto links = attach(programs);
  for (std::uint32_t round = 1; round <= 2; ++round) {
    ASSERT_TRUE(programs.describe(binary, described(round)));
    // More calls than a busy machine can spread over windows.
    for (int i = 0; i < 5000; ++i) write_counter(i, 0);
    const auto records = read(programs);
    ASSERT_GT(records.size(), in_a_window);
    EXPECT_EQ(records.back().type, RTEV_PROBED_LIMITED);
    EXPECT_EQ(std::ranges::count(records, std::uint8_t{RTEV_PROBED_LIMITED}, &rtev_probed::type), 1);
    EXPECT_LT(records.size(), 500U);
    const std::uint64_t limited_ns = records.back().time_ns;
    ASSERT_TRUE(test::poll_until([=] { return monotonic_ns() > limited_ns + RTEV_RINGLESS_WINDOW_NS; }))
        << "another window";
  }
}

TEST_P(KernelLiveRingless, ReportsAgainAfterAPauseThatIsLongerEachTime) {
  RinglessPrograms programs = load({.limit = 100});
  const auto links = attach(programs);
  std::uint64_t pause_ns = RTEV_RINGLESS_MIN_PAUSE_NS;
  for (int i = 0; i < 2; ++i, pause_ns *= 2) {
    for (int call = 0; call < 5000; ++call) write_counter(call, 0);
    const auto before = read(programs);
    ASSERT_FALSE(before.empty());
    ASSERT_EQ(before.back().type, RTEV_PROBED_LIMITED);
    std::vector<rtev_probed> after;
    for (; after.empty(); after = read(programs)) {
      write_counter(1, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(after.front().type, RTEV_PROBED_RESUMED);
    EXPECT_GE(after.front().time_ns - before.back().time_ns, pause_ns);
  }
}

TEST_P(KernelLiveRingless, CountsEventsThatFindNoRoom) {
  RinglessPrograms programs = load({.limit = 1'000'000'000});
  const auto links = attach(programs);
  constexpr std::uint64_t calls = 200'000;  // the buffer holds less than half of them
  for (std::uint64_t i = 0; i < calls; ++i) write_counter(1, i);
  const std::size_t first = read(programs).size();
  EXPECT_LT(first, calls / 2);
  EXPECT_EQ(first + programs.dropped(), calls);
  write_counter(2, 0);
  const auto records = read(programs);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].lost_words, 3 * programs.dropped());
}

TEST_P(KernelLiveRingless, IgnoresAProcessOnRequest) {
  RinglessPrograms programs = load({});
  const auto links = attach(programs);
  write_counter(1, 0);
  const auto records = read(programs);
  ASSERT_EQ(records.size(), 1U);
  programs.ignore(::getpid(), records[0].time_ns);
  write_counter(2, 0);
  EXPECT_TRUE(read(programs).empty());
}

TEST_P(KernelLiveRingless, ARequestToIgnoreAnEarlierProcessOfThePidHasNoEffect) {
  const std::uint64_t before = monotonic_ns();
  RinglessPrograms programs = load({});
  const auto links = attach(programs);
  write_counter(1, 0);
  programs.ignore(::getpid(), before);
  write_counter(2, 0);
  EXPECT_EQ(read(programs).size(), 2U);
}

TEST_P(KernelLiveRingless, OnlyTheRequestedProcessIsProbed) {
  RinglessPrograms programs = load({.pids = {::getpid()}});
  const auto links = attach(programs);
  Child other([] { write_counter(1, 0); });
  other.release();
  other.wait();
  // On older kernels all processes of a binary are probed, and user space filters.
  const auto of_other = read(programs);
  if (can_probe_one_process({.program = nullptr, .multi = GetParam()})) {
    EXPECT_TRUE(of_other.empty());
  }
  std::thread(write_counter, 2, 0).join();
  EXPECT_EQ(read(programs).size(), 1U) << "by another thread";
}

INSTANTIATE_TEST_SUITE_P(Kernel, KernelLiveRingless, testing::Values(true, false),
                         [](const auto& multi) { return multi.param ? "UprobeMulti" : "PerfEvent"; });

}  // namespace
}  // namespace rtev::kernel
