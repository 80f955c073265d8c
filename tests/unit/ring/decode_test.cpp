// SPDX-License-Identifier: MIT
// Decoding of single messages: every kind, every length, every bit that must be zero.
#include "ring/decode.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "ring/layout.hpp"
#include "support/ring_file_builder.hpp"

namespace rtev::test {
namespace {

constexpr std::size_t payload_begin = 48;

struct Decoded {
  DecodeResult result;
  std::vector<Event> events;
  std::vector<std::byte> payloads;

  Batch batch() const { return {events, payloads}; }
  std::string bytes(std::size_t index) const {
    const auto payload = batch().payload(events[index]);
    return {reinterpret_cast<const char*>(payload.data()), payload.size()};
  }
};

/// Buffers have exactly the documented size, so that a sanitizer finds accesses beyond it.
Decoded decode(Words words, std::int64_t clock_offset = 0) {
  const std::size_t size = words.size();
  words.shrink_to_fit();
  Decoded decoded;
  decoded.events.resize(size / 2);
  decoded.payloads.resize(payload_begin + size * 8);
  decoded.result =
      decode_messages(words, 77, clock_offset, decoded.events.data(), decoded.payloads.data(), payload_begin);
  decoded.events.resize(decoded.result.events);
  decoded.payloads.resize(payload_begin + decoded.result.payload_bytes);
  return decoded;
}

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Decode, Nothing) {
  const Decoded decoded = decode({});
  EXPECT_EQ(decoded.result.consumed, 0u);
  EXPECT_EQ(decoded.result.events, 0u);
  EXPECT_FALSE(decoded.result.corrupt);
}

TEST(Decode, KindsWithoutPayload) {
  const struct {
    Words words;
    EventKind kind;
    std::uint16_t id;
    std::uint64_t value;
  } cases[] = {
      {make::begin(5, 11), EventKind::begin, 11, 0},
      {make::begin(5, 49), EventKind::begin, 49, 0},
      {make::begin(5, 8191), EventKind::begin, 8191, 0},
      {make::end(5, 10), EventKind::end, 10, 0},
      {make::counter(5, 27, UINT64_MAX), EventKind::counter, 27, UINT64_MAX},
      {make::counter(5, 0, 0), EventKind::counter, 0, 0},
      {make::lifecycle(5, Lifecycle::ring_start, 1234), EventKind::lifecycle, 0, 1234},
      {make::lifecycle(5, Lifecycle::fork_parent, -1), EventKind::lifecycle, 4, UINT64_MAX},
      {make::ring_stop(5), EventKind::lifecycle, 1, 0},
      {make::user_unit(5, 0), EventKind::user_unit, 0, 0},
      {make::user_unit(5, 8191), EventKind::user_unit, 8191, 0},
      {make::user_int(5, 3, -7), EventKind::user_int, 3, static_cast<std::uint64_t>(-7)},
      {make::user_int(5, 3, INT32_MAX), EventKind::user_int, 3, INT32_MAX},
      {make::user_begin(5, 4), EventKind::user_begin, 4, 0},
      {make::user_end(5, 4), EventKind::user_end, 4, 0},
  };
  for (const auto& expected : cases) {
    SCOPED_TRACE(testing::Message() << "kind " << int(expected.kind) << " id " << expected.id);
    const Decoded decoded = decode(expected.words);
    EXPECT_FALSE(decoded.result.corrupt);
    EXPECT_EQ(decoded.result.consumed, expected.words.size());
    ASSERT_EQ(decoded.events.size(), 1u);
    const Event& event = decoded.events[0];
    EXPECT_EQ(event.time, 5u);
    EXPECT_EQ(event.kind, expected.kind);
    EXPECT_EQ(event.id, expected.id);
    EXPECT_EQ(event.value, expected.value);
    EXPECT_EQ(event.source, 77u);
    EXPECT_EQ(event.flags, 0);
  }
  EXPECT_EQ(decode(make::user_int(1, 1, -7)).events[0].signed_value(), -7);
}

TEST(Decode, AllocBuckets) {
  std::array<std::uint64_t, alloc_bucket_count> buckets;
  for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] = i * 1'000'000'007;
  const Decoded decoded = decode(make::alloc(9, buckets));
  ASSERT_EQ(decoded.events.size(), 1u);
  EXPECT_EQ(decoded.events[0].kind, EventKind::alloc);
  const auto read = decoded.batch().payload_as<decltype(buckets)>(decoded.events[0]);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, buckets);
}

