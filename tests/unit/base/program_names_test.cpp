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

TEST(ProgramNames, AreThoseOfWhatALoaderRuns) {
  const std::string loader = "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
  EXPECT_EQ(full_name({.comm = "ld-linux-x86-64", .exe = loader, .script = "./server.exe"}), "server.exe");
  EXPECT_EQ(full_name({.comm = "ld-linux-x86-64", .exe = loader}), "ld-linux-x86-64.so.2");
  EXPECT_EQ(full_name({.comm = "worker", .exe = loader, .script = "./server.exe"}), "worker")
      << "the program's own choice";
}

TEST(ProgramNames, OfBytecodeAreInItsArguments) {
  const auto bytecode = [](const std::string& arguments) { return script_of("/usr/bin/ocamlrun", arguments); };
  EXPECT_EQ(bytecode("ocamlrun\0batch.byte\0-v\0"s), "batch.byte");
  EXPECT_EQ(bytecode("/usr/bin/ocamlrun\0-b\0-I\0dir\0batch.byte\0"s), "batch.byte");
  EXPECT_EQ(bytecode("./batch.byte\0-v\0"s), "./batch.byte") << "started by its launcher";
  EXPECT_EQ(bytecode("ocamlrun\0-version\0"s), "");
  EXPECT_EQ(bytecode(""), "");
  EXPECT_EQ(script_of("/srv/server", "ocamlrun\0batch.byte\0"s), "") << "native code";
}

TEST(ProgramNames, OfWhatALoaderRunsAreInItsArguments) {
  const auto loaded = [](const std::string& arguments) { return script_of("/lib/ld-linux-x86-64.so.2", arguments); };
  EXPECT_EQ(loaded("ld.so\0/srv/server\0--argv0\0x\0"s), "/srv/server");
  EXPECT_EQ(loaded("ld.so\0--library-path\0/a:/b\0--inhibit-cache\0--argv0\0me\0./server\0x\0"s), "./server");
  EXPECT_EQ(loaded("ld-musl-x86_64.so.1\0--library-path=/a\0--\0./server\0"s), "./server");
  EXPECT_EQ(loaded("ld.so\0/usr/bin/ocamlrun\0-b\0batch.byte\0"s), "batch.byte");
  EXPECT_EQ(loaded("ld.so\0--of-later-versions\0x\0./server\0"s), "") << "x may be its value, or the program";
  for (const std::string& none : {"ld.so\0"s, ""s, "ld.so\0--library-path\0"s, "ld.so\0--"s, "ld.so\0--\0"s})
    EXPECT_EQ(loaded(none), "");
}

TEST(LoaderPath, IsRecognisedByItsName) {
  for (const char* path : {"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1",
                           "/lib/ld-musl-x86_64.so.1", "/lib/x86_64-linux-gnu/ld-2.31.so", "/ld.so", "/lib/ld.so.1"})
    EXPECT_TRUE(is_loader_path(path)) << path;
  for (const char* path : {"", "/", "/usr/bin/ld", "/usr/bin/ld-wrapper", "/usr/bin/ld.gold", "/lib/libld-x.so.1",
                           "/ld-linux.so.2/server"})
    EXPECT_FALSE(is_loader_path(path)) << path;
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
