// SPDX-License-Identifier: MIT
#include "session/sched_stager.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "kernel/sched_events.hpp"
#include "stream/records.hpp"

namespace rtev {
namespace {

/// Reads of the scheduler buffers in a row, where one did not empty them.
constexpr int max_rounds = 4;

constexpr std::size_t records_in_a_round = 1 << 16;

template <typename Payload>
std::span<const std::byte> bytes_of(const Payload& payload) {
  return std::as_bytes(std::span(&payload, 1));
}

std::uint32_t source_of(std::uint16_t buffer) {
  return Source{0, static_cast<std::uint16_t>(first_sched_stream + buffer)}.pack();
}

}  // namespace

void SchedStager::stage(std::uint64_t now_ns) {
  stage_records();
  // After the records: what was dropped before them then gets its place in the stream in front of them.
  stage_drops(now_ns);
}

void SchedStager::stage_records() {
  struct Read {
    std::size_t records = 0;
    std::uint64_t newest_ns = 0;
  };
  std::vector<Read> read;
  const auto stage = [&](std::uint16_t buffer, const rtev_sched& record) {
    ++read[buffer].records;
    read[buffer].newest_ns = record.time_ns;
    Event event{.time = record.time_ns,
                .value = 0,
                .source = source_of(buffer),
                .id = 0,
                .kind = EventKind::sched_switch,
                .flags = 0};
    // BPF tracks a process that maps a ring before it is known whether it is to be traced.
    const bool wanted = !traces_ || traces_(static_cast<std::int32_t>(record.prev.tgid)) ||
                        traces_(static_cast<std::int32_t>(record.next.tgid));
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
  for (int round = 0; !complete && round < max_rounds; ++round) {
    read.assign(source_.sched_buffers(), {});
    complete = source_.read_sched(stage, records_in_a_round);
  }
  behind_since_ns_.reset();
  for (const Read& buffer : read) {
    if (buffer.records >= records_in_a_round)
      behind_since_ns_ = std::min(behind_since_ns_.value_or(buffer.newest_ns), buffer.newest_ns);
  }
}

void SchedStager::stage_drops(std::uint64_t now_ns) {
  for (const kernel::SchedDrop& drop : source_.take_sched_drops(now_ns)) {
    const Loss loss{.words = drop.switches + drop.wakeups, .from_ns = drop.first_ns, .to_ns = drop.last_ns};
    timeline_.push({.time = loss.from_ns,
                    .value = 0,
                    .source = source_of(source_.sched_buffer_of(drop.cpu)),
                    .id = static_cast<std::uint16_t>(LossReason::dropped),
                    .kind = EventKind::lost,
                    .flags = 0},
                   bytes_of(loss));
  }
}

}  // namespace rtev
