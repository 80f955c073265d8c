// SPDX-License-Identifier: MIT
// One file of a stream: the format, compression, and the thread that writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/options.hpp"
#include "formats/output/background_output.hpp"
#include "formats/output/gzip_output.hpp"
#include "formats/output/output.hpp"
#include "stream/sink.hpp"

namespace rtev::cli {

/// Nothing is written to the file before its header. Data is in the file at most half a second after flush(). One
/// thread.
class StreamFile final : public Sink {
 public:
  /// Opens options.path, or stdout, for a format. Refuses to write a binary format to a terminal.
  static Result<std::unique_ptr<StreamFile>> open(const OutputOptions& options, Format format);

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override { sink_->consume(batch, registry); }
  void advance(std::uint64_t time_ns, const Registry& registry) override { sink_->advance(time_ns, registry); }
  void flush() override;
  /// Does not wait until the file is written: see wait().
  void summary(const RunSummary& summary, const Registry& registry) override;
  /// Waits until all of a file that has its summary is written. False after an error.
  bool wait();

  const FdOutput& file() const { return *file_; }
  const std::optional<Error>& error() const { return output().error(); }
  /// Bytes that the file has now, or will have when what was given to the writing thread is written. The latter is not
  /// known of compressed files.
  std::uint64_t size() const { return background_ && !gzip_ ? background_->taken() : file_->written(); }

 private:
  StreamFile() = default;
  Output& output() { return background_ ? static_cast<Output&>(*background_) : *file_; }
  const Output& output() const { return background_ ? static_cast<const Output&>(*background_) : *file_; }

  std::unique_ptr<FdOutput> file_;
  std::unique_ptr<GzipOutput> gzip_;
  std::unique_ptr<BackgroundOutput> background_;
  std::unique_ptr<Sink> sink_;
  std::uint64_t last_sync_ns_ = 0;
};

}  // namespace rtev::cli
