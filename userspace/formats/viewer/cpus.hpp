// SPDX-License-Identifier: MIT
// Who runs on which cpu, for viewers that believe that a thread runs until it is said to leave.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "formats/viewer/trace_writer.hpp"

namespace rtev {

/// Notices threads whose leaving was not seen: it was dropped, or one program that is not traced followed another.
class Cpus {
 public:
  explicit Cpus(TraceWriter& writer) : writer_(writer) {}

  /// To be called before the switch itself is drawn. Tracks are null for the idle thread.
  void before(std::uint64_t time, const SchedSwitch& change, const Track* prev, const Track* next);
  /// Every thread leaves its cpu.
  void finish(std::uint64_t time);
  /// To be called for a track before it is forgotten.
  void forget(const Track& track, std::uint64_t time);

 private:
  struct Occupant {
    const Track* track;
    std::uint64_t since;
    bool tracked;
  };

  void vacate(std::uint32_t cpu, std::uint64_t time);

  TraceWriter& writer_;
  std::unordered_map<std::uint32_t, Occupant> cpus_;
  std::unordered_map<std::uint32_t, std::uint32_t> on_;  ///< cpu by track id
};

}  // namespace rtev
