// SPDX-License-Identifier: MIT
#include "cli/analysis_command.hpp"

#include "base/exit_status.hpp"
#include "cli/messages.hpp"
#include "cli/source.hpp"
#include "cli/stream.hpp"
#include "cli/tracing.hpp"

namespace rtev::cli {
namespace {

/// Writes the report after the stream's summary, while the registry still has the processes' names.
class ReportAtEnd final : public ForwardingSink {
 public:
  ReportAtEnd(Sink& sink, FdOutput& output, const std::function<std::string(const Registry&)>& report)
      : ForwardingSink(sink), output_(output), report_(report) {}

  void header(const RunHeader& header) override {
    output_.begin();
    sink_.header(header);
  }
  void summary(const RunSummary& summary, const Registry& registry) override {
    sink_.summary(summary, registry);
    output_.write(report_(registry));
  }

 private:
  FdOutput& output_;
  const std::function<std::string(const Registry&)>& report_;
};

}  // namespace

int analyse(const AnalysisOptions& options, const Invocation& invocation, Sink& sink, FdOutput& output,
            const std::function<std::string(const Registry& registry)>& report_of) {
  ReportAtEnd with_report(sink, output, report_of);
  int status = exit_ok;
  if (options.input.empty()) {
    status = trace(options, invocation,
                   {.sink = with_report, .output = output, .conclude = [](const RunSummary&, const Registry&) {}});
  } else {
    survive_output_failures();
    auto source = Source::open(options.input, options, invocation);
    if (!source) return report(source.error());
    if (auto apart = source->check_apart(output); !apart) return report(apart.error());
    status = source->read_for_analysis(with_report);
  }
  return finish_output(output, status);
}

}  // namespace rtev::cli
