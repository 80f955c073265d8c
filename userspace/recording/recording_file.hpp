// SPDX-License-Identifier: MIT
// Recordings as files: .fxt, compressed with gzip or not.
#pragma once

#include <zlib.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "recording/replay.hpp"
#include "rtev/error.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// A recording that is read once, from its beginning to its end. Its content is not trusted. One thread.
class RecordingFile {
 public:
  /// `name` is for messages. An export of rtev-bpf is an error that says which; any other file that can be read yields
  /// nothing.
  static Result<std::optional<RecordingFile>> open(UniqueFd fd, const std::string& name);

  /// Gives a sink the stream. For a file that is damaged from some place on the sink gets what is before it, and a
  /// summary of that; then the error is returned. A file that was cut short is no error: see Replay::End.
  Result<Replay::End> replay(Sink& sink);

 private:
  struct Close {
    void operator()(gzFile file) const { ::gzclose(file); }
  };
  using Handle = std::unique_ptr<gzFile_s, Close>;

  RecordingFile(std::string name, Handle file) : name_(std::move(name)), file_(std::move(file)) {}
  Result<std::string_view> read(std::span<char> buffer);

  std::string name_;  ///< for messages
  Handle file_;
  std::string first_bytes_;  ///< read by open()
  bool is_cut_ = false;      ///< the compressed data lacks its end
};

}  // namespace rtev
