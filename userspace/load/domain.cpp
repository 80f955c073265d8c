// SPDX-License-Identifier: MIT
#include "load/domain.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "load/event_clock.hpp"
#include "load/stop.hpp"

namespace rtev::load {
namespace {

/// Steps between two checks of the clock and of a requested stop.
constexpr std::size_t steps_per_check = 256;
/// The same for a domain that is behind its pace.
constexpr std::uint64_t max_catch_up_steps = 4096;

}  // namespace

void DomainRun::run_until(std::uint64_t end_ns) {
  if (options_.pace)
    run_paced(end_ns);
  else
    run_unpaced(end_ns);
  finish_block();
}

bool DomainRun::should_continue() const {
  return !is_done() && !stop_requested();
}

void DomainRun::run_unpaced(std::uint64_t end_ns) {
  while (should_continue()) {
    const std::size_t size = plan_.steps().size();
    const std::size_t end = plan_.block_end(std::min(position_ + steps_per_check, size));
    write_steps(std::min<std::uint64_t>(end - position_, options_.events - written_));
    if (end_ns != never && monotonic_ns() >= end_ns) return;
  }
}

void DomainRun::run_paced(std::uint64_t end_ns) {
  while (should_continue()) {
    const std::uint64_t now = monotonic_ns();
    // Events that are due at the end or later are not written.
    const std::uint64_t wanted = std::min(options_.events, options_.pace->due(std::min(now, end_ns - 1)));
    if (written_ < wanted) {
      refresh_time();
      write_steps(std::min<std::uint64_t>(wanted - written_, max_catch_up_steps));
    }
    if (now >= end_ns) return;
    if (written_ >= wanted && !is_done()) sleep_until(std::min(end_ns, options_.pace->wake(written_)));
  }
}

void DomainRun::write_steps(std::uint64_t count) {
  const auto steps = plan_.steps();
  while (count > 0) {
    const std::size_t run = std::min<std::uint64_t>(count, steps.size() - position_);
    for (const Step& step : steps.subspan(position_, run)) {
      const WriteStatus status = write(step);
      if (status != WriteStatus::written) [[unlikely]] {
        failure_ = status;
        written_ += static_cast<std::uint64_t>(&step - &steps[position_]);
        return;
      }
    }
    written_ += run;
    position_ = position_ + run == steps.size() ? 0 : position_ + run;
    count -= run;
  }
}

void DomainRun::finish_block() {
  if (is_done()) return;
  write_steps(std::min<std::uint64_t>(plan_.block_end(position_) - position_, options_.events - written_));
}

WriteStatus DomainRun::write(const Step& step) {
  switch (step.kind) {
    case EventKind::begin:
      return writer_.begin(Phase{step.id});
    case EventKind::end:
      return writer_.end(Phase{step.id});
    case EventKind::counter:
      return writer_.counter(Counter{step.id}, step.value);
    case EventKind::alloc:
      return writer_.alloc(plan_.buckets(step));
    case EventKind::user_unit:
      return writer_.write(options_.user_events[step.id]);
    case EventKind::user_int:
      return writer_.write(options_.user_events[step.id], static_cast<std::int32_t>(step.value));
    case EventKind::user_begin:
      return writer_.begin(options_.user_events[step.id]);
    case EventKind::user_end:
      return writer_.end(options_.user_events[step.id]);
    case EventKind::user_custom:
      return writer_.write(options_.user_events[step.id], plan_.payload(step));
    default:
      return WriteStatus::bad_id;  // plans have no other kinds
  }
}

}  // namespace rtev::load
