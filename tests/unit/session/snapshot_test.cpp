// SPDX-License-Identifier: MIT
#include "session/snapshot.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "support/ring_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace rtev {
namespace {

using test::RingFileBuilder;
namespace make = test::make;

struct Recorder : Sink {
  void header(const RunHeader&) override { ++headers; }
  void consume(const Batch& batch, const Registry&) override {
    EXPECT_EQ(headers, 1);
    for (const Event& event : batch.events()) {
      events.push_back(event);
      if (event.kind == EventKind::lost) losses.push_back(*batch.payload_as<Loss>(event));
    }
  }
  void flush() override { ++flushes; }
  void summary(const RunSummary& given, const Registry&) override {
    ++summaries;
    late = given.late;
  }

  std::vector<Event> events;
  std::vector<Loss> losses;
  int headers = 0, flushes = 0, summaries = 0;
  std::uint64_t late = 0;
};

class SnapshotTest : public testing::Test {
 protected:
  RunSummary dump() {
    auto ring = RingReader::open(path_);
    EXPECT_TRUE(ring);
    return dump_snapshot(std::move(*ring), {.process = ProcessInfo(), .command_line = {}}, sink_, registry_);
  }
  void expect_in_order() {
    for (std::size_t i = 1; i < sink_.events.size(); ++i) {
      const Event &before = sink_.events[i - 1], &event = sink_.events[i];
      ASSERT_TRUE(before.time < event.time || (before.time == event.time && before.source <= event.source)) << i;
      ASSERT_EQ(event.flags, 0);
    }
    EXPECT_EQ(sink_.late, 0u);
  }
  const ProcessInfo& process() { return *registry_.processes().begin(); }

  const test::TempDir dir_;
  const std::filesystem::path path_ = dir_ / "1.events";
  Recorder sink_;
  Registry registry_;
};

TEST_F(SnapshotTest, EmptyRing) {
  RingFileBuilder file(path_, {});
  const RunSummary summary = dump();
  EXPECT_TRUE(sink_.events.empty());
  EXPECT_EQ(sink_.headers, 1);
  EXPECT_EQ(sink_.summaries, 1);
  EXPECT_GE(sink_.flushes, 1);
  EXPECT_GE(summary.end_ns, summary.start_ns);
}

TEST_F(SnapshotTest, OrdersEventsOverDomains) {
  // Rings of several reads; times with many ties over the domains.
  RingFileBuilder file(path_, {.domains = 5, .words_log2 = 18});
  std::mt19937_64 random(1);
  std::array<std::uint64_t, 5> times{};
  std::uint64_t written = 0;
  for (std::uint32_t domain = 0; domain < 4; ++domain) {
    while (file.tail(domain) < 200'000 + domain * 10'000) {
      file.append(domain, make::begin(1 + times[domain] / 2, 1));
      times[domain] += random() % 3;
      ++written;
    }
  }
  const RunSummary summary = dump();
  expect_in_order();
  EXPECT_EQ(sink_.events.size(), written);
  EXPECT_EQ(summary.events[static_cast<std::size_t>(EventKind::begin)], written);
  EXPECT_EQ(process().words.delivered, process().words.written);
  EXPECT_EQ(process().domains, 4u);
  EXPECT_EQ(summary.forced, 0u);
}

TEST_F(SnapshotTest, OverwrittenHistoryIsNoLossButCorruptWordsAre) {
  RingFileBuilder file(path_, {.domains = 2, .words_log2 = 6});
  for (std::uint64_t i = 0; i < 100; ++i) file.append(0, make::begin(i, 1));
  file.append(1, make::begin(500, 1));
  file.append(1, {0, 0, 0});
  dump();
  expect_in_order();
  ASSERT_EQ(sink_.losses.size(), 1u);
  EXPECT_EQ(sink_.losses[0].words, 3u);
  EXPECT_EQ(sink_.losses[0].from_ns, 500u);
  EXPECT_EQ(sink_.events.back().time, 500u) << "dated in the ring's own time";
  EXPECT_EQ(process().words.before_attach, file.head(0));
  EXPECT_TRUE(process().words.balanced());
}

TEST_F(SnapshotTest, RingThatIsBeingWritten) {
  RingFileBuilder file(path_, {.domains = 2, .words_log2 = 16});
  std::atomic<std::uint64_t> clock = 1;
  std::atomic<bool> stop = false, wrapped = false;
  std::thread writer([&] {
    while (!stop) {
      for (const std::uint32_t domain : {0u, 1u}) file.append(domain, make::begin(clock++, 1));
      if (file.head(1) != 0) wrapped = true;
    }
  });
  while (!wrapped) std::this_thread::yield();
  dump();  // ends although the ring does not
  stop = true;
  writer.join();
  EXPECT_FALSE(sink_.events.empty());
  EXPECT_TRUE(process().words.balanced());
  EXPECT_EQ(process().words.corrupt, 0u);
}

TEST_F(SnapshotTest, FileThatWasCutShort) {
  RingFileBuilder file(path_, {});
  file.append(0, make::begin(1, 1));
  auto ring = RingReader::open(path_);
  std::filesystem::resize_file(path_, 0);
  dump_snapshot(std::move(*ring), {.process = ProcessInfo(), .command_line = {}}, sink_, registry_);
  EXPECT_EQ(process().ring, RingState::truncated);
  EXPECT_EQ(process().words.lost, 2u);
}

TEST_F(SnapshotTest, GuessesTheFamily) {
  RingFileBuilder file(path_, {.domains = 2, .words_log2 = 6});
  file.append(0, make::begin(1, 10));
  file.append(1, make::begin(2, 28));
  auto ring = RingReader::open(path_);
  EXPECT_EQ(guess_family(*ring), std::nullopt) << "domains are looked at one by one";
  file.append(1, make::counter(3, 20, 1));
  ring = RingReader::open(path_);
  EXPECT_EQ(guess_family(*ring), Family::since_5_3);
}

}  // namespace
}  // namespace rtev
