// SPDX-License-Identifier: MIT
// The tracer's CPU time per event, from ring to output.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "bench/benchmarks.hpp"
#include "bench/producer.hpp"
#include "bench/tool.hpp"
#include "formats/chrome/chrome_sink.hpp"
#include "formats/fxt/fxt_sink.hpp"
#include "formats/jsonl/jsonl_sink.hpp"
#include "formats/output/output.hpp"
#include "formats/perfetto/perfetto_sink.hpp"
#include "formats/text/text_sink.hpp"
#include "ring/reader_access.hpp"
#include "session/run_header.hpp"
#include "stream/registry.hpp"
#include "stream/timeline.hpp"

namespace rtev::bench {
namespace {

constexpr int producer_cpu = 0, our_cpu = 1;

enum class Stage : std::uint8_t { read, merge, text, jsonl, fxt, chrome, perfetto };

const char* name_of(Stage stage) {
  static constexpr const char* names[] = {
      "read",
      "read and merge",
      "read, merge, text",
      "read, merge, JSON lines",
      "read, merge, FXT",
      "read, merge, Chrome JSON",
      "read, merge, Perfetto",
  };
  return names[static_cast<std::size_t>(stage)];
}

UniqueFd open_null() {
  return UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
}

/// A tick of a session: events written by a domain between two polls, and how long the session holds events back.
constexpr std::uint64_t tick_ns = 10'000'000, slack_ns = 100'000'000;
constexpr std::uint64_t event_gap_ns = 1000;  ///< a million events per second per domain
constexpr std::uint64_t events_in_a_tick = tick_ns / event_gap_ns;

/// Simulated clock of the events in these rings: advances per event, however long writing takes.
std::uint64_t simulated_now;
std::uint64_t simulated_clock() {
  return simulated_now;
}

/// Does what a session does with the rings of one file, tick by tick, up to one stage. Writing is not measured.
class Pipeline {
 public:
  Pipeline(std::uint32_t domains, Mix mix, Stage stage)
      : stage_(stage),
        ring_(16, domains, simulated_clock),
        output_(open_null(), "/dev/null"),
        timeline_(simulated_clock) {
    for (std::uint32_t domain = 0; domain < domains; ++domain) composers_.emplace_back(ring_.writer(), domain, mix);
    auto reader = RingReader::open(ring_.path());
    if (!reader) throw std::runtime_error(reader.error().message());
    reader_ = std::make_shared<RingReader>(std::move(*reader));
    ProcessInfo info;
    info.pid = info.ns_pid = ::getpid();
    info.comm = "bench";
    info.ring = RingState::active;
    const ProcessIndex process = registry_.add_process(std::move(info));
    RingReaderAccess::set_slot(
        *reader_, registry_.add_ring(
                      {.process = process, .domains = domains, .user_event_name = [reader = reader_](std::uint16_t id) {
                         return reader->user_event_name(id);
                       }}));
    if (stage == Stage::text) sink_ = std::make_unique<TextSink>(output_);
    if (stage == Stage::jsonl) sink_ = std::make_unique<JsonlSink>(output_);
    if (stage == Stage::fxt) sink_ = std::make_unique<FxtSink>(output_);
    if (stage == Stage::chrome) sink_ = std::make_unique<ChromeSink>(output_);
    if (stage == Stage::perfetto) sink_ = std::make_unique<PerfettoSink>(output_);
    if (sink_) sink_->header(make_run_header({}, simulated_now));
  }

  /// CPU nanoseconds per event, over this many ticks.
  double run(int ticks) {
    const std::uint64_t events = reader_->accounting().events;
    std::uint64_t ns = 0;
    for (int tick = 0; tick < ticks; ++tick) {
      write();
      const std::uint64_t start = thread_cpu_ns();
      take();
      ns += thread_cpu_ns() - start;
    }
    return static_cast<double>(ns) / static_cast<double>(reader_->accounting().events - events);
  }

 private:
  /// Domains alternate after each event: the worst case of a merge.
  void write() {
    for (std::uint64_t i = 0; i < events_in_a_tick; ++i) {
      for (Composer& composer : composers_) {
        simulated_now += event_gap_ns / composers_.size();
        composer.step();
      }
    }
  }

