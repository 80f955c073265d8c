// SPDX-License-Identifier: MIT
#include "cli/source.hpp"

#include <fmt/core.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "cli/messages.hpp"
#include "session/snapshot.hpp"
#include "stream/selection.hpp"

namespace rtev::cli {

namespace {

/// A ring belongs to one process, and its file does not contain the program's name. Fails if the options exclude it.
Result<void> check_selected(const ProcessInfo& process, const std::string& target, const ReadOptions& options) {
  const auto refuse = [&](std::string why, std::string hint) {
    return std::unexpected(
        Error{.what = "nothing selected from", .subject = target, .why = std::move(why), .hint = std::move(hint)});
  };
  const auto matches = [&](const std::string& glob) { return ::fnmatch(glob.c_str(), process.comm.c_str(), 0) == 0; };
  if (!options.names.empty() && std::ranges::none_of(options.names, matches)) {
    if (names_a_process(target))
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

Result<Source> Source::open(const std::string& target, const ReadOptions& options, const Invocation& invocation) {
  Source source;
  source.target_ = target;
  source.options_ = options;
  source.command_line_ = invocation.arguments;
  const bool is_stdin = target == "-";
  if (is_stdin)
    ::fstat(STDIN_FILENO, &source.file_);
  else
    ::stat(target.c_str(), &source.file_);
  if (!names_a_process(target)) {
    auto recording = RecordingFile::open(target);
    if (!recording) {
      if (recording.error().hint.empty()) recording.error().hint = readable_targets_hint;
      return std::unexpected(std::move(recording.error()));
    }
    source.recording_ = std::move(*recording);
    if (source.recording_) return source;
  }
  auto ring = open_ring(target, options.ocaml_version);
  if (!ring) {
    if (names_a_process(target)) return std::unexpected(std::move(ring.error()));
    return std::unexpected(Error{.what = "cannot read",
                                 .subject = is_stdin ? "stdin" : target,
                                 .why = "it is not a recording of rtev-bpf" +
                                        (is_stdin ? std::string() : ", and not a ring file: " + ring.error().why),
                                 .hint = readable_targets_hint});
  }
  if (auto selected = check_selected(ring->process, target, options); !selected)
    return std::unexpected(std::move(selected.error()));
  source.ring_.emplace(std::move(*ring));
  return source;
}

Result<void> Source::check_apart(const FdOutput& output) const {
  struct stat written{};
  if (!output.is_regular_file() || ::fstat(output.fd(), &written) != 0) return {};
  if (written.st_dev != file_.st_dev || written.st_ino != file_.st_ino) return {};
  return std::unexpected(Error{.what = "cannot write to",
                               .subject = output.name(),
                               .why = "it is the file that is read",
                               .hint = "give another file with -o"});
}

int Source::read(Sink& sink, bool all_scheduling) {
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
    fmt::print(stderr, "rtev-bpf: {} is not complete: {}\n", escaped(target_), end->note);
  return exit_ok;
}

}  // namespace rtev::cli
