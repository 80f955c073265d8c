// SPDX-License-Identifier: MIT
// For tests of RingWriter: writers in a directory of their own, and the events that readers find in their files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rtev/ring_writer.hpp"
#include "stream/records.hpp"
#include "support/temp_dir.hpp"
#include "unit/ring/checked_reader.hpp"

namespace rtev::test {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// An event as a line of text: kind, id, value or payload.
inline std::string line_of(const Seen& seen) {
  const Event& event = seen.event;
  std::string text(to_string(event.kind));
  text += " " + std::to_string(event.id);
  if (event.kind == EventKind::user_custom) return text + " '" + seen.payload + "'";
  if (has_payload(event.kind)) return text + " " + std::to_string(seen.payload.size()) + " bytes";
  return text + " " + std::to_string(event.signed_value());
}

using Lines = std::vector<std::string>;

/// All events of a domain's ring.
inline Lines lines_of(const std::filesystem::path& path, std::uint16_t domain) {
  CheckedReader reader(path);
  while (!reader.poll().complete) {
  }
  EXPECT_EQ(reader.words().corrupt, 0u);
  Lines lines;
  for (const Seen& seen : reader.seen()) {
    if (seen.domain() == domain) lines.push_back(line_of(seen));
  }
  return lines;
}

class WriterTest : public ::testing::Test {
 protected:
  using Options = RingWriter::Options;

  /// Two domains with rings of 256 words, for events at the times 1, 2, 3 and so on.
  Options small() const {
    now_ = 0;
    return {.directory = dir_.path(), .domains = 2, .log2_words = 8, .clock = [] { return ++now_; }};
  }
  /// The same with the real clock, for several threads.
  Options timed() const {
    Options options = small();
    options.clock = nullptr;
    return options;
  }
  static RingWriter make(const Options& options) {
    auto writer = RingWriter::create(options);
    if (!writer) throw std::runtime_error(writer.error().message());
    return std::move(*writer);
  }
  static UserEvent add(RingWriter& writer, std::string_view name, UserType type) {
    const auto event = writer.register_event(name, type);
    if (!event) throw std::runtime_error(event.error().message());
    return *event;
  }
  std::filesystem::path path_of(pid_t pid) const { return dir_ / (std::to_string(pid) + ".events"); }
  std::filesystem::path path() const { return path_of(::getpid()); }
  /// Names of the files in the directory, sorted.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  static std::string ring_start() { return "lifecycle 0 " + std::to_string(::getpid()); }

  const TempDir dir_;
  static inline std::uint64_t now_ = 0;
};

}  // namespace rtev::test
