// SPDX-License-Identifier: MIT
// What a session takes from its sources, and what discovery tells it.
#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "base/clock.hpp"
#include "kernel/sched_events.hpp"
#include "session/live_session.hpp"

namespace rtev {
namespace {

/// Drains of the scheduler buffers in a row, where one did not empty them.
constexpr int most_sched_rounds = 4;

/// How long what was saved of a ring may stay behind that of another one that is being saved, and how often to look.
constexpr std::uint64_t drained_patience_ns = 50'000'000, drained_retry_ns = 100'000;

constexpr std::size_t sched_records_in_a_round = 1 << 16;

constexpr auto forever = std::numeric_limits<std::uint64_t>::max();

template <typename Payload>
std::span<const std::byte> bytes_of(const Payload& payload) {
  return std::as_bytes(std::span(&payload, 1));
}

}  // namespace

void LiveSession::take_sightings() {
  std::vector<Sighting> sightings = lookout_.take();
  // After that, so that nothing is left in there of a process whose end is among them.
  if (ringless_) ringless_->drain();
  for (Sighting& sighting : sightings) {
    if (ringless_) ringless_->place_until(sighting.record.time_ns, discovery_);
    discovery_.take(std::move(sighting));
  }
}

void LiveSession::take_sched() {
  struct Drained {
    std::size_t records = 0;
    std::uint64_t newest_ns = 0;
  };
  std::vector<Drained> drained;
  auto take = [&](std::uint16_t buffer, const rtev_sched& record) {
    ++drained[buffer].records;
    drained[buffer].newest_ns = record.time_ns;
    Event event{.time = record.time_ns,
                .value = 0,
                .source = Source{0, static_cast<std::uint16_t>(first_sched_stream + buffer)}.pack(),
                .id = 0,
                .kind = EventKind::sched_switch,
                .flags = 0};
    // The kernel side tracks a process that maps a ring before it is known whether it was asked for.
    const bool wanted = !is_filtered_ || discovery_.traces(static_cast<std::int32_t>(record.prev.tgid)) ||
                        discovery_.traces(static_cast<std::int32_t>(record.next.tgid));
    if (record.type == RTEV_SWITCH) {
      const SchedSwitch change = kernel::to_switch(record);
      interrupted_.add(record.time_ns, change);
      if (wanted) timeline_.push(event, bytes_of(change));
    } else if (wanted) {
      event.kind = EventKind::wakeup;
      timeline_.push(event, bytes_of(kernel::to_wakeup(record)));
    }
  };
  bool complete = false;
  for (int round = 0; !complete && round < most_sched_rounds; ++round) {
    drained.assign(programs_.sched_buffers(), {});
    complete = programs_.read_sched(take, sched_records_in_a_round);
  }
  sched_behind_since_ns_ = forever;
  for (const Drained& buffer : drained) {
    if (buffer.records >= sched_records_in_a_round)
      sched_behind_since_ns_ = std::min(sched_behind_since_ns_, buffer.newest_ns);
  }
}

void LiveSession::collect_drained() {
  programs_.read_saved(
      [this](const rtev_saved& record, std::span<const std::byte> payload) { drained_.add(record, payload); });
}

/// Comes after the records were taken: what was dropped before now is then known, and gets its place in the stream, in
/// front of what followed it.
void LiveSession::take_sched_drops() {
  for (const kernel::SchedDrop& drop : programs_.take_sched_drops(monotonic_ns())) {
    const Loss loss{.words = drop.switches + drop.wakeups, .from_ns = drop.first_ns, .to_ns = drop.last_ns};
    timeline_.push(
        {.time = loss.from_ns,
         .value = 0,
         .source =
             Source{0, static_cast<std::uint16_t>(first_sched_stream + programs_.sched_buffer_of(drop.cpu))}.pack(),
         .id = static_cast<std::uint16_t>(LossReason::dropped),
         .kind = EventKind::lost,
         .flags = 0},
        bytes_of(loss));
  }
}

void LiveSession::stage_ring_events(const Batch& batch) {
  const std::uint32_t slot = Source::unpack(batch.events().front().source).slot;
  if (undecided_.contains(slot)) {
    ProcessInfo& facts = registry_.process(registry_.ring(slot)->process);
    FamilyGuess guess;
    for (const Event& event : batch.events()) guess.add(event);
    if (facts.family_source == FamilySource::assumed && guess.family()) {
      facts.family = *guess.family();
      facts.family_source = FamilySource::ring;
    }
    if (facts.family_source != FamilySource::assumed) undecided_.erase(slot);
  }
  note_ring_stop(batch);
  timeline_.push(batch);
}

/// A ring says itself that it stops; the probe that says so, too, may have been attached too late.
void LiveSession::note_ring_stop(const Batch& batch) {
  for (const Event& event : batch.events()) {
    if (event.kind != EventKind::lifecycle || event.id != ring_stop) continue;
    const RingInfo* ring = registry_.ring(Source::unpack(event.source).slot);
    if (ring == nullptr) return;
    RingState& state = registry_.process(ring->process).ring;
    if (state == RingState::stopped || state == RingState::shared) return;
    state = RingState::stopped;
    on_process(event.time, ProcessAction::stop, {.process = ring->process, .peer = 0, .detail = 0});
  }
}
void LiveSession::on_process(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) {
  timeline_.push({.time = time_ns,
                  .value = 0,
                  .source = Source{0, lifecycle_stream}.pack(),
                  .id = static_cast<std::uint16_t>(action),
                  .kind = EventKind::process,
                  .flags = 0},
                 bytes_of(record));
}

void LiveSession::on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) {
  rings_.add(slot, process, std::move(ring), monotonic_ns());
  if (ringless_) ringless_->on_ring(process, monotonic_ns());
  if (!registry_.ring(slot)->producer) undecided_.insert(slot);
}

