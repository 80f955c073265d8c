// SPDX-License-Identifier: MIT
// The agent that this one replaces, as this one sees it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "base/unique_fd.hpp"
#include "cli/agent/handover.hpp"
#include "rtev/error.hpp"

namespace rtev::cli {

/// One thread.
class Predecessor {
 public:
  /// Asks it for its offer, and waits for that, but not for long. Call it before the tracer is confined.
  static Result<Predecessor> ask(pid_t pid);

  pid_t pid() const { return pid_; }
  Offer& offer() { return offer_; }
  /// Readable (epoll) when receive() has something to do.
  int event_fd() const { return connection_.get(); }
  /// This agent counts from this time on (CLOCK_MONOTONIC), and switches events on itself, or not. False if the other
  /// one is gone.
  bool take_at(std::uint64_t time_ns, bool enables) const;

  enum class News : std::uint8_t { none, figures, failed, gone };
  /// What has come; each once.
  News receive();
  /// After News::figures.
  Result<Figures> figures() const { return figures_of(last_); }
  /// After News::failed.
  Error failure() const;

 private:
  Predecessor(pid_t pid, UniqueFd connection, Offer offer)
      : pid_(pid), connection_(std::move(connection)), offer_(std::move(offer)) {}

  pid_t pid_;
  UniqueFd connection_;
  Offer offer_;
  AgentMessage last_{};
};

}  // namespace rtev::cli
