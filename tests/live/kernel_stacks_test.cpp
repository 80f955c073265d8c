// SPDX-License-Identifier: MIT
// The BPF programs for stacks on the running kernel, with OCaml programs: what is copied is what user space needs.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

#include "base/clock.hpp"
#include "inspect/tracking.hpp"
#include "kernel/stack_programs.hpp"
#include "kernel/stack_records.hpp"
#include "live/harness.hpp"

namespace rtev::test {
namespace {

using kernel::StackOptions, kernel::StackPrograms, kernel::StackParts, kernel::StackDrop;

constexpr std::uint32_t binary_id = 7;
constexpr std::uint64_t second_ns = 1'000'000'000;
#if defined(__x86_64__)
constexpr std::size_t sp_register = 7, pc_register = 16;
#else
constexpr std::size_t sp_register = 31, pc_register = 32;
#endif

/// A stack record that was kept.
class Stack {
 public:
  Stack(const rtev_stack& captured, std::span<const std::byte> payload)
      : record(captured), payload_(payload.begin(), payload.end()) {
    kernel::split_stack(record, payload_, parts);
  }
  Stack(Stack&&) = default;
  Stack& operator=(Stack&&) = default;

  bool has(std::uint64_t address, std::uint64_t bytes) const {
    return std::ranges::any_of(parts.copies, [&](const auto& copy) { return copy.contains(address, bytes); });
  }
  std::uint64_t word(std::uint64_t address) const {
    std::uint64_t word = 0;
    for (const auto& copy : parts.copies)
      if (copy.contains(address, sizeof word))
        std::memcpy(&word, copy.bytes.data() + (address - copy.address), sizeof word);
    return word;
  }
  std::uint64_t sp() const { return record.registers[sp_register]; }
  bool is(rtev_stack_flag flag) const { return (record.flags & flag) != 0; }

  rtev_stack record;
  StackParts parts;  ///< points into the payload

 private:
  std::vector<std::byte> payload_;
};

/// Where the description of an OCaml stack has its fields.
constexpr std::uint64_t handler_offset = 16, parent_offset = 24, handler_bytes = 32;

class KernelStacksLive : public LiveTest {
 protected:
  static StackPrograms start(const StackOptions& options) {
    auto programs = StackPrograms::load(options);
    if (!programs) throw std::runtime_error(programs.error().message());
    if (const auto attached = programs->attach(); !attached) throw std::runtime_error(attached.error().message());
    programs->set_sampling(true);
    return std::move(*programs);
  }

  void run(const std::string& kind) { process.emplace(program("stacked", {kind}), "ready"); }

  /// Has stacks taken of the running program.
  void add_target(StackPrograms& programs) {
    const std::string directory = "/proc/" + std::to_string(process->pid());
    file = UniqueFd{::open((directory + "/exe").c_str(), O_RDONLY | O_CLOEXEC)};
    const auto runtime = inspect_binary(file.get());
    ASSERT_TRUE(runtime && *runtime);
    sites = (*runtime)->stack_sites;
    // The fields behind the name: the 26th of all is the lowest address of the code.
    std::istringstream fields(read_file(directory + "/stat"));
    std::string field;
    for (int i = 1; i <= 26; ++i) fields >> field;
    const auto bias = bias_of_program(**runtime, std::stoull(field));
    target = stack_target_of({.id = binary_id, .runtime = **runtime}, bias);
    ASSERT_TRUE(programs.add_target(process->pid(), target));
  }

  void probe_allocations(StackPrograms& programs) {
    ASSERT_TRUE(sites.allocation_offset);
    const kernel::ProbePlan plan{.sites = {{.function = 0, .file_offset = *sites.allocation_offset}}};
    auto attached = programs.probe(file.get(), binary_id, plan, 1);
    ASSERT_TRUE(attached) << attached.error().message();
    links = std::move(attached->links);
  }

  std::size_t count(rtev_stack_kind kind) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(stacks, [&](const Stack& stack) { return stack.record.kind == kind; }));
  }

  void read(StackPrograms& programs) {
    programs.read_stacks([&](const rtev_stack& record, std::span<const std::byte> payload) {
      EXPECT_EQ(record.tgid, static_cast<unsigned>(process->pid())) << "only targets";
      stacks.emplace_back(record, payload);
    });
  }

