// SPDX-License-Identifier: MIT
// A stream that was recorded before.
#pragma once

#include <sys/stat.h>

#include <optional>

#include "cli/options.hpp"
#include "cli/ring_target.hpp"
#include "formats/output/output.hpp"
#include "recording/recording_file.hpp"
#include "rtev/error.hpp"
#include "stream/sink.hpp"

namespace rtev::cli {

/// A recording of any format, a ring file, or what the ring of a live process holds.
class Source {
 public:
  /// Opens options.target.
  static Result<Source> open(const Options& options);

  /// Fails if the output would overwrite what is to be read.
  Result<void> check_apart(const FdOutput& output) const;

  /// Gives a sink what the options select of the stream, once. Returns the exit status; what is wrong with the file it
  /// says on stderr.
  int read(Sink& sink, const Options& options) { return read(sink, options, false); }
  /// The same for analyses: with what the scheduler did to all threads, whatever is selected.
  int read_for_analysis(Sink& sink, const Options& options) { return read(sink, options, true); }

 private:
  Source() = default;

  int read(Sink& sink, const Options& options, bool all_scheduling);

  struct stat file_{};  ///< what is read, if it is a file
  std::optional<RecordingFile> recording_;
  std::optional<OpenRing> ring_;
};

}  // namespace rtev::cli
