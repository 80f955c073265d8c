// SPDX-License-Identifier: MIT
#include "cli/messages.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ranges>
#include <string_view>
#include <system_error>

#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/reader_wait.hpp"
#include "base/text_format.hpp"

namespace rtev::cli {

void say(std::string_view message) {
  const std::string text = printable_message(message);
  const ReaderWait wait(ReaderWait::Of::messages);
  // Nothing can be said of messages that cannot be written.
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

int report(const Error& error) {
  say(fmt::format("rtev-bpf: {}\n", error.message()));
  // Whatever opens a file can fail so.
  const bool lacks_descriptors = error.hint.empty() && error.code == EMFILE;
  const std::string_view hint =
      lacks_descriptors ? std::string_view("raise the limit on open files (ulimit -n)") : error.hint;
  if (!hint.empty()) say(fmt::format("hint: {}\n", hint));
  return exit_failure;
}

int finish_stdout(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  return report({.what = "cannot write to stdout", .why = std::generic_category().message(errno)});
}

std::string start_message(const Registry& registry, const StartFacts& facts) {
  const auto all = std::ranges::distance(registry.processes());
  const auto probed = std::ranges::count(registry.processes(), RingState::probed, &ProcessInfo::ring);
  const auto without_ring = std::ranges::count(registry.processes(), RingState::none, &ProcessInfo::ring);
  const auto with_ring = all - probed - without_ring;
  std::string text = fmt::format("Tracing {}, {} with runtime events on{}.{}\n",
                                 Counted{static_cast<std::uint64_t>(all), "OCaml 5 process", "OCaml 5 processes"},
                                 with_ring, probed == 0 ? "" : fmt::format(", {} by uprobes", probed),
                                 facts.has_end ? "" : " Press Ctrl-C to stop.");
  if (!facts.found_everything)
    text += "Some processes are still being inspected. Their events follow as they are found.\n";
  if (facts.enables) text += "Programs with events off have them switched on, one after the other.\n";
  if (all == 0 && !facts.selects)
    text += "hint: programs that start later are traced, too; rtev-bpf -- CMD starts one with events on\n";
  if (without_ring > 0 && !facts.probes_all && !facts.enables)
    text +=
        "hint: --enable switches events on in running programs; --ringless traces those with events off by uprobes\n";
  return text;
}

std::string missing_probes_message(const MissingProbes& missing) {
  if (missing.binaries + missing.functions == 0) return {};
  return fmt::format("rtev-bpf: cannot probe {}, so it may not see when a program turns its events off or on{}\n",
                     missing.binaries > 0 ? Counted{missing.binaries, "binary", "binaries"}
                                          : Counted{missing.functions, "function", "functions"},
                     missing.last_error ? ": " + missing.last_error->why : "");
}

std::string slow_detach_message(std::size_t binaries) {
  constexpr std::size_t min_binaries = 3;
  if (binaries < min_binaries) return {};
  return fmt::format(
      "rtev-bpf: the probes of {} binaries are removed in the background, which takes up to {} s before Linux 6.6\n",
      binaries, binaries);
}

std::string interrupted_message(std::string_view command) {
  return fmt::format("rtev-bpf: interrupted before {}\n",
                     command.empty() ? "tracing began" : fmt::format("{} was started", Escaped{command}));
}

std::string no_events_message(std::string_view command, const Registry& registry) {
  const auto had_ring = [](const ProcessInfo& process) {
    return process.ring != RingState::none || process.missed.sum() > 0;
  };
  if (std::ranges::any_of(registry.processes(), had_ring)) return {};
  if (std::ranges::empty(registry.processes()))
    return fmt::format(
        "rtev-bpf: no OCaml 5 program was seen in {}, so there are no runtime events\n"
        "hint: OCaml 4 has none; processes that a service starts on its behalf are seen without -- CMD\n",
        Escaped{command});
  return fmt::format(
      "rtev-bpf: {} has no runtime events: no ring of its OCaml processes was seen\n"
      "hint: they make one if OCAML_RUNTIME_EVENTS_START is in their environment: sudo and env -i remove it, and "
      "set-user-id programs do not read it\n",
      Escaped{command});
}

std::string aborted_message(std::uint64_t programs, std::string_view command, std::string_view ring_directory) {
  if (programs == 0) return {};
  if (ring_directory.empty())
    return fmt::format(
        "rtev-bpf: {} aborted (SIGABRT) without a ring. OCaml does so where it cannot create one in the directory of "
        "OCAML_RUNTIME_EVENTS_DIR, else in the working directory, and says why\n"
        "hint: set it to a directory that {} can write to\n",
        Counted{programs, "OCaml program", "OCaml programs"}, programs == 1 ? "the program" : "all of them");
  return fmt::format(
      "rtev-bpf: {} aborted (SIGABRT) without a ring. OCaml does so where it cannot create one in {}, and says why\n"
      "hint: programs of other users than {}'s, and with other roots (chroot, container), need another directory: set "
      "OCAML_RUNTIME_EVENTS_DIR for rtev-bpf to one that all of them can write to\n",
      Counted{programs, "OCaml program", "OCaml programs"}, ring_directory, Escaped{command});
}

std::string full_rings_message(std::string_view command, std::string_view directory) {
  return fmt::format(
      "rtev-bpf: {} died of SIGBUS, and the file system of its ring is full: {}\n"
      "hint: free space there, set OCAML_RUNTIME_EVENTS_DIR for rtev-bpf to a directory with more of it, or "
      "OCAMLRUNPARAM=e=12 for smaller rings\n",
      Escaped{command}, Escaped{directory});
}

std::string left_message(std::int32_t pid, std::string_view command) {
  return fmt::format(
      "rtev-bpf: {} (process {}) is still running and no longer traced: it did not end after two signals\n"
      "hint: kill -KILL {} ends it\n",
      Escaped{command}, pid, pid);
}

std::string survivors_message(const std::vector<NamedProcess>& survivors, std::string_view command,
                              std::string_view ring_directory) {
  if (survivors.empty()) return {};
  constexpr std::size_t max_listed = 5;
  std::string names;
  for (const auto& [pid, comm] : survivors | std::views::take(max_listed))
    names += fmt::format(" {}{}", pid, comm.empty() ? "" : fmt::format(" ({})", escaped(comm)));
  const bool is_one = survivors.size() == 1;
  return fmt::format(
      "rtev-bpf: {} started by {} {} still running and no longer traced:{}{}\n"
      "hint: rtev-bpf -p PID traces {}\n"
      "hint: the ring directory {} is kept, and a later run removes it\n",
      Counted{survivors.size(), "process", "processes"}, Escaped{command}, is_one ? "is" : "are", names,
      survivors.size() > max_listed ? " ..." : "", is_one ? "it" : "them", ring_directory);
}

}  // namespace rtev::cli