  void read_until(StackPrograms& programs, const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + wait_timeout;
    for (read(programs); !done(); read(programs)) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      pollfd wait{.fd = programs.fd(), .events = POLLIN, .revents = 0};
      ::poll(&wait, 1, 20);
    }
  }

  /// Runs a program and reads `wanted` samples of it.
  void sample(const std::string& kind, std::size_t wanted, StackOptions options = {.rate_hz = 999}) {
    run(kind);
    StackPrograms programs = start(options);
    add_target(programs);
    read_until(programs, [&] { return count(RTEV_STACK_ON_CPU) >= wanted; });
    for (const Stack& stack : stacks) expect_stacks_of_ocaml(stack);
  }

  /// The fibers of a stack whose memory is there, from the innermost.
  static int fibers_of(const Stack& stack) {
    int fibers = 0;
    for (std::uint64_t info = stack.record.current_stack; info != 0 && fibers < 100; ++fibers) {
      if (!stack.has(info, 24)) return 0;
      const std::uint64_t handler = stack.word(info + handler_offset);
      if (!stack.has(handler, parent_offset) || !stack.has(handler + parent_offset, 8)) return 0;
      if (fibers > 0 && !stack.has(stack.word(info), 8)) return 0;
      info = stack.word(handler + parent_offset);
    }
    return fibers;
  }

  void expect_stacks_of_ocaml(const Stack& stack) const {
    const rtev_stack& record = stack.record;
    EXPECT_EQ(record.bytes, 8 * stack.parts.kernel_frames.size() +
                                std::accumulate(stack.parts.copies.begin(), stack.parts.copies.end(), std::size_t{0},
                                                [](std::size_t sum, const auto& copy) {
                                                  return sum + sizeof(rtev_stack_copy) + copy.bytes.size();
                                                }));
    EXPECT_EQ(record.copies, stack.parts.copies.size());
    EXPECT_TRUE(stack.has(stack.sp() & ~7ULL, 8)) << "the stack pointer is in a copy";
    EXPECT_TRUE(stack.is(RTEV_STACK_OCAML));
    EXPECT_GE(fibers_of(stack), 1);
    EXPECT_TRUE(stack.has(record.c_stack, 24)) << "what called OCaml";
    EXPECT_EQ(stack.is(RTEV_STACK_IN_KERNEL), !stack.parts.kernel_frames.empty() || record.kind == RTEV_STACK_OFF_CPU);
    EXPECT_EQ(record.domain, 0);
  }

  bool in_ocaml(const Stack& stack) const {
    return stack.sp() > stack.record.current_stack &&
           stack.sp() <= stack.word(stack.record.current_stack + handler_offset);
  }
  bool in_system(std::uint64_t address) const { return address >= target.system_begin && address < target.system_end; }

  /// At least nine in ten: a few samples are elsewhere.
  void expect_most(const std::function<bool(const Stack&)>& condition) const {
    EXPECT_GE(static_cast<std::size_t>(std::ranges::count_if(stacks, condition)) * 10, stacks.size() * 9);
  }

  std::optional<Process> process;
  UniqueFd file;
  StackSites sites;
  rtev_stack_target target{};
  std::vector<Stack> stacks;
  std::vector<kernel::UprobeLink> links;
};

TEST_F(KernelStacksLive, OcamlCodeHasItsStackFromItsStackPointerOn) {
  sample("ocaml", 100);
  expect_most([&](const Stack& stack) {
    const std::uint64_t handler = stack.word(stack.record.current_stack + handler_offset);
    return in_ocaml(stack) && stack.is(RTEV_STACK_HOLDS_LOCK) && !stack.is(RTEV_STACK_CUT) &&
           stack.has(stack.sp() & ~7ULL, handler + handler_bytes - stack.sp());
  });
  for (const Stack& stack : stacks) {
    EXPECT_EQ(stack.record.weight, second_ns / 999);
    EXPECT_EQ(stack.record.tid, stack.record.tgid);
    EXPECT_EQ(stack.record.left_ns, 0U);
  }
}

