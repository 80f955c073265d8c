// SPDX-License-Identifier: MIT
#include "processes/rings/ring_opener.hpp"

#include <fcntl.h>

#include <cerrno>
#include <optional>

#include "base/background_close.hpp"
#include "inspect/procfs.hpp"
#include "ring/reader_access.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_remembered = 16384;

/// What a ring costs the tracer besides events and names: for each domain the state of the reader, and a queue once it
/// has events.
constexpr std::size_t ring_bytes = 4096, domain_bytes = 256;

/// Rings that are unmapped at a time: a large one takes up to a millisecond.
constexpr std::size_t max_unmapped = 4;
constexpr std::uint64_t unmapping_interval_ns = 20'000'000;

}  // namespace

std::vector<RingOpener::Ring> RingOpener::open(ProcessIndex process, std::uint32_t user,
                                               const std::vector<OpenedRing>& rings, const Origin& origin) {
  refusal_.reset();
  not_ready_ = false;
  std::vector<Ring> opened;
  for (const OpenedRing& candidate : rings) {
    const auto identified = identify_ring(candidate.fd.get());
    if (!identified) continue;
    const RingFileId& file = *identified;
    const std::uint64_t opening_ns = context_.clock();
    if (const auto known = open_.find(file); known != open_.end()) {
      // A forked child maps its parent's ring for a moment.
      if (known->second.process != process || origin.created_ns <= known->second.at_ns) continue;
    }

    // A child forked by other means than OCaml's continues with its parent's ring, whose events are delivered already.
    // A ring of its own is new, also where the file system gave it the inode of one that is gone.
    const bool own = ring_number(candidate.path) == context_.registry.process(process).ns_pid;
    const bool read_before = origin.created_ns == 0 && !own && read_.contains(file);
    const bool deliver = (origin.is_new && !read_before) || options_.history;
    const std::int32_t pid = context_.registry.process(process).pid;
    const auto account = budget_.open_account(user, pid), mapped = address_space_.open_account(user, pid);
    const auto descriptor = charge_descriptors(user, pid, 1);
    if (!descriptor) {
      refusal_ = Unreadable::memory;
      continue;
    }
    auto reader = RingReaderAccess::adopt(
        UniqueFd(::fcntl(candidate.fd.get(), F_DUPFD_CLOEXEC, 0), close_in_background), candidate.path,
        {.history = deliver ? RingReader::History::deliver : RingReader::History::skip,
         .clock_offset_ns = origin.clock_offset_ns.value_or(candidate.clock_offset_ns)},
        {.deliver_since_ns = read_before ? UINT64_MAX : options_.since_ns,
         .began_traced = origin.is_new && !read_before,
         .created_ns = origin.created_ns,
         .ended_ns = origin.ended_ns,
         .is_latest_ring =
             [this, pid, since_ns = origin.created_ns != 0 ? origin.created_ns : opening_ns,
              asked = std::optional<std::uint64_t>()]() mutable {
               const std::uint64_t announcements = context_.kernel.announcements();
               if (announcements == asked) return true;
               if (!context_.kernel.is_latest_ring(pid, since_ns)) return false;
               asked = announcements;
               return true;
             },
         .file = checks(user),
         .may_use_memory = [account, mapped, descriptor](std::size_t bytes) { return account->grow(bytes); }});
    if (!reader) {
      not_ready_ |= reader.error().code == EAGAIN;
      if (reader.error().code == EFBIG) refusal_ = Unreadable::too_large;
      continue;
    }
    if (!mapped->grow(RingReaderAccess::layout(*reader).mapped_bytes()) ||
        !account->grow(ring_bytes + reader->layout().rings * domain_bytes + origin.memory_bytes)) {
      refusal_ = Unreadable::memory;
      continue;
    }
    const std::shared_ptr<RingReader> ring(new RingReader(std::move(*reader)),
                                           [unused = unused_, unmapping = std::weak_ptr(unmapping_)](RingReader* last) {
                                             unused->emplace_back(last);
                                             if (const auto task = unmapping.lock()) task->at_once();
                                           });
    const std::uint32_t slot =
        context_.registry.add_ring({.process = process,
                                    .domains = ring->layout().rings,
                                    .producer = ring->producer(),
                                    .user_event_name = [ring](std::uint16_t id) { return ring->user_event_name(id); }});
    if (slot == 0) continue;
    RingReaderAccess::set_slot(*ring, slot);
    open_.insert_or_assign(file, Opened{.process = process, .at_ns = opening_ns});
    for (const CutDomain& cut : origin.cut) RingReaderAccess::expect_words(*ring, cut.domain, cut.written);
    if (read_.size() >= max_remembered) read_.clear();
    read_.insert(file);
    opened.push_back({.slot = slot, .file = file, .opened = &candidate, .opened_ns = opening_ns, .reader = ring});
  }
  return opened;
}

FileChecks RingOpener::checks(std::uint32_t user) const {
  return {.is_being_changed = [this](int fd, FileUse use) { return context_.kernel.is_being_changed(fd, use); },
          .look_at_pages = [this](std::span<PageRange> ranges) { context_.kernel.look_at_pages(ranges); },
          .load_pages =
              [this, user](int fd, std::uint64_t offset, std::size_t bytes) {
                context_.inspector.load(UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)), offset, bytes, user);
              }};
}

/// Unmaps some rings that are not read any more, unless that would wait now.
void RingOpener::unmap_unused(std::uint64_t now_ns) {
  std::size_t left = max_unmapped;
  std::erase_if(*unused_, [&](const auto& ring) {
    if (left == 0 || RingReaderAccess::is_being_changed(*ring)) return false;
    --left;
    return true;
  });
  if (!unused_->empty()) unmapping_->at(now_ns + unmapping_interval_ns);
}

bool RingOpener::opened_since(const OpenedRing& ring, ProcessIndex process, std::uint64_t since_ns) const {
  const auto file = identify_ring(ring.fd.get());
  const auto found = file ? open_.find(*file) : open_.end();
  return found != open_.end() && found->second.process == process && found->second.at_ns >= since_ns;
}

std::optional<ProcessIndex> RingOpener::owner(const OpenedRing& ring) const {
  const auto file = identify_ring(ring.fd.get());
  const auto found = file ? open_.find(*file) : open_.end();
  return found == open_.end() ? std::nullopt : std::optional(found->second.process);
}

}  // namespace rtev
