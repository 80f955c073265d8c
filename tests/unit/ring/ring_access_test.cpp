// SPDX-License-Identifier: MIT
// Where a reader begins, how it shares its budget, names of user events, files that it refuses.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <span>

#include "rtev/names.hpp"
#include "rtev/ring_reader.hpp"
#include "support/ring_file_builder.hpp"
#include "unit/ring/checked_reader.hpp"

namespace rtev::test {
namespace {

class RingAccessTest : public RingTest {};

TEST_F(RingAccessTest, HistoryIsDeliveredOrSkipped) {
  RingFileBuilder file(path_, {.domains = 3, .words_log2 = 6});
  for (std::uint64_t i = 0; i < 100; ++i) file.append(0, make::begin(i, 1));
  file.append(1, make::begin(100, 1));
  {
    CheckedReader reader(path_, {.history = RingReader::History::deliver});
    EXPECT_EQ(reader.words().before_attach, file.head(0));
    reader.poll();
    EXPECT_EQ(reader.words().lost, 0u) << "history is no loss";
    EXPECT_EQ(reader.seen().size(), 32u);
  }
  CheckedReader reader(path_, {.history = RingReader::History::skip});
  EXPECT_EQ(reader.words().before_attach, 202u);
  EXPECT_EQ(reader.poll().events, 0u);
  EXPECT_EQ(reader.reader().active_domains(), 2u);
  file.append(0, make::begin(200, 1));
  file.append(2, make::begin(201, 1));
  reader.poll();
  EXPECT_EQ(reader.take_times(), (Times{200, 201}));
}

TEST_F(RingAccessTest, HistoryOfANewProgramIsNotSkipped) {
  RingFileBuilder file(path_, {.domains = 3, .words_log2 = 4});
  file.append(0, make::lifecycle(500, Lifecycle::ring_start, 1));
  file.append(0, make::begin(510, 1));
  file.append(1, make::begin(400, 1));
  for (std::uint64_t i = 600; i < 700; ++i) file.append(2, make::begin(i, 1));
  CheckedReader reader(path_, RingOwner{.deliver_since_ns = 500}, {.history = RingReader::History::skip});
  reader.poll();
  EXPECT_EQ(reader.take_times(), (Times{500, 510}));
  EXPECT_EQ(reader.words().before_attach, 2u + file.tail(2)) << "older, and already wrapped";
}

TEST_F(RingAccessTest, WhatAProgramOfTheTraceOverwroteIsLost) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 4});
  for (std::uint64_t i = 600; i < 700; ++i) file.append(0, make::begin(i, 1));
  const std::uint64_t overwritten = file.head(0);
  CheckedReader reader(path_, RingOwner{.began_traced = true}, {.history = RingReader::History::deliver});
  reader.poll();
  EXPECT_EQ(reader.words().before_attach, 0u);
  EXPECT_EQ(reader.words().lost, overwritten);
  EXPECT_EQ(reader.words().delivered, file.tail(0) - overwritten);
}

TEST_F(RingAccessTest, RefusesAFileThatIsStillAnEarlierPrograms) {
  {
    RingFileBuilder old(path_, {.domains = 2, .words_log2 = 6});
    old.append(1, make::begin(100, 1));
  }
  const auto early = open_owned(path_, {.created_ns = 1000});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, EAGAIN);
  RingFileBuilder file(path_, {.domains = 2, .words_log2 = 6});
  EXPECT_TRUE(open_owned(path_, {.created_ns = 1000})) << "nothing written yet";
  file.append(0, make::lifecycle(1000, Lifecycle::ring_start, 1));
  EXPECT_TRUE(open_owned(path_, {.created_ns = 1000}));
  EXPECT_FALSE(open_owned(path_, {.created_ns = 1001}));
  EXPECT_TRUE(open_owned(path_, {.created_ns = 1001}, {.clock_offset_ns = 1}));
}

