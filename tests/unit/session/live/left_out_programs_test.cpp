// SPDX-License-Identifier: MIT
#include "session/live/left_out_programs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace rtev {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LeftOutPrograms, TextIsEmptyIfThereAreNone) {
  EXPECT_EQ(LeftOutPrograms(unprobed_wording).text(), "");
}

TEST(LeftOutPrograms, AreListedWithAProcessAndTheReason) {
  LeftOutPrograms programs(unprobed_wording);
  programs.add(12, "/usr/bin/server", "it has no symbols");
  EXPECT_EQ(programs.text(),
            "1 process without a ring could not be probed, so its events are missing:\n"
            "  /usr/bin/server (pid 12): it has no symbols\n"
            "hint: start such programs with a ring (OCAML_RUNTIME_EVENTS_START=1), or link them with symbols\n");
}

TEST(LeftOutPrograms, AProgramIsListedOnceInOrderOfItsFirstProcess) {
  LeftOutPrograms programs(unprobed_wording);
  programs.add(30, "/z", "too many");
  programs.add(12, "/a", "it has no symbols");
  programs.add(31, "/z", "too many");
  programs.add(32, "/z", "too many");
  EXPECT_EQ(programs.processes(), 4U);
  EXPECT_THAT(programs.text(), HasSubstr("4 processes without a ring"));
  EXPECT_THAT(programs.text(), HasSubstr(":\n  /z (pid 30 and 2 more): too many\n  /a (pid 12): it has no symbols\n"));
}

TEST(LeftOutPrograms, HostileNamesAreEscaped) {
  LeftOutPrograms programs(unprobed_wording);
  programs.add(12, "/tmp/\x1b[2J\nrtev-bpf: all is well", "it has no symbols");
  programs.add(13, "", "it has no symbols");
  EXPECT_THAT(programs.text(), HasSubstr("  /tmp/\\x1B[2J\\x0Artev-bpf: all is well (pid 12)"));
  EXPECT_THAT(programs.text(), HasSubstr("  ? (pid 13)"));
}

TEST(LeftOutPrograms, ListAndMemoryAreBounded) {
  LeftOutPrograms programs(unprobed_wording);
  for (std::int32_t pid = 1; pid <= 1000; ++pid) programs.add(pid, "/bin/" + std::to_string(pid), "it has no symbols");
  const std::string text = programs.text();
  EXPECT_EQ(programs.processes(), 1000U);
  EXPECT_THAT(text, HasSubstr("/bin/8 (pid 8)"));
  EXPECT_THAT(text, Not(HasSubstr("/bin/9 ")));
  EXPECT_THAT(text, HasSubstr("\n  and 992 more\n"));
}

}  // namespace
}  // namespace rtev
