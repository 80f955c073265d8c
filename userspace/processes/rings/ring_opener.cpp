// SPDX-License-Identifier: MIT
#include "processes/rings/ring_opener.hpp"

#include <fcntl.h>

#include "inspect/procfs.hpp"
#include "ring/reader_access.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_remembered = 16384;

}  // namespace

std::vector<RingOpener::Ring> RingOpener::open(ProcessIndex process, const std::vector<OpenedRing>& opened,
                                               const Origin& origin) {
  std::vector<Ring> rings;
  for (const OpenedRing& candidate : opened) {
    const auto identified = identify_ring(candidate.fd.get());
    if (!identified) continue;
    const RingFileId& file = *identified;
    const std::uint64_t opening_ns = clock_();
    if (const auto known = open_.find(file); known != open_.end()) {
      // A forked child maps its parent's ring for a moment.
      if (known->second.process != process || origin.made_ns <= known->second.at_ns) continue;
    }

    // A child forked by other means than OCaml's continues with its parent's ring, whose events are delivered already.
    // A ring of its own is new, also where the file system gave it the inode of one that is gone.
    const bool own = ring_number(candidate.path) == registry_.process(process).ns_pid;
    const bool read_before = origin.made_ns == 0 && !own && read_.contains(file);
    const bool deliver = (origin.newborn && !read_before) || history_;
    const std::uint64_t created_ns = origin.made_ns != 0 ? origin.made_ns : opening_ns;
    auto reader =
        RingReaderAccess::adopt(::fcntl(candidate.fd.get(), F_DUPFD_CLOEXEC, 0), candidate.path,
                                {.history = deliver ? RingReader::History::deliver : RingReader::History::skip,
                                 .clock_offset_ns = origin.clock_offset_ns.value_or(candidate.clock_offset_ns)},
                                {.deliver_since_ns = read_before ? UINT64_MAX : since_ns_,
                                 .created_ns = origin.made_ns,
                                 .ended_ns = origin.ended_ns,
                                 .is_latest_ring = [this, pid = registry_.process(process).pid, created_ns] {
                                   return is_latest_(pid, created_ns);
                                 }});
    if (!reader) continue;
    auto ring = std::make_shared<RingReader>(std::move(*reader));
    const std::uint32_t slot =
        registry_.add_ring({.process = process,
                            .domains = ring->layout().rings,
                            .producer = ring->producer(),
                            .user_event_name = [ring](std::uint16_t id) { return ring->user_event_name(id); }});
    if (slot == 0) continue;
    RingReaderAccess::set_slot(*ring, slot);
    open_.insert_or_assign(file, Opened{.process = process, .at_ns = opening_ns});
    for (const CutDomain& cut : candidate.cut) RingReaderAccess::expect_words(*ring, cut.domain, cut.written);
    if (read_.size() >= max_remembered) read_.clear();
    read_.insert(file);
    rings.push_back(
        {.slot = slot, .file = file, .opened = &candidate, .opened_ns = opening_ns, .reader = std::move(ring)});
  }
  return rings;
}

std::optional<ProcessIndex> RingOpener::owner(const OpenedRing& ring) const {
  const auto file = identify_ring(ring.fd.get());
  const auto found = file ? open_.find(*file) : open_.end();
  return found == open_.end() ? std::nullopt : std::optional(found->second.process);
}

}  // namespace rtev
