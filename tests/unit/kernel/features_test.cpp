// SPDX-License-Identifier: MIT
#include "kernel/features.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>

namespace rtev::kernel {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr BpfAbilities all_abilities{.error = 0, .uprobe_multi = true};

/// A fake /proc and /sys of a host that lacks nothing; tests then remove something.
class Features : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rtev-features-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    write("proc/self/status", "Name:\ttest\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n");
    write("proc/self/limits", limits("1048576"));
    write("proc/self/map_files/400000-401000", "");
    fs::create_directories(root_ / "proc/self/ns");
    set_namespace("pid", "pid:[4026531836]");
    set_namespace("user", "user:[4026531837]");
    set_namespace("time", "time:[4026531834]");
    write("sys/kernel/btf/vmlinux", "BTF");
    write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    write("sys/bus/event_source/devices/uprobe/type", "9\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream{root_ / path} << text;
  }
  void remove(const fs::path& path) { fs::remove_all(root_ / path); }
  void set_namespace(const std::string& kind, const std::string& number) {
    remove("proc/self/ns/" + kind);
    fs::create_symlink(number, root_ / "proc/self/ns" / kind);
  }
  void set_capabilities(const std::string& hex) { write("proc/self/status", "CapEff:\t" + hex + "\n"); }
  static std::string limits(const std::string& hard) {
    return "Limit                     Soft Limit           Hard Limit           Units     \n"
           "Max processes             31000                31000                processes \n"
           "Max open files            1024                 " +
           hard + "              files     \n";
  }

  HostRoots root_dirs() const { return {.proc = root_ / "proc", .sys = root_ / "sys", .release = release_}; }
  HostFeatures inspect(const BpfAbilities& abilities = all_abilities) const {
    return inspect_host(root_dirs(), abilities);
  }
  Feature feature(const std::string& name, const BpfAbilities& abilities = all_abilities) const {
    for (const auto& candidate : inspect(abilities).features)
      if (candidate.name == name) return candidate;
    ADD_FAILURE() << "no feature " << name;
    return {};
  }
  HostFeatures view() const { return inspect_view(root_dirs()); }
  std::string blocking(const BpfAbilities& abilities = all_abilities) const {
    const HostFeatures host = inspect(abilities);
    return host.blocking() != nullptr ? host.blocking()->name : "";
  }

  std::string release_ = "6.1.0-18-amd64";

 private:
  fs::path root_;
};

TEST_F(Features, HealthyHostHasEverything) {
  const HostFeatures host = inspect();
  EXPECT_EQ(host.blocking(), nullptr);
  EXPECT_TRUE(host.uprobe_multi);
  for (const auto& f : host.features) {
    EXPECT_EQ(f.status, FeatureStatus::ok) << f.name << ": " << f.found;
    EXPECT_TRUE(f.hint.empty()) << f.name;
    EXPECT_FALSE(f.found.empty()) << f.name;
  }
}

TEST_F(Features, OldKernelBlocks) {
  release_ = "5.10.0-8-amd64";
  EXPECT_EQ(blocking(), "kernel");
  EXPECT_THAT(feature("kernel").found, HasSubstr("5.10.0-8-amd64, older than 6.1"));
  EXPECT_THAT(feature("kernel").hint, HasSubstr("6.1"));
}

TEST_F(Features, UnknownReleaseIsNotAnOldOne) {
  for (const char* const release : {"", "mine"}) {
    release_ = release;
    EXPECT_EQ(blocking(), "");
    EXPECT_THAT(feature("kernel").found, Not(HasSubstr("older")));
  }
  EXPECT_EQ(HostRoots().release, running_release()) << "also where /proc does not show it (subset=pid)";
  EXPECT_TRUE(parse_kernel_version(running_release()));
}

TEST_F(Features, RightsAreAskedForWhereTheyAreMissing) {
  EXPECT_THAT(feature("BPF", {.error = EPERM}).hint, HasSubstr("root"));
  EXPECT_EQ(feature("BPF", {.error = ENOMEM}).hint, "");
  remove("proc/self/map_files");
  EXPECT_EQ(feature("map_files").hint, "");
}

TEST_F(Features, MissingBtfBlocks) {
  remove("sys/kernel/btf");
  EXPECT_EQ(blocking(), "BTF");
  EXPECT_THAT(feature("BTF").hint, HasSubstr("CONFIG_DEBUG_INFO_BTF"));
  remove("sys/kernel");
  EXPECT_THAT(feature("BTF").found, HasSubstr("not mounted"));
}

