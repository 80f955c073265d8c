// SPDX-License-Identifier: MIT
// A ring file in which everything can be written. Knows the format by itself: it is an outsider's view of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace rtev::hostile {

/// Mapped and announced as OCaml's runtime does it. All messages have two words. One writer.
class ForgedRing {
 public:
  static constexpr std::uint64_t header_words = 8, names = 8192, name_bytes = 128, message_words = 2;

  struct Shape {
    std::uint64_t domains = 1;
    std::uint64_t words = 1 << 16;  ///< of each domain, a power of two
    bool leased = false;            ///< whoever opens the file waits, or fails
  };

  /// Creates `dir`/PID.events, or takes that file over.
  ForgedRing(const std::filesystem::path& dir, const Shape& shape);
  ForgedRing(const ForgedRing&) = delete;
  ForgedRing& operator=(const ForgedRing&) = delete;
  ~ForgedRing();

  /// Writes a user event without a value, now, where the last one ended, whatever the indices say.
  void write(std::uint64_t domain, std::uint64_t id);
  /// Publishes words that were not written.
  void claim(std::uint64_t domain, std::uint64_t words);
  void set_name(std::uint64_t id, std::string_view name);
  /// Changes the header to one of so many domains with as many words each. The file must have room for them.
  void publish_domains(std::uint64_t domains);

  /// A word of the header.
  std::uint64_t& header(std::uint64_t index) { return memory_[index]; }
  std::uint64_t& head(std::uint64_t domain) { return memory_[header_words + domain * index_words]; }
  std::uint64_t& tail(std::uint64_t domain) { return memory_[header_words + domain * index_words + 1]; }
  /// A word of a domain's ring, by position.
  std::uint64_t& word(std::uint64_t domain, std::uint64_t position);

  const Shape& shape() const { return shape_; }
  /// Where the words begin in the file, in bytes.
  std::uint64_t words_offset() const { return data_offset_ * 8; }

 private:
  static constexpr std::uint64_t index_words = 10;  ///< head, tail and padding of a domain

  Shape shape_;
  std::vector<std::uint64_t> tails_;
  std::size_t bytes_ = 0;
  std::uint64_t* memory_ = nullptr;
  std::uint64_t data_offset_ = 0, names_offset_ = 0;  ///< in words
};

/// Changes a word that others read at the same time.
void publish(std::uint64_t& word, std::uint64_t value);

std::uint64_t now_ns();

}  // namespace rtev::hostile
