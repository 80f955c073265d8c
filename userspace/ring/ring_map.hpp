// SPDX-License-Identifier: MIT
// The mapping of a ring file: bounds-checked access to its parts. RingReader interprets them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/page_check.hpp"
#include "base/unique_fd.hpp"
#include "ring/layout.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// First and last valid word of a ring, counted from its creation.
struct RingIndices {
  std::uint64_t head;  ///< oldest word that is not overwritten; a message begins here
  std::uint64_t tail;  ///< one past the last published word; a message ends here
};

/// A ring file mapped read-only. Every access to the mapping returns false if the file was truncated.
class RingMap {
 public:
  static Result<RingMap> open(UniqueFd fd, std::string name, FileChecks checks = {});

  const Layout& layout() const { return layout_; }
  const std::string& name() const { return name_; }

  /// Head and tail of every ring; `indices` has layout().rings elements.
  bool load_indices(std::span<RingIndices> indices) const;
  /// Head of one ring, loaded after all words that were copied before.
  bool load_head_after_copy(std::uint32_t ring, std::uint64_t& head) const;
  /// Words [position, position + copy.size()) of a ring; must not cross the ring's physical end.
  bool copy_words(std::uint32_t ring, std::uint64_t position, std::span<std::uint64_t> copy) const;
  /// The same by pread(), which does not fill a hole of the file with memory, as an access to the mapping does.
  bool read_words(std::uint32_t ring, std::uint64_t position, std::span<std::uint64_t> copy) const;
  /// The same words in the mapping: load them only under run_guarded().
  std::span<const std::uint64_t> words(std::uint32_t ring, std::uint64_t position, std::uint64_t size) const;
  /// Name of a user event; empty if it has none, or if the file is from OCaml 5.0.
  bool copy_name(std::uint16_t id, std::string& name) const;

  /// The mark after the names; nothing if the file ends before it.
  std::optional<ProducerMark> read_mark() const;

  /// True if the file must not be mapped or unmapped now.
  bool is_being_changed() const {
    return checks_.is_being_changed && checks_.is_being_changed(fd_.get(), FileUse::map);
  }

  /// Parts of the mapping, for look_at().
  PageRange header_range() const { return {at(0), sizeof(FileHeader)}; }
  PageRange indices_range(std::uint32_t rings) const;
  /// True if the indices of the first ring are right behind the header, as OCaml's runtime has them.
  bool has_indices_at_header() const { return layout_.headers_offset == sizeof(FileHeader); }
  /// How many rings have their indices on the pages that hold the indices of the first `rings`.
  std::uint32_t rings_on_pages_of(std::uint32_t rings) const;
  /// Up to the ring's physical end.
  PageRange words_range(std::uint32_t ring, std::uint64_t position, std::uint64_t size) const;
  /// What these bytes of the file have of the names of user events.
  PageRange names_range(std::uint64_t offset, std::uint64_t bytes) const;
  /// Sets the state of each range, and requests absent pages of the first `wanted` ones. Without
  /// FileChecks::look_at_pages nothing is done.
  void look_at(std::span<PageRange> ranges, std::size_t wanted = SIZE_MAX) const;
  bool looks_at_pages() const { return static_cast<bool>(checks_.look_at_pages); }

  /// False if the header changed since the file was mapped, or cannot be read any more.
  bool same_header() const;

  /// Removes the file's pages from this process's memory, until they are touched again.
  void unload_pages() const;

  enum class Change { none, recreated, truncated };
  /// What to do with a file that was created anew. Its owner decides how large it is by now.
  enum class Recreated { is_mapped, stays_unmapped };
  /// Checks size and header of the file. If they changed, checks the new header, and maps the file again or leaves the
  /// layout as it was.
  Change refresh(Recreated recreated);

 private:
  RingMap() = default;
  struct Header {
    FileHeader header;
    Layout layout;
  };
  Result<Header> read_header() const;
  Result<void> map();
  const std::byte* at(std::uint64_t offset) const { return mapping_.get() + offset; }
  std::uint64_t offset_of(std::uint32_t ring, std::uint64_t position) const;

  UniqueFd fd_;
  std::string name_;
  FileChecks checks_;
  FileHeader header_{};
  Layout layout_{};
  MemoryMap mapping_;
};

}  // namespace rtev