  void take() {
    const auto stage = [&](const Batch& batch) { stage_ == Stage::read ? see(batch) : timeline_.push(batch); };
    while (!reader_->poll(stage).complete) {
    }
    timeline_.deliver(simulated_now - slack_ns, [&](const Batch& batch) {
      if (sink_)
        sink_->consume(batch, registry_);
      else
        see(batch);
    });
    if (sink_) sink_->flush();
  }

  void see(const Batch& batch) {
    for (const Event& event : batch.events()) time_sum_ += event.time;
    asm volatile("" : : "r"(time_sum_));
  }

  Stage stage_;
  Ring ring_;
  std::vector<Composer> composers_;
  FdOutput output_;
  Registry registry_;
  Timeline timeline_;
  std::shared_ptr<RingReader> reader_;
  std::unique_ptr<Sink> sink_;
  std::uint64_t time_sum_ = 0;
};

void in_process(Report& report, std::uint32_t domains, Mix mix, const Effort& effort) {
  constexpr std::array stages{Stage::read, Stage::merge,  Stage::text,    Stage::jsonl,
                              Stage::fxt,  Stage::chrome, Stage::perfetto};
  constexpr int warming_up = 2 * static_cast<int>(slack_ns / tick_ns), ticks = 20;
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  std::vector<Series> series;
  for (const Stage stage : stages) {
    pipelines.push_back(std::make_unique<Pipeline>(domains, mix, stage));
    pipelines.back()->run(warming_up);
    series.push_back({.name = "rtev", .runs = {}});
  }
  for (int round = 0; round < effort.rounds; ++round) {
    for (std::size_t i = 0; i < stages.size(); ++i) series[i].runs.push_back(pipelines[i]->run(ticks));
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Row row{.section = "pipeline",
            .what = fmt::format("{}, {} domain{}: {}", bench::name_of(mix), domains, domains == 1 ? "" : "s",
                                name_of(stages[i])),
            .unit = "ns/event",
            .subject = std::move(series[i])};
    if (stages[i] == Stage::merge) {
      row.goal = Goal::at_most(10, "ns");
      row.note = "each domain writes 1 M events/s, polled each 10 ms and held back for 100 ms, as a session does";
      if (domains > 1) row.note += "; domains take turns after each event, so that nothing comes in runs";
    }
    if (stages[i] == Stage::fxt) row.goal = Goal::at_most(33, "ns");  // 30 M events per CPU second
    report.add(std::move(row));
  }
}

/// rtev-bpf itself, while a program writes a million events per second.
void whole_tool(Report& report, const Effort& effort) {
  constexpr double events_per_second = 1e6, runs_longer = 3;
  struct Setting {
    const char* name;
    std::vector<std::string> arguments;
    Series series{.name = "rtev-bpf", .runs = {}};
  };
  std::vector<Setting> settings{{"nothing", to_nothing()},
                                {"text", {"--sched", "off", "-o", "/dev/null"}},
                                {"JSON lines", {"--sched", "off", "-f", "jsonl", "-o", "/dev/null"}},
                                {"text, with scheduler events", {"-o", "/dev/null"}}};
  for (int round = 0; round < std::min(effort.rounds, 3); ++round) {
    for (Setting& setting : settings) {
      Ring ring(16);
      Tool tool(with_pid(setting.arguments, ::getpid()), our_cpu);
      const std::uint64_t start = tool.cpu_ns();
      std::uint64_t events = 0;
      {
        const CpuBinding binding(producer_cpu);
        events = produce_for(ring, Mix::runtime, events_per_second, runs_longer * effort.seconds).events;
      }
      // Events held back for ordering are output within moments.
      ::usleep(200'000);
      setting.series.runs.push_back(static_cast<double>(tool.cpu_ns() - start) / static_cast<double>(events));
      tool.interrupt();
    }
  }
  for (Setting& setting : settings) {
    report.add(
        {.section = "pipeline",
         .what = fmt::format("rtev-bpf at 1 M events/s to {}", setting.name),
         .unit = "ns/event",
         .subject = std::move(setting.series),
         .note = "all its threads, polling and sleeping included; the same figure is ms of CPU a million events"});
  }
}

}  // namespace

void pipeline(Report& report, const Effort& effort) {
  {
    const CpuBinding binding(our_cpu);
    for (const Mix mix : {Mix::runtime, Mix::user}) {
      for (const std::uint32_t domains : {1u, 4u}) in_process(report, domains, mix, effort);
    }
  }
  whole_tool(report, effort);
}

}  // namespace rtev::bench
