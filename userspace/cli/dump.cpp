// SPDX-License-Identifier: MIT
// rtev-bpf dump: a preserved ring file, or what a live process's ring holds now.
#include <fmt/core.h>
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <functional>

#include "base/parse.hpp"
#include "cli/options.hpp"
#include "cli/stream.hpp"
#include "discover/binary.hpp"
#include "discover/procfs.hpp"
#include "session/snapshot.hpp"
#include "sinks/summary.hpp"

namespace rtev::cli {
namespace {

std::optional<std::int32_t> pid_of(std::string_view text) {
  const auto number = parse_number<std::int32_t>(text);
  return number && *number > 0 ? number : std::nullopt;
}

/// A ring to dump and whose it is. The ring is opened once more to guess its family without losing its place.
struct Target {
  ProcessFacts process;
  std::string name;
  std::function<Result<RingReader>()> open;
};

Target file_target(const std::string& path) {
  Target target;
  const std::filesystem::path file(path);
  target.process.pid = pid_of(file.stem().string()).value_or(0);
  target.process.comm = file.filename().string();
  target.process.ring_path = path;
  target.open = [path] { return RingReader::open(path); };
  return target;
}

Result<Target> process_target(std::int32_t pid) {
  const Procfs procfs;
  const std::string subject = "process " + std::to_string(pid);
  const auto stat = procfs.stat(pid);
  if (!stat) {
    return std::unexpected(Error{.what = "cannot dump",
                                 .subject = subject,
                                 .why = "there is neither such a process nor such a file",
                                 .hint = "rtev-bpf ps lists OCaml processes"});
  }
  Target target;
  target.process.pid = pid;
  target.process.ns_pid = procfs.ns_pid(pid);
  target.process.start_ticks = stat->start_ticks;
  target.process.comm = stat->comm;
  target.process.exe = procfs.exe_path(pid);
  if (auto exe = procfs.open_exe(pid)) {
    if (const auto binary = inspect_binary(exe->get()); binary && *binary && (*binary)->family) {
      target.process.version = (*binary)->version;
      target.process.family = *(*binary)->family;
      target.process.family_source = FamilySource::symbols;
    }
  }
  for (const Mapping& mapping : procfs.mappings(pid)) {
    if (!is_ring_mapping(mapping)) continue;
    target.process.ring_path = mapping.path;
    target.open = [procfs, pid, mapping]() -> Result<RingReader> {
      auto fd = procfs.open_mapping(pid, mapping);
      if (!fd) return std::unexpected(std::move(fd.error()));
      return RingReader::adopt(fd->release(), mapping.path, {.clock_offset_ns = procfs.clock_offset_ns(pid)});
    };
    return target;
  }
  return std::unexpected(Error{.what = "cannot dump",
                               .subject = subject,
                               .why = "it maps no runtime events ring, or not one that this user may see",
                               .hint = "run as root; start the program with OCAML_RUNTIME_EVENTS_START=1"});
}

Result<Target> find_target(const std::string& text) {
  const auto pid = pid_of(text);
  std::error_code ignored;
  if (pid && !std::filesystem::exists(text, ignored)) return process_target(*pid);
  return file_target(text);
}

}  // namespace

int run_dump(const Options& options) {
  auto target = find_target(options.target);
  if (!target) return report(target.error());
  auto ring = target->open();
  if (!ring) {
    if (ring.error().hint.empty()) ring.error().hint = "give a file PID.events of an OCaml 5 program, or its pid";
    return report(ring.error());
  }

  ProcessFacts& process = target->process;
  process.ring = RingState::active;
  if (const auto family = family_of_version(options.ocaml_version)) {
    process.version = options.ocaml_version;
    process.family = *family;
    process.family_source = FamilySource::forced;
  }
  if (process.family_source == FamilySource::assumed && !ring->producer()) {
    if (auto second = target->open()) {
      if (const auto family = guess_family(*second)) {
        process.family = *family;
        process.family_source = FamilySource::ring;
      }
    }
  }

  ::signal(SIGPIPE, SIG_IGN);  // its errors are seen by who writes
  auto stream = Stream::open(options);
  if (!stream) return report(stream.error());
  Registry registry;
  const RunSummary summary = dump_snapshot(std::move(*ring), {.process = process, .command_line = options.arguments},
                                           stream->sink(), registry);
  if (!options.quiet) fmt::print(stderr, "{}", summary_text(summary, registry));
  return finish_output(stream->output(), exit_ok);
}

}  // namespace rtev::cli
