// SPDX-License-Identifier: MIT
// rtev-bpf dump and convert: a recording, a ring file or the ring of a live process, as text or in another format.
#include <fmt/core.h>

#include <cstdio>

#include "cli/options.hpp"
#include "cli/source.hpp"
#include "cli/stream.hpp"
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

/// The output is created only once the source is open.
int dump_to(const Options& options, Format otherwise) {
  survive_output_failures();
  auto source = Source::open(options);
  if (!source) return report(source.error());
  auto stream = Stream::open(options, otherwise);
  if (!stream) return report(stream.error());
  if (auto apart = source->check_apart(stream->file()); !apart) return report(apart.error());
  SummaryKeeper sink(stream->sink());
  const int status = source->read(sink, options);
  if (!options.quiet) fmt::print(stderr, "{}", sink.text());
  return finish_output(stream->output(), status);
}

}  // namespace

int run_dump(const Options& options) {
  return dump_to(options, Format::text);
}

int run_convert(const Options& options) {
  return dump_to(options, Format::fxt);
}

}  // namespace rtev::cli
