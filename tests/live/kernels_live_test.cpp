// SPDX-License-Identifier: MIT
// Runs a selection of live tests on other kernels: the oldest supported one, and others in wide use.

#include <algorithm>
#include <iostream>
#include <sstream>

#include "live/guest.hpp"
#include "live/harness.hpp"

namespace rtev::test {
namespace {

/// Live tests that must pass on every kernel. Each pattern must match at least one test. A selection, since each test
/// takes about a second under emulation: what depends on the kernel, and each feature once end to end.
/// Not HostileEnableLive.OnlyRemovedRingsAreFreed: QEMU 7.2 corrupts the flags at the kernel's cmpxchg16b while threads
/// exchange mappings. Linux 6.12 panics then, with "double fault" in kmem_cache_alloc and "EFLAGS: bf8647d2".
const std::vector<std::string> checks{
    "CliLive.DoctorChecksThisHost",
    "KernelLive.ThreadsHaveTheirDomainRoleAndLock",  // the scheduler's program, thread-local variables
    "KernelLive.AKilledProcessExitsOnceWithItsSignal",
    "KernelLive.ExitHasTheMaximumResidentSetSize",
    "KernelLive.TheMemoryThatAControlGroupHasLeftIsKnown",        // an iterator over tasks
    "KernelLive.PagesOfFilesInMemoryAreReadyUnlessTheyAreHoles",  // the page cache
    "KernelLive.AnAnnouncedRingHasThePathsOfItsFiles",            // system call registers, paths
    "KernelLive.TheMappingsOfAFileAreFreeUntilThereAreTooMany",   // the walk through them
    "KernelLive.TheMappingsOfAFileAreLockedWhileAMemoryMapIs",
    "KernelLive.TheMappingsOfAFileKeepItsLinksOpen",
    "*/KernelLiveProbes.FireUntilDetached/*",                    // both kinds of uprobe, where available
    "KernelStacksLive.FibersThatAreCalledBackHaveTheirParents",  // samples; the verifier's limits
    "KernelStacksLive.SleepsThatAreLongHaveTheirStack",
    "KernelStacksLive.MinorHeapsThatAreUsedUpHaveTheirStack",
    "Ways/StartLive.*/EnvBefore",  // found by the first scan
    "Ways/StartLive.*/ApiAfter",   // started after the tracer; start, pause, resume, stop, exit
    "Programs/ExactLive.NewProgramMatchesItsRing/Domains",
    "Short/ExactLive.NewProgramMatchesItsRing/Hello",
    "Programs/SaveKnownRingsLive.SavesWhatTheRingHolds/Domains",  // bpf_loop, bpf_find_vma
    "SaveRingsLive.AllSavesRingsOfUnknownPrograms",
    "Ways/SavedAtExecLive.DeliversEveryStepOfEveryProgram/StoppedAll",  // the lock that exec takes
    "RinglessLive.EventsHaveTheirDomain",
    "DeliveryLive.DeliversAllEventsUpToSigkill",
    "SchedLive.SwitchesAreThoseOfOcamlThreadsByDefault",
    "ConfinementLive.UnderSudoItIsTheCaller",
    "HostileEnableLive.ASetUserIdProgramIsNotWrittenToAfterAKill",
    "HostileEnableSharesLive.OthersDoNotLockTheJournal",
    "Mounts/ForgedEntryLive.ASetUserIdProgramIsNotWrittenTo/*",
    "Programs/RefusedEnableLive.IsNamedAndNotWrittenTo/AmbientCapabilities",
    "Places/PlantedInLive.NoProgramDiesAndNoFileIsWritten/*",
};

std::string filter() {
  std::string patterns;
  for (const std::string& check : checks) patterns += (patterns.empty() ? "" : ":") + check;
  return "--gtest_filter=" + patterns;
}

/// True if the name matches the pattern of '*' and literal text. Enough for the patterns above: does not backtrack.
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

TEST_P(KernelsLive, PassesTheSelectedTests) {
  const std::string version = GetParam();
  covers("kernel", "Linux " + version + " (Debian's, under QEMU)");
  std::string obstacle = live_obstacle();
  if (obstacle.empty()) obstacle = guest_obstacle(version);
  if (!obstacle.empty()) {
    if (std::getenv("CI") != nullptr) FAIL() << obstacle;
    GTEST_SKIP() << obstacle;
  }

  const TempDir dir;
  pack_live_tests(dir / "initramfs", kernel_image(version), {filter()});
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
  EXPECT_THAT(missing, IsEmpty()) << "no test of this name passed";
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
