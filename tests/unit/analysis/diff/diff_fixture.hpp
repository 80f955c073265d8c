// SPDX-License-Identifier: MIT
// Made-up runs of a server, for tests of `diff`.
#pragma once

#include <gmock/gmock.h>

#include <random>
#include <string>

#include "analysis/diff/diff_report.hpp"
#include "analysis/diff/recorded_run_sink.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {

/// A server that serves a request and collects every 10 ms, more or less.
struct ServerRun {
  std::uint64_t seed = 1;
  std::uint64_t seconds = 20;
  std::uint64_t pause_us = 200;
  std::uint64_t allocated = 1'000'000;  ///< bytes before each collection
  std::uint64_t full_major_every = 0;   ///< collections; 0: never
  std::uint64_t wait_us = 0;            ///< for a CPU, in each request
  std::uint64_t own_us = 0;             ///< more CPU time after each request
  std::uint64_t heap_words = 1'000'000;
  double lost = 0;         ///< part of the run in which events are lost
  std::string function{};  ///< that has half of the samples; of the runtime, if it begins so; empty: no samples
  std::string name = "server";
  bool has_scheduler = true;
};

class DiffTest : public testing::Test {
 protected:
  static constexpr std::uint64_t second = 1'000'000'000, ms = 1'000'000, us = 1'000, start = 5 * second;

  static std::uint16_t phase(std::string_view name) {
    return static_cast<std::uint16_t>(find_phase(Family::since_5_3, name).value());
  }
  static std::uint16_t counter(std::string_view name) {
    return static_cast<std::uint16_t>(find_counter(Family::since_5_3, name).value());
  }

  static RecordedRun record(const ServerRun& run) {
    ProcessInfo info = World::default_info();
    info.comm = run.name;
    info.exe = "/usr/bin/" + run.name;
    World world(std::move(info));
    world.user_names = {{1, "request"}};
    RecordedRunSink sink;
    play(run, world, sink);
    return sink.take();
  }

  static void play(const ServerRun& run, World& world, Sink& sink) {
    std::mt19937_64 random(run.seed);
    // From 90 % to 110 %.
    const auto about = [&](std::uint64_t value) { return value * 9 / 10 + random() % (value / 5 + 1); };
    const auto feed = [&](const Events& events) { sink.consume(events.batch(), world.registry); };
    const auto switches = [&](std::uint64_t time, const SchedSwitch& change) {
      if (run.has_scheduler) feed(Events(0).add_record(time, EventKind::sched_switch, change, 0, first_sched_stream));
    };
    const Thread main = a_thread(4242, 4242, 0, run.name);
    sink.header({.version = "1.2",
                 .host = "vm",
                 .kernel = "6.18",
                 .start_ns = start,
                 .start_realtime_ns = 1'763'693'912 * second});
    feed(Events(0).add_record(start, EventKind::process, ProcessRecord{world.process, 0, 0},
                              static_cast<std::uint16_t>(ProcessAction::ring)));
    feed(Events(world.slot).add(start, Lifecycle::ring_start, 4242));
    switches(start + 1, enters(main));
    const std::uint64_t end = start + run.seconds * second;
    std::uint64_t number = 0, at = start + 10 * ms;
    for (; at + 20 * ms < end; at += about(10 * ms)) {
      ++number;
      if (static_cast<double>(at - start) < run.lost * static_cast<double>(end - start))
        feed(Events(world.slot).add_record(at, EventKind::lost, Loss{.words = 9, .from_ns = at - 8 * ms, .to_ns = at}));
      feed(Events(world.slot).add(at, EventKind::user_begin, 1));
      std::uint64_t now = at + about(300 * us);
      if (run.wait_us > 0) {
        switches(now, leaves(main, LeftState::preempted, 0, competitor()));
        now += about(run.wait_us * us);
        switches(now, enters(main, 0, competitor()));
      }
      const bool full = run.full_major_every > 0 && number % run.full_major_every == 0;
      const std::uint64_t pause_end = now + about(run.pause_us * us) + (full ? 8 * ms : 0);
      const std::uint16_t root = phase(full ? "explicit_gc_full_major" : "stw_leader");
      feed(Events(world.slot)
               .add(now, EventKind::begin, root)
               .add(now + 1 * us, EventKind::begin, phase_minor)
               .add(now + 1 * us, EventKind::counter, counter("minor_allocated"), about(run.allocated))
               .add(now + 2 * us, EventKind::counter, counter("minor_promoted"), about(run.allocated / 20))
               .add(now + 9 * us, EventKind::end, phase_minor)
               .add(now + 9 * us, EventKind::counter, counter("major_heap_words"), about(run.heap_words))
               .add(pause_end, EventKind::end, root)
               .add(pause_end + about(300 * us), EventKind::user_end, 1));
      now = pause_end + (400 + run.own_us) * us;
      switches(now, blocks(main, Syscall::sleep));
      if (!run.function.empty()) sample(world, sink, now, random() % 2 == 0 ? run.function : "Server.serve");
      switches(std::max(at + 8 * ms + 800 * us, now + 1), enters(main));
    }
    sink.summary({.end_ns = end}, world.registry);
  }

  static void sample(World& world, Sink& sink, std::uint64_t time, const std::string& function) {
    StackTable& stacks = world.registry.stacks();
    const StackIndex stack =
        stacks.add_stack(0, stacks.add_frame({.kind = function.starts_with("caml_") ? FrameKind::c : FrameKind::ocaml,
                                              .line = 1,
                                              .function = function}));
    Sample sample{};
    sample.process = world.process;
    sample.pid = sample.tid = 4242;
    sample.stack = stack;
    sample.weight = 10 * ms;
    sink.consume(
        Events(0)
            .add_record(time, EventKind::sample, sample, static_cast<std::uint16_t>(SampleKind::on_cpu), sample_stream)
            .batch(),
        world.registry);
  }

  static DiffReport diff(const ServerRun& a, const ServerRun& b, bool full = false) {
    DiffReport report = compare(record(a), record(b), {.full = full});
    report.version = "1.2";
    report.a.file = "before.fxt";
    report.b.file = "after.fxt";
    return report;
  }
  static DiffProgram program_in(const DiffReport& report) {
    EXPECT_EQ(report.programs.size(), 1u);
    return report.programs.empty() ? DiffProgram{} : report.programs.front();
  }
  static DiffFigure figure(const DiffProgram& program, std::string_view id) {
    const auto found = std::ranges::find(program.figures, id, &DiffFigure::id);
    if (found != program.figures.end()) return *found;
    ADD_FAILURE() << "no " << id;
    return {};
  }
  /// The first changed figure of a role; empty if there is none.
  static std::string first(const DiffProgram& program, DiffRole role) {
    const auto found =
        std::ranges::find_if(program.figures, [&](const DiffFigure& of) { return of.role == role && of.changed(); });
    return found == program.figures.end() ? "" : found->id;
  }
};

}  // namespace rtev::test
