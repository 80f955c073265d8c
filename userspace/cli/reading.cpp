// SPDX-License-Identifier: MIT
#include "cli/reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/exit_status.hpp"
#include "base/folding.hpp"
#include "base/terminal.hpp"
#include "cli/input.hpp"
#include "cli/messages.hpp"
#include "cli/no_match.hpp"
#include "cli/stream_writer.hpp"
#include "cli/tracing.hpp"
#include "formats/text/run_summary.hpp"
#include "stream/losses.hpp"

namespace rtev::cli {
namespace {

/// Writes the report after the summary, while the registry still has the processes' names. Only then the file begins:
/// without a report, a new one is removed. With an empty function the sink writes, from its first event on: what is
/// read may be outside the window.
class ReportAtEnd final : public ForwardingSink {
 public:
  ReportAtEnd(Sink& sink, FdOutput& output, const std::function<std::string(const Registry&)>& report, bool is_live)
      : ForwardingSink(sink), output_(output), report_(report), is_live_(is_live) {}

  void header(const RunHeader& header) override {
    begin_ns_ = is_live_ ? 0 : header.begin_ns();
    if (!report_ && is_live_) output_.begin();
    sink_.header(header);
  }
  void consume(const Batch& batch, const Registry& registry) override {
    if (!report_ && !batch.events().empty() && batch.events().back().time >= begin_ns_) output_.begin();
    sink_.consume(batch, registry);
  }
  void summary(const RunSummary& summary, const Registry& registry) override {
    if (!report_) output_.begin();
    sink_.summary(summary, registry);
    const std::string text = report_ ? report_(registry) : std::string();
    if (text.empty()) return;
    output_.begin();
    output_.write(text);
  }

 private:
  FdOutput& output_;
  const std::function<std::string(const Registry&)>& report_;
  const bool is_live_;
  std::uint64_t begin_ns_ = 0;
};

}  // namespace

int copy(const CopyOptions& options, const Invocation& invocation, Format otherwise) {
  survive_output_failures();
  auto input = Input::open(options.input, options, invocation);
  if (!input) return report(input.error());
  // Not before there is something to read: an existing file stays.
  auto writer = StreamWriter::open(options.output, otherwise);
  if (!writer) return report(writer.error());
  if (auto apart = input->check_apart(writer->file()); !apart) return report(apart.error());
  if (!options.quiet) {
    say(mistyped_kind_note(options.output.events));
    writer->add(std::make_unique<AtEnd>(writer->sink(), [&](const RunSummary& summary, const Registry& registry) {
      // What was lost when it was recorded, to a file.
      writer->print_summary(summary, registry, false, {.is_file = true});
    }));
  }
  const int status = input->read(writer->sink(), false);
  return finish_output(writer->output(), status);
}

std::string input_argument(const std::string& input) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(input, ignored)) return {};
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("/._-+=,@%", c);
  };
  if (std::ranges::all_of(input, is_plain)) return input;
  const auto is_odd = [](char c) { return c == '\'' || c < ' ' || c > '~'; };
  return std::ranges::any_of(input, is_odd) ? std::string() : "'" + input + "'";
}

std::string text_about(const Registry& registry, std::string text) {
  return registry.process_count() > 0 ? std::move(text) : "no OCaml process was seen\n";
}

int analyse(const AnalysisOptions& options, const Invocation& invocation, Sink& sink, FdOutput& output,
            const std::function<std::string(const Registry& registry)>& report_of,
            std::function<LimitedDurations()> limited, bool samples_threads) {
  fit_terminal(terminal_columns(output.fd()));
  ReportAtEnd with_report(sink, output, report_of, options.input.empty());
  LimitCheck checked(with_report, options.limits, std::move(limited));
  int status = exit_ok;
  if (options.input.empty()) {
    AtEnd with_losses(checked, [&](const RunSummary& summary, const Registry& registry) {
      if (!options.quiet)
        say(summary_text(with_scheduler_gaps(summary, sink.scheduler_gaps()), registry, false,
                         {.is_file = true, .is_report = true}));
    });
    status = trace(options, invocation,
                   {.sink = with_losses,
                    .output = output,
                    .owns_stdout = is_data_on_stdout(output),
                    .samples_threads = samples_threads});
  } else {
    survive_output_failures();
    auto input = Input::open(options.input, options, invocation);
    if (!input) return report(input.error());
    if (auto apart = input->check_apart(output); !apart) return report(apart.error());
    status = input->read(checked, true);
  }
  if (const std::uint64_t pauses = checked.checked_together(); pauses > 0)
    say(fmt::format("rtev-bpf: {} of processes beyond the first {} checked together (--fail-if)\n",
                    Counted{pauses, "pause", "pauses"}, Counted{LimitCheck::max_processes, "was", "were"}));
  for (const std::string& text : checked.failures()) say(fmt::format("rtev-bpf: failed: {} (--fail-if)\n", text));
  // A trace of which the limits were checked did not fail; it may have seen no process.
  const bool traced_no_command = options.input.empty() && invocation.command.empty();
  if (!checked.failures().empty() && (status == exit_ok || traced_no_command)) status = exit_limit;
  return finish_output(output, status);
}

}  // namespace rtev::cli
