// SPDX-License-Identifier: MIT
// What ps prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "session/process_lister.hpp"
#include "stream/registry.hpp"

namespace rtev::cli {

/// What is known of a process.
struct PsRow {
  const ProcessInfo* info;
  ProcessUse use{};
  std::optional<bool> is_enabled = false;     ///< by rtev-bpf; nothing: only root may know
  std::optional<double> gc_share{};           ///< of the time of its domains, 0 to 1
  std::optional<std::uint64_t> heap_bytes{};  ///< major heap, as its last counter says
  double uptime_s = 0;
};

/// A line a process. Names are escaped. Lines are cut to so many columns, and programs have no directory; 0: neither.
std::string ps_table(std::span<const PsRow> rows, std::size_t columns);

/// For scripts: a line "PID TAB NAME" for each process that has not ended. Names are escaped.
std::string ps_names(std::span<const PsRow> rows);

/// One object; see docs/json.md.
std::string ps_json(std::span<const PsRow> rows, double sample_s);

}  // namespace rtev::cli
