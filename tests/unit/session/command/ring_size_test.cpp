// SPDX-License-Identifier: MIT
#include "session/command/ring_size.hpp"

#include <gtest/gtest.h>

#include "base/run_parameters.hpp"

namespace rtev::test {
namespace {

constexpr std::uint64_t gigabyte = std::uint64_t{1} << 30;
constexpr RingLimits ample{.free = 100 * gigabyte};

std::optional<std::string> with_larger_rings(std::string_view parameters, const RingLimits& limits) {
  const auto fitting = fitting_rings(parameters, limits);
  return fitting && fitting->note.empty() ? std::optional(fitting->parameters) : std::nullopt;
}

std::string lowered(std::string_view parameters) {
  const auto fitting = fitting_rings(parameters, ample);
  return fitting && !fitting->note.empty() ? fitting->parameters : "";
}

TEST(RingSize, ParametersAreFoundByTheirLetter) {
  EXPECT_EQ(run_parameter("v=0x400,e=20,d=4", 'e'), 20u);
  EXPECT_EQ(run_parameter("v=0x400,e=20,d=4", 'd'), 4u);
  EXPECT_EQ(run_parameter("e=22,e=18", 'e'), 18u) << "as the runtime reads it";
  EXPECT_EQ(run_parameter("", 'e'), std::nullopt);
}

TEST(RingSize, ParametersAreReadAsTheRuntimeDoes) {
  EXPECT_EQ(run_parameter("e", 'e'), 1u);
  EXPECT_EQ(run_parameter("v=0x400,,b", 'b'), 1u);
  EXPECT_EQ(run_parameter("e=0x14", 'e'), 20u);
  EXPECT_EQ(run_parameter("d=1k,e=3", 'd'), 1024u);
  EXPECT_EQ(run_parameter("d=0x1M", 'd'), std::uint64_t{1} << 20);
  EXPECT_EQ(run_parameter("e=", 'e'), std::nullopt);
}

TEST(RingSize, WhatTheRuntimeCannotFillIsRaised) {
  for (const char* const small : {"e=0", "e=1", "e=2", "e"}) EXPECT_EQ(lowered(small), std::string(small) + ",e=20");
  EXPECT_EQ(lowered("e=3"), "");
}

TEST(RingSize, RingsAreLargerWhereTheUserSetNothing) {
  EXPECT_EQ(with_larger_rings("", ample), "e=20");
  EXPECT_EQ(with_larger_rings("v=0,s=256k", ample), "v=0,s=256k,e=20");
  EXPECT_EQ(with_larger_rings("e=16", ample), std::nullopt);
  EXPECT_EQ(with_larger_rings("v=0,e=10", ample), std::nullopt);
}

/// The runtime aborts a program whose file has 2 GiB.
TEST(RingSize, ManyDomainsHaveSmallerRings) {
  EXPECT_EQ(with_larger_rings("d=129", ample), "d=129,e=19");
  EXPECT_EQ(with_larger_rings("d=512", ample), "d=512,e=18");
  EXPECT_EQ(with_larger_rings("d=4096", ample), std::nullopt);
  EXPECT_EQ(with_larger_rings("d=1", ample), "d=1,e=20");
  EXPECT_EQ(with_larger_rings("d=0", ample), "d=0,e=20");
  EXPECT_EQ(with_larger_rings("d=99999999999999999999", ample), "d=99999999999999999999,e=20") << "no number";
}

TEST(RingSize, WhatTheRuntimeCannotMakeIsLowered) {
  EXPECT_EQ(lowered("e=20"), "");
  EXPECT_EQ(lowered("e=21"), "e=21,e=20");
  EXPECT_EQ(lowered("v=0,e=22,b"), "v=0,e=22,b,e=20");
  EXPECT_EQ(lowered("e=99999999"), "e=99999999,e=20");
  EXPECT_EQ(lowered("d=4096"), "d=4096,e=15");
  EXPECT_EQ(lowered("d=1024,e=18"), "d=1024,e=18,e=17");
  EXPECT_EQ(lowered("d=1024,e=17"), "");
  EXPECT_EQ(lowered("d=2,e=24"), "") << "large, but possible";
}

TEST(RingSize, WhatDoesNotFitIsNotAskedFor) {
  EXPECT_EQ(with_larger_rings("", {.free = 2 * gigabyte}), "e=19");
  EXPECT_EQ(with_larger_rings("", {.free = gigabyte / 2}), "e=17");
  EXPECT_EQ(with_larger_rings("", {.free = gigabyte / 4}), std::nullopt);
  EXPECT_EQ(with_larger_rings("d=2", {.free = gigabyte / 4}), "d=2,e=20");
  EXPECT_EQ(with_larger_rings("", {.free = ample.free, .file = gigabyte / 2}), "e=18");
  EXPECT_EQ(with_larger_rings("", {.free = ample.free, .addresses = 3 * gigabyte}), "e=19");
  EXPECT_EQ(with_larger_rings("", {}), std::nullopt);
}

}  // namespace
}  // namespace rtev::test
