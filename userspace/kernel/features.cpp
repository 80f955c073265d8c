// SPDX-License-Identifier: MIT
#include "kernel/features.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/parse.hpp"
#include "base/small_file.hpp"
#include "base/unique_fd.hpp"

namespace rtev::kernel {
namespace {

namespace fs = std::filesystem;
using enum FeatureStatus;

/// A capability and what does not work without it.
struct Capability {
  unsigned bit;
  std::string_view name;
  FeatureStatus without;
  std::string_view loss;
  bool admin_suffices;  ///< CAP_SYS_ADMIN includes it
};
constexpr std::array bpf_capabilities{
    Capability{CAP_BPF, "CAP_BPF", missing, "BPF programs cannot be loaded", true},
    Capability{CAP_PERFMON, "CAP_PERFMON", missing, "BPF programs cannot read other processes' memory", true},
};
constexpr std::array process_capabilities{
    Capability{CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", missing, "ring files cannot be opened", true},
    Capability{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", degraded, "only processes of this user are found", false},
    Capability{CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", degraded,
               "only files that this user may read can be inspected", false},
};
/// A limit of open files below this is reported as degraded.
constexpr std::uint64_t min_open_files = 4096;

/// A kind of namespace and the target of /proc/self/ns/KIND in the host's own. The numbers are part of the kernel's
/// ABI.
struct NamespaceKind {
  const char* name;
  std::string_view initial;
};
constexpr NamespaceKind pid_namespace{"pid", "pid:[4026531836]"}, user_namespace{"user", "user:[4026531837]"},
    time_namespace{"time", "time:[4026531834]"};

std::string read_text(const fs::path& path) {
  constexpr std::size_t limit = 1 << 20;
  std::string text = read_small_file(path, limit).value_or("");
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

/// The text behind `key` and blanks in the line that begins with `key`; empty if there is no such line.
std::string_view line_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key)) {
      const std::string_view rest = line.substr(key.size());
      const auto begin = rest.find_first_not_of(" \t");
      return begin == std::string_view::npos ? std::string_view{} : rest.substr(begin);
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return {};
}

/// Nothing if /proc does not show it.
std::optional<bool> is_hosts(const HostRoots& roots, const NamespaceKind& kind) {
  std::error_code error;
  const std::string space = fs::read_symlink(roots.proc / "self/ns" / kind.name, error).string();
  return error ? std::nullopt : std::optional(space == kind.initial);
}

Feature check_proc(const HostRoots& roots) {
  if (!read_text(roots.proc / "self/status").empty()) return {.name = "/proc", .found = "shows this process"};
  return {.name = "/proc",
          .status = missing,
          .found = "does not show this process: not mounted, or mounted in another pid namespace",
          .hint = "mount -t proc proc /proc, in the host's pid namespace (containers: --pid=host)"};
}

Feature check_kernel(const HostRoots& roots) {
  const std::string release = read_text(roots.proc / "sys/kernel/osrelease");
  const auto version = parse_kernel_version(release);
  Feature feature{.name = "kernel", .found = "Linux " + (release.empty() ? "of unknown release" : release)};
  if (!version || *version < oldest_kernel) {
    feature.status = missing;
    feature.found += fmt::format(", older than {}.{}", oldest_kernel.major, oldest_kernel.minor);
    feature.hint = fmt::format("run on Linux {}.{} or newer", oldest_kernel.major, oldest_kernel.minor);
  }
  return feature;
}

Feature check_btf(const HostRoots& roots) {
  std::error_code error;
  if (fs::exists(roots.sys / "kernel/btf/vmlinux", error)) return {.name = "BTF", .found = "kernel types available"};
  if (!fs::exists(roots.sys / "kernel", error))
    return {.name = "BTF",
            .status = missing,
            .found = "no /sys/kernel: sysfs is not mounted here",
            .hint = "mount -t sysfs sysfs /sys (containers: -v /sys:/sys:ro)"};
  return {.name = "BTF",
          .status = missing,
          .found = "no /sys/kernel/btf/vmlinux: the kernel has no type information",
          .hint = "run a kernel built with CONFIG_DEBUG_INFO_BTF=y, as those of most distributions are"};
}

Feature check_lockdown(const HostRoots& roots) {
  // "none [integrity] confidentiality"
  const std::string text = read_text(roots.sys / "kernel/security/lockdown");
  const auto open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open)
    return {.name = "lockdown", .found = "not reported"};
  const std::string mode = text.substr(open + 1, close - open - 1);
  if (mode != "confidentiality") return {.name = "lockdown", .found = mode};
  return {.name = "lockdown",
          .status = missing,
          .found = "confidentiality: BPF may not read kernel or user memory",
          .hint = "boot with lockdown=integrity, or without Secure Boot"};
}

std::uint64_t effective_capabilities(const HostRoots& roots) {
  const std::string status = read_text(roots.proc / "self/status");
  return parse_leading_number<std::uint64_t>(line_value(status, "CapEff:"), 16).value_or(0);
}

Feature check_capability(const Capability& capability, std::uint64_t effective) {
  const auto has = [&](unsigned bit) { return (effective >> bit & 1) != 0; };
  Feature feature{.name = std::string{capability.name}, .found = "held"};
  if (has(capability.bit)) return feature;
  if (capability.admin_suffices && has(CAP_SYS_ADMIN)) {
    feature.found = "included in CAP_SYS_ADMIN";
    return feature;
  }
  feature.status = capability.without;
  feature.found = fmt::format("not held: {}", capability.loss);
  feature.hint = fmt::format("run as root (sudo), in a container with --cap-add={}", capability.name.substr(4));
  return feature;
}

Feature check_bpf(const BpfAbilities& abilities) {
  if (abilities.error == 0) return {.name = "BPF", .found = "programs can be loaded"};
  return {.name = "BPF",
          .status = missing,
          .found = fmt::format("programs cannot be loaded: {}", std::generic_category().message(abilities.error)),
          .hint = "run as root on the host, not in a container that filters bpf(2)"};
}

Feature check_uprobes(const HostRoots& roots, const BpfAbilities& abilities, std::uint64_t effective) {
  if (abilities.uprobe_multi) return {.name = "uprobes", .found = "uprobe_multi"};
  if (read_text(roots.sys / "bus/event_source/devices/uprobe/type").empty())
    return {.name = "uprobes",
            .status = degraded,
            .found = "not available: start, pause and end of a ring are detected later, from the ring itself",
            .hint = "run a kernel built with CONFIG_UPROBE_EVENTS=y"};
  if ((effective >> CAP_SYS_ADMIN & 1) == 0)
    return {.name = "uprobes",
            .status = degraded,
            .found = "through perf_event, which may need CAP_SYS_ADMIN",
            .hint = "run as root (sudo)"};
  return {.name = "uprobes",
          .status = degraded,
          .found = "through perf_event: detaching takes up to a second for each OCaml binary",
          .hint = "run Linux 6.6 or newer, which has uprobe_multi"};
}

Feature check_map_files(const HostRoots& roots) {
  std::error_code error;
  const fs::path directory = roots.proc / "self/map_files";
  for (const auto& entry : fs::directory_iterator{directory, error}) {
    const UniqueFd file{::open(entry.path().c_str(), O_PATH | O_CLOEXEC)};
    if (file) return {.name = "map_files", .found = "readable"};
    error = {errno, std::generic_category()};
    break;
  }
  return {
      .name = "map_files",
      .status = missing,
      .found = fmt::format("links in /proc/PID/map_files cannot be opened: {}", error ? error.message() : "no entries"),
      .hint = "run as root (sudo), with CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN"};
}

Feature check_user_namespace(const HostRoots& roots) {
  // Kernels built without user namespaces have no such file.
  if (is_hosts(roots, user_namespace).value_or(true)) return {.name = "user namespace", .found = "the host's"};
  return {.name = "user namespace",
          .status = missing,
          .found = "not the host's: its capabilities do not apply to BPF and to other processes' files",
          .hint = "run as the host's root (containers: rootful, with --userns=host)"};
}

Feature check_time_namespace(const HostRoots& roots) {
  Feature feature{.name = "time namespace", .found = "the host's"};
  if (is_hosts(roots, time_namespace).value_or(true)) return feature;
  feature.found = "not the host's, but with the same clocks";
  const std::string offsets = read_text(roots.proc / "self/timens_offsets");
  for (const std::string_view clock : {"monotonic", "boottime"}) {
    const std::string_view numbers = line_value(offsets, clock);
    if (numbers.find_first_of("123456789") == std::string_view::npos) continue;
    feature.status = missing;
    feature.found = "not the host's: its clocks differ from the timestamps of the kernel's events";
    feature.hint = "run with the host's clocks: nsenter --target 1 --time rtev-bpf";
  }
  return feature;
}

Feature check_pid_namespace(const HostRoots& roots) {
  if (is_hosts(roots, pid_namespace).value_or(false)) return {.name = "pid namespace", .found = "the host's"};
  return {.name = "pid namespace",
          .status = missing,
          .found = "not the host's: the kernel's process ids are not valid here",
          .hint = "run on the host, or in a container with the host's pid namespace (--pid=host)"};
}

Feature check_file_limit(const HostRoots& roots) {
  // "Max open files            1024                 1048576              files"
  const std::string limits = read_text(roots.proc / "self/limits");
  const std::string_view line = line_value(limits, "Max open files");
  const auto hard_begin = line.find_first_not_of(' ', std::min(line.find(' '), line.size()));
  const std::string_view hard = hard_begin == std::string_view::npos ? line : line.substr(hard_begin);
  Feature feature{.name = "open files", .found = fmt::format("up to {}", hard.substr(0, hard.find(' ')))};
  const auto count = parse_leading_number<std::uint64_t>(hard);
  if (count && *count < min_open_files) {
    feature.status = degraded;
    feature.found += ": enough for only a few hundred processes";
    feature.hint = "raise the hard limit (ulimit -Hn)";
  }
  return feature;
}

}  // namespace

std::optional<KernelVersion> parse_kernel_version(std::string_view release) {
  const auto dot = release.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto major = parse_leading_number<unsigned>(release),
             minor = parse_leading_number<unsigned>(release.substr(dot + 1));
  if (!major || !minor) return std::nullopt;
  return KernelVersion{*major, *minor};
}

const Feature* HostFeatures::blocking() const {
  const auto found = std::ranges::find(features, missing, &Feature::status);
  return found == features.end() ? nullptr : &*found;
}

HostFeatures inspect_host(const HostRoots& roots, const BpfAbilities& abilities) {
  const std::uint64_t effective = effective_capabilities(roots);
  HostFeatures host;
  host.uprobe_multi = abilities.uprobe_multi;
  // Causes before their effects.
  host.features = {check_proc(roots),          check_kernel(roots),         check_btf(roots),
                   check_lockdown(roots),      check_user_namespace(roots), check_pid_namespace(roots),
                   check_time_namespace(roots)};
  for (const auto& capability : bpf_capabilities) host.features.push_back(check_capability(capability, effective));
  for (const auto& capability : process_capabilities) host.features.push_back(check_capability(capability, effective));
  host.features.push_back(check_bpf(abilities));
  host.features.push_back(check_uprobes(roots, abilities, effective));
  host.features.push_back(check_map_files(roots));
  host.features.push_back(check_file_limit(roots));
  return host;
}

HostFeatures inspect_view(const HostRoots& roots) {
  HostFeatures host;
  host.features = {check_proc(roots), check_user_namespace(roots)};
  for (const auto& capability : process_capabilities)
    host.features.push_back(check_capability(capability, effective_capabilities(roots)));
  host.features.push_back(check_map_files(roots));
  if (Feature space = check_pid_namespace(roots); space.status != ok) {
    space.status = degraded;
    space.found = "not the host's: processes outside of it are not found";
    host.features.push_back(std::move(space));
  }
  return host;
}

}  // namespace rtev::kernel
