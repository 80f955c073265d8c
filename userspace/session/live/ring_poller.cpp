// SPDX-License-Identifier: MIT
#include "session/live/ring_poller.hpp"

#include <algorithm>

#include "ring/reader_access.hpp"

namespace rtev {
namespace {

/// No OCaml program writes faster into one ring: measured at 18 M events/s of 2.3 words.
constexpr std::uint64_t max_words_per_second = 42'000'000;

/// Share of a ring that may fill up between two polls.
constexpr double fill_goal = 0.25;

constexpr std::uint64_t min_interval_ns = 200'000;
constexpr std::uint64_t max_interval_ns = 10'000'000;

/// A process that writes without ever being seen running is read this late, and so is a domain whose
/// number is far beyond the others'.
constexpr std::uint64_t full_poll_interval_ns = 1'000'000'000;

/// A thread that has been running since before its ring was watched is noticed with its next switch: after this time at
/// the latest, on any cpu.
constexpr std::uint64_t unwatched_ns = 2'000'000'000;

/// Polls of a ring in a row, if one did not reach its end.
constexpr int max_rounds = 8;

}  // namespace

void RingPoller::add(std::uint32_t slot, ProcessIndex process, std::shared_ptr<RingReader> ring, std::uint64_t now_ns) {
  rings_.insert_or_assign(
      slot, Ring{.process = process, .reader = std::move(ring), .unwatched_until_ns = now_ns + unwatched_ns});
}

bool RingPoller::poll(std::uint64_t now_ns, const std::function<bool(std::uint32_t)>& ran) {
  const std::uint64_t elapsed = std::max<std::uint64_t>(now_ns - last_poll_ns_, 1);
  last_poll_ns_ = now_ns;
  const bool all = now_ns - last_full_poll_ns_ >= full_poll_interval_ns;
  if (all) last_full_poll_ns_ = now_ns;

  interval_ns_ = max_interval_ns;
  behind_since_ns_.reset();
  bool any_ran = false;
  for (auto& [slot, ring] : rings_) {
    const bool seen = ran(slot);
    const bool active = seen || ring.unfinished || now_ns < ring.unwatched_until_ns;
    any_ran |= active;
    if (active || all) read(ring, elapsed, all);
  }
  return any_ran;
}

void RingPoller::read(Ring& ring, std::uint64_t elapsed_ns, bool all_domains) {
  Polled polled = all_domains ? ring.reader->poll(consumer_) : RingReaderAccess::poll_used(*ring.reader, consumer_);
  const double fill = std::max(polled.fullest, 1e-9);
  // What the fastest writer needs to fill the ring, and what this one needs to fill a part if it goes on as it did.
  const double fastest_ns = static_cast<double>(ring.reader->layout().ring_words) * 1e9 / max_words_per_second;
  const double observed_ns = static_cast<double>(elapsed_ns) * fill_goal / fill;
  const auto interval = static_cast<std::uint64_t>(std::clamp(std::min(fastest_ns, observed_ns), 1.0, 1e9));
  interval_ns_ = std::clamp(std::min(interval, interval_ns_), min_interval_ns, max_interval_ns);

  for (int round = 1; !polled.complete && round < max_rounds; ++round) polled = ring.reader->poll(consumer_);
  ring.unfinished = !polled.complete;
  if (polled.complete) return;
  if (const auto behind = RingReaderAccess::behind_since_ns(*ring.reader))
    behind_since_ns_ = std::min(behind_since_ns_.value_or(*behind), *behind);
}

void RingPoller::finish_all(std::uint64_t now_ns) {
  for (auto& [slot, ring] : rings_) {
    read(ring, 1, true);
    ring.reader->finish(consumer_, now_ns);
  }
}

void RingPoller::finish(std::uint32_t slot, std::uint64_t ended_ns, std::uint64_t now_ns, ProcessInfo& info,
                        const Saved& saved) {
  const auto found = rings_.find(slot);
  if (found == rings_.end()) return;
  RingReader& reader = *found->second.reader;
  RingReaderAccess::seal(reader, ended_ns);
  read_out(reader);
  const bool taken_over = RingReaderAccess::taken_over(reader);
  const bool whole = !reader.truncated() || read_saved(reader, saved);
  reader.finish(consumer_, now_ns);
  add_figures(reader, info);
  taken_over_ += taken_over && !whole;
  rings_.erase(found);
}

/// The ring is no longer written, so this ends. If its file is changed nevertheless, reading stops after as many words
/// as the ring has.
void RingPoller::read_out(RingReader& reader) const {
  const std::uint64_t max_polls =
      2 + reader.layout().rings * reader.layout().ring_words / RingReader::default_budget_words;
  for (std::uint64_t polls = 0; polls < max_polls && !reader.poll(consumer_).complete; ++polls) {
  }
}

/// True if the saved copy is known to be complete.
bool RingPoller::read_saved(RingReader& reader, const Saved& saved) const {
  auto rest = saved();
  if (!rest || !RingReaderAccess::continue_in_copy(reader, rest->fd.release())) return false;
  for (const CutDomain& cut : rest->cut) RingReaderAccess::expect_words(reader, cut.domain, cut.written);
  read_out(reader);
  return rest->last;
}

void RingPoller::update(Registry& registry) const {
  for (const auto& [slot, ring] : rings_) {
    registry.process(ring.process).words = {};
    registry.process(ring.process).domains = 0;
  }
  for (const auto& [slot, ring] : rings_) add_figures(*ring.reader, registry.process(ring.process));
}

void RingPoller::add_figures(const RingReader& reader, ProcessInfo& info) {
  info.words += reader.accounting();
  info.domains += reader.active_domains();
  if (reader.truncated() && !RingReaderAccess::taken_over(reader)) info.ring = RingState::truncated;
}

}  // namespace rtev