TEST_F(RingAccessTest, RefusesAFileThatALaterProgramReused) {
  const auto opens = [&](std::uint64_t created, std::uint64_t ended) {
    return open_owned(path_, {.created_ns = created, .ended_ns = ended}).has_value();
  };
  RingFileBuilder file(path_, {.domains = 2, .words_log2 = 6});
  EXPECT_FALSE(opens(900, 2000)) << "a program writes at least one event";
  file.append(0, make::lifecycle(1000, Lifecycle::ring_start, 1));
  file.append(1, make::begin(1900, 1));
  EXPECT_TRUE(opens(900, 2000));
  EXPECT_TRUE(opens(1000, 1900));
  EXPECT_FALSE(opens(1001, 2000)) << "an earlier program's";
  EXPECT_FALSE(opens(900, 999)) << "a later program's";
  EXPECT_FALSE(opens(900, 1899)) << "a later program's domain";
  EXPECT_EQ(open_owned(path_, {.ended_ns = 999}).error().code, EAGAIN);
}

TEST_F(RingAccessTest, TimeOfPaddingIsNotTakenForTheAgeOfARing) {
  // Padding has no time; the word after its header keeps older contents.
  for (const std::uint64_t padding : {1u, 2u, 3u}) {
    RingFileBuilder file(path_, {.domains = 1, .words_log2 = 4});
    file.append(0, make::user_custom(1000, 1, std::string(padding % 2 == 1 ? 0 : 8, 'x')));
    while (file.tail(0) + padding < 16) file.append(0, make::begin(1000, 1));
    for (int i = 0; i < 3; ++i) file.append(0, make::user_custom(2000, 1, std::string(12, 'x')));
    ASSERT_EQ(file.tail(0), 16 + 3 * 4u);
    ASSERT_EQ(file.word(0, 16 - padding), message::first_word(padding, false, message::padding, 0));
    if (padding > 1) file.set_word(0, 17 - padding, 1);
    file.set_head(0, 16 - padding);
    EXPECT_TRUE(open_owned(path_, {.created_ns = 500})) << padding;
    EXPECT_FALSE(open_owned(path_, {.created_ns = 2500})) << padding;
  }
}

