// SPDX-License-Identifier: MIT
#include "session/live/sched_stager.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernel/sched_records.hpp"
#include "stream/records.hpp"

namespace rtev {
namespace {

/// Reads of the scheduler buffers in a row, where one did not empty them.
constexpr int max_rounds = 4;

/// Records of a buffer.
constexpr std::size_t max_records_in_a_round = 1 << 16;

Source source_of(std::uint16_t buffer) {
  return {0, static_cast<std::uint16_t>(first_sched_stream + buffer)};
}

}  // namespace

void SchedStager::stage(std::uint64_t now_ns, std::uint64_t max_records) {
  stage_records(max_records);
  // After the records: what was dropped before them then gets its place in the stream in front of them.
  stage_drops(now_ns);
}

void SchedStager::stage_records(std::uint64_t max_records) {
  const std::uint64_t buffers = source_.sched_buffers();
  if (buffers == 0) return;
  const std::size_t records_in_a_round = std::min<std::uint64_t>(max_records / buffers, max_records_in_a_round);
  if (records_in_a_round == 0) {
    behind_since_ns_ = behind_since_ns_.value_or(newest_ns_);
    return;
  }
  struct Read {
    std::size_t records = 0;
    std::uint64_t newest_ns = 0;
  };
  std::vector<Read> read;
  const auto is_traced = [this](const rtev_thread& thread) {
    return thread.tgid != 0 && traces_(static_cast<std::int32_t>(thread.tgid));
  };
  const auto stage = [&](std::uint16_t buffer, const rtev_sched& record) {
    ++read[buffer].records;
    read[buffer].newest_ns = record.time_ns;
    newest_ns_ = std::max<std::uint64_t>(newest_ns_, record.time_ns);
    // BPF tracks a process that maps a ring before it is known whether it is to be traced.
    if (record.type == RTEV_USAGE) {
      const ThreadUsage usage = kernel::to_usage(record);
      if (!traces_ || traces_(usage.pid)) timeline_.push(record.time_ns, source_of(buffer), EventKind::usage, 0, usage);
      return;
    }
    const bool wanted = !traces_ || is_traced(record.prev) || is_traced(record.next);
    if (record.type == RTEV_SWITCH) {
      const SchedSwitch change = kernel::to_switch(record);
      interrupted_.add(record.time_ns, change);
      if (wanted) timeline_.push(record.time_ns, source_of(buffer), EventKind::sched_switch, 0, change);
    } else if (wanted) {
      timeline_.push(record.time_ns, source_of(buffer), EventKind::wakeup, 0, kernel::to_wakeup(record));
    }
  };
  bool complete = false;
  const int rounds = records_in_a_round < max_records_in_a_round ? 1 : max_rounds;
  for (int round = 0; !complete && round < rounds; ++round) {
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
    timeline_.push(loss.from_ns, source_of(source_.sched_buffer_of(drop.cpu)), EventKind::lost,
                   static_cast<std::uint16_t>(LossReason::dropped), loss);
  }
}

}  // namespace rtev
