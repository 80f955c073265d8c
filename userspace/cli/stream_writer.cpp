// SPDX-License-Identifier: MIT
#include "cli/stream_writer.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "cli/messages.hpp"
#include "cli/no_match.hpp"
#include "cli/output_name.hpp"
#include "cli/tracing.hpp"
#include "stream/thread_filter.hpp"

namespace rtev::cli {
Result<StreamWriter> StreamWriter::open(const OutputOptions& options, Format otherwise) {
  StreamWriter writer;
  const auto format = format_of_output(options.path, options.format, otherwise);
  if (!format) return std::unexpected(format.error());
  writer.format_ = *format;
  const bool is_for_people = *format == Format::brief || *format == Format::text;
  if (options.min.count() > 0 && !is_for_people) {
    return std::unexpected(Error{.what = "cannot leave out short spans in",
                                 .subject = fmt::format("the format {}", info_of(*format).name),
                                 .why = "programs expect the begin and the end of each",
                                 .hint = "omit --min, or use -f text"});
  }
  auto files = FileSeries::open(options, *format);
  if (!files) return std::unexpected(std::move(files.error()));
  writer.files_ = files->get();
  writer.add(std::move(*files));
  if (!options.events.empty()) {
    auto filter = EventFilter::parse(options.events);
    if (!filter) return std::unexpected(std::move(filter.error()));
    auto sink = std::make_unique<FilterSink>(writer.sink(), std::move(*filter));
    writer.filter_ = sink.get();
    writer.add(std::move(sink));
  }
  // That one selects what it shows itself: causes of pauses are in other threads.
  if (!options.threads.is_all() && *format != Format::brief)
    writer.add(std::make_unique<ThreadFilter>(writer.sink(), options.threads));
  if (!options.threads.is_all()) {
    auto seen = std::make_unique<SeenThreads>(writer.sink(), options.threads);
    writer.seen_ = seen.get();
    writer.add(std::move(seen));
  }
  return writer;
}

bool is_data_on_stdout(const FdOutput& file) {
  return file.fd() == STDOUT_FILENO && !file.is_terminal();
}

Format format_for_people(const OutputOptions& options) {
  // Who names events wants to see each of them.
  const bool shows_all = options.all || !options.events.empty();
  return !shows_all && ::isatty(STDOUT_FILENO) == 1 ? Format::brief : Format::text;
}

std::chrono::nanoseconds StreamWriter::max_delay() const {
  if (::isatty(file().fd()) == 1) return terminal_delay;
  struct stat status{};
  const bool is_read_at_once =
      ::fstat(file().fd(), &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
  return is_read_at_once ? pipe_delay : file_delay;
}

OutputFacts StreamWriter::facts() const {
  return {.is_file = file().is_regular_file(), .blocked_ns = file().blocked_ns()};
}

void StreamWriter::print_summary(const RunSummary& summary, const Registry& registry, bool full,
                                 const OutputFacts& facts) const {
  say(summary_text(summary, registry, full, facts));
  const std::uint64_t stacks = summary.events[static_cast<std::size_t>(EventKind::sample)];
  // With --events they may have been left out.
  if (!info_of(format_).has_stacks && filter_ == nullptr) say(no_stacks_message(stacks, info_of(format_).name));
  if (filter_ != nullptr) say(no_event_message(filter_->filter()));
  if (seen_ != nullptr) say(no_thread_message(*seen_));
}

int report_full(const StreamWriter& writer) {
  switch (writer.files().ended_by()) {
    case FileSeries::Full::no:
      return exit_ok;
    case FileSeries::Full::max_size:
      say(fmt::format("rtev-bpf: ended because {} has the size of --max-size\n", escaped(writer.name())));
      return exit_ok;
    case FileSeries::Full::disk_low:
      break;
  }
  return report({.what = "cannot go on writing",
                 .subject = writer.name(),
                 .why = "less than --min-free is free on its disk; what is written is complete",
                 .hint = "free some space, write elsewhere with -o, or limit the size (--max-size, --max-files)"});
}

void survive_output_failures() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

int finish_output(const Output& output, int exit_status) {
  const auto& error = output.error();
  if (!error) return exit_status;
  if (error->code != EPIPE) return report(*error);
  // End as other programs do whose pipe was closed. SIGPIPE was ignored only until everything was cleaned up.
  ::signal(SIGPIPE, SIG_DFL);
  ::raise(SIGPIPE);
  return exit_failure;
}

}  // namespace rtev::cli
