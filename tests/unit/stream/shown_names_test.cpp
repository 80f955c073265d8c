// SPDX-License-Identifier: MIT
#include "stream/shown_names.hpp"

#include <gtest/gtest.h>

#include "stream/registry.hpp"

namespace rtev {
namespace {

ProcessInfo called(std::string comm, std::string exe) {
  ProcessInfo info;
  info.pid = 1;
  info.comm = std::move(comm);
  info.exe = std::move(exe);
  return info;
}

TEST(ShownNames, AreAsLongAsItTakesToTellProgramsApart) {
  Registry registry;
  const auto one = registry.add_process(called("main.exe", "/a/one/bin/main.exe"));
  EXPECT_EQ(registry.process(one).name, "main.exe");
  const auto again = registry.add_process(called("main.exe", "/a/one/bin/main.exe"));
  EXPECT_EQ(registry.process(again).name, "main.exe") << "the same program";
  const auto two = registry.add_process(called("main.exe", "/a/two/bin/main.exe"));
  EXPECT_EQ(registry.process(one).name, "one/main.exe");
  EXPECT_EQ(registry.process(again).name, "one/main.exe");
  EXPECT_EQ(registry.process(two).name, "two/main.exe");
  EXPECT_EQ(registry.process(two).comm, "main.exe");
  const auto other = registry.add_process(called("server", "/a/two/bin/server"));
  EXPECT_EQ(registry.process(other).name, "server");
  registry.restore_process(other, called("main.exe", "/a/two/test/main.exe"));
  EXPECT_EQ(registry.process(other).name, "test/main.exe");
  EXPECT_EQ(registry.process(two).name, "two/bin/main.exe");
  EXPECT_EQ(registry.process(one).name, "one/bin/main.exe");
}

TEST(ShownNames, AreBounded) {
  Registry registry;
  const auto index = registry.add_process(called("x", "/" + std::string(200, 'd') + "/x"));
  for (int i = 0; i < 100; ++i) registry.add_process(called("x", "/" + std::to_string(i) + "/x"));
  EXPECT_EQ(registry.process(index).name.size(), ShownNames::max_bytes);
  const auto long_one = registry.add_process(called(std::string(15, 'n'), "/" + std::string(255, 'n')));
  EXPECT_EQ(registry.process(long_one).name, std::string(ShownNames::max_bytes, 'n'));
}

}  // namespace
}  // namespace rtev
