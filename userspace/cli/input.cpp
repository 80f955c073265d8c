// SPDX-License-Identifier: MIT
#include "cli/input.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/capability.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "base/capabilities.hpp"
#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/name_globs.hpp"
#include "base/parse.hpp"
#include "cli/messages.hpp"
#include "cli/no_match.hpp"
#include "cli/user_file.hpp"
#include "helper/helper_process.hpp"
#include "helper/process_queries.hpp"
#include "inspect/binary.hpp"
#include "session/command/sudo_user.hpp"
#include "session/confinement.hpp"
#include "session/snapshot.hpp"
#include "stream/filter.hpp"

namespace rtev::cli {
namespace {

std::optional<std::int32_t> pid_of(std::string_view text) {
  const auto number = parse_number<std::int32_t>(text);
  return number && *number > 0 ? number : std::nullopt;
}

/// What is read, as it was opened. Of a ring also what is known of its process.
struct OpenFiles {
  UniqueFd input;
  UniqueFd exe;  ///< the program; none if it is not known
  ProcessInfo process;
  std::int64_t clock_offset_ns = 0;

  /// A ring is read twice where its family has to be guessed from its events.
  Result<RingReader> open_ring() const {
    return RingReader::adopt(::fcntl(input.get(), F_DUPFD_CLOEXEC, 0), process.ring_path,
                             {.clock_offset_ns = clock_offset_ns});
  }
};

/// `caller`: who called sudo. This process must have become that user.
Result<OpenFiles> open_file(const std::string& path, const std::optional<SudoUser>& caller) {
  auto input = open_input(path);
  if (!input) {
    if (input.error().code == EACCES && caller) {
      const std::string name = name_of_user(caller->uid);
      input.error().hint = fmt::format("under sudo files are read with the rights of {}, who called it: let {} read it",
                                       escaped(name), escaped(name));
    }
    return std::unexpected(std::move(input.error()));
  }
  OpenFiles files;
  files.input = std::move(*input);
  const std::filesystem::path file(path == "-" ? "stdin" : path);
  files.process.pid = pid_of(file.stem().string()).value_or(0);
  files.process.comm = file.filename().string();
  files.process.ring_path = file;
  return files;
}

/// Only finding the files of a process needs root. Nothing of their content is read as root.
Result<OpenFiles> open_process(std::int32_t pid) {
  const auto cannot_read = [pid](std::string why, std::string hint) {
    return std::unexpected(Error{.what = "cannot read the ring of",
                                 .subject = "process " + std::to_string(pid),
                                 .why = std::move(why),
                                 .hint = std::move(hint)});
  };
  const auto helper = helper::HelperProcess::start();
  if (!helper) return std::unexpected(helper.error());
  auto view = helper::ask_once(*helper, {.pid = pid, .image = true, .mapped_rings = true});
  if (!view || view->no_answer)
    return cannot_read("the kernel does not answer questions about it: it may wait for a file system",
                       "dump its ring file instead, if you know it");
  if (!view->stat)
    return cannot_read("there is no such process, and no file of that name", "rtev-bpf ps lists OCaml processes");
  // Who may not see its program, may not read its mappings.
  if (view->rings.empty() && !view->stat->kernel_thread && view->image.exe.empty())
    return cannot_read("the kernel does not show which files it maps",
                       has_capability(CAP_SYS_PTRACE) ? "rtev-bpf ps lists OCaml 5 programs"
                                                      : hint_for_capability("CAP_SYS_PTRACE", ::geteuid() == 0));
  if (view->rings.empty())
    return cannot_read("it maps none: its events are off, or it is no OCaml 5 program",
                       "rtev-bpf ps lists OCaml 5 programs; rtev-bpf enable switches their events on");
  OpenedRing& ring = view->rings.front();
  if (ring.of_other_user)
    return cannot_read("its ring file belongs to another user: " + escaped(ring.path),
                       "dump the file by its name if you trust that user");
  if (!ring.fd)
    return cannot_read("its file system may never answer (FUSE, NFS): " + escaped(ring.path),
                       "put rings on a local file system (OCAML_RUNTIME_EVENTS_DIR)");
  OpenFiles files;
  files.process.pid = pid;
  files.process.ns_pid = view->image.ns_pid;
  files.process.start_ticks = view->stat->start_ticks;
  files.process.comm = view->stat->comm;
  files.process.exe = view->image.exe;
  files.process.ring_path = ring.path;
  files.exe = std::move(view->image.file);
  files.clock_offset_ns = ring.clock_offset_ns;
  files.input = std::move(ring.fd);
  return files;
}

constexpr const char* recording_hint = "make a recording with rtev-bpf record -o FILE.fxt";

/// Nothing for a file that is no recording.
Result<std::optional<RecordingFile>> open_recording(const UniqueFd& file, const std::string& path) {
  auto recording = RecordingFile::open(UniqueFd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)), path);
  if (!recording && recording.error().hint.empty()) recording.error().hint = reading.hint;
  return recording;
}

