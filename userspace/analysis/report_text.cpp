// SPDX-License-Identifier: MIT
#include "analysis/report_text.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "base/folding.hpp"

namespace rtev {
namespace {

std::string lacks_of_kind(const std::vector<Lack>& lacks, Lack::Of of) {
  std::vector<Lack> some;
  std::ranges::copy_if(lacks, std::back_inserter(some), [of](const Lack& lack) { return lack.of == of; });
  return lacks_text(some);
}

}  // namespace

void append(TextBuffer& out, const PhaseName& phase) {
  if (const auto name = phase_name(phase.family, phase.phase); !name.empty()) {
    out.add(name);
  } else {
    out.add('#', phase.phase);
  }
}

void append(TextBuffer& out, const DomainName& domain) {
  out.add(domain.domain);
  if (domain.incarnation > 1) out.add(" #", domain.incarnation);
}

void append(TextBuffer& out, const ThreadName& name) {
  const Thread& thread = name.thread;
  if (thread.pid == name.own_pid) {
    print(out, "thread {} of the same process", thread.tid);
    if (thread.domain >= 0) print(out, " (domain {})", thread.domain);
  } else if (thread.tid != thread.pid) {
    print(out, "{} (pid {}, thread {})", Quoted{thread.comm()}, thread.pid, thread.tid);
  } else {
    print(out, "{} (pid {})", Quoted{thread.comm()}, thread.pid);
  }
}

void append(TextBuffer& out, const Behind& behind) {
  const auto& [wait, own_pid] = behind;
  using enum CpuWait::Had;
  if (wait.by && wait.by->tid == 0 && wait.had == throughout) {
    out.add("although it was idle");
  } else if (wait.by && wait.had == throughout) {
    print(out, "behind {}", ThreadName{*wait.by, own_pid});
  } else if (wait.is_of_others()) {
    // Who had it at first, or at last, may have had it for a moment.
    out.add("behind other threads");
  } else {
    out.add("behind unknown threads");
  }
}

void append(TextBuffer& out, const Moment& moment) {
  add_seconds(out, moment.time_ns, moment.start_ns, 0);
  out.add(" s");
}

void append(TextBuffer& out, const WhenOf& when) {
  const Moment moment{when.time_ns, when.start_ns};
  if (when.start_realtime_ns == 0) return append(out, moment);
  add_time_of_day(out, when.start_realtime_ns + (when.time_ns - when.start_ns));
  print(out, " ({})", moment);
}

void append(TextBuffer& out, const DumpCommand& command) {
  constexpr std::uint64_t ms = 1'000'000;
  const auto since_start = [&](std::uint64_t time_ns) { return time_ns - std::min(time_ns, command.start_ns); };
  const std::uint64_t begin_ms = since_start(command.begin_ns) / ms, end_ms = since_start(command.end_ns) / ms;
  const std::uint64_t from_ms = begin_ms - std::min<std::uint64_t>(begin_ms, 1), to_ms = end_ms + 2;
  print(out, "rtev-bpf dump {} --from {}.{:03} --to {}.{:03}", command.input, from_ms / 1000, from_ms % 1000,
        to_ms / 1000, to_ms % 1000);
}

void append(TextBuffer& out, const ProcessName& process) {
  print(out, "{}/{}", Escaped{process.comm}, process.pid);
}

void add_line(TextBuffer& out, std::string_view sentence) {
  if (!sentence.empty()) out.add(folded(sentence, 0, 2), '\n');
}

void add_lines(TextBuffer& out, std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    out.add(folded(lines.substr(0, end), 0, 2), '\n');
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

std::string scheduler_gaps_text(const std::vector<Lack>& lacks) {
  return lacks_of_kind(lacks, Lack::Of::scheduler_gaps);
}

void add_lacks(TextBuffer& out, const std::vector<Lack>& lacks) {
  const std::string missing = lacks_of_kind(lacks, Lack::Of::events), unordered = lacks_of_kind(lacks, Lack::Of::order);
  if (missing.empty() && unordered.empty()) return;
  std::string text = missing.empty() ? "" : "warning: missing: " + missing;
  if (!unordered.empty())
    text += fmt::format("{}{}, near which figures may be wrong", missing.empty() ? "" : "; ", unordered);
  add_line(out, text);
}

void add_unknown_time(TextBuffer& out, std::uint64_t unknown_ns, std::uint64_t whole_ns, std::string_view what,
                      const NotRecorded& not_recorded, const std::vector<Lack>& lacks,
                      std::uint64_t scheduler_dropped) {
  if (whole_ns > 0 && not_recorded.has(EventKind::wakeup))
    add_line(out, not_recorded.text({EventKind::wakeup}) + ": time blocked includes waits for a CPU");
  std::string why;
  if (scheduler_dropped > 0)
    why = fmt::format("the kernel dropped {}", Counted{scheduler_dropped, "scheduler event", "scheduler events"});
  if (const std::string gaps = scheduler_gaps_text(lacks); !gaps.empty()) why += (why.empty() ? "" : "; ") + gaps;
  if (unknown_ns == 0 || whole_ns == 0) return;
  add_line(out, fmt::format("{}what threads did is unknown for {} of {} in {} ({}){}{}",
                            why.empty() ? "" : "warning: ", Duration{unknown_ns}, Duration{whole_ns}, what,
                            Percent{unknown_ns, whole_ns}, why.empty() ? "" : ": ", why));
}

KnownShare known_share(std::uint64_t part_ns, std::uint64_t whole_ns, std::uint64_t unknown_ns) {
  const bool is_bound = unknown_ns > 0 && unknown_ns >= whole_ns / 100;
  if (is_bound && part_ns == 0) return {"-", false};
  return {fmt::format("{}", Percent{part_ns, whole_ns, unknown_ns > 0}), is_bound};
}

std::string usual_text(const Histogram& durations) {
  std::string text;
  if (const auto ns = durations.known_percentile(50)) text += fmt::format("half up to {}, ", Duration{*ns});
  if (const auto ns = durations.known_percentile(99)) text += fmt::format("1 in 100 over {}, ", Duration{*ns});
  return text;
}

void append(TextBuffer& out, const Percent& percent) {
  const auto& [part, of, shows_rest] = percent;
  if (of == 0 || part == 0) {
    out.add("0%");
    return;
  }
  const auto whole = std::llround(static_cast<double>(part) / static_cast<double>(of) * 100);
  if (whole == 0) {
    out.add("<1%");
  } else if (whole == 100 && part < of && shows_rest) {
    out.add(">99%");
  } else {
    out.add(whole, '%');
  }
}

}  // namespace rtev
