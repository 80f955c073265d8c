// SPDX-License-Identifier: MIT
// Recordings as files: whatever format of ours they have, compressed or not.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "recording/replay.hpp"
#include "rtev/error.hpp"
#include "stream/sink.hpp"

namespace rtev {

enum class RecordingFormat : std::uint8_t { fxt, jsonl, chrome, perfetto };

/// The format of a file that begins like this, as far as its first bytes tell; nothing for other files.
std::optional<RecordingFormat> recording_format(std::string_view first_bytes);

/// A file that rtev-bpf wrote. Anything may be in it.
class RecordingFile {
 public:
  /// "-" is stdin. Nothing if the file can be read and is no recording.
  static Result<std::optional<RecordingFile>> open(const std::string& path);

  RecordingFormat format() const { return format_; }

  /// Gives a sink the stream, once. A file that is bad from some place on is an error, after the sink has got what came
  /// before and a summary of that; one that was cut short is none, see Replay::End.
  Result<Replay::End> replay(Sink& sink);

 private:
  struct Close {
    void operator()(gzFile file) const { ::gzclose(file); }
  };
  using Handle = std::unique_ptr<gzFile_s, Close>;

  RecordingFile(std::string name, Handle file) : name_(std::move(name)), file_(std::move(file)) {}
  Result<std::string_view> read(std::span<char> buffer);

  std::string name_;
  Handle file_;
  std::string first_bytes_;
  RecordingFormat format_ = RecordingFormat::fxt;
  bool is_cut_ = false;  ///< the compressed data lacks its end
};

}  // namespace rtev
