// SPDX-License-Identifier: MIT
#include "live/recording.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace rtev::test {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

Outcome dump(const std::filesystem::path& recording) {
  Outcome outcome = run_tool({"dump", "-f", "jsonl", recording});
  EXPECT_EQ(outcome.status.code(), 0) << recording << ": " << outcome.err;
  return outcome;
}

void convert(const std::filesystem::path& from, const std::filesystem::path& to) {
  const Outcome outcome = run_tool({"convert", "-q", from, "-o", to});
  EXPECT_EQ(outcome.status.code(), 0) << from << " to " << to << ": " << outcome.err;
  EXPECT_EQ(outcome.err, "") << from << " to " << to;
}

std::string first_difference(std::string_view expected, std::string_view got) {
  const auto [want, have] = std::ranges::mismatch(expected, got);
  if (want == expected.end() && have == got.end()) return {};
  const auto at = static_cast<std::size_t>(want - expected.begin());
  const auto line_at = [at](std::string_view text) {
    const std::size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
    text.remove_prefix(newline == std::string_view::npos ? 0 : newline + 1);
    return std::string(text.substr(0, std::min(text.find('\n'), std::size_t{1000})));
  };
  return "expected: " + line_at(expected) + "\ngot: " + line_at(got);
}

}  // namespace rtev::test
