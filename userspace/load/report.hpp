// SPDX-License-Identifier: MIT
// The exact numbers of written events: each process sends them to its parent, which prints them as JSON.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "load/plan.hpp"

namespace rtev::load {

struct DomainReport {
  EventCounts events{};        ///< written to the domain's ring, by kind
  std::uint64_t words = 0;     ///< written to the ring, padding included
  std::uint64_t first_ns = 0;  ///< time of the first event; 0 if there is none
  std::uint64_t last_ns = 0;

  std::uint64_t total() const;
  bool operator==(const DomainReport&) const = default;
};

struct ProcessReport {
  pid_t pid = 0;
  std::string path;               ///< of its ring file
  std::uint64_t duration_ns = 0;  ///< from its first event to its last
  std::vector<DomainReport> domains;

  bool operator==(const ProcessReport&) const = default;
};

/// The report as bytes, and back; nothing if the bytes are incomplete. Only for processes of the same program.
std::string encode(const ProcessReport& report);
std::optional<ProcessReport> decode(std::string_view bytes);

/// Sums over all processes that have ended.
struct Totals {
  std::uint64_t processes = 0;
  EventCounts events{};
  std::uint64_t words = 0;

  void add(const ProcessReport& report);
  std::uint64_t total() const;
};

/// The JSON report, with a line for each process: header, processes separated by commas, footer.
std::string json_header();
std::string json_process(const ProcessReport& report);
std::string json_footer(const Totals& totals, std::uint64_t duration_ns);

}  // namespace rtev::load
