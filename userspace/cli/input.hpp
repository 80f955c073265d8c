// SPDX-License-Identifier: MIT
// What dump, convert and the analyses read: a recording, a ring file, or the ring of a running process.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "cli/options.hpp"
#include "formats/output/output.hpp"
#include "recording/recording_file.hpp"
#include "rtev/error.hpp"
#include "rtev/ring_reader.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"

namespace rtev::cli {

/// Opens a file for reading, with the rights of the calling thread; "-" is stdin. Waits for the writer of a fifo of the
/// user. Refused, because another user may have put them there as a trap: links of others in the path, fifos and
/// devices of others, files with several names.
Result<UniqueFd> open_input(const std::string& path);

/// A ring and its process.
struct OpenRing {
  ProcessInfo process;
  RingReader ring;
};

class Input {
 public:
  /// Opens a file, a process id, or "-" for stdin. The options select what is read of it. Under sudo this process
  /// becomes one of the user who called it, for good, before it opens a file. It is confined before it decodes
  /// anything.
  static Result<Input> open(const std::string& name, const ReadOptions& options, const Invocation& invocation);

  /// Opens several recordings, likewise: all are open before anything is decoded.
  static Result<std::vector<Input>> open_recordings(const std::vector<std::string>& names, const ReadOptions& options);

  /// Fails if the output would overwrite the file that is read.
  Result<void> check_apart(const FdOutput& output) const;

  /// Gives a sink what the options select of the stream; `for_analysis`: see SelectionOptions. To be called once.
  /// Returns the exit status; errors and what is missing in the file are printed to stderr.
  int read(Sink& sink, bool for_analysis);

 private:
  Input() = default;

  std::string name_;
  ReadOptions options_;
  std::vector<std::string> command_line_;
  struct stat file_{};
  std::optional<RecordingFile> recording_;
  std::optional<OpenRing> ring_;
};

}  // namespace rtev::cli
