// SPDX-License-Identifier: MIT
// FxtReader reads what FxtWriter writes: random records of all types, with slots that are reused all the time.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <functional>
#include <random>

#include "rtev/fxt_writer.hpp"
#include "unit/fxt/trace_reading.hpp"

namespace rtev::test {
namespace {

namespace parsed = fxt::parsed;

/// A text to write, and how it is read.
struct TextPair {
  fxt::Text written;
  parsed::Text expected;
};
/// Writes random records; expected() has the records that a reader should yield, as text.
class RandomTrace {
 public:
  RandomTrace(FxtDestination& destination, unsigned seed) : random_(seed), writer_(destination) {}

  void write_record() {
    texts_.clear();
    arguments_.clear();
    expected_arguments_.clear();
    static constexpr std::array kinds = {
        &RandomTrace::span,    &RandomTrace::span,      &RandomTrace::instant,      &RandomTrace::instant,
        &RandomTrace::counter, &RandomTrace::complete,  &RandomTrace::sched_switch, &RandomTrace::wakeup,
        &RandomTrace::named,   &RandomTrace::userspace, &RandomTrace::async,        &RandomTrace::buffer_full,
    };
    std::invoke(kinds[below(kinds.size())], this);
  }
  void finish() { EXPECT_EQ(writer_.flush(), fxt::Status::written); }

  const std::vector<std::string>& expected() const { return expected_; }
  const FxtWriter& writer() const { return writer_; }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool one_in(std::uint64_t bound) { return below(bound) == 0; }
  std::uint64_t number() { return random_() >> below(64); }

  void note(fxt::Status status, const fxt::Record& record) {
    ASSERT_EQ(status, fxt::Status::written) << writer_.error().value_or(Error{}).message();
    expected_.push_back(show(record, Refs::hidden));
  }

