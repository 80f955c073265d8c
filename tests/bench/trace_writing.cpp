// SPDX-License-Identifier: MIT
// Writing trace events to memory: FxtWriter's fast path, compared with stores of the same words and a copy of the same
// bytes.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/producer.hpp"
#include "rtev/fxt_destination.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev::bench {
namespace {

constexpr int cpu = 1;

/// Room for part of the output, used again and again, like the buffer of a destination. Fits the second-level cache.
constexpr std::size_t room_words = 16'384;

/// Takes full buffers and returns them for reuse, so that only the writer is measured.
class Room final : public FxtDestination {
 public:
  Result<std::span<std::uint64_t>> buffer(std::size_t) override { return std::span(words_); }
  Result<void> accept(std::span<const std::uint64_t> records) override {
    asm volatile("" : : "r"(records.data()) : "memory");
    words_taken_ += records.size();
    return {};
  }
  std::uint64_t words_taken() const { return words_taken_; }

 private:
  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(room_words);
  std::uint64_t words_taken_ = 0;
};

/// Writes this many events; returns nanoseconds per event.
double ns_per_event(std::uint64_t events, const std::function<void()>& write_all) {
  const std::uint64_t start = thread_cpu_ns();
  write_all();
  return static_cast<double>(thread_cpu_ns() - start) / static_cast<double>(events);
}

/// Stores records of this many words to a Room, with only the check for space.
template <std::size_t words>
void store_words(std::span<std::uint64_t> room, std::uint64_t events, const std::array<std::uint64_t, words>& record) {
  std::uint64_t* out = room.data();
  std::uint64_t* const end = out + room.size();
  for (std::uint64_t i = 0; i < events; ++i) {
    if (static_cast<std::size_t>(end - out) < words) [[unlikely]] {
      out = room.data();
      asm volatile("" : : "r"(out) : "memory");
    }
    out[0] = record[0];
    out[1] = i;
    for (std::size_t word = 2; word < words; ++word) out[word] = record[word] + i;
    out += words;
  }
  asm volatile("" : : "r"(room.data()) : "memory");
}

/// Copies the same number of bytes from one Room to another.
void copy_words(std::span<std::uint64_t> to, std::span<const std::uint64_t> from, std::uint64_t words) {
  while (words > 0) {
    const std::size_t piece = std::min<std::uint64_t>(words, to.size());
    std::memcpy(to.data(), from.data(), piece * sizeof(std::uint64_t));
    asm volatile("" : : "r"(to.data()) : "memory");
    words -= piece;
  }
}

/// An event of `words` words; `write` writes one of them, with its number as time and value.
template <std::size_t words, typename Write>
void measure(Report& report, const Effort& effort, const std::string& what, FxtWriter& writer, const Room& room,
             std::optional<Goal> goal, Write write) {
  const auto events = static_cast<std::uint64_t>(100e6 * effort.seconds);
  std::vector<std::uint64_t> other_room(room_words), from(room_words, 1);
  std::array<std::uint64_t, words> record;
  record.fill(1);
  Series ours{.name = "FxtWriter", .runs = {}}, stores{.name = "plain stores", .runs = {}},
      copies{.name = "memcpy", .runs = {}};
  for (int round = 0; round < effort.rounds; ++round) {
    writer.flush();
    const std::uint64_t taken = room.words_taken();
    ours.runs.push_back(ns_per_event(events, [&] {
      for (std::uint64_t i = 0; i < events; ++i) write(i);
      writer.flush();
    }));
    if (writer.error()) throw std::runtime_error(writer.error()->message());
    if (room.words_taken() - taken != events * words) throw std::runtime_error("wrong number of words written");
    stores.runs.push_back(ns_per_event(events, [&] { store_words(std::span(other_room), events, record); }));
    copies.runs.push_back(ns_per_event(events, [&] { copy_words(other_room, from, events * words); }));
  }
  const double figure = ours.median();  // the goal is not about the ratio
  report.add({.section = "trace_writing",
              .what = what,
              .unit = "ns/event",
              .subject = ours,
              .peer = stores,
              .goal = std::move(goal),
              .figure = figure,
              .note = fmt::format("{} bytes each; the peer stores as many words after the same check for room",
                                  words * sizeof(std::uint64_t))});
  report.add({.section = "trace_writing",
              .what = what,
              .unit = "ns/event",
              .subject = std::move(ours),
              .peer = std::move(copies),
              .note = "the peer copies as many bytes, a buffer at a time, from cache to cache"});
}

}  // namespace

void trace_writing(Report& report, const Effort& effort) {
  const CpuBinding binding(cpu);
  Room room;
  FxtWriter writer(room);
  const auto thread = writer.thread(100, 101);
  const auto gc = writer.intern("gc"), name = writer.intern("minor");
  const fxt::Parameter value{.type = fxt::ArgumentType::int64, .name = writer.intern("value")};
  const auto begin = writer.compose(fxt::duration_begin, thread, gc, name);
  const auto end = writer.compose(fxt::duration_end, thread, gc, name);
  const auto instant = writer.compose(fxt::instant, thread, gc, name, {value});
  const auto counter = writer.compose(fxt::counter, thread, gc, name, {value});
  const Goal goal = Goal::at_most(10, "ns");
  measure<2>(report, effort, "span begin and end", writer, room, goal,
             [&](std::uint64_t i) { writer.write(i % 2 == 0 ? begin : end, i); });
  measure<4>(report, effort, "instant with an int64", writer, room, goal,
             [&](std::uint64_t i) { writer.write(instant, i, static_cast<std::int64_t>(i)); });
  measure<5>(report, effort, "counter with an int64", writer, room, goal,
             [&](std::uint64_t i) { writer.write(counter, i, fxt::CounterId{1}, static_cast<std::int64_t>(i)); });
  // Strings are defined before, so that only events are counted.
  constexpr unsigned threads = 4;
  for (unsigned i = 0; i < threads; ++i) writer.thread(100, 101 + i);
  measure<2>(report, effort, "span begin, its thread looked up by tid", writer, room, std::nullopt,
             [&](std::uint64_t i) { writer.write(begin.with_thread(writer.thread(100, 101 + i % threads)), i); });
}

}  // namespace rtev::bench