TEST(Decode, CustomBytesOfEverySize) {
  for (std::size_t size = 0; size <= 1024; ++size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + size);
    const Decoded decoded = decode(make::user_custom(3, 12, text) + make::begin(4, 1));
    ASSERT_FALSE(decoded.result.corrupt) << size;
    ASSERT_EQ(decoded.events.size(), 2u) << size;
    ASSERT_EQ(decoded.events[0].kind, EventKind::user_custom);
    ASSERT_EQ(decoded.bytes(0), text) << size;
    ASSERT_EQ(decoded.result.payload_bytes, size);
  }
}

TEST(Decode, CustomWithAnInvalidLastByteIsCorrupt) {
  for (unsigned last = 0; last < 256; ++last) {
    Words words = make::user_custom(3, 12, "0123456789");
    reinterpret_cast<unsigned char*>(words.data() + words.size())[-1] = static_cast<unsigned char>(last);
    const Decoded decoded = decode(make::begin(1, 1) + words);
    EXPECT_EQ(decoded.result.corrupt, last > 7) << last;
    EXPECT_EQ(decoded.result.consumed, last > 7 ? 2 : 2 + words.size());
    if (last <= 7) {
      EXPECT_EQ(decoded.bytes(1).size(), 15 - last);
    }
  }
}

TEST(Decode, LongestCustom) {
  Words words(message::max_words, 0x4141414141414141);
  words[0] = message::first_word(message::max_words, true, message::custom, 1);
  words[1] = 1;
  words.back() &= ~std::uint64_t{0xff} << 56 >> 8 | 0x00ffffffffffffff;
  const Decoded decoded = decode(words);
  ASSERT_EQ(decoded.events.size(), 1u);
  EXPECT_EQ(decoded.bytes(0).size(), (message::max_words - 2) * 8 - 1);
}

