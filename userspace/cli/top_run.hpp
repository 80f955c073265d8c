// SPDX-License-Identifier: MIT
// The runs of `rtev-bpf top`: on a screen or as text, live or of a recording.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/options.hpp"
#include "top/columns.hpp"

namespace rtev::cli {

struct TopOptions : TraceOptions {
  std::string input{};  ///< a recording; empty: live
  std::chrono::nanoseconds interval{std::chrono::seconds{1}};
  std::string sort = "worst";
  std::string filter{};  ///< of the screen, at first
  bool by_process = false;
  bool batch = false;
  bool json = false;
  std::uint64_t max_intervals = 0;  ///< of batch mode; 0: no limit
  std::chrono::nanoseconds keep{std::chrono::seconds{10}};
  std::string dumps{};  ///< directory; empty: see default_dump_directory()

  const top::Column* sorted_by() const { return top::column_named(sort); }
};

/// Returns the exit status.
int run_top(const TopOptions& options, const Invocation& invocation);

}  // namespace rtev::cli