TEST_F(RingAccessTest, BudgetIsSharedAmongDomains) {
  RingFileBuilder file(path_, {.domains = 4, .words_log2 = 15});
  CheckedReader reader(path_);
  std::uint64_t time = 0;
  const auto fill = [&](std::uint32_t domain) {
    for (int i = 0; i < 10'000; ++i) file.append(domain, make::begin(++time, 1));
  };
  // Domain 1 is written faster than the budget allows to read, the others rarely.
  for (int round = 0; round < 20; ++round) {
    fill(1);
    for (const std::uint32_t domain : {0u, 2u, 3u}) file.append(domain, make::begin(++time, 1));
    Polled polled = reader.poll(8192);
    EXPECT_FALSE(polled.complete);
    EXPECT_LE(polled.delivered_words, 8192u + 2048u);
    EXPECT_TRUE(RingReaderAccess::behind_since_ns(reader.reader()));
    polled = reader.poll(8192);
    for (const std::uint16_t domain : std::initializer_list<std::uint16_t>{0, 2, 3}) {
      EXPECT_EQ(reader.reader().accounting(domain).unread, 0u) << "two polls reach every domain";
    }
  }
  while (!reader.poll(8192).complete) {
  }
  EXPECT_FALSE(RingReaderAccess::behind_since_ns(reader.reader()));
  EXPECT_EQ(reader.words().unread, 0u);
}

TEST_F(RingAccessTest, BusyDomainsTakeTurns) {
  RingFileBuilder file(path_, {.domains = 3, .words_log2 = 15});
  CheckedReader reader(path_);
  std::uint64_t time = 0;
  for (int round = 0; round < 30; ++round) {
    for (const std::uint32_t domain : {0u, 1u, 2u}) {
      for (int i = 0; i < 6000; ++i) file.append(domain, make::begin(++time, 1));
    }
    reader.poll(4096);
  }
  Accounting least = reader.reader().accounting(0), most = least;
  for (const std::uint16_t domain : std::initializer_list<std::uint16_t>{1, 2}) {
    const Accounting words = reader.reader().accounting(domain);
    if (words.delivered < least.delivered) least = words;
    if (words.delivered > most.delivered) most = words;
  }
  EXPECT_LE(most.delivered - least.delivered, 2 * 2048u);
}

TEST_F(RingAccessTest, PollOfOneDomainDoesNotReadTheOthers) {
  RingFileBuilder file(path_, {.domains = 2, .words_log2 = 6});
  CheckedReader reader(path_);
  file.append(0, make::begin(1, 1));
  file.append(1, make::begin(2, 1));
  EXPECT_TRUE(reader.poll_domain(1).complete);
  EXPECT_EQ(reader.take_times(), Times{2});
  EXPECT_TRUE(reader.poll_domain(2).complete) << "no such domain";
  EXPECT_TRUE(reader.poll_domain(0).complete);
  EXPECT_EQ(reader.take_times(), Times{1});
}

TEST_F(RingAccessTest, BehindSinceIsTheOldestUnreadTimeOfAllDomains) {
  RingFileBuilder file(path_, {.domains = 2, .words_log2 = 15});
  CheckedReader reader(path_);
  for (const std::uint32_t domain : {0u, 1u}) {
    for (std::uint64_t i = 0; i < 5000; ++i) file.append(domain, make::begin(domain * 10'000 + i, 1));
  }
  reader.poll_domain(0, 1);
  EXPECT_EQ(RingReaderAccess::behind_since_ns(reader.reader()), 1023u);
  reader.poll_domain(1, 1);
  EXPECT_EQ(RingReaderAccess::behind_since_ns(reader.reader()), 1023u);
  reader.poll_domain(0);
  EXPECT_EQ(RingReaderAccess::behind_since_ns(reader.reader()), 11'023u);
}

TEST_F(RingAccessTest, PollOfUsedDomainsFindsNewOnes) {
  RingFileBuilder file(path_, {.domains = 128, .words_log2 = 6});
  file.append(3, make::begin(1, 1));
  auto reader = RingReader::open(path_);
  ASSERT_TRUE(reader);
  Times times;
  const auto consume = [&](const Batch& batch) {
    for (const Event& event : batch.events()) times.push_back(event.time);
  };
  RingReaderAccess::poll_used(*reader, consume);
  EXPECT_EQ(times, Times{1});
  for (const std::uint32_t domain : {11u, 19u, 20u}) file.append(domain, make::begin(domain, 1));
  times.clear();
  EXPECT_TRUE(RingReaderAccess::poll_used(*reader, consume).complete);
  EXPECT_EQ(times, (Times{11, 19, 20})) << "each is near the one before";
  file.append(100, make::begin(100, 1));
  times.clear();
  RingReaderAccess::poll_used(*reader, consume);
  EXPECT_EQ(times, Times{});
  reader->poll(consume);
  EXPECT_EQ(times, Times{100});
  EXPECT_TRUE(reader->accounting().balanced());
}

TEST_F(RingAccessTest, BatchIsDeliveredIfTheConsumerThrows) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 6});
  file.append(0, make::begin(1, 1));
  CheckedReader reader(path_);
  EXPECT_THROW(reader.reader().poll([](const Batch&) { throw 1; }), int);
  EXPECT_EQ(reader.words().delivered, 2u);
  file.append(0, make::begin(2, 1));
  reader.poll();
  EXPECT_EQ(reader.take_times(), Times{2});
}

TEST_F(RingAccessTest, ReadsNamesOfUserEvents) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 6});
  const std::string longest(127, 'n');
  file.set_name(0, longest);
  file.set_name(8191, "last");
  CheckedReader reader(path_);
  EXPECT_EQ(reader.reader().user_event_name(0), longest);
  EXPECT_EQ(reader.reader().user_event_name(8191), "last");
  EXPECT_EQ(reader.reader().user_event_name(8192), "");
  EXPECT_EQ(reader.reader().user_event_name(UINT16_MAX), "");
  EXPECT_EQ(reader.reader().user_event_name(7), "");
  file.set_name(7, "late");
  EXPECT_EQ(reader.reader().user_event_name(7), "") << "not read for each event";
  reader.poll();
  EXPECT_EQ(reader.reader().user_event_name(7), "late") << "an empty slot is read again";
}

/// Says which pages of a file are ready, and what was asked for.
struct FakePages {
  std::function<PageState(const PageRange&)> state = [](const PageRange&) { return PageState::ready; };
  std::uint64_t loaded_bytes = 0;

