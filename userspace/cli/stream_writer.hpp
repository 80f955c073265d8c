// SPDX-License-Identifier: MIT
// Where a stream is written and in which format, as the options say.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/file_series.hpp"
#include "cli/options.hpp"
#include "formats/output/output.hpp"
#include "formats/text/run_summary.hpp"
#include "stream/filter.hpp"
#include "stream/seen_threads.hpp"
#include "stream/sink.hpp"

namespace rtev::cli {

/// The sink that writes a stream, and the file behind it.
class StreamWriter {
 public:
  /// Opens options.path. The format is options.format, else that of the path's suffix, or `otherwise` if it has none.
  /// Refuses to write binary formats to a terminal.
  static Result<StreamWriter> open(const OutputOptions& options, Format otherwise);

  /// To stderr: what was written, what is lacking, and what --events, --domain and --tid matched nothing of. `facts`:
  /// of the output of the run that is summed up.
  void print_summary(const RunSummary& summary, const Registry& registry, bool full, const OutputFacts& facts) const;
  /// Of a live run, when it has ended.
  OutputFacts facts() const;

  Sink& sink() { return *sinks_.back(); }
  FileSeries& files() { return *files_; }
  const FileSeries& files() const { return *files_; }
  const FdOutput& file() const { return files_->file(); }
  const Output& output() const { return files_->output(); }
  /// See Tracing.
  std::chrono::nanoseconds max_delay() const;
  Format format() const { return format_; }
  /// True if the format has the services of processes.
  bool shows_services() const { return format_ == Format::fxt || format_ == Format::csv; }
  /// Of the file, for messages.
  const std::string& name() const { return file().name(); }

  /// Adds a sink that passes the stream on to sink().
  void add(std::unique_ptr<Sink> sink) { sinks_.push_back(std::move(sink)); }

 private:
  FileSeries* files_ = nullptr;               ///< the first sink
  std::vector<std::unique_ptr<Sink>> sinks_;  ///< each passes the stream on to the one before it; the first writes
  const FilterSink* filter_ = nullptr;        ///< of --events; one of them
  const SeenThreads* seen_ = nullptr;         ///< of --domain and --tid; one of them
  Format format_ = Format::text;
};

/// If so, the stdout of CMD must go elsewhere. On a terminal people read both.
bool is_data_on_stdout(const FdOutput& file);

/// What a stream looks like for which no format is given: on a terminal brief, unless each event is asked for.
Format format_for_people(const OutputOptions& options);

/// Passes a stream on. After its summary, while the registry still has the processes' names, calls a function.
class AtEnd final : public ForwardingSink {
 public:
  using Conclude = std::function<void(const RunSummary& summary, const Registry& registry)>;
  AtEnd(Sink& sink, Conclude conclude) : ForwardingSink(sink), conclude_(std::move(conclude)) {}

  void summary(const RunSummary& summary, const Registry& registry) override {
    sink_.summary(summary, registry);
    conclude_(summary, registry);
  }

 private:
  Conclude conclude_;
};

/// Why a stream has ended although nothing failed, if so, to stderr. Returns the exit status: a disk that got low is a
/// failure, a file of the wanted size is not.
int report_full(const StreamWriter& writer);

/// Ignores SIGPIPE and SIGXFSZ, so that failed writes return errors. Call it after CMD is started, which would inherit
/// that.
void survive_output_failures();

/// The exit status, unless the output failed: then reports the error, or ends by SIGPIPE if the reader of a pipe (a
/// pager, `head`) went away.
int finish_output(const Output& output, int exit_status);

}  // namespace rtev::cli
