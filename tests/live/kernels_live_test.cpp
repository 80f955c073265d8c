// SPDX-License-Identifier: MIT
// The live tests that tell most, on kernels of other versions: the oldest that will do, and others in wide use.
#include <gmock/gmock.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "live/guest.hpp"
#include "live/harness.hpp"
#include "live/matrix.hpp"

namespace rtev::test {
namespace {

/// What must work on every kernel, by names of live tests; each pattern has to match at least one. A choice, since each
/// takes about a second of the emulator's time: what differs by kernel, and everything once from end to end.
const std::vector<std::string> checks{
    "CliLive.DoctorKnowsThisHost",
    "KernelLive.DomainRoleAndLockOfThreads",  // the scheduler's program, thread-local variables
    "KernelLive.AKilledProcessExitsOnceWithItsSignal",
    "KernelLive.ExitHasTheMaximumResidentSetSize",
    "KernelLive.AnAnnouncedRingHasThePathsOfItsFiles",  // system call registers, paths
    "*/KernelLiveProbes.FireUntilDetached/*",           // by either kind of uprobe, as far as there is one
    "Ways/StartLive.*/EnvBefore",                       // found by the first scan
    "Ways/StartLive.*/ApiAfter",                        // started after the tracer; start, pause, resume, stop, exit
    "Programs/ExactLive.StartedUnderTheTracer/Domains",
    "Short/ExactLive.StartedUnderTheTracer/Hello",
    "Programs/KnownDrainLive.SavesWhatTheRingHolds/Domains",  // uprobe.s, bpf_loop, bpf_find_vma
    "DrainLive.AllSavesThoseOfUnknownPrograms",
    "Ways/SavedAtExecLive.EveryStepOfEveryProgram/StoppedAll",  // the lock that exec takes
    "RinglessLive.DomainsAreToldApart",
    "DeliveryLive.AllUpToSigkill",
    "SchedLive.SwitchesAreThoseOfOcamlThreadsUnlessAskedOtherwise",
};

std::string filter() {
  std::string patterns;
  for (const std::string& check : checks) patterns += (patterns.empty() ? "" : ":") + check;
  return "--gtest_filter=" + patterns;
}

/// True if a name matches a pattern of '*' and plain text, each at one place at the most, as those above.
bool matches(const std::string& name, const std::string& pattern) {
  std::size_t at = 0;
  for (std::istringstream parts(pattern); !parts.eof();) {
    std::string part;
    std::getline(parts, part, '*');
    at = name.find(part, at);
    if (at == std::string::npos) return false;
    at += part.size();
  }
  return true;
}

class KernelsLive : public ::testing::TestWithParam<const char*> {};

TEST_P(KernelsLive, TracesAsOnThisOne) {
  const std::string version = GetParam();
  covers("kernel", "Linux " + version + " (Debian's, under QEMU)");
  std::string obstacle = live_obstacle();
  if (obstacle.empty()) obstacle = guest_obstacle(version);
  if (!obstacle.empty()) {
    if (std::getenv("CI") != nullptr) FAIL() << obstacle;
    GTEST_SKIP() << obstacle;
  }

  const TempDir dir;
  pack_live_tests(dir / "initramfs", {filter()});
  const GuestRun guest = run_in_guest(kernel_image(version), dir / "initramfs");

  std::vector<std::string> passed;
  std::istringstream lines(guest.output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string bracket, verdict, rest, name;
    words >> bracket >> verdict >> rest >> name;
    if (bracket != "[" || rest != "]") continue;
    if (verdict == "OK") passed.push_back(name);
    EXPECT_NE(verdict, "FAILED") << name;
    EXPECT_NE(verdict, "SKIPPED") << name;
    if (verdict == "OK" || verdict == "FAILED" || verdict == "SKIPPED")
      std::cout << "Linux " << version << ": " << (verdict == "OK" ? "passed" : verdict) << " " << name << "\n";
  }
  std::vector<std::string> missing = checks;
  std::erase_if(missing, [&](const std::string& check) {
    return std::ranges::any_of(passed, [&](const std::string& name) { return matches(name, check); });
  });
  EXPECT_THAT(missing, ::testing::IsEmpty()) << "none of this name passed";
  EXPECT_EQ(guest.status, 0);
  EXPECT_EQ(guest.left_behind, 0) << "BPF programs, maps and links";
  if (HasFailure()) std::cout << "after " << guest.boots << " boots:\n" << guest.output << "\n";
}

INSTANTIATE_TEST_SUITE_P(Debian, KernelsLive, ::testing::Values("6.1", "6.12"), [](const auto& version) {
  std::string name = version.param;
  std::ranges::replace(name, '.', '_');
  return "Linux_" + name;
});

}  // namespace
}  // namespace rtev::test
