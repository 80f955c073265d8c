// SPDX-License-Identifier: MIT
// rtev-bpf dump and convert: what was recorded before, as text or in another format: recordings, preserved ring files,
// what a live process's ring holds now.
#include <fmt/core.h>

#include <cstdio>

#include "cli/options.hpp"
#include "cli/source.hpp"
#include "cli/stream.hpp"
#include "formats/text/run_summary.hpp"

namespace rtev::cli {
namespace {

/// Hands the stream on and keeps what it says at its end, for stderr.
class KeepSummary final : public Sink {
 public:
  explicit KeepSummary(Sink& sink) : sink_(sink) {}

  void header(const RunHeader& header) override { sink_.header(header); }
  void consume(const Batch& batch, const Registry& registry) override { sink_.consume(batch, registry); }
  void flush() override { sink_.flush(); }
  void summary(const RunSummary& summary, const Registry& registry) override {
    text_ = summary_text(summary, registry);
    sink_.summary(summary, registry);
  }
  const std::string& text() const { return text_; }

 private:
  Sink& sink_;
  std::string text_;
};

/// The output is made once it is known that there is something to read.
int dump_to(const Options& options, Format otherwise) {
  survive_output_failures();
  auto source = Source::open(options);
  if (!source) return report(source.error());
  auto stream = Stream::open(options, otherwise);
  if (!stream) return report(stream.error());
  if (auto apart = source->check_apart(stream->file()); !apart) return report(apart.error());
  KeepSummary sink(stream->sink());
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
