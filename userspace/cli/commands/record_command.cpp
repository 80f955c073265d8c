// SPDX-License-Identifier: MIT
// rtev-bpf record: writes the stream to a file, to analyse it later or to open it in a viewer.
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "base/text_format.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/flight_options.hpp"
#include "cli/flight_run.hpp"
#include "cli/messages.hpp"
#include "cli/no_match.hpp"
#include "cli/stream_writer.hpp"
#include "cli/tracing.hpp"
#include "formats/output/output.hpp"
#include "formats/text/run_summary.hpp"

namespace rtev::cli {
namespace {

constexpr std::uint64_t interval_ns = 500'000'000;
constexpr std::string_view clear_line = "\r\x1b[K";

/// Skips the output if the terminal is stopped (Ctrl-S): the recording must not wait for it.
void put(std::string_view text) {
  pollfd ready{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

/// Passes the stream on and updates one line on the terminal, stderr: elapsed time, events, events per second, size of
/// the file, losses.
class Progress final : public ForwardingSink {
 public:
  explicit Progress(StreamWriter& writer) : ForwardingSink(writer.sink()), writer_(writer) {}

  void header(const RunHeader& header) override {
    start_ns_ = shown_ns_ = monotonic_ns();
    sink_.header(header);
  }
  void consume(const Batch& batch, const Registry& registry) override {
    events_ += batch.events().size();
    for (const Event& event : batch.events()) {
      if (event.kind != EventKind::lost) continue;
      const bool is_of_ring = Source::unpack(event.source).slot != 0;
      if (const auto loss = batch.payload_as<Loss>(event))
        (!is_of_ring ? dropped_records_ : lost_words_) += loss->words;
    }
    sink_.consume(batch, registry);
  }
  void flush() override {
    sink_.flush();
    const std::uint64_t now = monotonic_ns();
    if (!is_over_ && now - shown_ns_ >= interval_ns) show(now);
  }
  /// Clears the line.
  void summary(const RunSummary& summary, const Registry& registry) override {
    is_over_ = true;
    put(clear_line);
    sink_.summary(summary, registry);
  }

 private:
  void show(std::uint64_t now) {
    const double seconds = static_cast<double>(now - shown_ns_) / 1e9;
    const auto rate = static_cast<std::uint64_t>(static_cast<double>(events_ - shown_events_) / seconds);
    std::string line = fmt::format("{}recording: {}s  {} events  {}/s  {}  {} words lost", clear_line,
                                   (now - start_ns_) / 1'000'000'000, Grouped{events_}, Grouped{rate},
                                   Size{writer_.files().written()}, Grouped{lost_words_});
    if (dropped_records_ > 0) line += fmt::format("  {} scheduler events dropped", Grouped{dropped_records_});
    put(line);
    shown_ns_ = now;
    shown_events_ = events_;
  }

  const StreamWriter& writer_;
  bool is_over_ = false;  ///< the summary is printed
  std::uint64_t start_ns_ = 0, shown_ns_ = 0;
  std::uint64_t events_ = 0, shown_events_ = 0;
  std::uint64_t lost_words_ = 0, dropped_records_ = 0;
};

/// " and 2 files before it, 3 MB (--max-files removed 27 older files, 8 MB)".
std::string describe_files(const FileSeries& series) {
  const std::size_t removed = series.removed_files(), before = series.files() - removed - 1;
  std::string text;
  if (before > 0) text = fmt::format(" and {} before it", Counted{before, "file", "files"});
  text += fmt::format(", {}", Size{series.written() - series.removed_bytes()});
  if (removed > 0)
    text += fmt::format(" (--max-files removed {}, {})", Counted{removed, "older file", "older files"},
                        Size{series.removed_bytes()});
  return text;
}

constexpr const char* record_footer =
    "FILE.fxt is a recording: dump shows it, convert exports it in another format, and summary, latency, pauses, "
    "stalls and stats analyse it (-i). Files in the other formats are exports: rtev-bpf cannot read them. fxt, chrome "
    "and pftrace files "
    "open in https://ui.perfetto.dev: a group per process, a row per thread with its GC spans and what the scheduler "
    "did to it. FILE can be read at any time, also if rtev-bpf is killed: at most the last second is missing.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf record -d 5s                        all OCaml processes for five seconds\n"
    "  rtev-bpf record -o trace.fxt -- ./server     a program that it starts\n"
    "  rtev-bpf record -d 5s -o trace.pftrace       an export for ui.perfetto.dev\n"
    "  rtev-bpf record --keep 30s --on 'pause>50ms' dumps of the seconds around long pauses\n"
    "  rtev-bpf pauses -i trace.fxt                 analyse a recording";

struct RecordOptions : StreamOptions {
  FlightOptions flight{};
};

/// Instead of one file: what is kept in memory goes to files of its own.
int run_flight_recorder(const RecordOptions& options, const Invocation& invocation) {
  FlightOptions flight = options.flight;
  flight.min_free = options.output.disk.min_free;
  auto run = FlightRun::start(flight);
  if (!run) return report(run.error());
  int failed = exit_ok;
  AtEnd sink(**run, [&](const RunSummary& summary, const Registry& registry) {
    if ((*run)->recorder().figures().failed > 0) failed = exit_failure;
    if (options.quiet) return;
    say(summary_text(summary, registry, options.verbose, {.is_file = true}));
    say((*run)->figures_text());
  });
  const StringOutput none;
  const int status =
      trace(options, invocation,
            {.sink = sink, .output = none, .shows_services = true, .on_ready = [&] { (*run)->serve({}); }});
  return failed != exit_ok ? failed : status;
}

int run_record(const RecordOptions& options, const Invocation& invocation) {
  if (options.flight.is_on()) return run_flight_recorder(options, invocation);
  auto writer = StreamWriter::open(options.output, Format::fxt);
  if (!writer) return report(writer.error());
  if (!options.quiet) say(mistyped_kind_note(options.output.events));
  if (!options.quiet && ::isatty(STDERR_FILENO) == 1) writer->add(std::make_unique<Progress>(*writer));
  // Reported before the wait for CMD, which may run for days.
  int failed = exit_ok;
  writer->add(std::make_unique<AtEnd>(writer->sink(), [&](const RunSummary& summary, const Registry& registry) {
    if (!options.quiet) writer->print_summary(summary, registry, options.verbose, writer->facts());
    const auto& error = writer->output().error();
    failed = error ? report(*error) : report_full(*writer);
    if (options.quiet) return;
    say(fmt::format("{} {}{}: {}\n", error ? "wrote only a part of" : "wrote", Escaped{writer->name()},
                    describe_files(writer->files()), info_of(writer->format()).hint));
  }));
  const int status = trace(options, invocation,
                           {.sink = writer->sink(),
                            .output = writer->output(),
                            .owns_stdout = is_data_on_stdout(writer->file()),
                            .max_delay = writer->max_delay(),
                            .is_full = [&] { return writer->files().has_to_end(); },
                            .shows_services = writer->shows_services()});
  // An incomplete recording is a failure, even if only the reader of a pipe went away.
  return failed != exit_ok ? failed : status;
}

}  // namespace

Subcommand add_record_command(CLI::App& root) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* const app = root.add_subcommand("record", "write the stream to a file, to view or analyse later");
  app->footer(record_footer);
  add_process_options(*app, *options);
  add_recording_options(*app, options->output);
  add_disk_options(*app, options->output.disk, true);
  add_trace_options(*app, *options);
  add_flight_options(*app, options->flight);
  for (const char* const flight : {"--keep", "--on"})
    for (const char* const file : {"--output", "--format", "--events", "--max-size", "--max-files"})
      if (CLI::Option* const option = app->get_option_no_throw(file)) option->excludes(app->get_option(flight));
  add_common_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return run_record(*options, invocation); },
          .takes_command = true};
}

}  // namespace rtev::cli
