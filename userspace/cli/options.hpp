// SPDX-License-Identifier: MIT
// Groups of options that several subcommands share. Each add function adds one group to a subcommand.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/limits.hpp"
#include "bpf/records.h"
#include "formats/format_table.hpp"
#include "formats/output/free_space.hpp"
#include "session/live/thread_priority.hpp"
#include "stream/thread_selection.hpp"
#include "stream/window.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rtev::cli {

enum class ColorMode : std::uint8_t { automatic, always, never };

/// What the command line says besides options.
struct Invocation {
  std::vector<std::string> arguments;  ///< the whole command line, recorded in the stream's header
  std::vector<std::string> command;    ///< CMD ARG... behind "--"
};

/// Which processes, and for how long.
struct ProcessOptions {
  std::vector<std::int32_t> pids{};
  std::vector<std::string> names{};  ///< globs
  std::optional<std::chrono::nanoseconds> duration{};

  /// True if not all processes are meant.
  bool select() const { return !pids.empty() || !names.empty(); }
};
/// -p
void add_pid_option(CLI::App& app, std::vector<std::int32_t>& pids);
void add_process_options(CLI::App& app, ProcessOptions& options, const std::string& name_flags = "-n,--name");

/// What all subcommands take that read a stream, live or recorded.
struct ReadOptions : ProcessOptions {
  Window window{};            ///< of a recording; its duration is in ProcessOptions
  std::string ocaml_version;  ///< empty: detected
  bool quiet = false;
};
/// Those that ProcessOptions does not have.
void add_common_options(CLI::App& app, ReadOptions& options);

/// Which stacks a trace takes. Recordings have those that were taken.
struct StackOptions {
  bool on_cpu = false;                                                 ///< at intervals of CPU time
  bool off_cpu = false;                                                ///< of sleeps
  bool allocations = false;                                            ///< where minor heaps are used up
  unsigned rate_hz = 99;                                               ///< of on_cpu
  std::chrono::nanoseconds off_cpu_min{std::chrono::milliseconds{1}};  ///< shorter sleeps have no stack

  bool any() const { return on_cpu || off_cpu || allocations; }
  /// Without BPF stacks are taken on a CPU only: `profile --off-cpu` and `allocs` would show nothing.
  bool need_bpf() const { return off_cpu != allocations || (any() && !on_cpu); }
};
/// Whether a command takes stacks only with --stacks, or decides itself which it takes.
enum class StackUse : std::uint8_t { optional, by_command };

/// What all subcommands take that trace.
struct TraceOptions : ReadOptions {
  rtev_sched_mode sched = RTEV_SCHED_OCAML;
  std::optional<rtev_save_mode> save_rings{};
  bool ringless = false;
  std::uint64_t ringless_limit = 100'000;  ///< events per second
  bool enable = false;
  bool leave_on = false;
  bool allow_confined = false, allow_readable = false;
  std::uint32_t enable_rate = 50;  ///< programs per second
  bool history = false;
  StackOptions stacks{};
  std::optional<std::size_t> buffer_bytes;
  std::size_t memory_limit = std::size_t{256} << 20;
  int priority = default_priority;
  bool verbose = false;
};
/// Only those of tracing itself.
void add_trace_options(CLI::App& app, TraceOptions& options, StackUse stacks = StackUse::optional);

/// How much of a disk the files of a live stream may take.
struct DiskOptions {
  std::uint64_t max_bytes = 0;  ///< of a file; 0: no limit
  std::size_t max_files = 0;    ///< then the oldest one goes; 0: the stream ends with the first
  FreeSpaceFloor min_free{};    ///< the stream ends below
};
/// Those of OutputOptions::disk. Without `always_file` they need -o.
/// --min-free: how much of a disk is left free.
CLI::Option* add_min_free_option(CLI::App& app, FreeSpaceFloor& floor, const std::string& help);
void add_disk_options(CLI::App& app, DiskOptions& options, bool always_file);

/// Where a stream is written, and how.
struct OutputOptions {
  std::string path;              ///< "-" or empty for stdout
  std::optional<Format> format;  ///< without it the suffix of the path decides, then the subcommand
  ColorMode color = ColorMode::automatic;
  std::string events;              ///< see EventFilter; empty: all
  bool all = false;                ///< also on a terminal every event has a line
  std::chrono::nanoseconds min{};  ///< see SinkOptions::min_ns
  ThreadSelection threads{};
  std::string label{};      ///< see SinkOptions::label
  bool all_frames = false;  ///< see SinkOptions::all_frames
  DiskOptions disk{};
};
/// For people or line-oriented programs, stdout by default.
void add_output_options(CLI::App& app, OutputOptions& options);
/// For a file, stdout only if it is named.
void add_recording_options(CLI::App& app, OutputOptions& options);

/// A live stream or a recording.
struct StreamOptions : TraceOptions {
  OutputOptions output;
};

/// A stream that is read and written again.
struct CopyOptions : ReadOptions {
  std::string input;  ///< a recording, a ring file, or a process id
  OutputOptions output;
};
/// Those of ProcessOptions, too.
void add_input_options(CLI::App& app, CopyOptions& options);

/// -i, and those of ProcessOptions and Window: with -i they select what is read of it.
CLI::Option* add_selected_input(CLI::App& app, std::string& input, ReadOptions& options, const std::string& name_flags);
/// The options of add_trace_options() say how to trace: they have no effect on an input.
void exclude_tracing(CLI::App& app, CLI::Option& input);

/// A report.
struct ReportOptions {
  std::string output;  ///< "-" or empty for stdout
  bool json = false;
  bool full = false;  ///< --full or -v
  /// Of files that the subcommand writes instead of its report. Set before the options are added.
  std::vector<std::string_view> file_suffixes{};
};

/// What all analyses take.
struct AnalysisOptions : TraceOptions, ReportOptions {
  std::string input;            ///< analyse this instead of tracing; empty: trace
  std::vector<Limit> limits{};  ///< --fail-if
};
void add_analysis_options(CLI::App& app, AnalysisOptions& options, StackUse stacks = StackUse::optional);

/// Two recordings that are compared.
struct CompareOptions : ReadOptions, ReportOptions {
  std::string before, after;  ///< "-" for stdin
};
/// Without a process id: those of two recordings differ.
void add_compare_options(CLI::App& app, CompareOptions& options);

/// --by program|process
void add_rows_option(CLI::App& app, bool& by_process);
/// -f text|json
void add_json_option(CLI::App& app, bool& json);
/// --min
void add_min_option(CLI::App& app, std::chrono::nanoseconds& min);

}  // namespace rtev::cli
