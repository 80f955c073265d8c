// SPDX-License-Identifier: MIT
#include "kernel/libbpf.hpp"

#include <bpf/libbpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rtev::kernel {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LibbpfLog, KeepsWarningsAndPrintsNothing) {
  capture_libbpf_log();
  take_libbpf_warnings();
  testing::internal::CaptureStderr();
  EXPECT_EQ(bpf_object__open_file("/nonexistent/rtev.o", nullptr), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  const std::string warnings = take_libbpf_warnings();
  EXPECT_THAT(warnings, HasSubstr("/nonexistent/rtev.o"));
  EXPECT_THAT(warnings, Not(HasSubstr("\n")));
  EXPECT_THAT(warnings, Not(HasSubstr("libbpf: ")));
  EXPECT_EQ(take_libbpf_warnings(), "") << "taken once";
}

TEST(LibbpfLog, VerboseAlsoPrints) {
  set_libbpf_verbose(true);
  testing::internal::CaptureStderr();
  EXPECT_EQ(bpf_object__open_file("/nonexistent/rtev.o", nullptr), nullptr);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("/nonexistent/rtev.o"));
  set_libbpf_verbose(false);
  take_libbpf_warnings();
}

TEST(LibbpfLog, KeepsOnlyTheLastWarnings) {
  capture_libbpf_log();
  for (int i = 0; i < 10; ++i) bpf_object__open_file(("/nonexistent/" + std::to_string(i) + ".o").c_str(), nullptr);
  const std::string warnings = take_libbpf_warnings();
  EXPECT_THAT(warnings, HasSubstr("9.o"));
  EXPECT_THAT(warnings, Not(HasSubstr("/0.o")));
}

}  // namespace
}  // namespace rtev::kernel
