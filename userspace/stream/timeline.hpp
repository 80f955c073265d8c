// SPDX-License-Identifier: MIT
// Merges many ordered sources into one stream in order of time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/recent_entries.hpp"
#include "rtev/event.hpp"
#include "stream/merge_tree.hpp"
#include "stream/source_queue.hpp"

namespace rtev {

/// Stages events by source, and delivers them in order of (time, source, arrival) when a watermark has passed them.
/// Sources without events delay nothing. Events that arrive after the watermark has passed their time are delivered
/// next, flagged late. Memory is bounded: beyond the bound all staged events are delivered. Not thread-safe.
class Timeline {
 public:
  static constexpr std::size_t default_bytes = 512 << 20;

  /// `clock` gives the present in ns. Events with a later time (a program can write any) get the present as their time,
  /// because they would delay their source, and are flagged late.
  /// `max_bytes`: how much memory staged events may take.
  explicit Timeline(std::function<std::uint64_t()> clock, std::size_t max_bytes = default_bytes);

  /// Stages events of one source, in its order.
  void push(const Batch& batch);
  /// Stages one event of a source whose events are only nearly in order of time.
  void push(const Event& event, std::span<const std::byte> payload) {
    insert(event.time, event.source, event.kind, event.id, event.flags, event.value, payload);
  }
  /// Stages an event that carries a record.
  template <typename Record>
  void push(std::uint64_t time_ns, Source source, EventKind kind, std::uint16_t id, const Record& record) {
    insert(time_ns, source.pack(), kind, id, 0, 0, std::as_bytes(std::span(&record, 1)));
  }

  static constexpr std::uint64_t no_deadline = UINT64_MAX;

  /// Gives all events up to the watermark to the consumer, in batches of one or more sources. It must not call push().
  /// Stops soon after the deadline, a time of the clock. Returns up to which time everything was delivered.
  template <typename Consumer>
  std::uint64_t deliver(std::uint64_t watermark, Consumer&& consumer, std::uint64_t deadline_ns = no_deadline) {
    return deliver_until(watermark, [&](const Batch& batch) { consumer(batch); }, deadline_ns);
  }

  bool empty() const { return active_.empty(); }
  /// True if what is staged may take more memory than allowed: the next deliver() delivers everything.
  bool is_full() const { return 2 * staged_bytes() > max_bytes_; }
  /// The owner of what belongs to no ring: records of the kernel. It is the id of no user.
  static constexpr std::uint32_t no_user = UINT32_MAX;
  /// Events of a ring file are charged to this owner from now on; before that, to no user.
  void set_owner(std::uint32_t slot, std::uint32_t owner) { owners_[slot] = owner; }
  /// Of a source.
  std::uint32_t owner(std::uint32_t source) const {
    const auto owner = owners_.find(Source::unpack(source).slot);
    return owner == owners_.end() ? no_user : owner->second;
  }
  /// True if there is room for more events of an owner, who may take three quarters of what is allowed.
  bool has_room(std::uint32_t owner) const {
    const auto theirs = owned_bytes_.find(owner);
    return !is_full() && (theirs == owned_bytes_.end() || 2 * theirs->second <= max_bytes_ / 4 * 3);
  }
  /// About how many events of an owner are staged.
  std::size_t staged_events(std::uint32_t owner) const {
    const auto theirs = owned_bytes_.find(owner);
    return theirs == owned_bytes_.end() ? 0 : theirs->second / sizeof(Event);
  }
  /// Allocated bytes, used or not.
  std::size_t allocated_bytes() const;
  /// See SourceQueue::bytes().
  std::size_t staged_bytes() const { return staged_bytes_; }
  std::size_t staged_events() const;
  /// Removes the empty queues of a ring file.
  void forget(std::uint32_t slot, std::uint32_t domains);

  /// Newest time delivered: an event that is pushed with this time or a later one is not late.
  std::uint64_t last_time() const { return last_time_; }
  std::uint64_t late() const { return late_; }
  std::uint64_t forced() const { return forced_; }

 private:
  /// The events of a source, and what is charged for them.
  struct Staged {
    SourceQueue queue;
    std::size_t* owned_bytes;
    std::size_t charged_bytes = 0;
  };
  /// The remaining events of one source in a delivery: from `next` to `end`, then the rest.
  struct Head {
    SourceQueue* queue;
    Event* begin;  ///< those before it were removed from the queue
    Event* next;
    Event* end;
    std::span<Event> rest;
    std::size_t before = 0;  ///< number of events taken before those from `begin` on

    void advance(MergeTree::Player& player, std::uint64_t watermark);
    void pop();
  };
  Staged& staged(std::uint32_t source);
  void charge(Staged& staged);
  void insert(std::uint64_t time_ns, std::uint32_t source, EventKind kind, std::uint16_t id, std::uint8_t flags,
              std::uint64_t value, std::span<const std::byte> payload);
  std::uint64_t present(std::uint64_t at_least);
  std::uint64_t correct_time(std::uint64_t time_ns, std::uint8_t& flags);
  std::uint64_t deliver_until(std::uint64_t watermark, const std::function<void(const Batch&)>& consumer,
                              std::uint64_t deadline_ns);
  void free_unused();
  void erase(std::uint32_t source);
  std::uint64_t latest_of_winner() const;
  bool has_batch(std::uint64_t latest) const;
  Batch take_batch(std::uint64_t latest, std::uint64_t watermark);
  void merge(std::uint64_t watermark);
  std::uint64_t copy_payload(std::span<const std::byte> payload);

  std::function<std::uint64_t()> clock_;
  std::size_t max_bytes_;
  std::uint64_t present_ = 0;  ///< newest reading of the clock
  std::unordered_map<std::uint32_t, Staged> queues_;
  RecentEntries<Staged> recent_;
  std::vector<Staged*> active_;  ///< those with events
  std::vector<Staged*> idle_;    ///< those that the last delivery emptied
  std::size_t staged_bytes_ = 0;
  std::unordered_map<std::uint32_t, std::size_t> owned_bytes_;  ///< by owner
  std::unordered_map<std::uint32_t, std::uint32_t> owners_;     ///< by slot of the ring
  MergeTree tree_;
  std::vector<Head> heads_;       ///< by index in the tree
  std::unique_ptr<Event[]> out_;  ///< the outgoing batch
  std::size_t out_count_ = 0;
  std::vector<std::byte> out_payloads_;
  std::uint64_t last_time_ = 0;  ///< newest time handed out
  std::uint64_t late_ = 0;
  std::uint64_t forced_ = 0;
};

}  // namespace rtev
