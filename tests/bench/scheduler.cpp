// SPDX-License-Identifier: MIT
// The tracer's CPU time per scheduler record, from the kernel's buffer to the output.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/latency/latency_sink.hpp"
#include "base/clock.hpp"
#include "bench/benchmarks.hpp"
#include "formats/fxt/fxt_sink.hpp"
#include "formats/output/output.hpp"
#include "kernel/kernel_source.hpp"
#include "session/live/sched_stager.hpp"
#include "session/run_header.hpp"
#include "stream/registry.hpp"
#include "stream/timeline.hpp"

namespace rtev::bench {
namespace {

/// Programs that sleep and wake, each a thousand times a second, and how often a session looks at their records.
constexpr std::uint32_t programs = 50, cpus = 2;
constexpr std::uint64_t sleeps_per_second = 50'000, look_ns = 250'000'000;
constexpr std::size_t sleeps_in_a_look = sleeps_per_second * look_ns / 1'000'000'000;

/// Simulated clock of the records.
std::uint64_t simulated_now = 1'000'000'000;

rtev_thread idle_thread(std::uint32_t cpu) {
  rtev_thread thread{};
  thread.domain = -1;
  thread.prio = 120;
  fmt::format_to_n(thread.comm, sizeof thread.comm - 1, "swapper/{}", cpu);
  return thread;
}

rtev_thread program_thread(std::uint32_t number) {
  rtev_thread thread{};
  thread.tgid = thread.tid = 1000 + number;
  thread.prio = 120;
  thread.role = RTEV_ROLE_MUTATOR;
  thread.flags = RTEV_TRACKED_THREAD;
  std::memcpy(thread.comm, "bench", sizeof "bench");
  return thread;
}

/// Records as the kernel would have them, kept in memory: programs are woken by a timer, which interrupts whatever a
/// CPU does, enter a CPU when it is free, and leave it for a sleep. What happens next is left to chance, as on a real
/// host: a processor predicts the branches of what repeats. A buffer for each CPU.
class SleepingPrograms final : public kernel::SchedSource {
 public:
  SleepingPrograms() {
    for (std::uint32_t number = 0; number < programs; ++number) asleep_.push_back(number);
  }

  /// The records until the next look.
  void advance() {
    for (auto& buffer : buffers_) buffer.clear();
    for (std::size_t sleeps = 0; sleeps < sleeps_in_a_look;) {
      const std::uint32_t cpu = chance_() % cpus;
      if (!asleep_.empty() && chance_() % 2 == 0) {
        runnable_.push_back(take_any(asleep_));
        add(RTEV_WAKEUP, cpu, running_on(cpu), program_thread(runnable_.back()));
      } else if (running_[cpu]) {
        asleep_.push_back(*std::exchange(running_[cpu], std::nullopt));
        const rtev_thread leaves = program_thread(asleep_.back());
        if (!runnable_.empty()) running_[cpu] = take_any(runnable_);
        add(RTEV_SWITCH, cpu, leaves, running_on(cpu));
        ++sleeps;
      } else if (!runnable_.empty()) {
        running_[cpu] = take_any(runnable_);
        add(RTEV_SWITCH, cpu, idle_thread(cpu), running_on(cpu));
      }
    }
  }

  std::size_t records() const { return buffers_[0].size() + buffers_[1].size(); }

  int sched_fd() const override { return -1; }
  bool read_sched(const SchedConsumer& consumer, std::size_t) override {
    for (std::uint16_t buffer = 0; buffer < cpus; ++buffer) {
      for (const rtev_sched& record : buffers_[buffer]) consumer(buffer, record);
    }
    return true;
  }
  std::uint16_t sched_buffers() const override { return cpus; }
  std::uint16_t sched_buffer_of(std::uint32_t cpu) const override { return static_cast<std::uint16_t>(cpu); }
  std::vector<kernel::SchedDrop> take_sched_drops(std::uint64_t) override { return {}; }

 private:
  rtev_thread running_on(std::uint32_t cpu) const {
    return running_[cpu] ? program_thread(*running_[cpu]) : idle_thread(cpu);
  }
  std::uint32_t take_any(std::vector<std::uint32_t>& numbers) {
    std::swap(numbers[chance_() % numbers.size()], numbers.back());
    const std::uint32_t number = numbers.back();
    numbers.pop_back();
    return number;
  }

