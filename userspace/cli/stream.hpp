// SPDX-License-Identifier: MIT
// From options to the end of the stream: the file and the format.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.hpp"
#include "formats/output/background_output.hpp"
#include "formats/output/gzip_output.hpp"
#include "formats/output/output.hpp"
#include "stream/sink.hpp"

namespace rtev::cli {

/// options.output: a new file for the caller's eyes only, or stdout.
Result<std::unique_ptr<FdOutput>> open_output(const Options& options);

/// Where a stream goes, and how it looks there.
class Stream {
 public:
  /// Opens options.output. Without options.format the ending of the file's name decides; without an ending it is
  /// `otherwise`. Binary formats are refused on a terminal.
  static Result<Stream> open(const Options& options, Format otherwise);

  Sink& sink() { return *sinks_.back(); }
  const FdOutput& file() const { return *output_; }
  const Output& output() const { return background_ ? static_cast<const Output&>(*background_) : *output_; }
  /// Bytes in the file so far.
  std::uint64_t written() const { return output_->written(); }
  /// What a command says there would be in the middle of it.
  bool is_stdout() const { return output_->fd() == STDOUT_FILENO; }
  Format format() const { return format_; }
  /// Of the file, for messages.
  const std::string& name() const { return output_->name(); }

  /// Puts a sink in front of the others, which it was made to hand on to.
  void add(std::unique_ptr<Sink> sink) { sinks_.push_back(std::move(sink)); }

 private:
  std::unique_ptr<FdOutput> output_;
  std::unique_ptr<GzipOutput> gzip_;
  std::unique_ptr<BackgroundOutput> background_;
  std::vector<std::unique_ptr<Sink>> sinks_;  ///< each hands on to the one before it; the first writes
  Format format_ = Format::text;
};

/// Failures of writing are to be errors that who writes sees. Not before a command is started: it would inherit that.
void survive_output_failures();

/// What a broken output means at the end: an error, or silence where the reader (a pager, `head`) just left.
int finish_output(const Output& output, int exit_status);

}  // namespace rtev::cli
