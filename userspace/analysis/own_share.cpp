// SPDX-License-Identifier: MIT
#include "analysis/own_share.hpp"

#include <algorithm>
#include <array>

#include "base/folding.hpp"
#include "base/program_names.hpp"
#include "base/text_format.hpp"

namespace rtev {
namespace {

/// Names that the tracer gives to its helpers.
constexpr std::array<std::string_view, 3> helpers{"rtev-helper", "rtev-enabler", "rtev-guardian"};

/// The kernel cuts names of threads there.
constexpr std::size_t max_comm = 15;

}  // namespace

/// A process has the name of the file that was executed.
void OwnShare::header(const RunHeader& header) {
  const std::string program = header.command_line.empty() ? std::string() : header.command_line.front();
  name_ = file_name_of(program).substr(0, max_comm);
}

bool OwnShare::is_own(const Thread& thread) const {
  if (thread.tracked || thread.tid == 0) return false;
  const std::string_view comm = thread.comm();
  return (!name_.empty() && comm == name_) || std::ranges::find(helpers, comm) != helpers.end();
}

void OwnShare::add(const Event& event, const Batch& batch) {
  switch (event.kind) {
    case EventKind::sched_switch:
      figures_.switches_seen = true;
      if (const auto change = batch.payload_as<SchedSwitch>(event)) add_switch(*change, event.time);
      return;
    case EventKind::wakeup:
      if (const auto wakeup = batch.payload_as<Wakeup>(event); wakeup && wakeup->woken.tracked)
        begin_wait(wakeup->woken, wakeup->cpu, event.time);
      return;
    case EventKind::lost:
      if (!is_sched_loss(event)) return;
      cpus_.clear();  // what happened meanwhile is unknown
      waits_.clear();
      return;
    default:
      return;
  }
}

void OwnShare::add_switch(const SchedSwitch& change, std::uint64_t time_ns) {
  if (cpus_.size() >= max_cpus && !cpus_.contains(change.cpu)) return;
  Cpu& cpu = cpus_[change.cpu];
  if (cpu.tid == change.prev.tid) cpu.ran_ns = cpu.until(time_ns);
  cpu.tid = is_own(change.next) ? change.next.tid : 0;
  cpu.since_ns = time_ns;
  if (change.next.tracked) end_wait(change.next, change.cpu);
  if (!change.prev.tracked) return;
  if (change.state == LeftState::preempted) {
    begin_wait(change.prev, change.cpu, time_ns);
  } else {
    waits_.erase(change.prev.tid);
  }
}

void OwnShare::begin_wait(const Thread& thread, std::uint32_t cpu, std::uint64_t time_ns) {
  const auto known = cpus_.find(cpu);
  const std::uint64_t ran = known != cpus_.end() ? known->second.until(time_ns) : 0;
  if (waits_.size() < max_waits) waits_.try_emplace(thread.tid, Wait{.cpu = cpu, .ran_ns = ran});
}

void OwnShare::end_wait(const Thread& thread, std::uint32_t cpu) {
  auto wait = waits_.extract(thread.tid);
  if (wait.empty() || wait.mapped().cpu != cpu) return;
  const std::uint64_t ran = cpus_[cpu].ran_ns, before = wait.mapped().ran_ns;
  if (ran <= before) return;
  ++figures_.waits;
  figures_.waited_ns += ran - before;
  figures_.longest_wait_ns = std::max(figures_.longest_wait_ns, ran - before);
}

void add_own_share(TextBuffer& out, const OwnFigures& figures, std::uint64_t duration_ns) {
  constexpr std::uint64_t notable_wait_ns = 1'000'000, notable_cpu_ns = 500'000'000;  // starting takes some 200 ms
  const auto is_notable = [&](std::uint64_t ns) { return ns > duration_ns / 100; };
  const bool is_cpu_notable = is_notable(figures.cpu_ns) && figures.cpu_ns >= notable_cpu_ns;
  const bool is_wait_notable = figures.longest_wait_ns >= notable_wait_ns ||
                               (is_notable(figures.waited_ns) && figures.waited_ns >= notable_wait_ns);
  if (!is_cpu_notable && !is_wait_notable) return;
  TextBuffer line;
  std::string_view separator = "rtev-bpf itself: ";
  // The CPU time of the start is no share of a short run.
  if (figures.cpu_ns > 0 && (is_cpu_notable || !is_notable(figures.cpu_ns))) {
    print(line, "{}{:.1f}% of a CPU", separator,
          100 * static_cast<double>(figures.cpu_ns) / static_cast<double>(duration_ns));
    separator = "; ";
  }
  if (figures.waits > 0)
    print(line, "{}traced threads waited for it {} for {}, the longest {}", separator,
          Counted{figures.waits, "time", "times"}, Duration{figures.waited_ns}, Duration{figures.longest_wait_ns});
  out.add(folded(line.text(), 0, 2), '\n');
}

void add_own_share(JsonWriter& json, const OwnFigures& figures) {
  json.key("self").object([&] {
    json.member("cpu_ns", figures.cpu_ns != 0 ? std::optional(figures.cpu_ns) : std::nullopt);
    json.member("waits", known_count(figures.waits, !figures.switches_seen));
    json.member("waited_ns", known_count(figures.waited_ns, !figures.switches_seen));
    json.member("longest_wait_ns", known_count(figures.longest_wait_ns, !figures.switches_seen));
  });
}

}  // namespace rtev
