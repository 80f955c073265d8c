// SPDX-License-Identifier: MIT
// Synthetic ring files: written as OCaml's runtime writes them, or wrong in any way a test wants.
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

#include "rtev/layout.hpp"

namespace rtev::test {

using Words = std::vector<std::uint64_t>;

/// Messages as they lie in a ring.
namespace make {
Words begin(std::uint64_t time, std::uint16_t id);
Words end(std::uint64_t time, std::uint16_t id);
Words counter(std::uint64_t time, std::uint16_t id, std::uint64_t value);
Words alloc(std::uint64_t time, const std::array<std::uint64_t, 20>& buckets);
Words lifecycle(std::uint64_t time, std::uint16_t id, std::int64_t datum);
/// The one lifecycle message that carries no datum.
Words ring_stop(std::uint64_t time);
Words user_unit(std::uint64_t time, std::uint16_t id);
Words user_int(std::uint64_t time, std::uint16_t id, std::int64_t value);
Words user_begin(std::uint64_t time, std::uint16_t id);
Words user_end(std::uint64_t time, std::uint16_t id);
Words user_custom(std::uint64_t time, std::uint16_t id, std::span<const std::byte> bytes);
Words user_custom(std::uint64_t time, std::uint16_t id, std::string_view bytes);
}  // namespace make

/// What a ring file is made with; the defaults are small so that rings wrap around soon.
struct RingFileOptions {
  std::uint32_t domains = 2;
  unsigned words_log2 = 6;  ///< OCAMLRUNPARAM e=
  bool names = true;        ///< false: the format of OCaml 5.0, which has no user events
};

/// A ring file being written. Lives in a shared mapping: of a file, where a reader can follow it live, or of nothing.
/// One thread at a time may write to a ring; readers of the file may run meanwhile. Breaking the header or the heads
/// and tails does not confuse the builder, which keeps its own account of where its messages lie.
class RingFileBuilder {
 public:
  using Options = RingFileOptions;

  /// In memory: bytes() and save() give what a file would hold.
  explicit RingFileBuilder(const Options& options = {});
  /// Creates `path`, or takes an existing file over as the runtime does for a stale file of the same pid: resized, new
  /// header, heads and tails zero, data and names as they were.
  RingFileBuilder(const std::filesystem::path& path, const Options& options);
  RingFileBuilder(RingFileBuilder&& other) noexcept;
  RingFileBuilder& operator=(RingFileBuilder&&) = delete;
  ~RingFileBuilder();

  /// The header as it lies in the file: set any field to anything.
  FileHeader& header();
  std::span<std::byte> bytes() { return memory_; }
  void save(const std::filesystem::path& path) const;

  /// Writes one message as the runtime does: makes room by moving head over whole messages, pads where the message
  /// does not fit before the physical end, publishes the padding and then the message by tail. The words need not make
  /// sense. Throws std::length_error if the ring can never hold them.
  void append(std::uint32_t domain, std::span<const std::uint64_t> words);
  void append(std::uint32_t domain, std::initializer_list<std::uint64_t> words) {
    append(domain, std::span(words.begin(), words.size()));
  }

  /// Fills the slot of a user event; at most 127 bytes are kept, as the runtime does.
  void set_name(std::uint16_t id, std::string_view name);

  std::uint64_t head(std::uint32_t domain) const;
  std::uint64_t tail(std::uint32_t domain) const;
  /// Moves the index that readers see; the next append() stores the true ones again.
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
    std::deque<std::uint32_t> lengths;  ///< of the messages from head to tail, padding included
  };

  bool has_names() const { return layout_.custom_events_offset != 0; }
  void map(int fd);
  void initialise();
  std::uint64_t& head_word(std::uint32_t domain) const;
  std::uint64_t& tail_word(std::uint32_t domain) const;
  std::uint64_t& data_word(std::uint32_t domain, std::uint64_t index) const;
  void publish(std::uint32_t domain, std::uint32_t length);

  FileHeader layout_;  ///< where things are, whatever header() says
  std::span<std::byte> memory_;
  std::vector<Ring> rings_;
};

}  // namespace rtev::test