  /// More different texts than the table has slots, of all lengths up to some bytes over a word, a few much longer.
  std::string_view some_text() {
    std::string text = one_in(20) ? "" : std::to_string(below(60'000));
    text.append(below(10), '.');
    if (one_in(2000)) text.append(below(3000), '-');
    return texts_.emplace_back(std::move(text));
  }
  fxt::StringRef slot_of(std::string_view text) { return one_in(3) ? writer_.temporary(text) : writer_.intern(text); }
  TextPair text() {
    const std::string_view text = some_text();
    if (one_in(4)) return {text, {text, {}}};
    return {slot_of(text), {text, {}}};
  }
  void add(fxt::Value written, parsed::Value expected) {
    const TextPair name = text();
    arguments_.add(name.written, written);
    expected_arguments_.push_back({name.expected, expected});
  }
  void add_argument() {
    const std::uint64_t n = number();
    switch (below(10)) {
      case 1:
        return add(static_cast<std::int32_t>(n), static_cast<std::int32_t>(n));
      case 2:
        return add(static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(n));
      case 3:
        return add(static_cast<std::int64_t>(n), static_cast<std::int64_t>(n));
      case 4:
        return add(n, n);
      case 5:
        return add(std::bit_cast<double>(n), std::bit_cast<double>(n));
      case 6: {
        const TextPair value = text();
        return add(value.written, value.expected);
      }
      case 7:
        return add(fxt::Pointer{n}, fxt::Pointer{n});
      case 8:
        return add(fxt::Koid{n}, fxt::Koid{n});
      case 9:
        return add((n & 1) != 0, (n & 1) != 0);
      default: {
        const fxt::Blob blob{std::as_bytes(std::span(some_text()))};
        return add(blob, blob);
      }
    }
  }
  /// Adds up to `max` arguments, also to expected_arguments_.
  void add_arguments(std::uint64_t max) {
    for (std::uint64_t count = below(max + 1); count > 0; --count) add_argument();
  }

  template <typename... Given>
  void composed(fxt::EventType type, std::vector<parsed::Argument> values, std::uint64_t extra, Given... given) {
    const std::uint64_t time = number(), tid = 1 + below(1000);
    const std::string_view category = some_text(), name = some_text();
    std::vector<fxt::Parameter> parameters;
    for (const parsed::Argument& value : values) parameters.push_back({value.type(), slot_of(value.name.text)});
    const fxt::ThreadRef thread =
        one_in(5) ? writer_.set_thread(static_cast<std::uint8_t>(1 + below(16)), 7, tid) : writer_.thread(7, tid);
    const fxt::ComposedEvent event = writer_.compose(type, thread, slot_of(category), slot_of(name), parameters);
    note(writer_.write(event, time, given...),
         parsed::EventRecord{type, time, {7, tid, {}}, {category, {}}, {name, {}}, values, extra});
  }
  void span() { composed(one_in(2) ? fxt::duration_begin : fxt::duration_end, {}, 0); }
  void instant() {
    const std::uint64_t n = number();
    composed(fxt::instant,
             {{{"u", {}}, static_cast<std::uint32_t>(n)}, {{"k", {}}, fxt::Koid{n}}, {{"p", {}}, fxt::Pointer{n}}}, 0,
             static_cast<std::uint32_t>(n), fxt::Koid{n}, fxt::Pointer{n});
  }
  void counter() {
    const auto id = number(), value = number();
    composed(fxt::counter, {{{"words", {}}, value}}, id, fxt::CounterId{id}, value);
  }
  void complete() {
    const std::uint64_t end = number();
    const std::string_view value = some_text();
    const fxt::Blob blob{std::as_bytes(std::span(some_text()))};
    composed(fxt::duration_complete, {{{"s", {}}, parsed::Text{value, {}}}, {{"", {}}, blob}}, end, fxt::EndTime{end},
             value, blob);
  }
  void async() {
    const std::uint64_t id = number();
    const auto type = static_cast<fxt::EventType>(5 + below(3));
    composed(type, {{{"b", {}}, true}, {{"i", {}}, -5}, {{"d", {}}, 0.25}}, id, fxt::AsyncId{id}, true, -5, 0.25);
  }

  void expect_first(std::string_view name, parsed::Value value) {
    expected_arguments_.insert(expected_arguments_.begin(), {{name, {}}, value});
  }
  void sched_switch() {
    add_arguments(3);
    fxt::ContextSwitch it{.time = number(),
                          .cpu = static_cast<std::uint16_t>(random_()),
                          .outgoing_tid = number(),
                          .outgoing_state = static_cast<fxt::ThreadState>(below(6)),
                          .incoming_tid = number()};
    if (one_in(2)) it.outgoing_weight = static_cast<std::int32_t>(random_());
    if (one_in(2)) it.incoming_weight = fxt::idle_weight;
    if (it.outgoing_weight) expect_first("outgoing_weight", *it.outgoing_weight);
    if (it.incoming_weight) expect_first("incoming_weight", *it.incoming_weight);
    note(writer_.write(it, arguments_), parsed::ContextSwitch{it.time, it.cpu, it.outgoing_tid, it.outgoing_state,
                                                              it.incoming_tid, expected_arguments_});
  }
  void wakeup() {
    add_arguments(3);
    fxt::Wakeup it{.time = number(), .cpu = static_cast<std::uint16_t>(random_()), .tid = number()};
    if (one_in(2)) it.waker_tid = number();
    if (one_in(2)) it.weight = static_cast<std::int32_t>(random_());
    if (it.waker_tid) expect_first("waker", fxt::Koid{*it.waker_tid});
    if (it.weight) expect_first("weight", *it.weight);
    note(writer_.write(it, arguments_), parsed::Wakeup{it.time, it.cpu, it.tid, expected_arguments_});
  }
  void named() {
    const std::uint64_t pid = number(), tid = number();
    const TextPair name = text();
    add_arguments(3);
    if (one_in(2)) {
      note(writer_.name_process(pid, name.written, arguments_),
           parsed::KernelObject{fxt::KernelObjectType::process, pid, name.expected, expected_arguments_});
    } else {
      expect_first("process", fxt::Koid{pid});
      note(writer_.name_thread(pid, tid, name.written, arguments_),
           parsed::KernelObject{fxt::KernelObjectType::thread, tid, name.expected, expected_arguments_});
    }
  }
  void userspace() {
    const std::uint64_t address = number(), pid = below(20);
    const TextPair name = text();
    parsed::Thread process{.pid = pid};
    fxt::ThreadRef ref;
    if (one_in(2)) {
      process.tid = 1 + below(1000);
      ref = writer_.thread(pid, process.tid);
    }
    add_arguments(15);
    note(writer_.write({.address = address, .process = ref, .pid = pid, .name = name.written}, arguments_),
         parsed::UserspaceObject{address, process, name.expected, expected_arguments_});
  }

  void buffer_full() { note(writer_.buffer_full(), parsed::BufferFull{1}); }

  std::mt19937_64 random_;
  FxtWriter writer_;
  std::deque<std::string> texts_;  ///< of the current record
  fxt::Arguments arguments_;
  std::vector<parsed::Argument> expected_arguments_;
  std::vector<std::string> expected_;
};

/// The records that were read, and how the tables were used.
struct Seen {
  std::vector<std::string> records;
  std::size_t strings = 0, threads = 0, highest_string = 0, highest_thread = 0;
};

Seen read_back(std::span<const std::byte> bytes, std::mt19937_64& random) {
  Seen seen;
  FxtReader reader;
  const auto consume = [&](const fxt::Record& record) {
    if (const auto* string = std::get_if<parsed::StringRecord>(&record)) {
      ++seen.strings;
      seen.highest_string = std::max<std::size_t>(seen.highest_string, string->slot);
    } else if (const auto* thread = std::get_if<parsed::ThreadRecord>(&record)) {
      ++seen.threads;
      seen.highest_thread = std::max<std::size_t>(seen.highest_thread, thread->slot);
    } else if (!std::holds_alternative<parsed::Initialization>(record) &&
               !std::holds_alternative<parsed::ProviderInfo>(record)) {
      seen.records.push_back(show(record, Refs::hidden));
    }
  };
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), 1 + random() % 10'000));
    const auto fed = reader.feed(piece, consume);
    if (!fed) {
      ADD_FAILURE() << fed.error().message();
      return seen;
    }
    bytes = bytes.subspan(piece.size());
  }
  EXPECT_FALSE(reader.finish()->cut());
  return seen;
}

class RoundTrip : public testing::TestWithParam<unsigned> {};

TEST_P(RoundTrip, RandomRecords) {
  FxtMemory memory;
  RandomTrace trace(memory, GetParam());
  for (int i = 0; i < 5000 && !HasFailure(); ++i) trace.write_record();
  trace.finish();
  EXPECT_EQ(trace.writer().refused(), 0u);

  std::mt19937_64 random(GetParam());
  const Seen seen = read_back(memory.bytes(), random);
  ASSERT_EQ(seen.records.size(), trace.expected().size());
  for (std::size_t i = 0; i < seen.records.size(); ++i) ASSERT_EQ(seen.records[i], trace.expected()[i]) << i;
  EXPECT_GT(seen.threads, 500u);
  EXPECT_GT(seen.highest_thread, 200u);
  EXPECT_GT(seen.strings, 5000u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RoundTrip, testing::Values(1, 2, 3, 4));

TEST(RoundTrip, MoreStringsThanSlots) {
  FxtMemory memory;
  FxtWriter writer(memory);
  constexpr std::uint64_t strings = 40'000, threads = 600;
  for (std::uint64_t i = 0; i < strings; ++i) {
    const auto name = writer.intern("name " + std::to_string(i));
    const auto event = writer.compose(fxt::duration_begin, writer.thread(i % threads, i), {}, name);
    ASSERT_EQ(writer.write(event, i), fxt::Status::written);
  }
  // Early names keep their slots, late ones are defined again.
  for (std::uint64_t i = 0; i < strings; i += 100) {
    const auto name = writer.intern("name " + std::to_string(i));
    const auto event = writer.compose(fxt::instant, writer.thread(i % threads, i), {}, name);
    ASSERT_EQ(writer.write(event, i), fxt::Status::written);
  }
  ASSERT_EQ(writer.flush(), fxt::Status::written);

  std::uint64_t events = 0, defined = 0, highest = 0;
  FxtReader reader;
  const auto fed = reader.feed(memory.bytes(), [&](const fxt::Record& record) {
    if (const auto* event = std::get_if<parsed::EventRecord>(&record)) {
      ++events;
      ASSERT_EQ(event->name.text, "name " + std::to_string(event->time));
      ASSERT_EQ(event->thread.pid, event->time % threads);
      ASSERT_EQ(event->thread.tid, event->time);
    } else if (const auto* string = std::get_if<parsed::StringRecord>(&record)) {
      ++defined;
      highest = std::max<std::uint64_t>(highest, string->slot);
    }
  });
  ASSERT_TRUE(fed) << fed.error().message();
  EXPECT_EQ(events, strings + strings / 100);
  EXPECT_EQ(highest, fxt::max_string_slot);
  EXPECT_GE(defined, strings);
  EXPECT_LT(defined, strings + strings / 100);
}

TEST(RoundTrip, TheLargestRecords) {
  FxtMemory memory;
  FxtWriter writer(memory);
  const std::string longest(fxt::max_string_bytes, 'x'), payload((fxt::max_record_words - 3) * 8, 'y');
  ASSERT_EQ(writer.name_process(1, longest), fxt::Status::written);
  const fxt::Blob blob{std::as_bytes(std::span(payload))};
  ASSERT_EQ(writer.write(fxt::UserspaceObject{.process = writer.thread(1, 2)}, {{{}, blob}}), fxt::Status::written);
  const auto slot = writer.intern(longest);
  ASSERT_EQ(writer.write(writer.compose(fxt::instant, writer.thread(1, 2), slot, slot), 2), fxt::Status::written);
  ASSERT_EQ(writer.flush(), fxt::Status::written);
  const Reading reading = read_trace(memory.bytes(), 1000);
  ASSERT_EQ(reading.error, "");
  ASSERT_EQ(reading.records.size(), 7u);
  EXPECT_EQ(reading.records[2], "kernel object 1 type=1 name=\"" + longest + "\"!");
  EXPECT_EQ(reading.records[4], "userspace object 0 process=1/2#17 name=\"\" (\"\" blob \"" + payload + "\")");
  EXPECT_TRUE(reading.records[6].starts_with("event instant t=2 thread=1/2#17 category=\"" + longest + "\"#"));
}

}  // namespace
}  // namespace rtev::test
