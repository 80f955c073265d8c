// SPDX-License-Identifier: MIT
// What the command line says, and the groups of options that subcommands share.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/format_table.hpp"
#include "rtev/error.hpp"

namespace rtev::cli {

enum class ColorMode : std::uint8_t { automatic, always, never };
enum class Sched : std::uint8_t { off, ocaml, all };
enum class Drain : std::uint8_t { off, known, all };

struct Options {
  std::vector<std::string> arguments;  ///< the whole command line, for headers
  std::vector<std::string> command;    ///< what follows "--"

  std::vector<std::int32_t> pids;
  std::vector<std::string> names;
  std::optional<std::chrono::nanoseconds> duration;
  std::string output;            ///< a path; "-" or empty for stdout
  std::optional<Format> format;  ///< nothing: as the command or the name of the output decides
  ColorMode color = ColorMode::automatic;
  std::string events;
  std::string ocaml_version;
  Sched sched = Sched::ocaml;
  Drain drain = Drain::known;
  std::optional<std::size_t> buffer_bytes;
  bool history = false;
  bool ringless = false;
  std::uint64_t ringless_limit = 100'000;
  bool quiet = false;
  bool verbose = false;

  std::string target;  ///< what `dump` and `convert` read, and analyses with -i

  // Of analyses.
  bool json_report = false;
  std::chrono::nanoseconds min{0};
  std::chrono::nanoseconds interval{0};
  std::string phase;
  bool olly_pauses = false;
  bool all_percentiles = false;
  std::size_t top = 10;
};

// Each adds one group of options to a command.
/// What `dump` and `convert` read.
void add_target(CLI::App& app, const char* name, Options& options);
void add_process_options(CLI::App& app, Options& options);
void add_output_options(CLI::App& app, Options& options);
/// The same for files that viewers open.
void add_trace_options(CLI::App& app, Options& options);
/// The same for reports, with where the stream comes from.
void add_report_options(CLI::App& app, Options& options);
void add_decode_options(CLI::App& app, Options& options);
void add_kernel_options(CLI::App& app, Options& options);
/// Those of `latency` alone.
void add_latency_options(CLI::App& app, Options& options);
/// --min
void add_min_option(CLI::App& app, Options& options);
void add_message_options(CLI::App& app, Options& options);

/// Exit statuses of our own; with "-- CMD" the command's is passed on.
inline constexpr int exit_ok = 0, exit_failure = 1, exit_usage = 2;

/// Prints "rtev-bpf: what subject: why" and, if there is one, "hint: ..." to stderr. Returns exit_failure.
int report(const Error& error);

// The commands. Each returns the exit status.
int run_live(const Options& options);
int run_record(const Options& options);
int run_ps(const Options& options);
int run_dump(const Options& options);
int run_convert(const Options& options);
int run_latency(const Options& options);
int run_pauses(const Options& options);
int run_stats(const Options& options);
int run_doctor(const Options& options);

}  // namespace rtev::cli
