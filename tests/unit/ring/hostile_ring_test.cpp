// SPDX-License-Identifier: MIT
// Rings of hostile programs: header, indices and words take any value between polls.
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <string>

#include "base/clock.hpp"
#include "rtev/ring_reader.hpp"
#include "support/ring_file_builder.hpp"
#include "support/temp_dir.hpp"
#include "unit/ring/checked_reader.hpp"

namespace rtev::test {
namespace {

namespace fs = std::filesystem;

class Vandal {
 public:
  explicit Vandal(std::uint64_t seed) : random_(seed) {}

  /// Any number, often one that is nearly right.
  std::uint64_t number(std::uint64_t around) {
    switch (random_() % 8) {
      case 0:
        return random_();
      case 1:
        return std::uint64_t{1} << random_() % 64;
      case 2:
        return random_() >> random_() % 64;
      case 3:
        return 0;
      case 4:
        return ~(random_() % 64);
      default:
        return around + random_() % 64 - 32;
    }
  }

  void damage(RingFileBuilder& file, bool header) {
    const auto domain = static_cast<std::uint32_t>(random_() % 2);
    switch (random_() % 6) {
      case 0:
        file.set_tail(domain, number(file.tail(domain)));
        break;
      case 1:
        file.set_head(domain, number(file.head(domain)));
        break;
      case 2: {
        const std::uint64_t index = random_();
        file.set_word(domain, index, number(file.word(domain, index)));
        break;
      }
      case 3: {
        const std::uint64_t length = random_() % 3 == 0 ? random_() % 1024 : random_() % 8;
        file.set_word(
            domain, random_(),
            message::first_word(length, random_() % 2, static_cast<unsigned>(random_() % 7), random_() & 0x1fff));
        break;
      }
      case 4: {
        if (!header || random_() % 16 != 0) break;
        const std::uint64_t field = random_() % 8;
        auto* const fields = reinterpret_cast<std::uint64_t*>(file.bytes().data());
        fields[field] = number(fields[field]);
        break;
      }
      default:
        file.append(domain, make::user_custom(random_(), 1, std::string(random_() % 20, 'x')));
    }
  }

  std::uint64_t next() { return random_(); }

