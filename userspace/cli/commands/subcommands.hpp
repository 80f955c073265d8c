// SPDX-License-Identifier: MIT
// The subcommands, a file each (X_command.cpp): their options and what they do.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/options.hpp"

namespace rtev::cli {

struct Subcommand {
  CLI::App* app;  ///< parses its options
  /// Runs it with the options that were parsed. Returns the exit status.
  std::function<int(const Invocation& invocation)> run;
  bool takes_command = false;  ///< "-- CMD ARG..." may follow the options
};

/// rtev-bpf without a subcommand: its options are those of `root` itself.
Subcommand add_live_command(CLI::App& root);
Subcommand add_ps_command(CLI::App& root);
Subcommand add_report_command(CLI::App& root);
Subcommand add_record_command(CLI::App& root);
Subcommand add_snap_command(CLI::App& root);
Subcommand add_top_command(CLI::App& root);
Subcommand add_summary_command(CLI::App& root);
Subcommand add_pauses_command(CLI::App& root);
Subcommand add_latency_command(CLI::App& root);
Subcommand add_stalls_command(CLI::App& root);
Subcommand add_tasks_command(CLI::App& root);
Subcommand add_stats_command(CLI::App& root);
Subcommand add_profile_command(CLI::App& root);
Subcommand add_allocs_command(CLI::App& root);
Subcommand add_diff_command(CLI::App& root);
Subcommand add_dump_command(CLI::App& root);
Subcommand add_convert_command(CLI::App& root);
Subcommand add_enable_command(CLI::App& root);
Subcommand add_disable_command(CLI::App& root);
Subcommand add_agent_command(CLI::App& root);
Subcommand add_doctor_command(CLI::App& root);

/// Of enable --dry-run: prints what it takes to switch the events of processes on. Returns the exit status.
int check_enabling(const std::vector<std::int32_t>& pids);

}  // namespace rtev::cli
