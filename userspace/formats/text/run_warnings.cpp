// SPDX-License-Identifier: MIT
#include "formats/text/run_warnings.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/text_format.hpp"

namespace rtev {
namespace {

/// The process with the most of what `count` counts; null if no process has any.
template <typename Processes, typename Count>
auto with_most(const Processes& processes, Count count) {
  const auto most = std::ranges::max_element(processes, {}, count);
  return most != processes.end() && std::invoke(count, *most) > 0 ? &*most : nullptr;
}

std::string_view shown_name(const ProcessInfo& process) {
  return process.name;
}

std::string_view shown_name(const RunSummary::Announcer& process) {
  return process.comm;
}

/// ", all of pid 4242 (server)": which process has the most.
template <typename Processes, typename Count>
std::string most_of(const Processes& processes, Count count, std::uint64_t total) {
  const auto* const most = with_most(processes, count);
  if (most == nullptr) return {};
  const std::uint64_t part = std::invoke(count, *most);
  const std::string share = part == total ? "all" : fmt::format("{} of them", Grouped{part});
  return fmt::format(", {} of pid {} ({})", share, most->pid, Escaped{shown_name(*most)});
}

auto words_of(std::uint64_t Accounting::* figure) {
  return [figure](const ProcessInfo& info) { return info.words.*figure; };
}

class Warnings {
 public:
  Warnings(TextBuffer& out, const RunSummary& summary, const Registry& registry, const Accounting& words,
           const OutputFacts& output)
      : out_(out), summary_(summary), registry_(registry), words_(words), output_(output) {}

  void add() {
    add_rings();
    add_words();
    add_probes();
    add_samples();
    add_drops();
    if (summary_.forced > 0)
      warn(fmt::format("too many events waited to be sorted, so they were delivered early {}: some may be out of order",
                       Counted{summary_.forced, "time", "times"}),
           less_or_file());
    if (!summary_.complete) {
      warn("the recording is truncated or damaged: losses and drops are unknown",
           "the tracer was killed, or the file was cut or changed; all events that are left are shown");
    } else if (is_clean_ && summary_.events[static_cast<std::size_t>(EventKind::lost)] > 0) {
      // A loss without lost words.
      out_.add(
          "warning: events of programs without a ring are missing from the time before their probes were attached\n");
    }
  }

 private:
  /// Without a hint there is nothing that the user can do.
  void warn(std::string_view what, std::string_view hint) {
    print(out_, "warning: {}\n", what);
    if (!hint.empty()) print(out_, "   hint: {}\n", hint);
    is_clean_ = false;
  }

  /// "3 `plural` `what`", if there are any.
  void warn(Counted number, std::string_view what, std::string_view hint) {
    if (number.count > 0) warn(fmt::format("{}{}", number, what), hint);
  }

  std::string less_or_file() const {
    return fmt::format("trace less ({}){}", output_.is_report ? "-p, -n" : "-p, -n, --events",
                       output_.is_file ? "" : ", or write to a file (-o)");
  }

  /// Larger buffers do not help against a reader that stands still.
  std::string slow_reader_or(std::string otherwise) const {
    constexpr std::uint64_t notable_ns = 100'000'000;
    if (output_.blocked_ns < notable_ns) return otherwise;
    return fmt::format(
        "whatever reads the output took nothing for {}: write to a file (-o), or trace less (-p, -n, "
        "--events)",
        Duration{output_.blocked_ns});
  }

  std::uint64_t drops(std::string_view kind) {
    known_.push_back(kind);
    const auto drop = std::ranges::find(summary_.drops, kind, &RunSummary::Drop::kind);
    return drop != summary_.drops.end() ? drop->count : 0;
  }

  std::string most_of(std::uint64_t Accounting::* figure, std::uint64_t total) const {
    return rtev::most_of(registry_.processes(), words_of(figure), total);
  }
  std::string most_of(std::uint64_t MissedRings::* figure, std::uint64_t total) const {
    return rtev::most_of(registry_.processes(), [=](const ProcessInfo& info) { return info.missed.*figure; }, total);
  }

  std::string most_announced(std::uint64_t total) const {
    return rtev::most_of(summary_.announcers, &RunSummary::Announcer::dropped, total);
  }

