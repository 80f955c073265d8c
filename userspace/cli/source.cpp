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
#include "session/snapshot.hpp"
#include "stream/selection.hpp"

namespace rtev::cli {

namespace {

/// A ring is of one process, and its file does not tell the program's name: what cannot match is no choice.
Result<void> check_choice(const ProcessInfo& process, const Options& options) {
  const auto refuse = [&](std::string why, std::string hint) {
    return std::unexpected(
        Error{.what = "nothing to read in", .subject = options.target, .why = std::move(why), .hint = std::move(hint)});
  };
  const auto matches = [&](const std::string& glob) { return ::fnmatch(glob.c_str(), process.comm.c_str(), 0) == 0; };
  if (!options.names.empty() && std::ranges::none_of(options.names, matches)) {
    if (names_a_process(options.target))
      return refuse("its name is '" + escaped(process.comm) + "', which -n does not match", "leave -n out");
    return refuse("the file of a ring does not tell the name of its program, which -n asks for",
                  "leave -n out; the file is of one process");
  }
  if (!options.pids.empty() && std::ranges::find(options.pids, process.pid) == options.pids.end()) {
    return refuse(process.pid > 0 ? "it is of process " + std::to_string(process.pid) + ", which -p does not ask for"
                                  : "its name does not tell the pid that -p asks for",
                  "leave -p out; a ring is of one process");
  }
  return {};
}

}  // namespace

Result<Source> Source::open(const Options& options) {
  Source source;
  if (options.target == "-")
    ::fstat(STDIN_FILENO, &source.file_);
  else
    ::stat(options.target.c_str(), &source.file_);
  if (!names_a_process(options.target)) {
    auto recording = RecordingFile::open(options.target);
    if (!recording) {
      if (recording.error().hint.empty()) recording.error().hint = what_can_be_read;
      return std::unexpected(std::move(recording.error()));
    }
    source.recording_ = std::move(*recording);
    if (source.recording_) return source;
  }
  auto ring = open_ring(options);
  if (!ring) {
    if (names_a_process(options.target)) return std::unexpected(std::move(ring.error()));
    const bool is_stdin = options.target == "-";
    return std::unexpected(Error{.what = "cannot read",
                                 .subject = is_stdin ? "stdin" : options.target,
                                 .why = "there is no recording of rtev-bpf in it" +
                                        (is_stdin ? std::string() : ", and it is no ring: " + ring.error().why),
                                 .hint = what_can_be_read});
  }
  if (auto chosen = check_choice(ring->process, options); !chosen) return std::unexpected(std::move(chosen.error()));
  source.ring_.emplace(std::move(*ring));
  return source;
}

Result<void> Source::check_apart(const FdOutput& output) const {
  struct stat written{};
  if (!output.is_regular_file() || ::fstat(output.fd(), &written) != 0) return {};
  if (written.st_dev != file_.st_dev || written.st_ino != file_.st_ino) return {};
  return std::unexpected(Error{.what = "cannot write to",
                               .subject = output.name(),
                               .why = "it is what is to be read",
                               .hint = "give another file with -o"});
}

int Source::read(Sink& sink, const Options& options, bool all_scheduling) {
  Selection selection(sink, {.pids = options.pids,
                             .name_globs = options.names,
                             .duration = options.duration,
                             .all_scheduling = all_scheduling});
  if (ring_) {
    Registry registry;
    dump_snapshot(std::move(ring_->ring), {.process = std::move(ring_->process), .command_line = options.arguments},
                  selection, registry);
    return exit_ok;
  }
  const auto end = recording_->replay(selection);
  if (!end) return report(end.error());
  if (!end->note.empty() && !options.quiet)
    fmt::print(stderr, "rtev-bpf: {} is not complete: {}\n", escaped(options.target), end->note);
  return exit_ok;
}

}  // namespace rtev::cli
