// SPDX-License-Identifier: MIT
// Synthetic ring files: written as OCaml's runtime writes them, or corrupted as a test needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "ring/layout.hpp"
#include "rtev/names.hpp"

namespace rtev::test {

using Words = std::vector<std::uint64_t>;

/// Encoded messages of a ring.
namespace make {
Words begin(std::uint64_t time, std::uint16_t id);
Words end(std::uint64_t time, std::uint16_t id);
Words counter(std::uint64_t time, std::uint16_t id, std::uint64_t value);
Words alloc(std::uint64_t time, const std::array<std::uint64_t, 20>& buckets);
Words lifecycle(std::uint64_t time, Lifecycle id, std::int64_t datum);
/// The only lifecycle message without a value.
Words ring_stop(std::uint64_t time);
Words user_unit(std::uint64_t time, std::uint16_t id);
Words user_int(std::uint64_t time, std::uint16_t id, std::int64_t value);
Words user_begin(std::uint64_t time, std::uint16_t id);
Words user_end(std::uint64_t time, std::uint16_t id);
Words user_custom(std::uint64_t time, std::uint16_t id, std::span<const std::byte> bytes);
Words user_custom(std::uint64_t time, std::uint16_t id, std::string_view bytes);
}  // namespace make

/// Parameters of a ring file. The defaults are small, so that rings wrap around soon.
struct RingFileOptions {
  std::uint32_t domains = 2;
  unsigned words_log2 = 6;  ///< OCAMLRUNPARAM e=
  bool names = true;        ///< false: the format of OCaml 5.0, without user events
};

/// A ring file being written, in a shared mapping: of a file, which a reader can follow, or anonymous. One thread at a
/// time may write to a ring; readers of the file may run at the same time. A corrupted header, head or tail does not
/// affect the builder, which keeps its own list of messages.
class RingFileBuilder {
 public:
  using Options = RingFileOptions;

  /// In memory: bytes() and save() return the content of the file.
  explicit RingFileBuilder(const Options& options = {});
  /// Creates `path`, or takes over an existing file as the runtime does for a stale file of the same pid: resized, new
  /// header, heads and tails zero, data and names unchanged.
  RingFileBuilder(const std::filesystem::path& path, const Options& options);
  RingFileBuilder(RingFileBuilder&& other) noexcept;
  RingFileBuilder& operator=(RingFileBuilder&&) = delete;
  ~RingFileBuilder();

  /// The header in the file. Any field may be set to any value.
  FileHeader& header();
  std::span<std::byte> bytes() { return memory_; }
  void save(const std::filesystem::path& path) const;

  /// Writes one message as the runtime does: makes room by moving head over whole messages, pads if the message does
  /// not fit before the physical end, publishes first the padding and then the message by tail. The words may be
  /// invalid. Throws std::length_error if the ring is too small for them.
  void append(std::uint32_t domain, std::span<const std::uint64_t> words);
  void append(std::uint32_t domain, std::initializer_list<std::uint64_t> words) {
    append(domain, std::span(words.begin(), words.size()));
  }

  /// Repeats a message in an empty ring until there is no room for another, and publishes them all at once.
  void fill(std::uint32_t domain, std::span<const std::uint64_t> words);

  /// Sets the name of a user event; keeps at most 127 bytes, like the runtime.
  void set_name(std::uint16_t id, std::string_view name);

  std::uint64_t head(std::uint32_t domain) const;
  std::uint64_t tail(std::uint32_t domain) const;
  /// Sets the index that readers see; the next append() restores the true ones.
  void set_head(std::uint32_t domain, std::uint64_t head);
  void set_tail(std::uint32_t domain, std::uint64_t tail);
  /// The word at a physical index of a ring.
  std::uint64_t word(std::uint32_t domain, std::uint64_t index) const;
  void set_word(std::uint32_t domain, std::uint64_t index, std::uint64_t value);

  std::uint64_t ring_words() const { return layout_.ring_size_elements; }
  static std::uint64_t file_size(const Options& options);

 private:
  struct Ring {
    std::uint64_t head = 0;
    std::uint64_t tail = 0;
    std::deque<std::uint32_t> lengths;  ///< of the messages from head to tail, with padding
  };

  bool has_names() const { return layout_.custom_events_offset != 0; }
  void map(int fd);
  void initialise();
  std::uint64_t& head_word(std::uint32_t domain) const;
  std::uint64_t& tail_word(std::uint32_t domain) const;
  std::uint64_t& data_word(std::uint32_t domain, std::uint64_t index) const;
  void publish(std::uint32_t domain, std::uint32_t length);

  FileHeader layout_;  ///< the true layout, even if header() was changed
  std::span<std::byte> memory_;
  std::vector<Ring> rings_;
};

}  // namespace rtev::test
