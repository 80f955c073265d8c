// SPDX-License-Identifier: MIT
#include "inspect/binary_cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "unit/inspect/elf_writer.hpp"

namespace rtev {
namespace {

FileIdentity file(std::uint64_t inode) {
  return {.device = 1, .inode = inode, .size = 100};
}

RuntimeBinary runtime(const char* version) {
  RuntimeBinary binary;
  binary.version = version;
  return binary;
}

TEST(BinaryCache, UnknownNegativeAndPositiveDiffer) {
  BinaryCache cache;
  EXPECT_FALSE(cache.find(file(1)));

  EXPECT_EQ(cache.insert(file(1), std::nullopt), nullptr);
  const auto negative = cache.find(file(1));
  ASSERT_TRUE(negative);
  EXPECT_EQ(*negative, nullptr);

  const auto inserted = cache.insert(file(2), runtime("5.3"));
  const auto positive = cache.find(file(2));
  ASSERT_TRUE(positive);
  EXPECT_EQ(*positive, inserted);
  EXPECT_EQ(inserted->runtime.version, "5.3");
  EXPECT_NE(inserted->id, 0u);
}

TEST(BinaryCache, FirstAnswerStands) {
  BinaryCache cache;
  const auto first = cache.insert(file(1), runtime("5.3"));
  EXPECT_EQ(cache.insert(file(1), runtime("5.2")), first);
  EXPECT_EQ(cache.insert(file(1), std::nullopt), first);
  EXPECT_EQ(cache.size(), 1u);
}

TEST(BinaryCache, EveryPartOfTheIdentityCounts) {
  BinaryCache cache;
  const FileIdentity known{.device = 1, .inode = 2, .size = 3, .modified_ns = 4, .changed_ns = 5};
  cache.insert(known, std::nullopt);
  for (const FileIdentity& other :
       {FileIdentity{9, 2, 3, 4, 5}, FileIdentity{1, 9, 3, 4, 5}, FileIdentity{1, 2, 9, 4, 5},
        FileIdentity{1, 2, 3, 9, 5}, FileIdentity{1, 2, 3, 4, 9}})
    EXPECT_FALSE(cache.find(other));
  EXPECT_TRUE(cache.find(known));
}

TEST(BinaryCache, ForgetsWhatIsNotInUseWhenItIsFull) {
  BinaryCache cache{2};
  const auto held = cache.insert(file(1), runtime("5.3"));
  for (std::uint64_t inode = 2; inode < 100; ++inode) {
    cache.insert(file(inode), std::nullopt);
    EXPECT_LE(cache.size(), 2u);
    EXPECT_TRUE(cache.find(file(inode)));
  }
  EXPECT_EQ(cache.find(file(1)), std::optional{held});

  std::vector<std::shared_ptr<const Binary>> many;
  for (std::uint64_t inode = 100; inode < 110; ++inode) many.push_back(cache.insert(file(inode), runtime("5.3")));
  EXPECT_GE(cache.size(), 11u) << "grows with what is in use";
  many.clear();
  for (std::uint64_t inode = 200; inode < 300; ++inode) cache.insert(file(inode), std::nullopt);
  EXPECT_LE(cache.size(), 2u) << "and shrinks again";
}

TEST(BinaryCache, IdsAreNotUsedAgain) {
  BinaryCache cache{1};
  const std::uint32_t first = cache.insert(file(1), runtime("5.3"))->id;
  const std::uint32_t second = cache.insert(file(2), runtime("5.3"))->id;
  ASSERT_FALSE(cache.find(file(1)));
  const std::uint32_t again = cache.insert(file(1), runtime("5.3"))->id;
  EXPECT_NE(first, second);
  EXPECT_NE(again, first);
  EXPECT_NE(again, second);
}

TEST(BinaryCache, IdentityChangesWithTheContent) {
  const UniqueFd fd = test::memory_file("one");
  const auto before = BinaryCache::identify(fd.get());
  ASSERT_TRUE(before);
  EXPECT_EQ(*before, BinaryCache::identify(fd.get()).value());
  ASSERT_EQ(::ftruncate(fd.get(), 2), 0);
  const auto shorter = BinaryCache::identify(fd.get());
  ASSERT_TRUE(shorter);
  EXPECT_NE(*before, *shorter);

  // Times set by hand: the second is told by the nanoseconds too.
  const std::array<timespec, 2> times{timespec{.tv_sec = 1, .tv_nsec = 2}, timespec{.tv_sec = 3, .tv_nsec = 4}};
  ASSERT_EQ(::futimens(fd.get(), times.data()), 0);
  EXPECT_EQ(BinaryCache::identify(fd.get())->modified_ns, 3'000'000'004);
  EXPECT_FALSE(BinaryCache::identify(-1));
}

TEST(BinaryCache, ManyThreads) {
  BinaryCache cache{64};
  constexpr std::uint64_t files = 200;
  const auto work = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < 4 * files; ++i) {
      const FileIdentity identity = file((first + i) % files);
      const auto found = cache.find(identity);
      const bool ocaml = identity.inode % 2 == 0;
      const auto binary = found ? *found : cache.insert(identity, ocaml ? std::optional{runtime("5.3")} : std::nullopt);
      EXPECT_EQ(binary != nullptr, ocaml);
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (std::uint64_t i = 0; i < 4; ++i) threads.emplace_back(work, i * 50);
  }
  cache.insert(file(files), std::nullopt);
  EXPECT_LE(cache.size(), 64u);
}

}  // namespace
}  // namespace rtev