  RingOwner owner() {
    return {.file = {.look_at_pages =
                         [this](std::span<PageRange> ranges) {
                           for (PageRange& range : ranges) range.state = state(range);
                         },
                     .load_pages = [this](int, std::uint64_t, std::size_t bytes) { loaded_bytes += bytes; }}};
  }
};

TEST_F(RingAccessTest, AFileIsNotMappedWhileItIsBeingChanged) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 6});
  bool is_changing = true;
  const RingOwner owner{
      .file = {.is_being_changed = [&](int, FileUse use) { return is_changing && use == FileUse::map; }}};
  EXPECT_EQ(open_owned(path_, owner).error().code, EAGAIN);
  is_changing = false;
  EXPECT_TRUE(open_owned(path_, owner));
}

TEST_F(RingAccessTest, PagesThatAreNotReadyAreReadLater) {
  constexpr std::uint64_t events = 1 << 14;
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 16});
  file.set_name(0, "name");
  FakePages pages;
  pages.state = [](const PageRange&) { return PageState::busy; };
  EXPECT_EQ(open_owned(path_, pages.owner()).error().code, EAGAIN);
  pages.state = [](const PageRange&) { return PageState::absent; };
  EXPECT_EQ(open_owned(path_, pages.owner()).error().code, EAGAIN);
  EXPECT_GE(pages.loaded_bytes, 80u) << "the header and the indices";

  pages.state = [](const PageRange&) { return PageState::ready; };
  CheckedReader reader(path_, pages.owner());
  for (std::uint64_t event = 0; event < events; ++event) file.append(0, make::begin(event + 1, 1));
  for (const PageState state : {PageState::busy, PageState::absent}) {
    pages.state = [state](const PageRange&) { return state; };
    const Polled polled = reader.poll();
    EXPECT_FALSE(polled.complete);
    EXPECT_EQ(polled.events, 0u);
    EXPECT_EQ(reader.reader().user_event_name(0), "");
  }

  // Only large ranges: they are words.
  int large = 0;
  pages.state = [&](const PageRange& range) {
    return range.bytes > 4096 && large++ > 0 ? PageState::busy : PageState::ready;
  };
  const Polled polled = reader.poll();
  EXPECT_FALSE(polled.complete);
  EXPECT_GT(polled.events, 0u);
  EXPECT_LT(polled.events, events) << "the next pages are not ready";

  pages.state = [](const PageRange&) { return PageState::ready; };
  EXPECT_TRUE(reader.poll().complete);
  EXPECT_EQ(reader.take_times().size(), events);
  EXPECT_EQ(reader.words().delivered, file.tail(0));
  EXPECT_EQ(reader.reader().user_event_name(0), "name");
}

TEST_F(RingAccessTest, ARingDoesNotWaitForThePagesOfAnother) {
  RingFileBuilder file(path_, {.domains = 3, .words_log2 = 10});
  FakePages pages;
  CheckedReader reader(path_, pages.owner());
  for (std::uint64_t event = 1; event <= 100; ++event)
    for (const std::uint32_t domain : {0u, 1u, 2u}) file.append(domain, make::begin(event, 1));
  // The words of each ring are one range.
  std::set<const std::byte*> words;
  pages.state = [&](const PageRange& range) {
    if (range.bytes != 200 * sizeof(std::uint64_t)) return PageState::ready;
    words.insert(range.address);
    const bool is_second = words.size() > 1 && range.address == *std::next(words.begin());
    return is_second ? PageState::busy : PageState::ready;
  };
  EXPECT_FALSE(reader.poll().complete);
  EXPECT_EQ(reader.reader().accounting(0).delivered, 200u);
  EXPECT_EQ(reader.reader().accounting(1).delivered, 0u);
  EXPECT_EQ(reader.reader().accounting(2).delivered, 200u);
  pages.state = [](const PageRange&) { return PageState::ready; };
  EXPECT_TRUE(reader.poll().complete);
  EXPECT_EQ(reader.reader().accounting(1).delivered, 200u);
}

