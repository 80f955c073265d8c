// SPDX-License-Identifier: MIT
#include "base/name_globs.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

TEST(NameGlobs, MatchWholeNames) {
  EXPECT_TRUE(matches_name("server", {"server"}));
  EXPECT_FALSE(matches_name("serve", {"server"}));
  EXPECT_FALSE(matches_name("erver", {"server"}));
  EXPECT_FALSE(matches_name("Server", {"server"}));
  EXPECT_FALSE(matches_name("", {"server"}));
  EXPECT_FALSE(matches_name("a-long-file-name", {"a-long-file-nam"})) << "a comm has at most 15 bytes";
}

TEST(NameGlobs, AreThoseOfTheShell) {
  EXPECT_TRUE(matches_name("ser*", {"server"}));
  EXPECT_TRUE(matches_name("*", {""}));
  EXPECT_TRUE(matches_name("*", {".hidden/name"})) << "a comm is no path";
  EXPECT_TRUE(matches_name("a?", {"ab"}));
  EXPECT_FALSE(matches_name("a?", {"abc"}));
  EXPECT_TRUE(matches_name("web[0-9]", {"web7"}));
  EXPECT_FALSE(matches_name("web[!0-9]", {"web7"}));
  EXPECT_TRUE(matches_name("a\\*", {"a*"}));
  EXPECT_FALSE(matches_name("a\\*", {"ab"}));
  EXPECT_TRUE(matches_name("*\n", {"\xff\n"})) << "not UTF-8";
}

TEST(NameGlobs, MatchEachNameOfAProgram) {
  const ProgramNames cut{.comm = "binarytrees5_mu", .exe = "/b/binarytrees5_multicore.exe"};
  EXPECT_TRUE(matches_name("binarytrees5_multicore.exe", cut)) << "the file's name";
  EXPECT_TRUE(matches_name("binarytrees5_mu", cut)) << "the comm, as ps shows it";
  EXPECT_FALSE(matches_name("binarytrees5_multicore", cut));
  EXPECT_TRUE(matches_name("server", {.comm = "server", .exe = "/opt/server (deleted)"}));
  const ProgramNames bytecode{.comm = "ocamlrun", .exe = "/usr/bin/ocamlrun", .script = "./batch.byte"};
  EXPECT_TRUE(matches_name("batch.byte", bytecode));
  EXPECT_TRUE(matches_name("ocamlrun", bytecode));
  EXPECT_FALSE(matches_name("", {.comm = "x"})) << "what is not known has no name";
}

TEST(NameGlobs, MatchDirectoriesOfThePath) {
  const ProgramNames main{.comm = "main.exe", .exe = "/home/a/one/_build/default/bin/main.exe"};
  EXPECT_TRUE(matches_name("one/main.exe", main)) << "as reports call it";
  EXPECT_TRUE(matches_name("one/bin/main.exe", main));
  EXPECT_TRUE(matches_name("o*/main.*", main));
  EXPECT_FALSE(matches_name("two/main.exe", main));
  EXPECT_FALSE(matches_name("bin/one/main.exe", main)) << "in this order";
  EXPECT_FALSE(matches_name("main.exe/main.exe", main));
  EXPECT_TRUE(matches_name("/home/*/main.exe", main)) << "the whole path";
  EXPECT_FALSE(matches_name("/one/main.exe", main));
  EXPECT_FALSE(matches_name("one/", main));
  const ProgramNames renamed{.comm = "worker", .exe = "/b/first"};
  EXPECT_TRUE(matches_name("first/worker", renamed));
  EXPECT_FALSE(matches_name("second/worker", renamed));
}

TEST(NameGlobs, MayMatchWhatIsNotReadYet) {
  const std::vector<std::string> globs{"batch.byte"};
  EXPECT_TRUE(may_select_name(globs, {.comm = "ocamlrun", .exe = "/usr/bin/x86_64-pc-linux-gnu-ocamlrun-a104"}));
  EXPECT_TRUE(may_select_name(globs, {.comm = "ld-linux-x86-64", .exe = "/lib/ld-linux-x86-64.so.2"}));
  EXPECT_FALSE(may_select_name(globs, {.comm = "server", .exe = "/usr/bin/server"}));
  EXPECT_TRUE(may_select_name(globs, {.comm = "server"})) << "of a process whose program cannot be read";
}

TEST(NameGlobs, SelectWithOneThatMatches) {
  EXPECT_TRUE(selects_name({"batch", "ser*"}, {"server"}));
  EXPECT_FALSE(selects_name({"batch", "web*"}, {"server"}));
  EXPECT_TRUE(selects_name({}, {"server"}));
}

}  // namespace
}  // namespace rtev
