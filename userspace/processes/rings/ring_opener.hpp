// SPDX-License-Identifier: MIT
// Opens ring files for reading, each of them once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/memory_budget.hpp"
#include "inspect/process_view.hpp"
#include "processes/discovery_context.hpp"
#include "ring/layout.hpp"

namespace rtev {

/// A file may be mapped by several processes: a forked child maps its parent's ring until it has one of its own. One
/// thread.
class RingOpener {
 public:
  /// Both must outlive it.
  RingOpener(const DiscoveryContext& context, const DiscoveryOptions& options)
      : context_(context),
        options_(options),
        unmapping_(std::make_shared<TimedTask>(context.tasks, [this](std::uint64_t now_ns) { unmap_unused(now_ns); })) {
  }

  struct Ring {
    std::uint32_t slot;  ///< in the registry
    RingFileId file;
    const OpenedRing* opened;  ///< that it was opened by
    std::uint64_t opened_ns;
    std::shared_ptr<RingReader> reader;
  };
  /// When rings were created, as far as that is known.
  struct Origin {
    bool is_new = false;                  ///< while the tracer was running: read from the beginning
    std::uint64_t created_ns = 0;         ///< exactly then; 0: unknown
    std::uint64_t ended_ns = UINT64_MAX;  ///< when their program ended, if it did
    /// Of the program's clock, if the kernel reported it; else that of OpenedRing counts.
    std::optional<std::int64_t> clock_offset_ns{};
    std::vector<CutDomain> cut{};  ///< of a saved ring, where it is incomplete
    std::size_t memory_bytes = 0;  ///< of a saved ring: what its file takes
  };

  /// Opens those of the rings that are not open yet and whose header is valid; they get a slot in the registry. A ring
  /// created after its file had been opened for the same process is another ring: the end of the image before was not
  /// reported.
  std::vector<Ring> open(ProcessIndex process, std::uint32_t user, const std::vector<OpenedRing>& rings,
                         const Origin& origin);
  /// Why the last call of open() left out a ring that is never read: too much memory or too many descriptors would be
  /// taken, or the runtime could not make it. Nothing if it left out none.
  std::optional<Unreadable> refusal() const { return refusal_; }
  /// True if it left out a ring that may be ready soon.
  bool not_ready() const { return not_ready_; }
  /// Charges descriptors while the object lives. Null if the rings of the process, of the user, or all, would hold too
  /// many.
  std::shared_ptr<const void> charge_descriptors(std::uint32_t user, std::int32_t pid, std::size_t count) const {
    const auto account = descriptors_.open_account(user, pid);
    return account->grow(count) ? account : nullptr;
  }
  /// True if the file was opened for this process at that time or later.
  bool opened_since(const OpenedRing& ring, ProcessIndex process, std::uint64_t since_ns) const;
  /// The process that has the file open already.
  std::optional<ProcessIndex> owner(const OpenedRing& ring) const;
  /// The process does not read the file any more: it may be opened again, for another one.
  void forget(ProcessIndex process, const RingFileId& file) {
    const auto found = open_.find(file);
    if (found != open_.end() && found->second.process == process) open_.erase(found);
  }

 private:
  void unmap_unused(std::uint64_t now_ns);
  FileChecks checks(std::uint32_t user) const;
  const DiscoveryContext& context_;
  const DiscoveryOptions& options_;
  struct Opened {
    ProcessIndex process;
    std::uint64_t at_ns;
  };
  MemoryBudget budget_{options_.rings_memory};
  MemoryBudget address_space_{max_mapped_bytes * 8};
  MemoryBudget descriptors_{options_.ring_descriptors};
  std::optional<Unreadable> refusal_;
  bool not_ready_ = false;
  /// Whoever uses a ring last adds it here.
  std::shared_ptr<std::vector<std::unique_ptr<RingReader>>> unused_ =
      std::make_shared<std::vector<std::unique_ptr<RingReader>>>();
  std::shared_ptr<TimedTask> unmapping_;  ///< of those; readers may live on after this object
  std::map<RingFileId, Opened> open_;
  std::set<RingFileId> read_;  ///< at some time
};

}  // namespace rtev