TEST_F(KernelStacksLive, CodeInCHasBothStacks) {
  sample("c", 100);
  expect_most([&](const Stack& stack) {
    const std::uint64_t link = stack.record.c_stack, ocaml_sp = stack.word(link + 8);
    return !in_ocaml(stack) && stack.has(stack.sp(), link + 24 - stack.sp()) && in_system(stack.word(link - 8)) &&
           ocaml_sp == stack.word(stack.record.current_stack) && stack.has(ocaml_sp, 8) &&
           !stack.is(RTEV_STACK_OLD_START);
  });
}

TEST_F(KernelStacksLive, ACallThatDoesNotAllocateHasItsCallersStack) {
  sample("noalloc", 100);
  expect_most([&](const Stack& stack) {
    // The compiled code's stack pointer, which no C code changes here, is in rbx; or further up where it was saved.
    return stack.is(RTEV_STACK_OLD_START) && !in_ocaml(stack) && !in_system(stack.word(stack.record.c_stack - 8));
  });
}

TEST_F(KernelStacksLive, FibersHaveTheirParents) {
  sample("fibers", 100);
  for (const Stack& stack : stacks) EXPECT_EQ(fibers_of(stack), 6);
}

TEST_F(KernelStacksLive, FibersThatAreCalledBackHaveTheirParents) {
  sample("callbacks", 100);
  expect_most([](const Stack& stack) { return fibers_of(stack) == 3; });
}

TEST_F(KernelStacksLive, ADeepStackKeepsItsEnds) {
  constexpr std::uint32_t limit = 12 << 10;
  sample("deep", 50, {.rate_hz = 999, .stack_bytes = limit});
  for (const Stack& stack : stacks) {
    EXPECT_TRUE(stack.is(RTEV_STACK_CUT));
    EXPECT_LE(stack.record.bytes, limit + 2048);
    EXPECT_GE(stack.record.bytes, limit / 2);
    const std::uint64_t handler = stack.word(stack.record.current_stack + handler_offset);
    EXPECT_TRUE(stack.has(handler - 1024, 1024 + handler_bytes));
  }
}

TEST_F(KernelStacksLive, CollectionsAndExceptionsHaveTheirStacks) {
  sample("collect", 100);
  process.reset();
  stacks.clear();
  sample("raise", 100);
}

TEST_F(KernelStacksLive, SamplesAddUpToTheTimeOnCpus) {
  run("domains");
  StackPrograms programs = start({.rate_hz = 499});
  clockid_t clock{};
  ASSERT_EQ(::clock_getcpuclockid(process->pid(), &clock), 0);
  const auto cpu_ns = [&] {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * second_ns + static_cast<std::uint64_t>(time.tv_nsec);
  };
  add_target(programs);
  const std::uint64_t begin_ns = cpu_ns();
  read_until(programs, [&] { return cpu_ns() - begin_ns >= second_ns; });
  programs.remove_target(process->pid());
  const std::uint64_t used_ns = cpu_ns() - begin_ns;
  read(programs);
  std::uint64_t sampled_ns = 0;
  std::set<int> domains;
  for (const Stack& stack : stacks) {
    sampled_ns += stack.record.weight;
    domains.insert(stack.record.domain);
  }
  EXPECT_GE(sampled_ns, used_ns / 2);
  EXPECT_LE(sampled_ns, used_ns * 2);
  EXPECT_THAT(domains, ElementsAre(0, 1));
  // A sample may have been under way.
  const std::size_t before = stacks.size();
  const std::uint64_t removed_ns = cpu_ns();
  while (cpu_ns() - removed_ns < second_ns / 10) read(programs);
  EXPECT_LE(stacks.size(), before + 2) << "removed";
}

TEST_F(KernelStacksLive, SleepsThatAreLongHaveTheirStack) {
  run("sleep");
  StackPrograms programs = start({.rate_hz = 0, .off_cpu = true});
  add_target(programs);
  read_until(programs, [&] { return count(RTEV_STACK_WOKEN) >= 50; });
  std::set<std::uint64_t> left;
  std::size_t matched = 0;
  for (const Stack& stack : stacks) {
    const rtev_stack& record = stack.record;
    if (record.kind == RTEV_STACK_OFF_CPU) {
      expect_stacks_of_ocaml(stack);
      EXPECT_EQ(record.left_ns, record.time_ns);
      left.insert(record.left_ns);
    } else {
      ASSERT_EQ(record.kind, RTEV_STACK_WOKEN);
      EXPECT_EQ(record.bytes, 0U);
      EXPECT_GE(record.weight, 1'000'000U);
      EXPECT_EQ(record.domain, 0);
      if (record.left_ns == 0) continue;
      EXPECT_TRUE(left.contains(record.left_ns));
      EXPECT_EQ(record.time_ns - record.weight, record.left_ns);
      ++matched;
    }
  }
  // The first one fell asleep before it was a target.
  EXPECT_GE(matched + 1, count(RTEV_STACK_WOKEN));
  std::erase_if(stacks, [](const Stack& stack) { return stack.record.kind != RTEV_STACK_OFF_CPU; });
  expect_most([&](const Stack& stack) {
    return !stack.is(RTEV_STACK_HOLDS_LOCK) && stack.record.syscall == SYS_clock_nanosleep &&
           in_system(stack.word(stack.record.c_stack - 8));
  });
}

