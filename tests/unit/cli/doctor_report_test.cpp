// SPDX-License-Identifier: MIT
// What doctor says of hosts that allow everything, or little.
#include "cli/commands/doctor_report.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/files.hpp"

namespace rtev::cli {
namespace {

using enum kernel::FeatureStatus;
using testing::AllOf, testing::HasSubstr, testing::Not;

kernel::HostFeatures well() {
  return {.features = {{.name = "kernel", .found = "Linux 6.18.44"},
                       {.name = "CAP_BPF", .found = "held"},
                       {.name = "BPF", .found = "programs can be loaded"}},
          .uprobe_multi = true};
}

kernel::HostFeatures without_rights() {
  return {.features = {{.name = "kernel", .found = "Linux 6.18.44"},
                       {.name = "CAP_BPF",
                        .status = missing,
                        .found = "not held: BPF programs cannot be loaded",
                        .hint = "run as root (sudo), in a container with --cap-add=BPF"},
                       {.name = "CAP_DAC_READ_SEARCH",
                        .status = degraded,
                        .found = "not held: only files that this user may read can be inspected, and what else takes "
                                 "more than one line to say",
                        .hint = "run as root (sudo), in a container with --cap-add=DAC_READ_SEARCH"}},
          .lacks_capabilities = true,
          .denies_bpf = true};
}

TEST(DoctorReport, Text) {
  EXPECT_EQ(doctor_text(well(), "sudo setcap", "While it traces: ..."), test::golden("cli/golden/doctor.txt"));
  EXPECT_EQ(doctor_text(without_rights(), "sudo setcap cap_bpf=ep '/opt/rtev\x1b[2J bpf'", "While it traces: ..."),
            test::golden("cli/golden/doctor_missing.txt"));
}

TEST(DoctorReport, SaysWhatWorksWhereTheHostCannotBeTraced) {
  const auto text_of = [](const kernel::HostFeatures& host) { return doctor_text(host, "sudo setcap", ""); };
  const kernel::HostFeatures in_namespace{
      .features = {{.name = "pid namespace", .status = missing, .found = {}, .hint = {}}},
      .lacks_capabilities = true,
      .denies_bpf = true},
      old_kernel{.features = {{.name = "kernel", .status = missing, .found = {}, .hint = {}}}};
  const auto own_programs =
      AllOf(HasSubstr("\n  rtev-bpf -- CMD "), HasSubstr("\n  rtev-bpf -p PID "),
            HasSubstr("\n  rtev-bpf pauses -i FILE "), HasSubstr("\n  --pid=host --cap-add=BPF "));
  EXPECT_THAT(text_of(without_rights()), AllOf(own_programs, HasSubstr("\n  sudo setcap\n")));
  EXPECT_THAT(text_of(in_namespace), AllOf(own_programs, Not(HasSubstr("setcap"))));
  EXPECT_THAT(text_of(old_kernel), AllOf(HasSubstr("-i FILE"), Not(HasSubstr("-p PID")), Not(HasSubstr("cap"))));
}

TEST(DoctorReport, Json) {
  EXPECT_EQ(nlohmann::json::parse(doctor_json(without_rights())),
            nlohmann::json::parse(test::golden("cli/golden/doctor.json")));
}

}  // namespace
}  // namespace rtev::cli
