// SPDX-License-Identifier: MIT
// One domain of a load: goes through its plan, at its pace or as fast as it can.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "load/pace.hpp"
#include "load/plan.hpp"
#include "rtev/ring_writer.hpp"

namespace rtev::load {

struct DomainOptions {
  std::optional<Pace> pace{};                ///< none: as fast as it can
  std::uint64_t events = UINT64_MAX;         ///< as many and no more
  std::span<const UserEvent> user_events{};  ///< as registered, in the order of load::user_events
};

/// Where a domain is in its plan. It may go from thread to thread, one at a time. Writer and plan must outlive it.
class DomainRun {
 public:
  DomainRun(DomainWriter writer, const Plan& plan, const DomainOptions& options)
      : writer_(writer), plan_(plan), options_(options) {}

  /// Writes until that time, until all events are written or until the end is asked for. No span is left open then,
  /// unless the number of events demands it.
  void run_until(std::uint64_t end_ns);

  bool is_done() const { return written_ == options_.events || failure_ != WriteStatus::written; }
  EventCounts counts() const { return plan_.counts(written_); }
  /// WriteStatus::written, or why an event could not be written. Nothing is written after that.
  WriteStatus failure() const { return failure_; }

 private:
  void run_flat_out(std::uint64_t end_ns);
  void run_paced(std::uint64_t end_ns);
  bool goes_on() const;
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
