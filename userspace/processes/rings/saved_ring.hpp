// SPDX-License-Identifier: MIT
// Restores a ring file from the pieces that BPF saved before its process unmapped it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/unique_fd.hpp"
#include "ring/layout.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// A domain of which not all words were saved.
struct CutDomain {
  std::uint16_t domain;
  std::uint64_t written;  ///< words its program published in all: what lies behind the file's tail is lost

  bool operator==(const CutDomain&) const = default;
};

/// A restored ring: a file without a name that a RingReader can read.
struct SavedRingFile {
  UniqueFd fd;
  std::vector<CutDomain> cut;
  bool last = false;  ///< complete: the program wrote nothing more before another one ran in its process
};

/// Pieces may come in any order, more than once, or not at all, and may hold anything: words are counted from the
/// creation of the ring, so each has one place. Of a domain with missing words, only those before them can be read:
/// where the next message begins is unknown.
class SavedRing {
 public:
  /// The header as the program's memory held it, and the size of its file.
  static Result<SavedRing> create(const FileHeader& header, std::uint64_t file_bytes);

  /// Words of a domain from position `begin` on. Invalid pieces are ignored, as if they had been dropped.
  void add_words(std::uint32_t domain, std::uint64_t begin, std::span<const std::byte> words);
  /// What a domain's ring held: the words [head, tail).
  void add_domain(std::uint32_t domain, std::uint64_t head, std::uint64_t tail);
  /// The name of a user event, as it lies in the file.
  void add_name(std::uint64_t id, std::span<const std::byte> name);

  /// The pieces so far are all that the program wrote before its process ran another one.
  void note_last() { last_ = true; }

  /// Once, after the last piece.
  Result<SavedRingFile> finish();

 private:
  struct Domain {
    std::uint64_t head = 0, tail = 0;                 ///< 0, 0: not known
    std::uint64_t end = 0;                            ///< of the newest piece
    std::map<std::uint64_t, std::uint64_t> pieces{};  ///< begin and end of what is there; apart from each other
  };
  SavedRing(UniqueFd fd, const Layout& layout) : fd_(std::move(fd)), layout_(layout) {}
  bool write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  std::uint64_t word_offset(std::uint32_t domain, std::uint64_t position) const;
  Result<std::uint64_t> last_message_end(std::uint32_t domain, std::uint64_t begin, std::uint64_t end) const;

  UniqueFd fd_;
  Layout layout_;
  std::map<std::uint32_t, Domain> domains_;
  bool last_ = false;
};

}  // namespace rtev