TEST_F(KernelStacksLive, ABigFrameOfCDoesNotHideTheCaller) {
  run("read");
  StackPrograms programs = start({.rate_hz = 0, .off_cpu = true, .min_sleep_ns = 1});
  add_target(programs);
  for (int i = 0; i < 20; ++i) {
    process->write("x");
    read_until(programs, [&] { return count(RTEV_STACK_OFF_CPU) > static_cast<std::size_t>(i); });
  }
  std::erase_if(stacks, [](const Stack& stack) { return stack.record.syscall != SYS_read; });
  ASSERT_FALSE(stacks.empty());
  for (const Stack& stack : stacks) {
    expect_stacks_of_ocaml(stack);
    EXPECT_GT(stack.record.c_stack - stack.sp(), 60'000U) << "the buffer of Unix.read";
    EXPECT_TRUE(in_system(stack.word(stack.record.c_stack - 8)));
  }
}

TEST_F(KernelStacksLive, ThreadsThatGaveUpTheLockHaveTheirStacks) {
  run("threads");
  StackPrograms programs = start({.rate_hz = 999, .off_cpu = true});
  add_target(programs);
  std::set<std::uint32_t> sleepers;
  read_until(programs, [&] {
    for (const Stack& stack : stacks)
      if (stack.record.syscall == SYS_clock_nanosleep) sleepers.insert(stack.record.tid);
    return sleepers.size() >= 2 && count(RTEV_STACK_OFF_CPU) >= 50;
  });
  std::erase_if(stacks, [](const Stack& stack) { return stack.record.syscall != SYS_clock_nanosleep; });
  for (const Stack& stack : stacks) EXPECT_FALSE(stack.is(RTEV_STACK_HOLDS_LOCK));
  expect_most(
      [&](const Stack& stack) { return fibers_of(stack) == 1 && in_system(stack.word(stack.record.c_stack - 8)); });
}

std::uint64_t sum_of(const std::vector<StackDrop>& drops, rtev_stack_kind kind, rtev_stack_loss loss) {
  std::uint64_t sum = 0;
  for (const StackDrop& drop : drops)
    if (drop.kind == kind && drop.loss == loss) sum += drop.count;
  return sum;
}

TEST_F(KernelStacksLive, MinorHeapsThatAreUsedUpHaveTheirStack) {
  run("allocate");
  StackPrograms programs = start({.rate_hz = 0, .allocations = true, .allocation_limit = 100});
  add_target(programs);
  probe_allocations(programs);
  std::vector<StackDrop> drops;
  read_until(programs, [&] {
    std::ranges::copy(programs.take_stack_drops(monotonic_ns()), std::back_inserter(drops));
    return count(RTEV_STACK_ALLOCATION) >= 20 && !drops.empty();
  });
  links.clear();
  read(programs);
  std::ranges::copy(programs.take_stack_drops(monotonic_ns()), std::back_inserter(drops));
  constexpr std::uint64_t half_words = 128 << 10;  // of the default minor heap
  std::uint64_t words = 0;
  for (const Stack& stack : stacks) {
    expect_stacks_of_ocaml(stack);
    EXPECT_TRUE(stack.is(RTEV_STACK_HOLDS_LOCK));
    EXPECT_EQ(stack.record.weight % half_words, 0U);
    EXPECT_EQ(stack.record.registers[pc_register], stacks[0].record.registers[pc_register]);
    words += stack.record.weight;
  }
  const std::uint64_t dropped = sum_of(drops, RTEV_STACK_ALLOCATION, RTEV_STACK_LIMITED);
  EXPECT_GT(dropped, 0U);
  EXPECT_GE(words, stacks.size() * half_words);
  EXPECT_LE(words, (stacks.size() + dropped) * half_words) << "what was skipped is counted once";
  for (const StackDrop& drop : drops) EXPECT_LE(drop.first_ns, drop.last_ns);
}

TEST_F(KernelStacksLive, SleepsBeyondTheLimitAreCounted) {
  run("sleep");
  StackPrograms programs = start({.rate_hz = 0, .off_cpu = true, .off_cpu_limit = 0, .total_limit = 0});
  add_target(programs);
  // One of a window is taken. The sleeps of a second program exceed that.
  Process other(program("stacked", {"doze"}), "ready");
  ASSERT_TRUE(programs.add_target(other.pid(), target));
  std::uint64_t counted = 0, without = 0;
  const auto deadline = std::chrono::steady_clock::now() + wait_timeout;
  while (counted == 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    programs.read_stacks([&](const rtev_stack& record, std::span<const std::byte>) {
      if (record.kind == RTEV_STACK_WOKEN && record.left_ns == 0) ++without;
    });
    counted += sum_of(programs.take_stack_drops(monotonic_ns()), RTEV_STACK_OFF_CPU, RTEV_STACK_LIMITED);
  }
  programs.remove_target(other.pid());
  programs.remove_target(process->pid());
  counted += sum_of(programs.take_stack_drops(monotonic_ns()), RTEV_STACK_OFF_CPU, RTEV_STACK_LIMITED);
  programs.read_stacks([&](const rtev_stack& record, std::span<const std::byte>) {
    if (record.kind == RTEV_STACK_WOKEN && record.left_ns == 0) ++without;
  });
  EXPECT_GE(without, counted);
}

TEST_F(KernelStacksLive, AFullBufferIsCountedAndWakesItsReader) {
  run("deep");
  StackPrograms programs = start({.rate_hz = 4'999, .buffer_bytes = 0});
  add_target(programs);
  pollfd wait{.fd = programs.fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(wait_timeout).count())), 1);
  std::vector<StackDrop> drops;
  const auto deadline = std::chrono::steady_clock::now() + wait_timeout;
  while (drops.empty()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    drops = programs.take_stack_drops(monotonic_ns());
  }
  EXPECT_EQ(drops[0].kind, RTEV_STACK_ON_CPU);
  EXPECT_EQ(drops[0].loss, RTEV_STACK_FULL);
  EXPECT_LE(drops[0].first_ns, drops[0].last_ns);
  read(programs);
  EXPECT_GE(stacks.size(), 5U) << "the records that fit are there";
  EXPECT_LT(stacks.front().record.time_ns, drops[0].first_ns) << "later, a smaller record may still have fit";
}

TEST_F(KernelStacksLive, WithoutALayoutOnlyTheCStackIsTaken) {
  run("c");
  StackPrograms programs = start({.rate_hz = 999});
  add_target(programs);
  target.current_stack = 0;
  ASSERT_TRUE(programs.add_target(process->pid(), target));
  read(programs);
  stacks.clear();
  read_until(programs, [&] { return count(RTEV_STACK_ON_CPU) >= 20; });
  const Stack& stack = stacks.back();
  EXPECT_TRUE(stack.is(RTEV_STACK_NO_LAYOUT));
  EXPECT_FALSE(stack.is(RTEV_STACK_OCAML));
  EXPECT_EQ(stack.parts.copies.size(), 1U);
  EXPECT_TRUE(stack.has(stack.sp() & ~7ULL, 8));
}

TEST_F(KernelStacksLive, AProcessThatEndsIsForgotten) {
  StackPrograms programs = start({.rate_hz = 0});
  for (int i = 0; i < 4; ++i) {
    run("ocaml");
    add_target(programs);
    process->signal(SIGKILL);
    process->wait();
  }
  // The map would be full.
  for (pid_t pid = 1; pid <= RTEV_MAX_STACK_TARGETS; ++pid) ASSERT_TRUE(programs.add_target(pid + (1 << 22), target));
  EXPECT_FALSE(programs.add_target(1 << 23, target));
}

}  // namespace
}  // namespace rtev::test
