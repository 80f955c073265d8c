// SPDX-License-Identifier: MIT
// What doctor says of hosts that allow everything, or little.
#include "cli/commands/doctor_report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/files.hpp"

namespace rtev::cli {
namespace {

using enum kernel::FeatureStatus;

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

TEST(DoctorReport, Json) {
  EXPECT_EQ(nlohmann::json::parse(doctor_json(without_rights())),
            nlohmann::json::parse(test::golden("cli/golden/doctor.json")));
}

}  // namespace
}  // namespace rtev::cli