TEST(Decode, PaddingOfEveryLengthHasNoEvent) {
  for (std::uint64_t length = 1; length <= 1023; ++length) {
    // Only the first word is written; the others keep older contents.
    Words words(length, 0xffff'ffff'ffff'ffff);
    words[0] = message::first_word(length, false, message::padding, 0);
    const Decoded decoded = decode(words + make::end(8, 2));
    ASSERT_FALSE(decoded.result.corrupt) << length;
    ASSERT_EQ(decoded.events.size(), 1u) << length;
    ASSERT_EQ(decoded.events[0].kind, EventKind::end);
    ASSERT_EQ(decoded.result.consumed, length + 2);
  }
}

TEST(Decode, UserEventOfTypeZeroIsNotPadding) {
  const Decoded decoded = decode(make::user_unit(8, 0));
  ASSERT_EQ(decoded.events.size(), 1u);
  EXPECT_EQ(decoded.events[0].kind, EventKind::user_unit);
}

TEST(Decode, EveryTypeAndLength) {
  const auto valid = [](bool user, unsigned type, std::uint64_t length) {
    if (user) {
      return (type == message::unit && length == 2) || (type == message::integer && length == 3) ||
             (type == message::span_begin && length == 2) || (type == message::span_end && length == 2) ||
             (type == message::custom && length >= 3);
    }
    return (type == message::padding && length >= 1) || (type == message::lifecycle && (length == 2 || length == 3)) ||
           (type == message::begin && length == 2) || (type == message::end && length == 2) ||
           (type == message::counter && length == 3) || (type == message::alloc && length == 22);
  };
  for (const bool user : {false, true}) {
    for (unsigned type = 0; type < 16; ++type) {
      for (std::uint64_t length = 0; length < 1024; ++length) {
        Words words(std::max<std::uint64_t>(length, 1), 0);
        words[0] = message::first_word(length, user, type, 0);
        const Decoded decoded = decode(words);
        ASSERT_EQ(decoded.result.corrupt, !valid(user, type, length)) << user << ' ' << type << ' ' << length;
        ASSERT_EQ(decoded.result.consumed, decoded.result.corrupt ? 0 : length);
        const bool event = !decoded.result.corrupt && (user || type != message::padding);
        ASSERT_EQ(decoded.events.size(), event ? 1u : 0u);
      }
    }
  }
}

TEST(Decode, LowBitsMustBeZero) {
  for (unsigned bit = 0; bit < 36; ++bit) {
    for (Words words : {make::begin(1, 1), make::user_custom(1, 1, "abc"), Words{std::uint64_t{1} << 54}}) {
      words[0] |= std::uint64_t{1} << bit;
      const Decoded decoded = decode(make::end(1, 1) + words);
      EXPECT_TRUE(decoded.result.corrupt) << bit;
      EXPECT_EQ(decoded.result.consumed, 2u);
      EXPECT_EQ(decoded.events.size(), 1u);
    }
  }
}

TEST(Decode, StopsBeforeAnIncompleteMessage) {
  const Words whole = make::begin(1, 1) + make::counter(2, 2, 3) + make::user_custom(3, 3, std::string(100, 'x')) +
                      make::alloc(4, {}) + make::end(5, 1);
  const std::size_t ends[] = {2, 5, 5 + 15, 5 + 15 + 22, 5 + 15 + 22 + 2};
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const Decoded decoded = decode(Words(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    const auto complete = std::ranges::count_if(ends, [&](std::size_t end) { return end <= size; });
    EXPECT_FALSE(decoded.result.corrupt) << size;
    EXPECT_EQ(decoded.events.size(), static_cast<std::size_t>(complete)) << size;
    EXPECT_EQ(decoded.result.consumed, complete == 0 ? 0 : ends[complete - 1]) << size;
  }
}

TEST(Decode, ClockOffset) {
  EXPECT_EQ(decode(make::begin(100, 1), -40).events[0].time, 60u);
  EXPECT_EQ(decode(make::begin(100, 1), 40).events[0].time, 140u);
  EXPECT_EQ(decode(make::user_custom(100, 1, "x"), -40).events[0].time, 60u);
  EXPECT_EQ(decode(make::begin(10, 1), -40).events[0].time, static_cast<std::uint64_t>(-30))
      << "invented times wrap around";
}

TEST(Decode, ManyMessagesGiveTheSameAsSingleOnes) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    Words all;
    std::vector<Event> expected;
    for (std::uint64_t time = 1; time < 50; ++time) {
      const auto id = static_cast<std::uint16_t>(random() & 0x1fff);
      const std::uint64_t kind = random() % 16;
      const Words words = kind == 0   ? make::ring_stop(time)
                          : kind == 1 ? Words{message::first_word(5, false, message::padding, 0), 1, 2, 3, 4}
                          : kind < 6  ? make::counter(time, id, random())
                          : kind < 9  ? make::user_int(time, id, -static_cast<std::int64_t>(time))
                          : kind < 12 ? make::end(time, id)
                                      : make::user_unit(time, id);
      const Decoded one = decode(words);
      expected.insert(expected.end(), one.events.begin(), one.events.end());
      all = all + words;
    }
    const Decoded many = decode(all);
    ASSERT_EQ(many.result.consumed, all.size());
    ASSERT_EQ(many.events.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(many.events[i].time, expected[i].time);
      ASSERT_EQ(many.events[i].value, expected[i].value);
      ASSERT_EQ(many.events[i].id, expected[i].id);
      ASSERT_EQ(many.events[i].kind, expected[i].kind);
      ASSERT_EQ(many.events[i].source, 77u);
      ASSERT_EQ(many.events[i].flags, 0);
    }
  }
}

TEST(Decode, RandomWordsStayInsideTheBuffers) {
  std::mt19937_64 random(3);
  std::uint64_t events = 0;
  for (int round = 0; round < 20'000; ++round) {
    Words words(random() % 200);
    for (std::uint64_t& word : words) {
      word = random() % 3 == 0 ? random()
                               : message::first_word(random() % 8, random() % 2, random() % 8, random() & 0x1fff);
    }
    const Decoded decoded = decode(words);
    ASSERT_LE(decoded.result.consumed, words.size());
    ASSERT_LE(decoded.result.events * 2, decoded.result.consumed);
    ASSERT_LE(decoded.result.payload_bytes, decoded.result.consumed * 8);
    events += decoded.result.events;
  }
  EXPECT_GT(events, 1000u);
}

}  // namespace
}  // namespace rtev::test
