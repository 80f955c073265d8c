// SPDX-License-Identifier: MIT
#include "cli/source.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "session/snapshot.hpp"
#include "sinks/escape.hpp"
#include "sinks/selection.hpp"

namespace rtev::cli {

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
  if (!ring) return std::unexpected(std::move(ring.error()));
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

int Source::read(Sink& sink, const Options& options) {
  Selection selection(sink, {.pids = options.pids, .name_globs = options.names, .duration = options.duration});
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
