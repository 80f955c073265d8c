// SPDX-License-Identifier: MIT
// Opens ring files for reading, each of them once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "processes/opened_ring.hpp"
#include "rtev/ring_reader.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// A file may be mapped by several processes: a forked child maps its parent's ring until it has one of its own.
class RingOpener {
 public:
  /// Whether the process announced no ring since a time.
  using IsLatest = std::function<bool(std::int32_t pid, std::uint64_t birth_ns)>;

  /// With `history`, what rings held before they were found is handed out. Rings that began after `since_ns` are read
  /// from their beginning in any case.
  RingOpener(Registry& registry, bool history, std::uint64_t since_ns, IsLatest is_latest)
      : registry_(registry), history_(history), since_ns_(since_ns), is_latest_(std::move(is_latest)) {}

  using FileId = std::pair<std::uint64_t, std::uint64_t>;  ///< device and inode

  struct Ring {
    std::uint32_t slot;  ///< in the registry
    FileId file;
    const PinnedRing* pin;  ///< that it was opened by
    std::shared_ptr<RingReader> reader;
  };
  /// When rings were made, as far as that is known.
  struct Origin {
    bool newborn = false;                 ///< while the tracer was running: read from the beginning
    std::uint64_t made_ns = 0;            ///< exactly then; 0: not known
    std::uint64_t ended_ns = UINT64_MAX;  ///< when their program ended, if it did
    std::optional<std::int64_t>
        clock_offset_ns{};  ///< of the program's clock; nothing: what /proc told is all there is
  };

  /// Those of the rings that nobody reads yet and that are ready to be read. The pins stay. One that was made after the
  /// process's file had been opened is another ring: the end of the program before was not told.
  std::vector<Ring> open(ProcessIndex process, const std::vector<PinnedRing>& pins, const Origin& origin);
  /// The file behind an open descriptor, if that can be told.
  static std::optional<FileId> identify(int fd);
  /// Whose ring the file is already.
  std::optional<ProcessIndex> owner(const PinnedRing& pin) const;
  /// The process reads the file no more: it may be opened again, by another one.
  void release(ProcessIndex process, const FileId& file) {
    const auto found = open_.find(file);
    if (found != open_.end() && found->second.process == process) open_.erase(found);
  }

 private:
  Registry& registry_;
  bool history_;
  std::uint64_t since_ns_;
  IsLatest is_latest_;
  struct Opened {
    ProcessIndex process;
    std::uint64_t at_ns;
  };
  std::map<FileId, Opened> open_;
  std::set<FileId> read_;  ///< at some time
};

}  // namespace rtev
