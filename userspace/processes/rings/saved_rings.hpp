// SPDX-License-Identifier: MIT
// What BPF saved of rings that may be gone before they are read: restored as files, and kept until they are taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "bpf/records.h"
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
  bool last = false;             ///< complete: the program wrote nothing more before another one ran in its process
  std::size_t memory_bytes = 0;  ///< that the file takes
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

  /// Bytes of memory that the restored file takes.
  std::size_t memory_bytes() const;

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

/// Saved rings, by process and time of announcement. Their memory is bounded, and one user gets three quarters of it at
/// the most: of the user with too much, or with most, the ring that was announced first makes room, since it may never
/// be asked for.
class SavedRings {
 public:
  /// `max_bytes`: what the restored files may take in memory.
  explicit SavedRings(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Adds a record of BPF. Records of one ring come in order, those of several mixed.
  void add(const rtev_saved& record, std::span<const std::byte> payload);

  /// The last ring that the process announced in [from_ns, to_ns], as far as it was saved. Forgets it and earlier ones.
  std::optional<SavedRingFile> take(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns);
  /// Forgets the rings that the process announced until then.
  void forget(std::int32_t pid, std::uint64_t until_ns);

  std::size_t size() const { return rings_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  ///< tgid and time
  struct Saved {
    SavedRing ring;
    std::uint32_t user;
    std::size_t bytes = 0;  ///< of memory
  };
  using Rings = std::map<Key, Saved>;
  Rings::iterator drop(Rings::iterator ring);
  void make_room(std::uint32_t user);
  void drop_first(std::uint32_t user);

  std::size_t max_bytes_;
  Rings rings_;
  std::size_t bytes_ = 0;                           ///< of all rings
  std::map<std::uint32_t, std::size_t> by_user_{};  ///< bytes of those who have rings
};

}  // namespace rtev
