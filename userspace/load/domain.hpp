// SPDX-License-Identifier: MIT
// One domain of a load: writes the events of its plan, at a given pace or as fast as possible.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "load/pace.hpp"
#include "load/plan.hpp"
#include "rtev/ring_writer.hpp"

namespace rtev::load {

struct DomainOptions {
  std::optional<Pace> pace{};                ///< nothing: as fast as possible
  std::uint64_t events = UINT64_MAX;         ///< exactly as many, unless it ends earlier
  std::span<const UserEvent> user_events{};  ///< registered, in the order of load::user_events
};

/// The progress of a domain in its plan. One thread at a time may use it. Writer and plan must outlive it.
class DomainRun {
 public:
  DomainRun(DomainWriter writer, const Plan& plan, const DomainOptions& options)
      : writer_(writer), plan_(plan), options_(options) {}

  /// Writes until `end_ns` (CLOCK_MONOTONIC), until all events are written, or until a stop is requested. Completes the
  /// block, so that no span stays open, unless all events are written before.
  void run_until(std::uint64_t end_ns);

  bool is_done() const { return written_ == options_.events || failure_ != WriteStatus::written; }
  EventCounts counts() const { return plan_.counts(written_); }
  /// WriteStatus::written, or why an event could not be written. Nothing is written after that.
  WriteStatus failure() const { return failure_; }

 private:
  void run_unpaced(std::uint64_t end_ns);
  void run_paced(std::uint64_t end_ns);
  bool should_continue() const;
  void write_steps(std::uint64_t count);
  void finish_block();
  WriteStatus write(const Step& step);

  DomainWriter writer_;
  const Plan& plan_;
  DomainOptions options_;
  std::size_t position_ = 0;
  std::uint64_t written_ = 0;
  WriteStatus failure_ = WriteStatus::written;
};

}  // namespace rtev::load
