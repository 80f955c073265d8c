// SPDX-License-Identifier: MIT
// Any bytes as a recording. Recording the resulting stream again must give the same stream. The first byte selects the
// size of the pieces they are read in.
#include "formats/fxt/fxt_sink.hpp"
#include "formats/jsonl/jsonl_sink.hpp"
#include "formats/output/output.hpp"
#include "fuzz/fuzzing.hpp"
#include "recording/replay.hpp"

namespace rtev::fuzz {
namespace {

/// Converts a stream to text and records it.
class Both final : public Sink {
 public:
  void header(const RunHeader& header) override {
    jsonl_.header(header);
    fxt_.header(header);
  }
  void consume(const Batch& batch, const Registry& registry) override {
    jsonl_.consume(batch, registry);
    fxt_.consume(batch, registry);
  }
  void flush() override {
    jsonl_.flush();
    fxt_.flush();
  }
  void summary(const RunSummary& summary, const Registry& registry) override {
    jsonl_.summary(summary, registry);
    fxt_.summary(summary, registry);
  }

  const std::string& lines() const { return lines_.text(); }
  const std::string& file() const { return file_.text(); }

 private:
  StringOutput lines_, file_;
  JsonlSink jsonl_{lines_};
  FxtSink fxt_{file_, {.max_held_ns = 0}};
};

/// Longer strings of metadata records are cut when recorded, so the streams may differ.
bool has_long_line(std::string_view lines) {
  for (std::size_t end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
    if (end >= record::max_metadata_bytes) return true;
    lines.remove_prefix(end + 1);
  }
  return false;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

void replay(Bytes input) {
  if (input.empty()) return;
  Both both;
  Replay reader(both);
  std::span<const std::byte> rest = std::as_bytes(input.subspan(1));
  const std::size_t piece = input[0] < 2 ? rest.size() : input[0];
  while (!rest.empty()) {
    if (!reader.feed(rest.first(std::min(piece, rest.size())))) break;
    rest = rest.subspan(std::min(piece, rest.size()));
  }
  if (!reader.finish() || has_long_line(both.lines())) return;

  StringOutput lines;
  JsonlSink jsonl(lines);
  Replay again(jsonl);
  const auto fed = again.feed(bytes_of(both.file()));
  check(fed.has_value(), "what was recorded can be read");
  const auto end = again.finish();
  check(end && end->complete, "what was recorded has its end");
  check(lines.text() == both.lines(), "what was recorded is what was shown", both.lines());
}

}  // namespace rtev::fuzz