  /// "; its ring was left alone 17 times, 12.3s in all", if that is so for the process with most of these words.
  std::string left_alone(std::uint64_t Accounting::* figure) const {
    const ProcessInfo* const most = with_most(registry_.processes(), words_of(figure));
    if (most == nullptr || most->left_alone.times == 0) return {};
    return fmt::format("; its ring was left alone {}, {} in all", Counted{most->left_alone.times, "time", "times"},
                       Duration{most->left_alone.ns});
  }

  void add_words() {
    const std::string pauses = left_alone(&Accounting::lost);
    warn(
        {words_.lost, "ring word was lost", "ring words were lost"},
        most_of(&Accounting::lost, words_.lost) + ": overwritten before they were read" + pauses,
        !pauses.empty()
            ? "check whether other programs write or cut its file: then, and after corrupt words, it is not read for a "
              "while"
            : slow_reader_or(std::string("give the programs larger rings (OCAMLRUNPARAM=e=18), ") +
                             (output_.is_file ? "" : "write to a file (-o), ") + "or trace less (-p, --sched off)"));
    warn({words_.corrupt, "word was corrupt and skipped", "words were corrupt and skipped"},
         most_of(&Accounting::corrupt, words_.corrupt) + left_alone(&Accounting::corrupt),
         "check whether other programs write the same ring file");
    warn({words_.unread, "ring word was left unread", "ring words were left unread"},
         most_of(&Accounting::unread, words_.unread) + ": the trace ended first",
         slow_reader_or(std::string("trace less (-p, --sched off), ") +
                        (output_.is_file ? "" : "write to a file (-o), ") +
                        "or raise --max-size if the trace ended by it"));
  }

  void add_rings() {
    const auto shared = std::ranges::count(registry_.processes(), RingState::shared, &ProcessInfo::ring);
    warn({static_cast<std::uint64_t>(shared), "process shares a ring file", "processes share ring files"},
         " with processes of other containers: their events are mixed",
         "give each container a ring directory of its own (OCAML_RUNTIME_EVENTS_DIR)");
    const std::uint64_t remote = drops(RunSummary::ring_file_system), silent = drops(RunSummary::ring_no_answer),
                        large = drops(RunSummary::ring_memory), foreign = drops(RunSummary::ring_other_user),
                        impossible = drops(RunSummary::ring_too_large),
                        known = remote + silent + large + foreign + impossible,
                        gone = summary_.rings_missed - std::min(summary_.rings_missed, known);
    warn(rings(remote), not_read(&MissedRings::file_system, remote) + ": the file system may never answer (FUSE, NFS)",
         "put rings on a local file system (OCAML_RUNTIME_EVENTS_DIR)");
    warn(rings(silent),
         not_read(&MissedRings::no_answer, silent) + ": the kernel did not answer questions about the process in time",
         "");
    warn(rings(large),
         not_read(&MissedRings::memory, large) +
             ": not enough is left of --memory-limit, or of the limit of file descriptors",
         "raise --memory-limit, or the hard limit of open files (ulimit -Hn)");
    warn(rings(foreign), not_read(&MissedRings::other_user, foreign) + ": the file belongs to another user",
         "put rings into a directory that only the program's user may write to (OCAML_RUNTIME_EVENTS_DIR)");
    warn(rings(impossible),
         not_read(&MissedRings::too_large, impossible) +
             ": OCaml's runtime cannot make rings that large (OCAMLRUNPARAM: e, d), and the program writes beyond the "
             "end "
             "of its file",
         "restart it with smaller rings, e.g. OCAMLRUNPARAM=e=16, before it crashes");
    warn(rings(gone), " gone or unusable before all events were read" + most_of(&MissedRings::gone, gone),
         "for programs that end early, keep the files (OCAML_RUNTIME_EVENTS_PRESERVE=1) and dump them");
  }

  static Counted rings(std::uint64_t count) { return {count, "ring was", "rings were"}; }

  std::string not_read(std::uint64_t MissedRings::* figure, std::uint64_t total) const {
    return " not read" + most_of(figure, total);
  }

