// SPDX-License-Identifier: MIT
// User events of a RingWriter: their registration and their names in the file.
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "unit/ring/writer_fixture.hpp"

namespace rtev {
namespace {

using test::CheckedReader;

class RingWriterNames : public test::WriterTest {};

std::string refusal(RingWriter& writer, std::string_view name, UserType type = UserType::unit) {
  const auto event = writer.register_event(name, type);
  return event ? "" : event.error().why;
}

TEST_F(RingWriterNames, NamesAreInTheirSlots) {
  RingWriter writer = make(small());
  const std::string longest(127, 'n');
  add(writer, longest, UserType::unit);
  add(writer, "αβγ\x01", UserType::span);
  CheckedReader reader(path());
  EXPECT_EQ(reader.reader().user_event_name(0), longest);
  EXPECT_EQ(reader.reader().user_event_name(1), "αβγ\x01");
  EXPECT_EQ(reader.reader().user_event_name(2), "");
}

TEST_F(RingWriterNames, InvalidNamesAreRefused) {
  RingWriter writer = make(small());
  EXPECT_EQ(refusal(writer, ""), "its name must have 1 to 127 bytes");
  EXPECT_EQ(refusal(writer, std::string(128, 'n')), "its name must have 1 to 127 bytes");
  EXPECT_EQ(refusal(writer, std::string_view("a\0b", 3)), "its name has a NUL byte");
  EXPECT_EQ(refusal(writer, std::string_view("\0", 1)), "its name has a NUL byte");
  EXPECT_EQ(add(writer, "first", UserType::unit).id, 0u) << "a refused name takes no slot";
}

TEST_F(RingWriterNames, SameNameAndTypeGiveTheSameEvent) {
  RingWriter writer = make(small());
  add(writer, "other", UserType::unit);
  const UserEvent request = add(writer, "request", UserType::span);
  EXPECT_EQ(add(writer, "request", UserType::span).id, request.id);
  EXPECT_EQ(refusal(writer, "request", UserType::unit), "it is registered with another type");
  EXPECT_EQ(add(writer, "request ", UserType::unit).id, request.id + 1);
}

TEST_F(RingWriterNames, AllSlotsCanBeUsed) {
  RingWriter writer = make(small());
  for (std::uint32_t i = 0; i < max_user_events; ++i)
    ASSERT_EQ(add(writer, "event " + std::to_string(i), UserType::unit).id, i);
  EXPECT_EQ(refusal(writer, "one more"), "all 8192 are in use");
  EXPECT_EQ(refusal(writer, "event 8191"), "");
  EXPECT_EQ(writer.domain(0).write(UserEvent{8191, UserType::unit}), WriteStatus::written);
  CheckedReader reader(path());
  EXPECT_EQ(reader.reader().user_event_name(8191), "event 8191");
  EXPECT_TRUE(reader.reader().producer()) << "the last slot does not overlap the producer mark";
}

TEST_F(RingWriterNames, NamesCanBeRegisteredBeforeTheStart) {
  auto options = small();
  options.start = false;
  RingWriter writer = make(options);
  const UserEvent early = add(writer, "early", UserType::unit);
  EXPECT_EQ(writer.domain(0).write(early), WriteStatus::off);
  ASSERT_TRUE(writer.start());
  const UserEvent late = add(writer, "late", UserType::unit);
  EXPECT_EQ(writer.domain(0).write(early), WriteStatus::written);
  EXPECT_EQ(writer.domain(0).write(late), WriteStatus::written);
  CheckedReader reader(path());
  EXPECT_EQ(reader.reader().user_event_name(early.id), "early");
  EXPECT_EQ(reader.reader().user_event_name(late.id), "late");
}

TEST_F(RingWriterNames, Ocaml50HasNoNames) {
  auto options = small();
  options.format = RingWriter::Format::before_5_1;
  RingWriter writer = make(options);
  EXPECT_EQ(refusal(writer, "request"), "OCaml 5.0 has no user events");
  EXPECT_EQ(writer.domain(0).write(UserEvent{0, UserType::unit}), WriteStatus::bad_id);
}

TEST_F(RingWriterNames, NamesAreWrittenBeforeTheFirstEvent) {
  RingWriter writer = make(timed());
  constexpr int threads = 2, each = 2000;
  std::atomic<int> writing = threads;
  std::vector<std::jthread> writers;
  for (std::uint32_t domain = 0; domain < threads; ++domain) {
    writers.emplace_back([&, domain] {
      DomainWriter events = writer.domain(domain);
      for (int i = 0; i < each; ++i) {
        const auto event = add(writer, std::to_string(domain) + "/" + std::to_string(i), UserType::unit);
        events.write(event);
      }
      --writing;
    });
  }
  auto reader = RingReader::open(path());
  ASSERT_TRUE(reader);
  std::set<std::uint16_t> ids;
  std::map<std::uint32_t, int> next;
  int strangers = 0;
  const auto look = [&](const Batch& batch) {
    for (const Event& event : batch.events()) {
      if (event.kind != EventKind::user_unit) continue;
      const std::string name(reader->user_event_name(event.id));
      ids.insert(event.id);
      const std::string prefix = std::to_string(Source::unpack(event.source).domain) + "/";
      strangers += !name.starts_with(prefix);
      int& expected = next[event.source];
      const int number = name.starts_with(prefix) ? std::stoi(name.substr(prefix.size())) : expected;
      EXPECT_GE(number, expected);
      expected = number + 1;
    }
  };
  while (writing > 0) reader->poll(look);
  reader->poll(look);
  EXPECT_EQ(strangers, 0);
  EXPECT_LE(ids.size(), static_cast<std::size_t>(threads * each));
  EXPECT_FALSE(ids.empty());
  EXPECT_EQ(add(writer, "last", UserType::unit).id, threads * each) << "no two threads got the same slot";
}

}  // namespace
}  // namespace rtev