 private:
  std::mt19937_64 random_;
};

/// Reads all of a batch, as a sink would.
std::uint64_t consume(const Batch& batch) {
  std::uint64_t sum = 0;
  for (const Event& event : batch.events()) {
    EXPECT_TRUE(event.kind < EventKind::process);
    sum += event.time + event.id;
    for (const std::byte byte : batch.payload(event)) sum += static_cast<std::uint64_t>(byte);
  }
  return sum;
}

void read_damaged(std::uint64_t seed, bool header, int rounds, std::uint64_t budget) {
  const TempDir dir;
  const auto path = dir / "1.events";
  Vandal vandal(seed);
  std::uint64_t sum = 0, opened = 0;
  for (int round = 0; round < rounds; ++round) {
    RingFileBuilder file(path, {.domains = 2, .words_log2 = 7, .names = round % 2 == 0});
    for (std::uint64_t i = 0; i < vandal.next() % 100; ++i) file.append(i % 2, make::begin(i, 1));
    auto reader = round % 3 == 0 ? open_owned(path, {.deliver_since_ns = 0, .created_ns = 1}) : RingReader::open(path);
    if (!reader) continue;
    ++opened;
    for (int step = 0; step < 50; ++step) {
      for (std::uint64_t damage = vandal.next() % 4; damage > 0; --damage) vandal.damage(file, header);
      std::uint64_t events = 0;
      const Polled polled = reader->poll(
          [&](const Batch& batch) {
            sum += consume(batch);
            events += batch.events().size();
          },
          budget);
      ASSERT_TRUE(reader->accounting().balanced());
      ASSERT_LE(reader->layout().rings, max_domains);
      // A poll delivers each word at most once, so the rings' size is the bound.
      ASSERT_LE(polled.delivered_words, reader->layout().rings * reader->layout().ring_words);
      ASSERT_LE(events, polled.delivered_words + 2 * reader->layout().rings);
      ASSERT_TRUE(polled.fullest >= 0 && polled.fullest <= 1);
      sum += reader->user_event_name(static_cast<std::uint16_t>(vandal.next())).size();
    }
    RingReaderAccess::seal(*reader);
    reader->poll(consume, budget);
    reader->finish([&](const Batch& batch) { sum += consume(batch); }, 1000);
    ASSERT_TRUE(reader->accounting().balanced());
  }
  EXPECT_GT(opened, 0u);
  EXPECT_NE(sum, 0u);
}

TEST(HostileRing, WordsAndIndices) {
  read_damaged(1, false, 600, RingReader::default_budget_words);
}

TEST(HostileRing, WordsAndIndicesWithASmallBudget) {
  read_damaged(2, false, 300, 10);
}

TEST(HostileRing, HeaderAndWords) {
  read_damaged(3, true, 600, RingReader::default_budget_words);
}

TEST(HostileRing, SizeChangesAtAnyTime) {
  const TempDir dir;
  const auto path = dir / "1.events";
  Vandal vandal(4);
  RingFileBuilder file(path, {.domains = 2, .words_log2 = 10});
  const std::uint64_t size = file.bytes().size();
  for (int round = 0; round < 200; ++round) {
    std::filesystem::resize_file(path, size);
    RingFileBuilder whole(path, {.domains = 2, .words_log2 = 10});
    auto reader = RingReader::open(path);
    ASSERT_TRUE(reader);
    for (int step = 0; step < 20; ++step) {
      if (vandal.next() % 3 == 0) std::filesystem::resize_file(path, vandal.next() % (2 * size));
      if (vandal.next() % 3 == 0) {
        std::filesystem::resize_file(path, size);
        RingFileBuilder anew(path, {.domains = 2, .words_log2 = 10});
        for (std::uint64_t i = 0; i < vandal.next() % 1000; ++i) anew.append(i % 2, make::begin(i, 1));
      }
      reader->poll(consume);
      ASSERT_TRUE(reader->accounting().balanced());
      static_cast<void>(reader->user_event_name(static_cast<std::uint16_t>(vandal.next() % user_event_slots)));
    }
  }
}

/// The work of a poll is bounded by the ring's size, however often a hostile program moves the indices.
TEST(HostileRing, IndicesThatJumpBackAndForth) {
  const TempDir dir;
  RingFileBuilder file(dir / "1.events", {.domains = 1, .words_log2 = 10});
  while (file.tail(0) + 2 < 1024) file.append(0, make::begin(1, 1));
  const std::uint64_t tail = file.tail(0);
  auto reader = RingReader::open(dir / "1.events");
  ASSERT_TRUE(reader);
  for (int i = 0; i < 1000; ++i) {
    file.set_tail(0, i % 2 == 0 ? tail : 2);
    const Polled polled = reader->poll(consume);
    ASSERT_LE(polled.delivered_words, 1024u);
    ASSERT_TRUE(reader->accounting().balanced());
  }
}

/// More words than can have been written since the last poll are not counted, so that no sum of several rings wraps.
TEST(HostileRing, InventedWordsAreNotCounted) {
  const TempDir dir;
  RingFileBuilder file(dir / "1.events", {.domains = 2, .words_log2 = 10});
  file.append(0, make::begin(1, 1));
  CheckedReader reader(dir / "1.events");
  reader.poll();
  constexpr std::uint64_t invented = std::uint64_t{1} << 63;
  for (const std::uint64_t tail : {invented, invented + 100}) {
    file.set_head(1, tail - 50);
    file.set_tail(1, tail);
    reader.poll();
    EXPECT_LT(reader.words().written, std::uint64_t{1} << 62);
  }
  EXPECT_GT(reader.words().corrupt, 0u);

  const CheckedReader late(dir / "1.events", {.history = RingReader::History::skip});
  EXPECT_EQ(late.words().written, 2u) << "those of domain 0";
  Accounting sum;
  for (int i = 0; i < 4; ++i) sum += Accounting{.written = invented};
  EXPECT_EQ(sum.written, UINT64_MAX);
}

/// Its indices do not look as if the ring had been created anew.
TEST(HostileRing, ARingWithInventedWordsIsReadOn) {
  const TempDir dir;
  RingFileBuilder file(dir / "1.events", {.words_log2 = 10});
  constexpr std::uint64_t invented = std::uint64_t{1} << 63;
  file.set_head(0, invented - 500);
  file.set_tail(0, invented);
  CheckedReader reader(dir / "1.events", RingOwner{});
  reader.poll();
  for (std::uint64_t index = 0; const std::uint64_t word : make::begin(1, 1)) file.set_word(0, index++, word);
  file.set_tail(0, invented + 2);
  reader.poll();
  EXPECT_EQ(reader.words().delivered, 2u);
}

/// Nor do all domains together count more than all CPUs can have written.
TEST(HostileRing, DomainsShareWhatCanHaveBeenWritten) {
  const TempDir dir;
  constexpr std::uint32_t domains = 1024, rounds = 10;
  constexpr std::uint64_t words = 1'000'000;
  RingFileBuilder file(dir / "1.events", {.domains = domains, .words_log2 = 10});
  const std::uint64_t start_ns = monotonic_ns();
  CheckedReader reader(dir / "1.events", RingOwner{});
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    for (std::uint32_t domain = 0; domain < domains; ++domain) {
      file.set_head(domain, round * words - 512);
      file.set_tail(domain, round * words);
    }
    reader.poll();
  }
  const auto cpus = static_cast<std::uint64_t>(::sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_LE(reader.words().written, (monotonic_ns() - start_ns) * cpus + rounds * (1 << 20));
}

/// Reading a hole of a file on tmpfs through a mapping fills it with memory.
TEST(HostileRing, HolesAreNotFilled) {
  const fs::path directory = "/dev/shm";
  if (struct statfs status{}; ::statfs(directory.c_str(), &status) != 0 || status.f_type != TMPFS_MAGIC)
    GTEST_SKIP() << "needs a tmpfs in " << directory;
  const fs::path path = directory / ("rtev-test." + std::to_string(::getpid()) + ".events");
  constexpr std::uint32_t domains = 16;
  RingFileBuilder file(path, {.domains = domains, .words_log2 = 12});
  const auto blocks = [&] {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_blocks * 512 : -1;
  };
  CheckedReader reader(path);
  const auto before = blocks();
  for (std::uint64_t tail = 100; tail < 4000; tail += 600) {
    for (std::uint32_t domain = 0; domain < domains; ++domain) file.set_tail(domain, tail);
    EXPECT_GT(reader.poll().corrupt_words, 0u);
  }
  EXPECT_LE(blocks() - before, ::sysconf(_SC_PAGESIZE)) << "that of the first read";
  fs::remove(path);
}

}  // namespace
}  // namespace rtev::test
