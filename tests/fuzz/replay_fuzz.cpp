// SPDX-License-Identifier: MIT
// Any bytes as a recording. Recording the resulting stream again must give the same stream. The first byte selects the
// size of the pieces they are read in.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "formats/fxt/fxt_sink.hpp"
#include "formats/jsonl/jsonl_sink.hpp"
#include "formats/output/output.hpp"
#include "fuzz/fuzzing.hpp"
#include "recording/replay.hpp"
#include "unit/stream/world.hpp"

namespace {

using namespace rtev;

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

/// The first byte, and a recording with an event of every kind.
std::vector<std::byte> well_formed() {
  test::World world;
  world.user_names = {{3, "request"}};
  Both both;
  both.header({.version = "1", .host = "h", .kernel = "6", .command_line = {"a", "b"}, .start_ns = 1});
  test::Events events(world.slot), host(0);
  using enum EventKind;
  events.add(20, begin, 6).add(21, user_begin, 3).add(22, end, 6).add(23, user_end, 3).add(24, counter, 5, 7);
  events.add_bytes(25, alloc, std::string(160, 'a')).add(26, lifecycle, 6, 9).add(27, user_unit, 3).late();
  events.add(28, user_int, 4, 5).add_bytes(29, user_custom, "text", 3).add_bytes(30, user_custom, "\xff", 3);
  events.add_record(31, lost, Loss{.words = 1, .from_ns = 30, .to_ns = 31}).add_bytes(32, lost, "none");
  events.add(33, end, 9).add_record(34, process, ProcessRecord{.process = world.process, .peer = 0, .detail = 0}, 7);
  const Thread thread = test::make_thread(4242, 4243, "server", true), idle = test::make_thread(0, 0, "swapper", false);
  host.add_record(35, sched_switch, SchedSwitch{.cpu = 1, .state = LeftState::idle, .prev = thread, .next = idle});
  host.add_record(36, wakeup, Wakeup{.cpu = 1, .woken = thread, .by = idle});
  both.consume(events.batch(), world.registry);
  both.consume(host.batch(), world.registry);
  both.summary({.drops = {{.kind = "switch", .count = 1}}}, world.registry);
  std::vector<std::byte> bytes{std::byte{0}};
  const auto file = bytes_of(both.file());
  bytes.insert(bytes.end(), file.begin(), file.end());
  return bytes;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity, unsigned) {
  static const std::vector<std::byte> seed = well_formed();
  return fuzz::mutate(seed, data, size, capacity);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Both both;
  Replay replay(both);
  std::span<const std::byte> rest = std::as_bytes(std::span(data + 1, size - 1));
  const std::size_t piece = data[0] < 2 ? rest.size() : data[0];
  while (!rest.empty()) {
    if (!replay.feed(rest.first(std::min(piece, rest.size())))) break;
    rest = rest.subspan(std::min(piece, rest.size()));
  }
  if (!replay.finish() || has_long_line(both.lines())) return 0;

  StringOutput lines;
  JsonlSink jsonl(lines);
  Replay again(jsonl);
  const auto fed = again.feed(bytes_of(both.file()));
  if (!fed) std::abort();
  if (const auto end = again.finish(); !end || !end->complete || lines.text() != both.lines()) std::abort();
  return 0;
}
