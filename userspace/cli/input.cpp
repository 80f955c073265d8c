// SPDX-License-Identifier: MIT
#include "cli/input.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/parse.hpp"
#include "base/unique_fd.hpp"
#include "cli/messages.hpp"
#include "inspect/binary.hpp"
#include "inspect/procfs.hpp"
#include "session/command/sudo_user.hpp"
#include "session/snapshot.hpp"
#include "stream/filter.hpp"

namespace rtev::cli {
namespace {

std::optional<std::int32_t> pid_of(std::string_view text) {
  const auto number = parse_number<std::int32_t>(text);
  return number && *number > 0 ? number : std::nullopt;
}

/// The hint where the input cannot be read.
constexpr const char* readable_inputs_hint =
    "give a recording, a ring file PID.events of an OCaml 5 program, or the id of a process";

/// A ring to read, and its process. The ring is read twice where its family has to be guessed from its events.
struct RingInput {
  ProcessInfo process;
  UniqueFd exe;  ///< the program; none if it is not known
  std::function<Result<RingReader>()> open;
};

RingInput ring_file(const std::string& path) {
  RingInput input;
  const std::filesystem::path file(path);
  input.process.pid = pid_of(file.stem().string()).value_or(0);
  input.process.comm = file.filename().string();
  input.process.ring_path = path;
  input.open = [path] { return RingReader::open(path); };
  return input;
}

Result<RingInput> process_ring(std::int32_t pid) {
  const Procfs procfs;
  const std::string subject = "process " + std::to_string(pid);
  const auto stat = procfs.stat(pid);
  if (!stat) {
    return std::unexpected(Error{.what = "cannot read the ring of",
                                 .subject = subject,
                                 .why = "there is no such process, and no file of that name",
                                 .hint = "rtev-bpf ps lists OCaml processes"});
  }
  RingInput input;
  input.process.pid = pid;
  input.process.ns_pid = procfs.ns_pid(pid);
  input.process.start_ticks = stat->start_ticks;
  input.process.comm = stat->comm;
  input.process.exe = procfs.exe_path(pid);
  if (auto exe = procfs.open_exe(pid)) input.exe = std::move(*exe);
  std::optional<Error> error;
  procfs.visit_mappings(pid, [&](const Mapping& mapping) {
    if (!is_ring_mapping(mapping)) return true;
    auto opened = procfs.open_mapping(pid, mapping);
    if (!opened) {
      error = std::move(opened.error());
      return false;
    }
    input.process.ring_path = mapping.path;
    const auto ring = std::make_shared<UniqueFd>(std::move(*opened));
    input.open = [ring, path = mapping.path, offset = procfs.clock_offset_ns(pid)] {
      return RingReader::adopt(::fcntl(ring->get(), F_DUPFD_CLOEXEC, 0), path, {.clock_offset_ns = offset});
    };
    return false;
  });
  if (error) return std::unexpected(std::move(*error));
  if (input.open) return input;
  return std::unexpected(Error{.what = "cannot read the ring of",
                               .subject = subject,
                               .why = "it has no ring, or its memory mappings are not readable by this user",
                               .hint = "run as root; start the program with OCAML_RUNTIME_EVENTS_START=1"});
}

/// True for an input that is a process id and not the name of a file.
bool names_a_process(const std::string& name) {
  std::error_code ignored;
  return pid_of(name) && !std::filesystem::exists(name, ignored);
}

/// Opens the ring of a file or a process, and finds out how to name its events: as `ocaml_version` does, if not empty.
/// Only finding the files of a process needs root. Nothing of their content is read as root.
Result<OpenRing> open_ring(const std::string& name, bool is_process, const std::string& ocaml_version) {
  auto input = is_process ? process_ring(*pid_of(name)) : Result<RingInput>(ring_file(name));
  if (!input) return std::unexpected(std::move(input.error()));
  if (auto dropped = become_calling_user(); !dropped) return std::unexpected(std::move(dropped.error()));
  if (input->exe) {
    if (const auto binary = inspect_binary(input->exe.get()); binary && *binary && (*binary)->family) {
      input->process.version = (*binary)->version;
      input->process.family = *(*binary)->family;
      input->process.family_source = FamilySource::symbols;
    }
  }
  auto ring = input->open();
  if (!ring) {
    if (ring.error().hint.empty()) ring.error().hint = readable_inputs_hint;
    return std::unexpected(std::move(ring.error()));
  }

  ProcessInfo& process = input->process;
  process.ring = RingState::active;
  if (const auto family = family_of_version(ocaml_version)) {
    process.version = ocaml_version;
    process.family = *family;
    process.family_source = FamilySource::forced;
  }
  if (process.family_source == FamilySource::assumed && !ring->producer()) {
    if (auto second = input->open()) {
      if (const auto family = guess_family(*second)) {
        process.family = *family;
        process.family_source = FamilySource::ring;
      }
    }
  }
  return OpenRing{.process = std::move(process), .ring = std::move(*ring)};
}

/// A ring belongs to one process, and its file does not contain the program's name. Fails if the options exclude it.
Result<void> check_selected(const ProcessInfo& process, const std::string& name, const ReadOptions& options) {
  const auto refuse = [&](std::string why, std::string hint) {
    return std::unexpected(
        Error{.what = "nothing selected from", .subject = name, .why = std::move(why), .hint = std::move(hint)});
  };
  const auto matches = [&](const std::string& glob) { return ::fnmatch(glob.c_str(), process.comm.c_str(), 0) == 0; };
  if (!options.names.empty() && std::ranges::none_of(options.names, matches)) {
    if (names_a_process(name))
      return refuse("the process is named '" + escaped(process.comm) + "', which -n does not match", "omit -n");
    return refuse("a ring file does not contain the name of its program, so -n cannot match",
                  "omit -n; the file is of one process");
  }
  if (!options.pids.empty() && std::ranges::find(options.pids, process.pid) == options.pids.end()) {
    return refuse(process.pid > 0 ? "it is of process " + std::to_string(process.pid) + ", which -p does not select"
                                  : "the name of the file does not contain the process id, so -p cannot match",
                  "omit -p; a ring is of one process");
  }
  return {};
}

}  // namespace

Result<Input> Input::open(const std::string& name, const ReadOptions& options, const Invocation& invocation) {
  Input input;
  input.name_ = name;
  input.options_ = options;
  input.command_line_ = invocation.arguments;
  const bool is_stdin = name == "-", is_process = names_a_process(name);
  const auto caller = SudoUser::of_environment();
  if (!is_process) {
    if (auto dropped = become_calling_user(); !dropped) return std::unexpected(std::move(dropped.error()));
  }
  if (is_stdin)
    ::fstat(STDIN_FILENO, &input.file_);
  else
    ::stat(name.c_str(), &input.file_);
  if (!is_process) {
    auto recording = RecordingFile::open(name);
    if (!recording) {
      if (recording.error().code == EACCES && caller)
        recording.error().hint =
            fmt::format("under sudo files are read with the rights of {}, who called it: let {} read it",
                        escaped(caller->name), escaped(caller->name));
      if (recording.error().hint.empty()) recording.error().hint = readable_inputs_hint;
      return std::unexpected(std::move(recording.error()));
    }
    input.recording_ = std::move(*recording);
    if (input.recording_) return input;
  }
  auto ring = open_ring(name, is_process, options.ocaml_version);
  if (!ring) {
    if (is_process) return std::unexpected(std::move(ring.error()));
    return std::unexpected(Error{.what = "cannot read",
                                 .subject = is_stdin ? "stdin" : name,
                                 .why = "it is not a recording of rtev-bpf" +
                                        (is_stdin ? std::string() : ", and not a ring file: " + ring.error().why),
                                 .hint = readable_inputs_hint});
  }
  if (auto selected = check_selected(ring->process, name, options); !selected)
    return std::unexpected(std::move(selected.error()));
  input.ring_.emplace(std::move(*ring));
  return input;
}

Result<void> Input::check_apart(const FdOutput& output) const {
  struct stat written{};
  if (!output.is_regular_file() || ::fstat(output.fd(), &written) != 0) return {};
  if (written.st_dev != file_.st_dev || written.st_ino != file_.st_ino) return {};
  return std::unexpected(Error{.what = "cannot write to",
                               .subject = output.name(),
                               .why = "it is the file that is read",
                               .hint = "give another file with -o"});
}

int Input::read(Sink& sink, bool all_scheduling) {
  Selection selection(sink, {.pids = options_.pids,
                             .name_globs = options_.names,
                             .duration = options_.duration,
                             .all_scheduling = all_scheduling});
  if (ring_) {
    Registry registry;
    dump_snapshot(std::move(ring_->ring), {.process = std::move(ring_->process), .command_line = command_line_},
                  selection, registry);
    return exit_ok;
  }
  const auto end = recording_->replay(selection);
  if (!end) return report(end.error());
  if (!end->note.empty() && !options_.quiet)
    say(fmt::format("rtev-bpf: {} is truncated: {}\n", escaped(name_), end->note));
  return exit_ok;
}

}  // namespace rtev::cli
