// SPDX-License-Identifier: MIT
#include "cli/stream_file.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/terminal.hpp"
#include "cli/output_file.hpp"

namespace rtev::cli {
namespace {

/// How long data may stay in memory before it is in the file: in the sink, then in the outputs behind it.
constexpr std::uint64_t held_interval_ns = 250'000'000, sync_interval_ns = 500'000'000;

bool wants_color(ColorMode color, int fd) {
  if (color != ColorMode::automatic) return color == ColorMode::always;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(fd) == 1 && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

}  // namespace

Result<std::unique_ptr<StreamFile>> StreamFile::open(const OutputOptions& options, Format format) {
  std::unique_ptr<StreamFile> made(new StreamFile);
  auto opened = open_output(options.path);
  if (!opened) return std::unexpected(std::move(opened.error()));
  made->file_ = std::move(*opened);
  FdOutput& file = *made->file_;
  if (info_of(format).is_binary && file.is_terminal()) {
    return std::unexpected(Error{.what = "refusing to write binary data to",
                                 .subject = "a terminal",
                                 .why = fmt::format("{} is a binary format", info_of(format).name),
                                 .hint = "give a file with -o, or redirect stdout"});
  }
  if (!options.path.empty()) file.keep_free(options.disk.min_free);
  Output* output = &file;
  if (options.path.ends_with(".gz")) {
    made->gzip_ = std::make_unique<GzipOutput>(*output);
    output = made->gzip_.get();
  }
  const bool is_file = file.is_regular_file();
  if (!options.path.empty()) {
    BackgroundOutput::Options together;
    if (is_file && !made->gzip_) together.together_bytes = BackgroundOutput::file_together_bytes;
    made->background_ = std::make_unique<BackgroundOutput>(*output, together);
    output = made->background_.get();
  }
  made->sink_ = info_of(format).make(*output, {.max_held_ns = is_file ? held_interval_ns : 0,
                                               .color = wants_color(options.color, file.fd()),
                                               .columns = terminal_columns(file.fd()),
                                               .min_ns = static_cast<std::uint64_t>(options.min.count()),
                                               .threads = options.threads,
                                               .label = options.label,
                                               .all_frames = options.all_frames});
  return made;
}

void StreamFile::header(const RunHeader& header) {
  file_->begin();
  sink_->header(header);
}

void StreamFile::flush() {
  sink_->flush();
  const std::uint64_t now = monotonic_ns();
  if (now - last_sync_ns_ < sync_interval_ns) return;
  output().sync();
  last_sync_ns_ = now;
}

void StreamFile::summary(const RunSummary& summary, const Registry& registry) {
  sink_->summary(summary, registry);
  sink_->flush();
  if (background_) background_->begin_finish();
}

bool StreamFile::wait() {
  return background_ ? background_->wait() : file_->finish();
}

}  // namespace rtev::cli