void LiveSession::on_announced(std::int32_t pid, std::uint64_t birth_ns) {
  programs_.ring_opened(pid, birth_ns);
}

bool LiveSession::is_latest_ring(std::int32_t pid, std::uint64_t birth_ns) {
  return programs_.is_latest_ring(pid, birth_ns);
}

void LiveSession::on_found(std::int32_t pid, const rtev_ring& ring) {
  programs_.ring_found(pid, ring);
}

void LiveSession::on_image_end(ProcessIndex process, const std::vector<std::uint32_t>& slots, std::uint64_t birth_ns,
                               std::uint64_t time_ns, bool by_exec) {
  const std::uint64_t now = monotonic_ns();
  ProcessInfo& facts = registry_.process(process);
  facts.words = {};
  facts.domains = 0;
  for (const std::uint32_t slot : slots) {
    rings_.finish(slot, time_ns, now, facts,
                  [&] { return slot == slots.back() ? take_drained(facts.pid, birth_ns, birth_ns) : std::nullopt; });
  }
  drained_.forget(facts.pid, time_ns);
  std::vector<std::uint32_t> all_slots = slots;
  if (ringless_) ringless_->end_image(process, {.time_ns = time_ns, .by_exec = by_exec}, discovery_, all_slots);
  retirees_.push_back({.time_ns = std::max(time_ns, now), .process = process, .slots = std::move(all_slots)});
}

void LiveSession::on_track(std::int32_t pid, const rtev_tracked& tracked) {
  // Fails, and is counted as a drop, when as many are tracked as can be. The ring is read all the same, less promptly.
  [[maybe_unused]] const auto result = programs_.track(pid, tracked);
  if (ringless_ && tracked.slot == 0 && tracked.binary != 0) ringless_->want(tracked.binary);
}

void LiveSession::on_untrack(std::int32_t pid) {
  programs_.untrack(pid);
}

std::optional<DrainedFile> LiveSession::take_drained(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns) {
  // Whoever is in front may have been interrupted while it kept its ring, by this very thread.
  const std::uint64_t deadline = monotonic_ns() + drained_patience_ns;
  for (collect_drained(); programs_.has_unread_saved() && monotonic_ns() < deadline; collect_drained())
    std::this_thread::sleep_for(std::chrono::nanoseconds(drained_retry_ns));
  return drained_.take(pid, from_ns, to_ns);
}

}  // namespace rtev
