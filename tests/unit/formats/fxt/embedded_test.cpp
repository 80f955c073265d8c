// SPDX-License-Identifier: MIT
#include "formats/fxt/embedded.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "unit/recording/recording.hpp"

namespace rtev::test {
namespace {

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Random values: they hardly compress.
void consume_noise(EmbeddedRecording& embedded, Sink& direct, const World& world, std::mt19937_64& random) {
  Events events(world.slot);
  for (std::uint64_t i = 0; i < 4000; ++i) events.add(2000 + i, EventKind::counter, counter_minor_allocated, random());
  embedded.consume(events.batch(), world.registry);
  direct.consume(events.batch(), world.registry);
}

TEST(EmbeddedRecording, ItsChunksAreTheRecording) {
  World world;
  StringOutput direct_lines, lines;
  JsonlSink direct(direct_lines), again(lines);
  EmbeddedRecording embedded;
  std::vector<std::string> chunks;
  const auto collect = [&](bool all) {
    while (auto chunk = embedded.chunk(all)) chunks.push_back(std::move(*chunk));
  };
  embedded.header(make_header());
  direct.header(make_header());
  std::mt19937_64 random(3);
  for (int i = 0; i < 10; ++i) {
    consume_noise(embedded, direct, world, random);
    collect(i == 5);
  }
  const std::size_t before_end = chunks.size();
  EXPECT_GT(before_end, 4u);
  embedded.summary({}, world.registry);
  direct.summary({}, world.registry);
  collect(true);
  EXPECT_GT(chunks.size(), before_end);
  EXPECT_EQ(embedded.chunk(true), std::nullopt);

  Replay replay(again);
  for (const std::string& chunk : chunks) {
    const auto inflated = inflate_chunk(bytes(chunk));
    ASSERT_TRUE(inflated) << inflated.error().message();
    EXPECT_LE(inflated->size(), EmbeddedRecording::chunk_bytes);
    ASSERT_TRUE(replay.feed(*inflated));
  }
  const auto end = replay.finish();
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->complete);
  EXPECT_EQ(lines.text(), direct_lines.text());
}

TEST(EmbeddedRecording, ChunksAreSmallerThanWhatTheyHold) {
  World world;
  EmbeddedRecording embedded;
  embedded.header(make_header());
  Events events(world.slot);
  for (std::uint64_t i = 0; i < 100'000; ++i)
    events.add(2000 + i, i % 2 == 0 ? EventKind::begin : EventKind::end, phase_minor);
  embedded.consume(events.batch(), world.registry);
  std::size_t compressed = 0, inflated = 0;
  while (const auto chunk = embedded.chunk(true)) {
    compressed += chunk->size();
    inflated += inflate_chunk(bytes(*chunk))->size();
  }
  EXPECT_GT(inflated, 100'000u * 16);
  EXPECT_LT(compressed, inflated / 3);
}

TEST(EmbeddedRecording, DamagedChunksAreRefused) {
  World world;
  EmbeddedRecording embedded;
  embedded.header(make_header());
  const std::string chunk = *embedded.chunk(true);
  EXPECT_TRUE(inflate_chunk(bytes(chunk)));
  EXPECT_FALSE(inflate_chunk({}));
  EXPECT_FALSE(inflate_chunk(bytes(chunk.substr(0, chunk.size() - 1))));
  std::string damaged = chunk;
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_FALSE(inflate_chunk(bytes(damaged)));
}

/// A few bytes that say they are many.
TEST(EmbeddedRecording, ChunksThatGrowBeyondBoundsAreRefused) {
  const std::string zeros(EmbeddedRecording::chunk_bytes + 1, '\0');
  std::string bomb(::compressBound(zeros.size()), '\0');
  uLongf size = bomb.size();
  ASSERT_EQ(::compress(reinterpret_cast<Bytef*>(bomb.data()), &size, reinterpret_cast<const Bytef*>(zeros.data()),
                       zeros.size()),
            Z_OK);
  bomb.resize(size);
  EXPECT_LT(bomb.size(), 1000u);
  EXPECT_FALSE(inflate_chunk(bytes(bomb)));
}

}  // namespace
}  // namespace rtev::test