  void add(std::uint32_t type, std::uint32_t cpu, const rtev_thread& prev, const rtev_thread& next) {
    constexpr std::uint64_t ns_between_records = 1'000'000'000 / sleeps_per_second / 2;
    rtev_sched record{};
    record.time_ns = simulated_now += ns_between_records;
    record.type = type;
    record.cpu = cpu;
    const bool sleeps = type == RTEV_SWITCH && prev.tgid != 0;
    record.state = sleeps ? 1 : 0;
    record.syscall = sleeps ? clock_nanosleep : RTEV_SYSCALL_UNKNOWN;
    record.prev = prev;
    record.next = next;
    buffers_[cpu].push_back(record);
  }

  static constexpr std::int16_t clock_nanosleep = SYS_clock_nanosleep;
  std::array<std::vector<rtev_sched>, cpus> buffers_;
  std::vector<std::uint32_t> asleep_, runnable_;            ///< numbers of programs
  std::array<std::optional<std::uint32_t>, cpus> running_;  ///< the same
  std::minstd_rand chance_;
};

enum class Stage : std::uint8_t { stage, merge, fxt, latency };
constexpr std::array<std::string_view, 4> stage_names{"read and stage", "stage and merge", "stage, merge, FXT",
                                                      "stage, merge, `latency`"};

/// Does what a session does with these records, look by look. Writing is not measured.
class SchedPipeline {
 public:
  explicit SchedPipeline(Stage stage)
      : output_(UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC)), "/dev/null"),
        timeline_([] { return simulated_now; }),
        stager_(source_, timeline_, {}),
        stage_(stage) {
    for (std::uint32_t number = 0; number < programs; ++number) {
      ProcessInfo info;
      info.pid = info.ns_pid = static_cast<std::int32_t>(program_thread(number).tgid);
      info.comm = "bench";
      registry_.add_process(std::move(info));
    }
    if (stage == Stage::fxt) sink_ = std::make_unique<FxtSink>(output_);
    if (stage == Stage::latency) sink_ = std::make_unique<Latency>(LatencyOptions{}, output_);
    if (sink_) sink_->header(make_run_header({}, simulated_now));
  }

  /// CPU nanoseconds per record, over this many looks.
  double run(int looks) {
    std::uint64_t ns = 0, records = 0;
    for (int look = 0; look < looks; ++look) {
      source_.advance();
      const std::uint64_t start = thread_cpu_ns();
      stager_.stage(simulated_now, UINT64_MAX);
      if (stage_ != Stage::stage) deliver();
      ns += thread_cpu_ns() - start;
      if (stage_ == Stage::stage) deliver();
      records += source_.records();
    }
    return static_cast<double>(ns) / static_cast<double>(records);
  }

 private:
  void deliver() {
    timeline_.deliver(simulated_now, [&](const Batch& batch) {
      if (sink_) sink_->consume(batch, registry_);
    });
    if (sink_) sink_->flush();
  }

  FdOutput output_;
  Registry registry_;
  Timeline timeline_;
  SleepingPrograms source_;
  SchedStager stager_;
  std::unique_ptr<Sink> sink_;
  Stage stage_;
};

}  // namespace

void scheduler(Report& report, const Effort& effort) {
  constexpr int looks = 4;
  std::vector<std::unique_ptr<SchedPipeline>> pipelines;
  std::vector<Series> series(stage_names.size(), Series{.name = "rtev", .runs = {}});
  for (std::size_t i = 0; i < stage_names.size(); ++i) {
    pipelines.push_back(std::make_unique<SchedPipeline>(static_cast<Stage>(i)));
    pipelines.back()->run(looks);
  }
  for (int round = 0; round < effort.rounds; ++round) {
    for (std::size_t i = 0; i < pipelines.size(); ++i) series[i].runs.push_back(pipelines[i]->run(looks));
  }
  for (std::size_t i = 0; i < pipelines.size(); ++i) {
    report.add(
        {.section = "scheduler",
         .what = fmt::format("{} programs that sleep: {}", programs, stage_names[i]),
         .unit = "ns/record",
         .subject = std::move(series[i]),
         .note = fmt::format("a wake-up and one or two switches for each of {} sleeps a second, looked at each {} ms",
                             sleeps_per_second, look_ns / 1'000'000)});
  }
}

}  // namespace rtev::bench
