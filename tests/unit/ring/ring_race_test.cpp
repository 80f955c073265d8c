// SPDX-License-Identifier: MIT
// A writer at full speed and readers of every speed: all delivered events were written, they come in order, and losses
// are exact to the word. The writer logs where each message ended.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <random>
#include <thread>

#include "rtev/ring_reader.hpp"
#include "support/ring_file_builder.hpp"
#include "support/temp_dir.hpp"
#include "unit/ring/checked_reader.hpp"

namespace rtev::test {
namespace {

/// The message with a sequence number, from which all of its words are computed, so that a torn message is detected.
Words message_of(std::uint64_t sequence) {
  switch (sequence % 4) {
    case 0:
      return make::begin(sequence + 1, sequence & 0x1fff);
    case 1:
      return make::counter(sequence + 1, sequence & 0x1fff, ~sequence);
    case 2:
      return make::user_custom(sequence + 1, sequence & 0x1fff,
                               std::string(sequence % 97, static_cast<char>('a' + sequence % 26)));
    default:
      return make::user_int(sequence + 1, sequence & 0x1fff, static_cast<std::int64_t>(sequence * 3));
  }
}

void expect_message(const Event& event, std::span<const std::byte> payload, std::uint64_t sequence) {
  ASSERT_EQ(event.time, sequence + 1);
  ASSERT_EQ(event.id, sequence & 0x1fff);
  constexpr EventKind kinds[] = {EventKind::begin, EventKind::counter, EventKind::user_custom, EventKind::user_int};
  ASSERT_EQ(event.kind, kinds[sequence % 4]);
  if (event.kind != EventKind::user_custom) {
    const std::uint64_t values[] = {0, ~sequence, 0, sequence * 3};
    ASSERT_EQ(event.value, values[sequence % 4]);
    return;
  }
  ASSERT_EQ(payload.size(), sequence % 97);
  for (const std::byte byte : payload) ASSERT_EQ(static_cast<char>(byte), static_cast<char>('a' + sequence % 26));
}

struct Pace {
  unsigned words_log2;
  int work;              ///< of the reader, for each batch
  std::uint64_t budget;  ///< of each poll
};

class RingRaceTest : public testing::TestWithParam<Pace> {
 protected:
  const TempDir dir_;
};

TEST_P(RingRaceTest, EveryWordIsAccountedFor) {
  constexpr std::uint64_t messages = 200'000;
  const Pace pace = GetParam();
  const auto path = dir_ / "1.events";
  RingFileBuilder file(path, {.domains = 1, .words_log2 = pace.words_log2});
  auto reader = RingReader::open(path);
  ASSERT_TRUE(reader);

  std::vector<std::uint64_t> begins(messages + 1);  // where each message begins, and one past the last
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (std::uint64_t sequence = 0; sequence < messages; ++sequence) {
      const Words words = message_of(sequence);
      file.append(0, words);
      begins[sequence] = file.tail(0) - words.size();
    }
    begins[messages] = file.tail(0);
    done = true;
  });

  struct Gap {
    std::uint64_t before, after;  // sequence numbers of the events around it
    std::uint64_t words;
  };
  std::vector<Gap> gaps;
  std::uint64_t next = 0, reported = 0, gap_words = 0;
  const auto consume = [&](const Batch& batch) {
    for (const Event& event : batch.events()) {
      if (event.kind == EventKind::lost) {
        ASSERT_EQ(event.id, static_cast<std::uint16_t>(LossReason::overwritten));
        const auto loss = batch.payload_as<Loss>(event);
        ASSERT_TRUE(loss);
        ASSERT_EQ(loss->from_ns, next);
        gap_words = loss->words;
        reported += gap_words;
        continue;
      }
      const std::uint64_t sequence = event.time - 1;
      ASSERT_GE(sequence, next);
      ASSERT_LT(sequence, messages);
      if (gap_words != 0) gaps.push_back({next, sequence, gap_words});
      // No event is missing without a loss. A loss may consist of padding only.
      ASSERT_TRUE(gap_words != 0 || sequence == next);
      gap_words = 0;
      expect_message(event, batch.payload(event), sequence);
      next = sequence + 1;
    }
    std::atomic<int> effort = 0;
    while (effort < pace.work) ++effort;
  };
  bool last = false;
  while (!testing::Test::HasFatalFailure()) {
    last = done;
    const Polled polled = reader->poll(consume, pace.budget);
    const Accounting words = reader->accounting();
    ASSERT_TRUE(words.balanced());
    ASSERT_EQ(words.corrupt, 0u);
    ASSERT_EQ(reader->incarnation(), 0u);
    if (last && polled.complete) break;
  }
  writer.join();
  ASSERT_EQ(next, messages) << "the last message is never lost";
  const Accounting words = reader->accounting();
  EXPECT_EQ(words.written, begins[messages]);
  EXPECT_EQ(words.unread, 0u);
  EXPECT_EQ(words.lost, reported);
  // The words of each gap are those between the end of the event before it and the beginning of the event after it.
  // Padding among them may count as delivered instead, if the head was right before it.
  for (const Gap& gap : gaps) {
    std::uint64_t lost_words = 0, padding = 0;
    for (std::uint64_t sequence = gap.before; sequence <= gap.after; ++sequence) {
      const std::uint64_t previous_end = sequence == 0 ? 0 : begins[sequence - 1] + message_of(sequence - 1).size();
      padding += begins[sequence] - previous_end;
      if (sequence < gap.after) lost_words += message_of(sequence).size();
    }
    ASSERT_GE(gap.words, lost_words);
    ASSERT_LE(gap.words, lost_words + padding);
  }
}

INSTANTIATE_TEST_SUITE_P(Paces, RingRaceTest,
                         testing::Values(Pace{7, 0, 1 << 20}, Pace{8, 2000, 1 << 20}, Pace{10, 0, 100},
                                         Pace{13, 20'000, 1 << 20}, Pace{14, 0, 1}, Pace{16, 0, 1 << 20}));

/// A change of the first message shows that a ring was created anew, except when it is overwritten for the first time.
TEST_F(RingRaceTest, FirstLapIsNotMistakenForAnotherProgram) {
  const auto path = dir_ / "1.events";
  for (int round = 0; round < 300; ++round) {
    std::filesystem::remove(path);
    RingFileBuilder file(path, {.domains = 8, .words_log2 = 5, .names = false});
    file.append(7, make::begin(1, 1));
    auto reader = RingReader::open(path);
    ASSERT_TRUE(reader);
    std::atomic<bool> done = false;
    std::thread writer([&] {
      for (std::uint64_t time = 2; time < 60; ++time) file.append(7, make::begin(time, 1));
      done = true;
    });
    std::uint64_t last_time = 0;
    for (bool last = false; !last;) {
      last = done;
      reader->poll([&](const Batch& batch) {
        for (const Event& event : batch.events()) {
          if (event.kind == EventKind::lost) continue;
          EXPECT_GT(event.time, last_time);
          last_time = event.time;
        }
      });
    }
    writer.join();
    ASSERT_EQ(last_time, 59u);
    ASSERT_EQ(reader->incarnation(), 0u);
    ASSERT_EQ(reader->accounting().written, 118u);
  }
}

}  // namespace
}  // namespace rtev::test