/// True for an input that is a process id and not the name of a file.
bool names_a_process(const std::string& name) {
  std::error_code ignored;
  return pid_of(name) && !std::filesystem::exists(name, ignored);
}

/// Finds out how to name the events of a ring: as `ocaml_version` does, if not empty.
Result<OpenRing> open_ring(OpenFiles files, const std::string& ocaml_version) {
  ProcessInfo& process = files.process;
  if (files.exe) {
    if (const auto binary = inspect_binary(files.exe.get()); binary && *binary && (*binary)->family) {
      process.version = (*binary)->version;
      process.family = *(*binary)->family;
      process.family_source = FamilySource::symbols;
    }
  }
  auto ring = files.open_ring();
  if (!ring) return std::unexpected(std::move(ring.error()));

  process.ring = RingState::active;
  if (const auto family = family_of_version(ocaml_version)) {
    process.version = ocaml_version;
    process.family = *family;
    process.family_source = FamilySource::forced;
  }
  if (process.family_source == FamilySource::assumed && !ring->producer()) {
    if (auto second = files.open_ring()) {
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
  if (!names_a_process(name) && !options.names.empty())
    return refuse("a ring file does not contain the name of its program, so -n cannot match",
                  "omit -n; the file is of one process");
  if (!selects_name(options.names, process.names()))
    return refuse("the process is named '" + escaped(process.comm) + "', which -n does not match", "omit -n");
  if (!options.pids.empty() && std::ranges::find(options.pids, process.pid) == options.pids.end()) {
    return refuse(process.pid > 0 ? "it is of process " + std::to_string(process.pid) + ", which -p does not select"
                                  : "the name of the file does not contain the process id, so -p cannot match",
                  "omit -p; a ring is of one process");
  }
  return {};
}

}  // namespace

Result<UniqueFd> open_input(const std::string& path) {
  if (path == "-") return open_inherited(STDIN_FILENO, "stdin", reading);
  if (const auto number = descriptor_in(path)) return open_inherited(*number, path, reading);
  const uid_t user = calling_user();
  const auto place = resolve_path(path, user, reading);
  if (!place) return std::unexpected(place.error());
  if (!place->file) return errno_error(ENOENT, reading.what, path, reading.hint);
  auto file = open_found(place->file, path, user, reading);
  if (!file) return file;
  // Until it is written to, a fifo looks as if its writer had left already. What is no fifo is ready at once.
  pollfd written{.fd = file->get(), .events = POLLIN, .revents = 0};
  while (::poll(&written, 1, -1) < 0 && errno == EINTR) {
  }
  return file;
}

Result<Input> Input::open(const std::string& name, const ReadOptions& options, const Invocation& invocation) {
  Input input;
  input.name_ = name;
  input.options_ = options;
  input.command_line_ = invocation.arguments;
  const bool is_process = names_a_process(name);
  const auto caller = SudoUser::of_environment();
  if (!is_process) {
    if (auto dropped = become_calling_user(); !dropped) return std::unexpected(std::move(dropped.error()));
  }
  auto files = is_process ? open_process(*pid_of(name)) : open_file(name, caller);
  if (!files) return std::unexpected(std::move(files.error()));
  ::fstat(files->input.get(), &input.file_);
  if (auto confined = confine_reader(); !confined) return std::unexpected(std::move(confined.error()));
  const std::string path = files->process.ring_path;
  if (!is_process) {
    auto recording = open_recording(files->input, path);
    if (!recording) return std::unexpected(std::move(recording.error()));
    input.recording_ = std::move(*recording);
    if (input.recording_) return input;
  }
  auto ring = open_ring(std::move(*files), options.ocaml_version);
  if (!ring) {
    if (!is_process && ring.error().code != EFBIG) {
      ring.error() = {.what = reading.what,
                      .subject = path,
                      .why = "it is not a recording of rtev-bpf, and not a ring file: " + ring.error().why};
    }
    if (ring.error().hint.empty()) ring.error().hint = reading.hint;
    return std::unexpected(std::move(ring.error()));
  }
  if (auto selected = check_selected(ring->process, name, options); !selected)
    return std::unexpected(std::move(selected.error()));
  input.ring_.emplace(std::move(*ring));
  return input;
}

Result<std::vector<Input>> Input::open_recordings(const std::vector<std::string>& names, const ReadOptions& options) {
  const auto caller = SudoUser::of_environment();
  if (auto dropped = become_calling_user(); !dropped) return std::unexpected(std::move(dropped.error()));
  std::vector<OpenFiles> files;
  for (const std::string& name : names) {
    auto opened = open_file(name, caller);
    if (!opened) {
      if (opened.error().hint == reading.hint) opened.error().hint = recording_hint;
      return std::unexpected(std::move(opened.error()));
    }
    files.push_back(std::move(*opened));
  }
  if (auto confined = confine_reader(); !confined) return std::unexpected(std::move(confined.error()));
  std::vector<Input> inputs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    Input& input = inputs.emplace_back(Input());
    input.name_ = names[i];
    input.options_ = options;
    ::fstat(files[i].input.get(), &input.file_);
    auto recording = open_recording(files[i].input, files[i].process.ring_path);
    if (!recording) return std::unexpected(std::move(recording.error()));
    if (!*recording) {
      return std::unexpected(Error{.what = reading.what,
                                   .subject = names[i],
                                   .why = "it is not a recording of rtev-bpf",
                                   .hint = recording_hint});
    }
    input.recording_ = std::move(*recording);
  }
  return inputs;
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

int Input::read(Sink& sink, bool for_analysis) {
  Window window = options_.window;
  window.duration = options_.duration;
  SelectionOptions wanted{.window = window, .for_analysis = for_analysis};
  if (!ring_) {  // that of one process was compared when it was opened
    wanted.pids = options_.pids;
    wanted.name_globs = options_.names;
  }
  Selection selection(sink, std::move(wanted));
  Result<Replay::End> end{};
  if (ring_) {
    Registry registry;
    dump_snapshot(std::move(ring_->ring), {.process = std::move(ring_->process), .command_line = command_line_},
                  selection, registry);
  } else {
    end = recording_->replay(selection);
    if (!end) return report(end.error());
  }
  if (const auto& run = selection.missed_run()) {
    const Error missed = missed_run_error(*run, name_);
    if (for_analysis) return report(missed);
    if (!options_.quiet) say(fmt::format("rtev-bpf: warning: {}\nhint: {}\n", missed.message(), missed.hint));
    return exit_ok;
  }
  if (ring_) return exit_ok;
  const ProcessOptions unmatched{.pids = selection.unmatched_pids(), .names = selection.unmatched_globs()};
  const bool all_match = !unmatched.select();
  // Each may match a process, and no process all of them.
  const Error missing = no_match_error(all_match ? options_ : unmatched, selection.processes(), name_);
  if (selection.is_empty()) return report(missing);
  if (!options_.quiet && !all_match)
    say(fmt::format("rtev-bpf: warning: {}\nhint: {}\n", missing.message(), missing.hint));
  if (const std::string left_out = selection.not_recorded().text(); !left_out.empty() && !options_.quiet)
    say(fmt::format("rtev-bpf: {}: {}\n", escaped(name_), left_out));
  if (!end->note.empty() && !options_.quiet)
    say(fmt::format("rtev-bpf: {} is truncated: {}\n", escaped(name_), end->note));
  return exit_ok;
}

}  // namespace rtev::cli
