// SPDX-License-Identifier: MIT
#include "formats/format_table.hpp"

#include <gmock/gmock.h>

#include <set>

#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr;

TEST(FormatTable, IsInTheOrderOfItsEnumerationAndWithoutDuplicates) {
  std::set<std::string_view> names, suffixes;
  for (std::size_t i = 0; i < all_formats().size(); ++i) {
    const FormatInfo& info = all_formats()[i];
    EXPECT_EQ(static_cast<std::size_t>(info.format), i);
    EXPECT_EQ(&info_of(info.format), &info);
    EXPECT_TRUE(names.insert(info.name).second);
    EXPECT_FALSE(info.suffixes.empty());
    for (const std::string_view suffix : info.suffixes) EXPECT_TRUE(suffixes.insert(suffix).second) << suffix;
  }
}

TEST(FormatTable, EveryMakerMakesASinkThatWrites) {
  for (const FormatInfo& info : all_formats()) {
    World world;
    StringOutput output;
    const auto sink = info.make(output, {});
    sink->header({.version = "1", .host = "box", .kernel = "6.18", .machine = "x86_64", .start_ns = 1});
    sink->consume(Events(world.slot).add(10, EventKind::user_unit, 1).batch(), world.registry);
    sink->flush();
    const std::size_t flushed = output.text().size();
    EXPECT_GT(flushed, 0u) << info.name;
    sink->summary({.start_ns = 1, .end_ns = 20}, world.registry);
    sink->flush();
    EXPECT_GE(output.text().size(), flushed) << info.name;
  }
}

TEST(FormatTable, TheSuffixOfAFileDecides) {
  for (const FormatInfo& info : all_formats()) {
    for (const std::string_view suffix : info.suffixes) {
      for (const char* more : {"", ".gz"}) {
        const std::string path = "dir.d/trace" + std::string(suffix) + more;
        EXPECT_EQ(format_of_file(path, Format::text), info.format) << path;
      }
    }
  }
}

TEST(FormatTable, WithoutASuffixItIsTheDefault) {
  for (const char* path : {"", "-", "trace", "dir.d/trace", "/dev/fd/63", "trace.gz", ".hidden"})
    EXPECT_EQ(format_of_file(path, Format::fxt), Format::fxt) << path;
}

TEST(FormatTable, NumberedNamesKeepTheirSuffix) {
  EXPECT_EQ(numbered_name("trace.fxt", 1), "trace.1.fxt");
  EXPECT_EQ(numbered_name("dir.d/trace.fxt.gz", 12), "dir.d/trace.12.fxt.gz");
  EXPECT_EQ(numbered_name("dir.d/trace", 2), "dir.d/trace.2");
  EXPECT_EQ(numbered_name("trace.gz", 2), "trace.2.gz");
}

TEST(FormatTable, AnUnknownSuffixIsAnErrorWithTheList) {
  for (const char* path : {"page.html", "trace.fxtt", "trace.html.gz", "a.fxt.bz2"}) {
    const auto format = format_of_file(path, Format::fxt);
    ASSERT_FALSE(format) << path;
    EXPECT_EQ(format.error().subject, path);
    for (const FormatInfo& info : all_formats()) EXPECT_THAT(format.error().hint, HasSubstr(info.suffixes.front()));
  }
}

}  // namespace
}  // namespace rtev::test
