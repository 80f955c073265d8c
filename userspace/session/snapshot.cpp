// SPDX-License-Identifier: MIT
#include "session/snapshot.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "ring/reader_access.hpp"
#include "session/run_header.hpp"
#include "stream/timeline.hpp"

namespace rtev {
namespace {

/// Words read from one domain in one read, at most.
constexpr std::uint64_t quantum_words = 1 << 16;

/// Words that all domains together may be read ahead, besides a batch of each. So many staged events stay below the
/// bound at which the timeline would give up their order.
constexpr std::uint64_t max_words_ahead = 1 << 22;

struct DomainProgress {
  std::uint64_t goal = 0;       ///< words written when the snapshot was taken
  std::uint64_t last_time = 0;  ///< of the newest event read
  bool done = false;
};

}  // namespace

RunSummary dump_snapshot(RingReader ring, const SnapshotOptions& options, Sink& sink, Registry& registry) {
  const std::uint64_t start = monotonic_ns();
  const auto reader = std::make_shared<RingReader>(std::move(ring));
  const std::uint32_t domains = reader->layout().rings;
  const ProcessIndex process = registry.add_process(options.process);
  const std::uint32_t slot =
      registry.add_ring({.process = process,
                         .domains = domains,
                         .producer = reader->producer(),
                         .user_event_name = [reader](std::uint16_t id) { return reader->user_event_name(id); }});
  RingReaderAccess::set_slot(*reader, slot);
  RunSummary summary{.whole_ring = true};
  // The times of a file may be from another host or boot, so the current time means nothing.
  Timeline timeline([] { return forever; });
  bool has_header = false;
  std::uint64_t first_time = start, last_time = start;
  const auto deliver = [&](std::uint64_t watermark) {
    timeline.deliver(watermark, [&](const Batch& batch) {
      // The header has the time of the first event, since that of reading the ring means nothing.
      last_time = batch.events().back().time;
      if (!std::exchange(has_header, true)) {
        first_time = batch.events().front().time;
        sink.header(make_run_header(options.command_line, first_time));
      }
      for (const Event& event : batch.events()) ++summary.events[static_cast<std::size_t>(event.kind)];
      sink.consume(batch, registry);
    });
  };

  std::vector<DomainProgress> progress(domains);
  for (std::uint32_t domain = 0; domain < domains; ++domain) {
    progress[domain].goal = reader->accounting(static_cast<std::uint16_t>(domain)).written;
    progress[domain].done = progress[domain].goal == 0;
  }
  while (true) {
    auto behind = progress.end();
    for (auto domain = progress.begin(); domain != progress.end(); ++domain) {
      if (!domain->done && (behind == progress.end() || domain->last_time < behind->last_time)) behind = domain;
    }
    if (behind == progress.end()) break;
    // Not the events of that time itself: another source may have more, which come first.
    if (behind->last_time != 0) deliver(behind->last_time - 1);
    const auto domain = static_cast<std::uint16_t>(behind - progress.begin());
    const Polled polled = reader->poll_domain(
        domain,
        [&](const Batch& batch) {
          behind->last_time = std::max(behind->last_time, batch.events().back().time);
          timeline.push(batch);
        },
        std::min(quantum_words, max_words_ahead / domains));
    const Accounting words = reader->accounting(domain);
    behind->done = polled.complete || reader->truncated() || words.written - words.unread >= behind->goal;
  }
  // Losses at the end get the time of the newest event.
  const std::uint64_t newest = std::ranges::max(progress, {}, &DomainProgress::last_time).last_time;
  reader->finish([&](const Batch& batch) { timeline.push(batch); }, newest);
  deliver(forever);
  if (!has_header) sink.header(make_run_header(options.command_line, start));

  ProcessInfo& info = registry.process(process);
  info.words = reader->accounting();
  info.domains = reader->active_domains();
  if (reader->truncated()) info.ring = RingState::truncated;
  summary.start_ns = first_time;
  summary.end_ns = last_time;
  summary.late = timeline.late();
  fill_own_cost(summary);
  sink.summary(summary, registry);
  sink.flush();
  return summary;
}

std::optional<Family> guess_family(RingReader& ring) {
  // Only 5.0 leaves no room for the names of user events.
  if (!ring.layout().has_names) return Family::before_5_3;
  FamilyGuess guess;
  const auto look = [&](const Batch& batch) {
    for (const Event& event : batch.events()) guess.add(event);
  };
  for (std::uint32_t domain = 0; domain < ring.layout().rings && !guess.family(); ++domain) {
    const std::uint64_t max_polls = 2 + ring.layout().ring_words / quantum_words;
    for (std::uint64_t polls = 0; polls < max_polls && !guess.family(); ++polls) {
      if (ring.poll_domain(static_cast<std::uint16_t>(domain), look, quantum_words).complete) break;
    }
  }
  return guess.family();
}

}  // namespace rtev
