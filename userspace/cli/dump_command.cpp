// SPDX-License-Identifier: MIT
// rtev-bpf dump and convert: a recording, a ring file or the ring of a running process, as text or in another format.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/messages.hpp"
#include "cli/source.hpp"
#include "cli/stream.hpp"
#include "cli/subcommands.hpp"
#include "formats/text/run_summary.hpp"

namespace rtev::cli {
namespace {

/// Keeps the summary as text, for stderr.
class SummaryKeeper final : public ForwardingSink {
 public:
  using ForwardingSink::ForwardingSink;

  void summary(const RunSummary& summary, const Registry& registry) override {
    text_ = summary_text(summary, registry);
    sink_.summary(summary, registry);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct DumpOptions : ReadOptions {
  std::string target;
  OutputOptions output;
};

/// Opens the output only when there is something to read. `otherwise` is the format if nothing else decides.
int run_dump(const DumpOptions& options, const Invocation& invocation, Format otherwise) {
  survive_output_failures();
  auto source = Source::open(options.target, options, invocation);
  if (!source) return report(source.error());
  auto stream = Stream::open(options.output, otherwise);
  if (!stream) return report(stream.error());
  if (auto apart = source->check_apart(stream->file()); !apart) return report(apart.error());
  SummaryKeeper sink(stream->sink());
  const int status = source->read(sink);
  if (!options.quiet) fmt::print(stderr, "{}", sink.text());
  return finish_output(stream->output(), status);
}

}  // namespace

Subcommand add_dump_command(CLI::App& root) {
  auto options = std::make_shared<DumpOptions>();
  CLI::App* const app =
      root.add_subcommand("dump", "show a recording, a ring file, or what the ring of a process holds now");
  add_target(*app, options->target);
  add_process_options(*app, *options);
  add_output_options(*app, options->output);
  add_common_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return run_dump(*options, invocation, Format::text); }};
}

Subcommand add_convert_command(CLI::App& root) {
  auto options = std::make_shared<DumpOptions>();
  CLI::App* const app = root.add_subcommand("convert", "write a recording or a ring file in another format");
  add_target(*app, options->target);
  add_process_options(*app, *options);
  add_recording_options(*app, options->output);
  add_common_options(*app, *options);
  return {.app = app,
          .run = [options](const Invocation& invocation) { return run_dump(*options, invocation, Format::fxt); }};
}

}  // namespace rtev::cli