TEST_F(Features, LockdownModes) {
  EXPECT_EQ(feature("lockdown").found, "integrity");
  write("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
  EXPECT_EQ(blocking(), "lockdown");
  remove("sys/kernel/security");
  EXPECT_EQ(feature("lockdown").status, FeatureStatus::ok);
  write("sys/kernel/security/lockdown", "]nonsense[");
  EXPECT_EQ(feature("lockdown").status, FeatureStatus::ok);
}

TEST_F(Features, NoCapabilitiesBlock) {
  set_capabilities("0000000000000000");
  EXPECT_EQ(blocking(), "CAP_BPF");
  EXPECT_EQ(feature("CAP_PERFMON").status, FeatureStatus::missing);
  EXPECT_EQ(feature("CAP_SYS_PTRACE").status, FeatureStatus::degraded);
  EXPECT_THAT(feature("CAP_BPF").hint, HasSubstr("root"));
}

TEST_F(Features, RootThatLacksCapabilitiesIsNotToldToBecomeRoot) {
  constexpr const char* without_bpf = "Uid:\t0\t0\t0\t0\nCapEff:\t0000010000080004\n";
  write("proc/self/status", without_bpf);
  EXPECT_TRUE(inspect().is_root);
  EXPECT_EQ(blocking(), "CAP_BPF");
  for (const Feature& each : inspect({.error = EPERM}).features)
    EXPECT_THAT(each.hint, Not(HasSubstr("run as root"))) << each.name;
  EXPECT_THAT(feature("CAP_BPF").hint, HasSubstr("--cap-add=BPF"));
  write("proc/self/status", "Uid:\t0\t1000\t0\t1000\nCapEff:\t0000000000000000\n");
  EXPECT_FALSE(inspect().is_root) << "the effective user counts";
}

TEST_F(Features, TheCapabilitiesOfATracerAreNamed) {
  EXPECT_THAT(tracer_capabilities(), testing::IsSupersetOf({"CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE"}));
  EXPECT_FALSE(inspect().lacks_capabilities);
  set_capabilities("0000000000000000");
  EXPECT_TRUE(inspect().lacks_capabilities);
}

TEST_F(Features, MissingRightsDenyBpfAndOtherObstaclesDoNot) {
  EXPECT_FALSE(inspect().denies_bpf);
  for (const int error : {EPERM, EACCES, ENOSYS}) EXPECT_TRUE(inspect({.error = error}).denies_bpf) << error;
  EXPECT_FALSE(inspect({.error = ENOMEM}).denies_bpf);
  remove("sys/kernel/btf");
  EXPECT_FALSE(inspect().denies_bpf) << "nobody can use BPF here";
  set_capabilities("0000010000080004");  // without CAP_BPF and CAP_PERFMON
  EXPECT_TRUE(inspect().denies_bpf);
}

TEST_F(Features, PidNamespaceWithItsOwnProcDeniesBpf) {
  set_namespace("pid", "pid:[4026532999]");
  write("proc/self/status", "CapEff:\t000001ffffffffff\nNSpid:\t1\n");
  EXPECT_TRUE(inspect().denies_bpf);
  EXPECT_EQ(blocking(), "pid namespace");
  EXPECT_FALSE(inspect().lacks_capabilities);
  write("proc/self/status", "CapEff:\t000001ffffffffff\nNSpid:\t4242\t1\n");
  EXPECT_FALSE(inspect().denies_bpf) << "ids in the host's /proc are not those of this namespace";
}

TEST_F(Features, TheCommandThatGivesRightsNamesThisProgram) {
  EXPECT_THAT(setcap_command(), testing::MatchesRegex("sudo setcap cap_bpf,cap_perfmon,.*=ep /.*rtev-unit-tests"));
}

TEST_F(Features, SysAdminIncludesOnlyTheNewerCapabilities) {
  set_capabilities("0000000000200000");  // CAP_SYS_ADMIN
  EXPECT_EQ(blocking(), "");
  EXPECT_EQ(feature("CAP_BPF").found, "included in CAP_SYS_ADMIN");
  EXPECT_EQ(feature("CAP_CHECKPOINT_RESTORE").status, FeatureStatus::ok);
  EXPECT_EQ(feature("CAP_SYS_PTRACE").status, FeatureStatus::degraded);
}

TEST_F(Features, TheMinimalCapabilitiesSuffice) {
  // BPF, PERFMON, CHECKPOINT_RESTORE, SYS_PTRACE, DAC_READ_SEARCH
  set_capabilities("000001c000080004");
  for (const auto& f : inspect().features) EXPECT_EQ(f.status, FeatureStatus::ok) << f.name;
}

TEST_F(Features, RefusedBpfBlocks) {
  EXPECT_EQ(blocking({.error = EPERM}), "BPF");
  EXPECT_THAT(feature("BPF", {.error = EPERM}).found, HasSubstr("not permitted"));
}

TEST_F(Features, WithoutUprobeMultiTracingIsDegraded) {
  const BpfAbilities no_multi{.error = 0, .uprobe_multi = false};
  EXPECT_EQ(blocking(no_multi), "");
  EXPECT_EQ(feature("uprobes", no_multi).status, FeatureStatus::degraded);
  EXPECT_THAT(feature("uprobes", no_multi).found, HasSubstr("detaching takes"));
  set_capabilities("000001c000080004");
  EXPECT_THAT(feature("uprobes", no_multi).found, HasSubstr("CAP_SYS_ADMIN"));
  remove("sys/bus");
  EXPECT_THAT(feature("uprobes", no_multi).found, HasSubstr("not available"));
}

TEST_F(Features, UnreadableMapFilesBlock) {
  remove("proc/self/map_files");
  EXPECT_EQ(blocking(), "map_files");
}

TEST_F(Features, ForeignPidNamespaceBlocks) {
  remove("proc/self/ns/pid");
  EXPECT_EQ(blocking(), "pid namespace");
  EXPECT_THAT(feature("pid namespace").found, HasSubstr("unknown"));
  EXPECT_THAT(feature("pid namespace").hint, HasSubstr("host"));
}

TEST_F(Features, ProcOfAnotherPidNamespaceBlocksFirst) {
  remove("proc/self");
  EXPECT_EQ(blocking(), "/proc");
  EXPECT_THAT(feature("/proc").hint, HasSubstr("--pid=host"));
}

TEST_F(Features, ForeignUserNamespaceBlocksDespiteCapabilities) {
  set_namespace("user", "user:[4026532999]");
  EXPECT_EQ(blocking({.error = EPERM}), "user namespace");
  remove("proc/self/ns/user");
  EXPECT_EQ(blocking(), "") << "a kernel without such namespaces";
}

TEST_F(Features, TimeNamespaceBlocksUnlessItsClocksAreTheHosts) {
  set_namespace("time", "time:[4026532999]");
  write("proc/self/timens_offsets", "monotonic           0         0\nboottime            0         0\n");
  EXPECT_EQ(blocking(), "");
  for (const char* offsets : {"monotonic         -30         0\nboottime            0         0\n",
                              "monotonic           0         0\nboottime            0         5\n"}) {
    write("proc/self/timens_offsets", offsets);
    EXPECT_EQ(blocking(), "time namespace") << offsets;
  }
  remove("proc/self/ns/time");
  EXPECT_EQ(blocking(), "") << "a kernel without such namespaces";
}

TEST_F(Features, ViewNeedsNoBpf) {
  set_capabilities("0000010000080004");  // CHECKPOINT_RESTORE, SYS_PTRACE, DAC_READ_SEARCH
  remove("sys");
  for (const auto& f : view().features) EXPECT_EQ(f.status, FeatureStatus::ok) << f.name;
  set_capabilities("0");
  ASSERT_NE(view().blocking(), nullptr);
  EXPECT_EQ(view().blocking()->name, "CAP_CHECKPOINT_RESTORE");
}

TEST_F(Features, OwnProcessesNeedOnlyProc) {
  set_capabilities("0");
  remove("proc/self/map_files");
  EXPECT_EQ(inspect_own_view(root_dirs()).blocking(), nullptr);
  remove("proc/self");
  ASSERT_NE(inspect_own_view(root_dirs()).blocking(), nullptr);
  EXPECT_EQ(inspect_own_view(root_dirs()).blocking()->name, "/proc");
}

TEST_F(Features, ViewFromAnotherPidNamespaceIsDegraded) {
  set_namespace("pid", "pid:[4026532999]");
  EXPECT_EQ(view().blocking(), nullptr);
  EXPECT_EQ(view().features.back().name, "pid namespace");
  EXPECT_EQ(view().features.back().status, FeatureStatus::degraded);
}

TEST_F(Features, FewDescriptorsDegrade) {
  write("proc/self/limits", limits("1024   "));
  EXPECT_EQ(feature("open files").status, FeatureStatus::degraded);
  EXPECT_THAT(feature("open files").found, HasSubstr("limit 1024"));
  write("proc/self/limits", limits("unlimited"));
  EXPECT_EQ(feature("open files").status, FeatureStatus::ok);
  write("proc/self/limits", "");
  EXPECT_EQ(feature("open files").status, FeatureStatus::ok);
}

TEST(KernelVersionText, Parses) {
  EXPECT_EQ(parse_kernel_version("6.1.0-18-amd64"), (KernelVersion{6, 1}));
  EXPECT_EQ(parse_kernel_version("6.18"), (KernelVersion{6, 18}));
  EXPECT_EQ(parse_kernel_version("10.0-rc1"), (KernelVersion{10, 0}));
  for (const char* text : {"", "6", ".1", "6.", "6.x", "linux", "99999999999.1"})
    EXPECT_EQ(parse_kernel_version(text), std::nullopt) << text;
}

TEST(KernelVersionText, Orders) {
  EXPECT_LT((KernelVersion{5, 19}), oldest_kernel);
  EXPECT_LT((KernelVersion{6, 0}), oldest_kernel);
  EXPECT_GE((KernelVersion{6, 10}), oldest_kernel);
}

}  // namespace
}  // namespace rtev::kernel