  void add_probes() {
    if (const std::uint64_t limited = drops(RunSummary::limited); limited > 0)
      warn(fmt::format("tracing by probes paused {}: a program without a ring made more events than --ringless-limit "
                       "allows",
                       Counted{limited, "time", "times"}),
           "start it with a ring (OCAML_RUNTIME_EVENTS_START=1): an event then costs 0.03 µs, not 1.3 to 1.6 µs");
    warn({drops(RunSummary::unprobed), "process", "processes"},
         " without a ring could not be probed: their events are missing",
         "start such programs with a ring (OCAML_RUNTIME_EVENTS_START=1)");
    warn({drops(RunSummary::unwritten), "event was", "events were"},
         " read but not written: the output took too long at the end", slow_reader_or(less_or_file()));
  }

  void add_samples() {
    const std::uint64_t all = drops(RunSummary::sample), sleeps = drops(RunSummary::sample_off_cpu),
                        allocations = drops(RunSummary::sample_allocation),
                        others = all - std::min(all, sleeps + allocations);
    static constexpr std::string_view limits =
        ": a process took more than it may, or their buffer in the kernel was full";
    warn({others, "stack sample was dropped", "stack samples were dropped"}, limits, "take fewer (--stack-rate)");
    warn({sleeps, "stack sample of a sleep was dropped", "stack samples of sleeps were dropped"}, limits,
         "take those of longer sleeps only (--off-cpu)");
    warn({allocations, "stack sample of an allocation was dropped", "stack samples of allocations were dropped"},
         ": their buffer in the kernel was full", "");
    warn({drops(RunSummary::unsampled), "process was", "processes were"},
         " not sampled, or not all threads: the kernel refused", "");
  }

  void add_drops() {
    /// Kinds with one cause.
    static constexpr struct {
      std::string_view kinds[3], what, hint;
      bool by_reader = false;  ///< a slow reader may be the cause
    } groups[] = {
        {{"tables"},
         "tables that unwind and name code were refused or cut short, because a user's programs took more memory or "
         "CPU "
         "time than they may: stacks may end in such code",
         ""},
        {{"switch", "wakeup", RunSummary::scheduler},
         "scheduler events were dropped, because their buffer in the kernel was full",
         "use a larger buffer (--buffer SIZE), or trace without the scheduler (--sched off)",
         true},
        {{"exec", "fork", "exit"},
         "starts and ends of processes were dropped, because too many came at a time: short programs may be missing",
         ""},
        {{"ring", "probe"},
         "announcements of rings and pauses were dropped, because one process or all together made too many: events of "
         "such processes may be missing",
         ""},
        {{"untracked"},
         "processes or threads were not traced, because there are more than the kernel's tables hold",
         ""},
        {{"save"},
         "parts of rings of ending programs could not be copied: their last events may be missing",
         "keep the files (OCAML_RUNTIME_EVENTS_PRESERVE=1) and dump them"},
        {{"probed"},
         "events of programs without a ring were dropped",
         "start them with a ring (OCAML_RUNTIME_EVENTS_START=1)"},
    };
    for (const auto& [kinds, what, hint, by_reader] : groups) {
      std::string counts;
      std::uint64_t total = 0;
      for (const std::string_view kind : kinds) {
        const std::uint64_t count = drops(kind);
        if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", kind, Grouped{count});
        total += count;
      }
      const bool names_announcer = kinds[0] == "ring";
      if (total > 0)
        warn(fmt::format("{} ({}){}", what, counts, names_announcer ? most_announced(total) : ""),
             by_reader ? slow_reader_or(std::string(hint)) : std::string(hint));
    }
    warn({drops(RunSummary::scheduler_gaps), "gap", "gaps"},
         " in the scheduler events of threads: what these threads did then is unknown", "");
    // Of a recording that another version made.
    for (const RunSummary::Drop& drop : summary_.drops) {
      if (drop.count > 0 && std::ranges::find(known_, drop.kind) == known_.end())
        warn(fmt::format("records were dropped ({} {})", Escaped{drop.kind}, Grouped{drop.count}), "");
    }
  }

  TextBuffer& out_;
  const RunSummary& summary_;
  const Registry& registry_;
  const Accounting& words_;
  const OutputFacts& output_;
  std::vector<std::string_view> known_;  ///< kinds of drops that were looked at
  bool is_clean_ = true;
};

}  // namespace

bool add_warnings(TextBuffer& out, const RunSummary& summary, const Registry& registry, const Accounting& words,
                  const OutputFacts& output) {
  const std::size_t before = out.size();
  Warnings{out, summary, registry, words, output}.add();
  return out.size() > before;
}

}  // namespace rtev
