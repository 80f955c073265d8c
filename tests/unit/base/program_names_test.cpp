// SPDX-License-Identifier: MIT
#include "base/program_names.hpp"

#include <gtest/gtest.h>

#include <string>

namespace rtev {
namespace {

using std::string_literals::operator""s;

TEST(ProgramNames, AreNotCut) {
  EXPECT_EQ(full_name({.comm = "binarytrees5_mu", .exe = "/b/binarytrees5_multicore.exe"}),
            "binarytrees5_multicore.exe");
  EXPECT_EQ(full_name({.comm = "exactly-15-byte", .exe = "/b/exactly-15-byte"}), "exactly-15-byte");
  EXPECT_EQ(full_name({.comm = "worker", .exe = "/b/worker-program"}), "worker") << "the program's own choice";
  EXPECT_EQ(full_name({.comm = "called-by-itself", .exe = "/b/other"}), "called-by-itself");
  EXPECT_EQ(full_name({.comm = "gone"}), "gone");
  EXPECT_EQ(full_name({.comm = "", .exe = "/b/server"}), "server");
}

TEST(ProgramNames, AreThoseOfBytecode) {
  EXPECT_EQ(full_name({.comm = "ocamlrun", .exe = "/usr/bin/ocamlrun", .script = "./batch.byte"}), "batch.byte");
  EXPECT_EQ(
      full_name({.comm = "x86_64-pc-linux", .exe = "/usr/bin/x86_64-pc-linux-gnu-ocamlrun-a104", .script = "/b/x"}),
      "x");
  EXPECT_EQ(full_name({.comm = "worker", .exe = "/usr/bin/ocamlrun", .script = "/b/x"}), "worker")
      << "the program's own choice";
  EXPECT_EQ(full_name({.comm = "a-long-name-of-", .exe = "/usr/bin/ocamlrun", .script = "/b/a-long-name-of-bytecode"}),
            "a-long-name-of-bytecode");
}

TEST(ProgramNames, OfBytecodeAreInItsArguments) {
  EXPECT_EQ(bytecode_of("ocamlrun\0batch.byte\0-v\0"s), "batch.byte");
  EXPECT_EQ(bytecode_of("/usr/bin/ocamlrun\0-b\0-I\0dir\0batch.byte\0"s), "batch.byte");
  EXPECT_EQ(bytecode_of("./batch.byte\0-v\0"s), "./batch.byte") << "started by its launcher";
  EXPECT_EQ(bytecode_of("ocamlrun\0-version\0"s), "");
  EXPECT_EQ(bytecode_of(""), "");
}

TEST(ProgramNames, AreToldApartByTheirDirectories) {
  const std::string one = "/home/a/one/_build/default/bin/main.exe", two = "/home/a/two/_build/default/bin/main.exe",
                    test = "/home/a/one/_build/default/test/main.exe";
  EXPECT_EQ(distinct_name("main.exe", one, {}), "main.exe");
  EXPECT_EQ(distinct_name("main.exe", one, {two}), "one/main.exe");
  EXPECT_EQ(distinct_name("main.exe", two, {one}), "two/main.exe");
  EXPECT_EQ(distinct_name("main.exe", one, {test}), "bin/main.exe");
  EXPECT_EQ(distinct_name("main.exe", one, {two, test}), "one/bin/main.exe");
  EXPECT_EQ(distinct_name("main", "/a/main", {"/x/a/main"}), "main") << "no directory of its own";
  EXPECT_EQ(distinct_name("main", "/x/a/main", {"/a/main"}), "x/main");
  EXPECT_EQ(distinct_name("worker", "/b/first", {"/b/second"}), "first/worker") << "a name that programs chose";
  EXPECT_EQ(distinct_name("main", "", {"/a/main"}), "main");
}

}  // namespace
}  // namespace rtev
