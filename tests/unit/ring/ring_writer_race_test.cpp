// SPDX-License-Identifier: MIT
// Domains that write at the same time, while readers follow, other threads stop the writer, and another process
// overwrites the file.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <random>
#include <thread>

#include "base/unique_fd.hpp"
#include "ring/ring_file.hpp"
#include "unit/ring/writer_fixture.hpp"

namespace rtev::test {
namespace {

class RingWriterRace : public WriterTest {};

/// Writes the numbers from 0 on; the kind of an event depends on its number.
void write_number(DomainWriter events, UserEvent blob, std::uint64_t number) {
  if (number % 5 == 0) {
    std::array<std::byte, 200> bytes{};
    std::memcpy(bytes.data(), &number, sizeof number);
    events.write(blob, std::span(bytes).first(sizeof number + number % 90));
  } else {
    events.counter(Counter{static_cast<std::uint16_t>(number % 28)}, number);
  }
}

TEST_F(RingWriterRace, EveryDomainIsReadInOrderAndAccountedFor) {
  constexpr std::uint32_t domains = 4;
  constexpr std::uint64_t each = 50'000;
  for (const unsigned log2_words : {8u, 12u, 18u}) {
    auto options = timed();
    options.domains = domains;
    options.log2_words = log2_words;
    RingWriter writer = make(options);
    const UserEvent blob = add(writer, "blob", UserType::custom);
    CheckedReader reader(path());
    std::atomic<std::uint32_t> writing = domains;
    std::vector<std::jthread> threads;
    for (std::uint32_t domain = 0; domain < domains; ++domain) {
      threads.emplace_back([&, domain] {
        for (std::uint64_t number = 0; number < each; ++number) write_number(writer.domain(domain), blob, number);
        --writing;
      });
    }
    std::array<std::uint64_t, domains> next{}, time{};
    std::uint64_t wrong = 0;
    const auto check = [&] {
      for (const Seen& seen : reader.take_seen()) {
        const std::uint16_t domain = seen.domain();
        wrong += seen.event.time < time[domain];
        time[domain] = seen.event.time;
        std::uint64_t number = seen.event.value;
        if (seen.event.kind == EventKind::user_custom) {
          std::memcpy(&number, seen.payload.data(), sizeof number);
          wrong += seen.payload.size() != sizeof number + number % 90;
        } else if (seen.event.kind != EventKind::counter) {
          continue;
        } else {
          wrong += seen.event.id != number % 28;
        }
        wrong += number < next[domain];
        next[domain] = number + 1;
      }
    };
    while (writing > 0) {
      reader.poll();
      check();
      EXPECT_LE(reader.words().written, [&] {
        std::uint64_t sum = 0;
        for (std::uint32_t domain = 0; domain < domains; ++domain) sum += writer.words_written(domain);
        return sum;
      }());
    }
    threads.clear();
    while (!reader.poll().complete) check();
    check();
    EXPECT_EQ(wrong, 0u);
    for (std::uint16_t domain = 0; domain < domains; ++domain) {
      const Accounting words = reader.reader().accounting(domain);
      EXPECT_EQ(words.written, writer.words_written(domain));
      EXPECT_EQ(words.delivered + words.lost, words.written);
      EXPECT_EQ(next[domain], each) << "the last event is never lost";
      if (log2_words == 18) {
        EXPECT_EQ(words.lost, 0u);
      }
    }
  }
}

TEST_F(RingWriterRace, PauseStopAndRegisterWhileDomainsWrite) {
  auto options = timed();
  options.domains = 3;
  RingWriter writer = make(options);
  CheckedReader reader(path());
  std::atomic<bool> done = false;
  std::atomic<int> written = 0, off = 0;
  std::vector<std::jthread> threads;
  for (std::uint32_t domain = 1; domain < 3; ++domain) {
    threads.emplace_back([&, domain] {
      DomainWriter events = writer.domain(domain);
      while (!done) ++(events.begin(Phase{1}) == WriteStatus::written ? written : off);
    });
  }
  const auto wait_for_more = [](const std::atomic<int>& count) {
    for (const int before = count; count < before + 100;) std::this_thread::yield();
  };
  for (int i = 0; i < 20; ++i) {
    wait_for_more(written);
    writer.pause();
    add(writer, std::to_string(i), UserType::unit);
    EXPECT_EQ(writer.path(), path());
    wait_for_more(off);
    writer.resume();
  }
  wait_for_more(written);
  writer.stop();
  wait_for_more(off);
  done = true;
  threads.clear();
  while (!reader.poll().complete) {
  }
  EXPECT_EQ(reader.words().corrupt, 0u);
  EXPECT_EQ(reader.reader().accounting(0).events, 1u + 20 * 2 + 1);
  for (std::uint32_t domain = 0; domain < 3; ++domain)
    EXPECT_EQ(reader.reader().accounting(static_cast<std::uint16_t>(domain)).written, writer.words_written(domain));
}

/// Another process that has the writer's file mapped.
class Intruder {
 public:
  explicit Intruder(const std::filesystem::path& path) : size_(std::filesystem::file_size(path)) {
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    words_ = static_cast<std::uint64_t*>(::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    if (words_ == MAP_FAILED) throw std::runtime_error("mmap");
  }
  Intruder(const Intruder&) = delete;
  Intruder& operator=(const Intruder&) = delete;
  ~Intruder() { ::munmap(words_, size_); }

  std::uint64_t size() const { return size_ / sizeof(std::uint64_t); }
  void write(std::uint64_t index, std::uint64_t word) {
    std::atomic_ref(words_[index]).store(word, std::memory_order_relaxed);
  }
  /// Overwrites header, indices, data and names.
  void fill(std::uint64_t word) {
    for (std::uint64_t i = 0; i < size(); ++i) write(i, word);
  }

 private:
  std::uint64_t size_;
  std::uint64_t* words_;
};

TEST_F(RingWriterRace, ProducerIgnoresWhatOthersWrite) {
  for (const std::uint64_t word : {std::uint64_t{0}, UINT64_MAX, std::uint64_t{1} << 54, std::uint64_t{255} << 54,
                                   std::uint64_t{256} << 54, std::uint64_t{1023} << 54}) {
    RingWriter writer = make(small());
    DomainWriter events = writer.domain(0);
    for (std::uint64_t i = 0; i < 500; ++i) events.counter(Counter{1}, i);
    Intruder intruder(path());
    intruder.fill(word);
    for (std::uint64_t i = 0; i < 500; ++i) ASSERT_EQ(events.counter(Counter{1}, i), WriteStatus::written);
    // Once the header is restored, readers find all events written since, with the producer's own head and tail.
    const auto header = std::bit_cast<std::array<std::uint64_t, 8>>(make_header(2, 256, true));
    for (std::size_t i = 0; i < header.size(); ++i) intruder.write(i, header[i]);
    auto reader = RingReader::open(path());
    ASSERT_TRUE(reader);
    std::uint64_t last = 0;
    reader->poll_domain(0, [&](const Batch& batch) {
      for (const Event& event : batch.events()) last = event.value;
    });
    EXPECT_EQ(reader->accounting(0).corrupt, 0u);
    EXPECT_EQ(reader->accounting(0).written, writer.words_written(0));
    EXPECT_EQ(last, 499u);
  }
}

TEST_F(RingWriterRace, ConcurrentOverwritingNeitherHangsNorCrashes) {
  RingWriter writer = make(timed());
  const UserEvent blob = add(writer, "blob", UserType::custom);
  Intruder intruder(path());
  std::atomic<bool> done = false;
  std::jthread scribbler([&] {
    std::mt19937_64 random(1);
    while (!done) {
      for (std::uint64_t i = 0; i < 1000; ++i) intruder.write(random() % (intruder.size() / 16), random() & random());
    }
  });
  constexpr std::uint64_t numbers = 200'000;
  for (std::uint64_t number = 0; number < numbers; ++number) write_number(writer.domain(0), blob, number);
  done = true;
  EXPECT_GE(writer.words_written(0), 2 * numbers) << "what it counts does not lie in the file";
}

}  // namespace
}  // namespace rtev::test
