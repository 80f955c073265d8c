// SPDX-License-Identifier: MIT
#include "recording/recording_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/unique_fd.hpp"
#include "recording/decoders.hpp"

namespace rtev {
namespace {

constexpr std::size_t piece_bytes = std::size_t{256} << 10;
constexpr std::string_view fxt_magic("\x10\x00\x04\x46\x78\x54\x16\x00", 8);

}  // namespace

std::optional<RecordingFormat> recording_format(std::string_view first_bytes) {
  if (first_bytes.starts_with(fxt_magic)) return RecordingFormat::fxt;
  if (first_bytes.starts_with("{\"type\":\"header\"")) return RecordingFormat::jsonl;
  if (first_bytes.starts_with("[\n{")) return RecordingFormat::chrome;
  // The tag of Trace.packet, and within one or more bytes of its length a packet.
  if (first_bytes.starts_with('\n')) return RecordingFormat::perfetto;
  return std::nullopt;
}

Result<std::optional<RecordingFile>> RecordingFile::open(const std::string& path) {
  const std::string name = path == "-" ? "stdin" : path;
  UniqueFd fd(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) return errno_error(errno, "cannot open", name);
  if (S_ISDIR(status.st_mode)) return errno_error(EISDIR, "cannot read", name);
  Handle file(::gzdopen(fd.get(), "rb"));
  if (!file) return errno_error(ENOMEM, "cannot read", name);
  static_cast<void>(fd.release());
  ::gzbuffer(file.get(), piece_bytes);

  RecordingFile recording(name, std::move(file));
  std::vector<char> first(64);
  auto got = recording.read(first);
  if (!got) return std::unexpected(std::move(got.error()));
  recording.first_bytes_ = *got;
  const auto format = recording_format(*got);
  if (!format) return std::nullopt;
  recording.format_ = *format;
  return recording;
}

/// Up to a buffer full; empty at the end.
Result<std::string_view> RecordingFile::read(std::span<char> buffer) {
  const int got = ::gzread(file_.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
  if (got > 0) return std::string_view(buffer.data(), static_cast<std::size_t>(got));
  int code = Z_OK;
  const std::string why = ::gzerror(file_.get(), &code);
  if (code == Z_ERRNO) return errno_error(errno, "cannot read", name_);
  // What a killed writer leaves behind has no end.
  if (code == Z_BUF_ERROR) is_cut_ = true;
  if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return std::string_view{};
  return std::unexpected(Error{.what = "cannot read", .subject = name_, .why = why});
}

Result<Replay::End> RecordingFile::replay(Sink& sink) {
  const auto decoder = make_decoder(format_, sink);
  std::vector<char> buffer(piece_bytes);
  auto fed = decoder->feed(first_bytes_);
  while (fed) {
    const auto got = read(buffer);
    if (!got) {
      fed = std::unexpected(got.error());
      break;
    }
    if (got->empty()) break;
    fed = decoder->feed(*got);
  }
  auto end = decoder->finish();
  const auto named = [&](Error error) {
    if (error.subject.empty()) error.subject = name_;
    return std::unexpected(std::move(error));
  };
  if (!fed) return named(std::move(fed.error()));
  if (!end) return named(std::move(end.error()));
  if (is_cut_ && end->note.empty()) end->note = "its compressed data lacks the end";
  return end;
}

}  // namespace rtev
