// SPDX-License-Identifier: MIT
// Writes a stream to one file after the other, within the bounds of the disk.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "cli/options.hpp"
#include "cli/stream_file.hpp"
#include "stream/period_figures.hpp"
#include "stream/sink.hpp"

namespace rtev::cli {

/// Each file is complete in itself: header, names of processes and events, the events of a time, and a summary of that
/// time. The file in use has the name that was given; the one before it has the number 1, and so on. Files before
/// --max-files are removed. The time of the last advance() is where one file ends and the next one begins.
///
/// The file before is completed in the background. If that is not done when the next one is full, the stream waits.
/// One thread.
class FileSeries final : public Sink {
 public:
  /// Opens the first file. Fails also if its disk is low already, or if it is no file and several are wanted.
  static Result<std::unique_ptr<FileSeries>> open(const OutputOptions& options, Format format);

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void advance(std::uint64_t time_ns, const Registry& registry) override;
  void flush() override;
  bool wants_checkpoint() const override;
  void checkpoint(const RunSummary& so_far, const Registry& registry) override;
  void summary(const RunSummary& summary, const Registry& registry) override;

  /// What ended a stream although nothing failed.
  enum class Full : std::uint8_t { no, max_size, disk_low };
  /// True if the stream has to end now.
  bool has_to_end();
  /// What has_to_end() found.
  Full ended_by() const { return ended_by_; }

  /// The file in use.
  const FdOutput& file() const { return file_->file(); }
  /// Its error() is the first error of any file. For nothing else.
  const Output& output() const { return errors_; }
  /// Bytes in all files so far, also in those that were removed.
  std::uint64_t written() const;
  /// Number of files that were begun.
  std::size_t files() const { return files_; }
  /// Those of them that were removed, and their bytes.
  std::size_t removed_files() const { return removed_files_; }
  std::uint64_t removed_bytes() const { return removed_bytes_; }

 private:
  class Errors final : public Output {
   public:
    explicit Errors(const FileSeries& series) : series_(series) {}
    bool write(std::string_view) override { return false; }
    const std::optional<Error>& error() const override;

   private:
    const FileSeries& series_;
  };

  FileSeries(OutputOptions options, Format format, std::unique_ptr<StreamFile> file);
  bool is_file_full() const { return options_.disk.max_bytes != 0 && file_->size() >= options_.disk.max_bytes; }
  bool is_rotating() const { return options_.disk.max_files != 0; }
  void complete_previous();

  OutputOptions options_;
  Format format_;
  std::unique_ptr<StreamFile> file_, previous_;
  RunHeader header_;
  PeriodFigures figures_;
  std::uint64_t time_ns_ = 0;  ///< all events before it are consumed
  std::uint64_t completed_bytes_ = 0;
  std::deque<std::uint64_t> kept_bytes_;  ///< of each completed file that was not removed, oldest first
  std::size_t files_ = 1, removed_files_ = 0;
  std::uint64_t removed_bytes_ = 0;
  bool is_complete_ = false;  ///< the file in use has its summary, because the next one could not be begun
  Full ended_by_ = Full::no;
  std::optional<Error> error_;  ///< of a file other than the one in use
  Errors errors_{*this};
};

}  // namespace rtev::cli
