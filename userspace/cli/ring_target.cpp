// SPDX-License-Identifier: MIT
#include "cli/ring_target.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "base/parse.hpp"
#include "inspect/binary.hpp"
#include "inspect/procfs.hpp"
#include "session/snapshot.hpp"

namespace rtev::cli {
namespace {

std::optional<std::int32_t> pid_of(std::string_view text) {
  const auto number = parse_number<std::int32_t>(text);
  return number && *number > 0 ? number : std::nullopt;
}

/// A ring to open, and its process. The ring is opened twice where its family has to be guessed from its events.
struct Target {
  ProcessInfo process;
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
    return std::unexpected(Error{.what = "cannot read the ring of",
                                 .subject = subject,
                                 .why = "there is no such process, and no file of that name",
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
  return std::unexpected(Error{.what = "cannot read the ring of",
                               .subject = subject,
                               .why = "it has no ring, or its memory mappings are not readable by this user",
                               .hint = "run as root; start the program with OCAML_RUNTIME_EVENTS_START=1"});
}

}  // namespace

bool names_a_process(const std::string& target) {
  std::error_code ignored;
  return pid_of(target) && !std::filesystem::exists(target, ignored);
}

Result<OpenRing> open_ring(const std::string& name, const std::string& ocaml_version) {
  auto target = names_a_process(name) ? process_target(*pid_of(name)) : Result<Target>(file_target(name));
  if (!target) return std::unexpected(std::move(target.error()));
  auto ring = target->open();
  if (!ring) {
    if (ring.error().hint.empty()) ring.error().hint = readable_targets_hint;
    return std::unexpected(std::move(ring.error()));
  }

  ProcessInfo& process = target->process;
  process.ring = RingState::active;
  if (const auto family = family_of_version(ocaml_version)) {
    process.version = ocaml_version;
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
  return OpenRing{.process = std::move(process), .ring = std::move(*ring)};
}

}  // namespace rtev::cli
