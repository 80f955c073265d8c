// SPDX-License-Identifier: MIT
#include "stream/program_key.hpp"

#include <gtest/gtest.h>

#include "base/program_names.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

TEST(ProgramKey, OfNativeCodeTheFileCounts) {
  EXPECT_EQ(program_key("/usr/bin/server", "worker-1"), program_key("/usr/bin/server", "worker-2"));
  EXPECT_NE(program_key("/a/main.exe", "main.exe"), program_key("/b/main.exe", "main.exe"));
}

TEST(ProgramKey, OfBytecodeAndLoadersTheName) {
  for (const char* exe :
       {"/usr/bin/ocamlrun", "ocamlrund", "/opt/x86_64-pc-linux-gnu-ocamlrun-a104", "/lib/ld-linux-x86-64.so.2", ""}) {
    EXPECT_NE(program_key(exe, "one.byte"), program_key(exe, "two.byte")) << exe;
    EXPECT_EQ(program_key(exe, "one.byte"), program_key(exe, "one.byte")) << exe;
  }
  EXPECT_FALSE(is_bytecode_interpreter("/home/ocamlrun/server"));
  EXPECT_FALSE(is_bytecode_interpreter("myocamlrunner"));
}

TEST(ProgramKey, ANameCannotPassForAFile) {
  for (const std::string& name : hostile_strings()) EXPECT_NE(program_key("", name), program_key(name, ""));
}

}  // namespace
}  // namespace rtev::test