TEST_F(RingAccessTest, HolesAreReadWithoutTheMapping) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 12});
  FakePages pages;
  CheckedReader reader(path_, pages.owner());
  for (std::uint64_t event = 1; event <= 100; ++event) file.append(0, make::begin(event, 1));
  file.set_name(0, "name");
  pages.state = [](const PageRange&) { return PageState::hole; };
  EXPECT_TRUE(reader.poll().complete);
  EXPECT_EQ(reader.take_times().size(), 100u);
  EXPECT_EQ(reader.reader().user_event_name(0), "") << "a name in a hole is empty";
  EXPECT_EQ(pages.loaded_bytes, 0u);
}

TEST_F(RingAccessTest, WithoutMemoryForPageTablesWordsAreReadByPread) {
  RingFileBuilder file(path_, {.domains = 2, .words_log2 = 21});
  std::vector<std::size_t> asked;
  CheckedReader reader(path_, RingOwner{.may_use_memory = [&](std::size_t bytes) {
                         asked.push_back(bytes);
                         return asked.size() == 1;
                       }});
  for (std::uint64_t event = 1; event < 100; ++event)
    for (const std::uint32_t domain : {0u, 1u}) file.append(domain, make::begin(event, 1));
  reader.poll();
  EXPECT_EQ(reader.words().delivered, file.tail(0) + file.tail(1));
  EXPECT_EQ(reader.take_times().size(), 198u);
  file.append(1, make::begin(200, 1));
  reader.poll();
  EXPECT_EQ(reader.take_times(), Times{200});
  EXPECT_EQ(asked, (std::vector<std::size_t>{33792, 33792})) << "a 512th of 16 MiB, and a little; once for each domain";
}

TEST_F(RingAccessTest, NamesAreKeptWhileThereIsMemory) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 6});
  for (std::uint16_t id = 0; id < 10; ++id) file.set_name(id, "name");
  int names = 0;
  CheckedReader reader(path_, RingOwner{.may_use_memory = [&](std::size_t) { return ++names <= 5; }}, {});
  file.append(0, make::begin(1, 1));
  reader.poll();
  EXPECT_EQ(reader.reader().user_event_name(3), "name");
  EXPECT_EQ(reader.reader().user_event_name(4), "") << "its number is shown";
}

TEST_F(RingAccessTest, NameWithoutNulIsCutAt127Bytes) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 6});
  std::ranges::fill(file.bytes().subspan(file.header().custom_events_offset, 256), std::byte{'x'});
  CheckedReader reader(path_);
  EXPECT_EQ(reader.reader().user_event_name(0), std::string(127, 'x'));
}

TEST_F(RingAccessTest, Ocaml50HasNoNames) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 6, .names = false});
  file.append(0, make::begin(1, 1));
  CheckedReader reader(path_);
  reader.poll();
  EXPECT_EQ(reader.take_times(), Times{1});
  EXPECT_EQ(reader.reader().user_event_name(0), "");
}

TEST_F(RingAccessTest, RefusesAllButRegularFiles) {
  EXPECT_EQ(RingReader::open(path_).error().code, ENOENT);
  const auto fifo = dir_ / "2.events";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(RingReader::open(fifo).error().why, "not a regular file") << "does not wait for a writer";
  EXPECT_EQ(RingReader::open(dir_.path()).error().why, "not a regular file");
  RingFileBuilder file(path_, {});
  const auto link = dir_ / "3.events";
  std::filesystem::create_symlink(path_, link);
  EXPECT_EQ(RingReader::open(link).error().code, ELOOP);
  EXPECT_EQ(RingReader::adopt(-1, "none", {}).error().code, EBADF);
}

TEST_F(RingAccessTest, RingThatIsBeingCreatedIsNotReady) {
  std::ofstream{path_};
  EXPECT_EQ(RingReader::open(path_).error().code, EAGAIN) << "empty";
  std::filesystem::resize_file(path_, 63);
  EXPECT_EQ(RingReader::open(path_).error().code, EAGAIN) << "too short for a header";
  std::filesystem::resize_file(path_, RingFileBuilder::file_size({}));
  const auto zeros = RingReader::open(path_);
  EXPECT_EQ(zeros.error().code, EAGAIN);
  EXPECT_EQ(zeros.error().why, "its header is not that of a runtime events file");
  RingFileBuilder file(path_, {});
  EXPECT_TRUE(RingReader::open(path_));
}

}  // namespace
}  // namespace rtev::test
