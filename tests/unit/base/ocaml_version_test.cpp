// SPDX-License-Identifier: MIT
#include "base/ocaml_version.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

using enum OcamlVersion::Stage;

TEST(OcamlVersion, IsReadFromText) {
  const struct {
    std::string_view text;
    OcamlVersion version;
  } cases[] = {{"5.3", {5, 3, 0, release}},
               {"5.3.0", {5, 3, 0, release}},
               {"5.10.12", {5, 10, 12, release}},
               {"4.14.2", {4, 14, 2, release}},
               {"5.3.0+options", {5, 3, 0, variant}},
               {"5.2.0+ox", {5, 2, 0, variant}},
               {"5.3+trunk", {5, 3, 0, variant}},
               {"5.6.0+dev0-2026", {5, 6, 0, variant}},
               {"5.5.0~alpha1", {5, 5, 0, before_release}},
               {"5.5.0-rc1", {5, 5, 0, before_release}}};
  for (const auto& [text, version] : cases) EXPECT_EQ(OcamlVersion::parse(text), version) << text;
}

TEST(OcamlVersion, OtherTextIsNone) {
  for (const char* text : {"", "5", "5.", "5.x", "5.3x", "5.3.", "5.3.x", "5.3.0.1", "5.-1", "5.+1", "5. 3", "5..3",
                           "5.99999999999999999999", "v5.3", " 5.3", "5.3 ", "-5.3"})
    EXPECT_EQ(OcamlVersion::parse(text), std::nullopt) << text;
}

TEST(OcamlVersion, IsOrderedByNumbers) {
  const auto version = [](std::string_view text) { return OcamlVersion::parse(text).value(); };
  EXPECT_GT(version("5.10"), version("5.9"));
  EXPECT_GT(version("5.10.0"), version("5.9.3"));
  EXPECT_GT(version("5.3.10"), version("5.3.9"));
  EXPECT_GT(version("10.0"), version("5.5"));
  EXPECT_EQ(version("5.3"), version("5.3.0"));
  EXPECT_LT(version("5.5.0~alpha1"), version("5.5.0"));
  EXPECT_GT(version("5.5.0~alpha1"), version("5.4.1"));
  EXPECT_GT(version("5.3.0+options"), version("5.3.0"));
  EXPECT_LT(version("5.3.0+options"), version("5.3.1"));
  EXPECT_EQ(version("5.2.0+ox").series(), version("5.2"));
  EXPECT_EQ(version("5.5.0~alpha1").series(), version("5.5.1").series());
}

}  // namespace
}  // namespace rtev
