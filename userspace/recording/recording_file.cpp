// SPDX-License-Identifier: MIT
#include "recording/recording_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace rtev {
namespace {

constexpr std::size_t read_bytes = std::size_t{256} << 10;
constexpr std::string_view fxt_magic("\x10\x00\x04\x46\x78\x54\x16\x00", 8);

/// A file of Perfetto is packets: the tag of Trace.packet, the length in up to four bytes, the tag of a field.
bool is_perfetto(std::string_view bytes) {
  if (!bytes.starts_with('\n')) return false;
  std::size_t at = 1;
  while (at < bytes.size() && at < 4 && (bytes[at] & '\x80') != 0) ++at;
  if (at + 1 >= bytes.size()) return false;
  const auto tag = static_cast<unsigned char>(bytes[at + 1]);
  const unsigned wire_type = tag & 7;
  return tag > 7 && (wire_type == 0 || wire_type == 1 || wire_type == 2 || wire_type == 5);
}

/// A list of objects that begin with the phase of a trace event, or an object that holds such a list.
bool is_chrome(std::string_view bytes) {
  if (bytes.starts_with("{\"traceEvents\"")) return true;
  if (!bytes.starts_with('[')) return false;
  bytes.remove_prefix(std::min(bytes.find_first_not_of(" \r\n\t", 1), bytes.size()));
  return bytes.starts_with("{\"");
}

/// A message whose first fields are of type and unit of its samples, which are numbers; those of a packet of Perfetto
/// are not.
bool is_pprof(std::string_view bytes) {
  return bytes.starts_with("\n\x04\x08") || bytes.starts_with("\n\x02\x08");
}

bool is_html(std::string_view bytes) {
  bytes.remove_prefix(std::min(bytes.find_first_not_of(" \r\n\t"), bytes.size()));
  return bytes.starts_with("<!doctype html") || bytes.starts_with("<!DOCTYPE html");
}

/// Of a compressed file: with what, and how to read it. zlib reads gzip's by itself.
struct Compression {
  std::string_view magic, name, command;
};
constexpr Compression compressions[] = {{"\x28\xb5\x2f\xfd", "zstd", "zstd -d"},
                                        {"\xfd"
                                         "7zXZ",
                                         "xz", "xz -d"},
                                        {"BZh", "bzip2", "bzip2 -d"},
                                        {"\x04\x22\x4d\x18", "lz4", "lz4 -d"}};

/// What a file is that only looks like a recording: by its first bytes. Empty for others.
std::string_view export_kind(std::string_view bytes) {
  if (bytes.starts_with(R"({"type":"header")") || bytes.starts_with(R"({"ts":)")) return "an export in JSON lines";
  if (bytes.starts_with(R"({"type":")") && bytes.contains(R"(","schema":)")) return "a report in JSON";
  if (bytes.starts_with(R"({"$schema":"https://www.speedscope)")) return "a profile for speedscope";
  if (is_chrome(bytes)) return "an export in Chrome's JSON";
  if (is_html(bytes)) return "a page (HTML)";
  if (is_pprof(bytes)) return "a profile in pprof's format";
  if (is_perfetto(bytes)) return "an export in Perfetto's format";
  if (bytes.starts_with("PERFILE2")) return "a recording of perf";
  return {};
}

}  // namespace

Result<std::optional<RecordingFile>> RecordingFile::open(UniqueFd fd, const std::string& name) {
  Handle file(::gzdopen(fd.get(), "rb"));
  if (!file) return errno_error(fd ? ENOMEM : EBADF, "cannot read", name);
  static_cast<void>(fd.release());
  ::gzbuffer(file.get(), read_bytes);

  RecordingFile recording(name, std::move(file));
  std::vector<char> first(64);
  auto got = recording.read(first);
  if (!got) return std::unexpected(std::move(got.error()));
  recording.first_bytes_ = *got;
  if (got->starts_with(fxt_magic)) return recording;
  const auto refuse = [&](std::string why, std::string hint) {
    return std::unexpected(
        Error{.what = "cannot read", .subject = name, .why = std::move(why), .hint = std::move(hint)});
  };
  if (recording.is_cut_ && got->empty())
    return refuse("its compressed data is cut before anything can be read", "record again, or copy the whole file");
  if (got->empty()) return refuse("it is empty", "");
  if (fxt_magic.starts_with(*got)) return recording;
  for (const Compression& one : compressions)
    if (got->starts_with(one.magic))
      return refuse(fmt::format("it is compressed by {}", one.name),
                    fmt::format("decompress it first ({}), only gzip's files can be read as they are", one.command));
  const std::string_view kind = export_kind(*got);
  if (kind.empty()) return std::nullopt;
  const std::string_view stacks = kind.contains("profile") ? "--stacks " : "";
  return refuse(
      fmt::format("it is {}; only recordings in .fxt can be read back", kind),
      fmt::format("give the .fxt it was made from, or record to a .fxt file (rtev-bpf record {}-o FILE.fxt)", stacks));
}

/// The next bytes, as many as fit; none at the end.
Result<std::string_view> RecordingFile::read(std::span<char> buffer) {
  const int got = ::gzread(file_.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
  if (got > 0) return std::string_view(buffer.data(), static_cast<std::size_t>(got));
  int code = Z_OK;
  const std::string why = ::gzerror(file_.get(), &code);
  if (code == Z_ERRNO) return errno_error(errno, "cannot read", name_);
  // A writer that was killed leaves compressed data without an end.
  if (code == Z_BUF_ERROR) is_cut_ = true;
  if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return std::string_view{};
  return std::unexpected(Error{.what = "cannot read", .subject = name_, .why = why});
}

Result<Replay::End> RecordingFile::replay(Sink& sink) {
  Replay replay(sink);
  std::vector<char> buffer(read_bytes);
  auto fed = replay.feed(std::as_bytes(std::span(first_bytes_)));
  while (fed) {
    const auto got = read(buffer);
    if (!got) {
      fed = std::unexpected(got.error());
      break;
    }
    if (got->empty()) break;
    fed = replay.feed(std::as_bytes(std::span(*got)));
  }
  auto end = replay.finish();
  const auto with_name = [&](Error error) {
    if (error.subject.empty()) error.subject = name_;
    return std::unexpected(std::move(error));
  };
  if (!fed) return with_name(std::move(fed.error()));
  if (!end) return with_name(std::move(end.error()));
  if (is_cut_ && end->note.empty()) end->note = "its compressed data lacks the end";
  return end;
}

}  // namespace rtev
