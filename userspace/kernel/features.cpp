// SPDX-License-Identifier: MIT
#include "kernel/features.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/capabilities.hpp"
#include "base/file_io.hpp"
#include "base/parse.hpp"
#include "base/proc_files.hpp"
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
  const std::string space = link_target(roots.proc / "self/ns" / kind.name);
  return space.empty() ? std::nullopt : std::optional(space == kind.initial);
}

Feature check_proc(const HostRoots& roots) {
  if (!read_text(roots.proc / "self/status").empty()) return {"/proc", ok, "shows this process"};
  return {"/proc", missing, "does not show this process: not mounted, or mounted in another pid namespace",
          "mount -t proc proc /proc, in the host's pid namespace (containers: --pid=host)"};
}

Feature check_kernel(const HostRoots& roots) {
  const auto version = parse_kernel_version(roots.release);
  const std::string found = "Linux " + (roots.release.empty() ? "of unknown release" : roots.release);
  if (!version) return {"kernel", degraded, found + ": whether it can be traced is not known"};
  if (*version >= oldest_kernel) return {"kernel", ok, found};
  const std::string oldest = fmt::format("{}.{}", oldest_kernel.major, oldest_kernel.minor);
  return {"kernel", missing, fmt::format("{}, older than {}", found, oldest),
          fmt::format("run on Linux {} or newer", oldest)};
}

Feature check_btf(const HostRoots& roots) {
  std::error_code error;
  if (fs::exists(roots.sys / "kernel/btf/vmlinux", error)) return {"BTF", ok, "kernel types available"};
  if (!fs::exists(roots.sys / "kernel", error))
    return {"BTF", missing, "no /sys/kernel: sysfs is not mounted here",
            "mount -t sysfs sysfs /sys (containers: -v /sys:/sys:ro)"};
  return {"BTF", missing, "no /sys/kernel/btf/vmlinux: the kernel has no type information",
          "run a kernel built with CONFIG_DEBUG_INFO_BTF=y, as those of most distributions are"};
}

Feature check_lockdown(const HostRoots& roots) {
  // "none [integrity] confidentiality"
  const std::string text = read_text(roots.sys / "kernel/security/lockdown");
  const auto open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return {"lockdown", ok, "none"};
  const std::string mode = text.substr(open + 1, close - open - 1);
  if (mode != "confidentiality") return {"lockdown", ok, mode};
  return {"lockdown", missing, "confidentiality: BPF may not read kernel or user memory",
          "boot with lockdown=integrity, or without Secure Boot"};
}

/// What this process may do.
struct Rights {
  std::uint64_t capabilities = 0;
  bool is_root = false;

  bool has(unsigned capability) const { return (capabilities >> capability & 1) != 0; }
};

Rights rights_of(const HostRoots& roots) {
  const std::string status = read_text(roots.proc / "self/status");
  // "Uid:  real  effective  ..."
  std::string_view users = line_value(status, "Uid:");
  users.remove_prefix(std::min(users.find('\t'), users.size()));
  return {.capabilities = parse_leading_number<std::uint64_t>(line_value(status, "CapEff:"), 16).value_or(0),
          .is_root = users.starts_with("\t0\t")};
}

Feature check_capability(const Capability& capability, const Rights& rights) {
  std::string name(capability.name);
  if (rights.has(capability.bit)) return {std::move(name), ok, "held"};
  if (capability.admin_suffices && rights.has(CAP_SYS_ADMIN)) return {std::move(name), ok, "included in CAP_SYS_ADMIN"};
  return {std::move(name), capability.without, fmt::format("not held: {}", capability.loss),
          hint_for_capability(capability.name, rights.is_root)};
}

Feature check_bpf(const BpfAbilities& abilities, const Rights& rights) {
  if (abilities.error == 0) return {"BPF", ok, "programs can be loaded"};
  const bool is_refused = abilities.error == EPERM || abilities.error == EACCES || abilities.error == ENOSYS;
  return {"BPF", missing,
          fmt::format("programs cannot be loaded: {}", std::generic_category().message(abilities.error)),
          !is_refused      ? ""
          : rights.is_root ? "bpf(2) was refused: it needs CAP_BPF, and a container may filter it (seccomp)"
                           : "run as root on the host, not in a container that filters bpf(2)"};
}

Feature check_uprobes(const HostRoots& roots, const BpfAbilities& abilities, const Rights& rights) {
  if (abilities.uprobe_multi) return {"uprobes", ok, "uprobe_multi"};
  if (read_text(roots.sys / "bus/event_source/devices/uprobe/type").empty())
    return {"uprobes", degraded,
            "not available: start, pause and end of a ring are detected later, from the ring itself",
            "run a kernel built with CONFIG_UPROBE_EVENTS=y"};
  if (!rights.has(CAP_SYS_ADMIN))
    return {"uprobes", degraded, "through perf_event, which may need CAP_SYS_ADMIN",
            hint_for_capability("CAP_SYS_ADMIN", rights.is_root)};
  return {"uprobes", degraded, "through perf_event: detaching takes up to a second for each OCaml binary",
          "run Linux 6.6 or newer, which has uprobe_multi"};
}

Feature check_map_files(const HostRoots& roots, const Rights& rights) {
  const fs::path links = roots.proc / "self/map_files";
  UniqueFd directory = open_proc(links, O_RDONLY | O_DIRECTORY);
  int code = directory ? 0 : errno;
  bool is_readable = false;
  visit_names(std::move(directory), [&](std::string_view first) {
    is_readable = static_cast<bool>(open_proc(links / first, O_PATH));
    if (!is_readable) code = errno;
    return false;
  });
  if (is_readable) return {"map_files", ok, "readable"};
  const std::string why = code == 0 ? "no entries" : std::generic_category().message(code);
  const bool lacks_rights = code == EPERM || code == EACCES;
  return {"map_files", missing, fmt::format("links in /proc/PID/map_files cannot be opened: {}", why),
          lacks_rights ? hint_for_capability("CAP_CHECKPOINT_RESTORE", rights.is_root) : ""};
}

Feature check_user_namespace(const HostRoots& roots) {
  // Kernels built without user namespaces have no such file.
  if (is_hosts(roots, user_namespace).value_or(true)) return {"user namespace", ok, "the host's"};
  return {"user namespace", missing,
          "not the host's: its capabilities do not apply to BPF and to other processes' files",
          "run as the host's root (containers: rootful, with --userns=host)"};
}

Feature check_time_namespace(const HostRoots& roots) {
  if (is_hosts(roots, time_namespace).value_or(true)) return {"time namespace", ok, "the host's"};
  const std::string offsets = read_text(roots.proc / "self/timens_offsets");
  for (const std::string_view clock : {"monotonic", "boottime"}) {
    if (line_value(offsets, clock).find_first_of("123456789") == std::string_view::npos) continue;
    return {"time namespace", missing, "not the host's: its clocks differ from the timestamps of the kernel's events",
            "run with the host's clocks: nsenter --target 1 --time rtev-bpf"};
  }
  return {"time namespace", ok, "not the host's, but with the same clocks"};
}

Feature check_pid_namespace(const HostRoots& roots) {
  const auto is_host = is_hosts(roots, pid_namespace);
  if (is_host.value_or(false)) return {"pid namespace", ok, "the host's"};
  return {"pid namespace", missing,
          is_host ? "not the host's: the kernel's process ids are not valid here"
                  : "unknown, since /proc/self/ns/pid cannot be read: the kernel's process ids may not be valid here",
          "run on the host, or in a container with the host's pid namespace (--pid=host)"};
}

/// True in a pid namespace of its own with its own /proc: process ids are valid here, and BPF's are not.
bool has_own_pids(const HostRoots& roots) {
  const std::string status = read_text(roots.proc / "self/status");
  const std::string_view ids = line_value(status, "NSpid:");
  return !is_hosts(roots, pid_namespace).value_or(true) && !ids.empty() && !ids.contains('\t');
}

/// For what shows processes only.
void add_pid_namespace(HostFeatures& host, const HostRoots& roots) {
  Feature space = check_pid_namespace(roots);
  if (space.status == ok) return;
  space.status = degraded;
  if (is_hosts(roots, pid_namespace)) space.found = "not the host's: processes outside of it are not found";
  host.features.push_back(std::move(space));
}

Feature check_file_limit(const HostRoots& roots) {
  // "Max open files            1024                 1048576              files"
  const std::string limits = read_text(roots.proc / "self/limits");
  std::string_view hard = line_value(limits, "Max open files");
  hard.remove_prefix(std::min(hard.find(' '), hard.size()));
  hard.remove_prefix(std::min(hard.find_first_not_of(' '), hard.size()));
  const std::string found = fmt::format("limit {}", hard.substr(0, hard.find(' ')));
  const auto count = parse_leading_number<std::uint64_t>(hard);
  if (!count || *count >= min_open_files) return {"open files", ok, found};
  return {"open files", degraded, found + ": enough for only a few hundred processes",
          "raise the hard limit (ulimit -Hn)"};
}

}  // namespace

std::string running_release() {
  utsname names{};
  return ::uname(&names) == 0 ? names.release : "";
}

std::optional<KernelVersion> parse_kernel_version(std::string_view release) {
  const auto dot = release.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto major = parse_leading_number<unsigned>(release),
             minor = parse_leading_number<unsigned>(release.substr(dot + 1));
  if (!major || !minor) return std::nullopt;
  return KernelVersion{*major, *minor};
}

bool is_kernel_since(KernelVersion version) {
  utsname system{};
  if (::uname(&system) != 0) return false;
  const auto running = parse_kernel_version(system.release);
  return running && *running >= version;
}

const Feature* HostFeatures::blocking() const {
  const auto found = std::ranges::find(features, missing, &Feature::status);
  return found == features.end() ? nullptr : &*found;
}

HostFeatures inspect_host(const HostRoots& roots, const BpfAbilities& abilities) {
  const Rights rights = rights_of(roots);
  // Filters of system calls answer with one of these, sandboxes without bpf(2) with the last.
  const bool is_refused = abilities.error == EPERM || abilities.error == EACCES || abilities.error == ENOSYS;
  HostFeatures host{.uprobe_multi = abilities.uprobe_multi,
                    .is_root = rights.is_root,
                    .denies_bpf = is_refused || has_own_pids(roots)};
  // Causes before their effects.
  host.features = {check_proc(roots),          check_kernel(roots),         check_btf(roots),
                   check_lockdown(roots),      check_user_namespace(roots), check_pid_namespace(roots),
                   check_time_namespace(roots)};
  const auto check = [&](const Capability& capability) {
    host.features.push_back(check_capability(capability, rights));
    host.lacks_capabilities |= host.features.back().status != ok;
    host.denies_bpf |= host.features.back().status == missing;
  };
  std::ranges::for_each(bpf_capabilities, check);
  std::ranges::for_each(process_capabilities, check);
  host.features.push_back(check_bpf(abilities, rights));
  host.features.push_back(check_uprobes(roots, abilities, rights));
  host.features.push_back(check_map_files(roots, rights));
  host.features.push_back(check_file_limit(roots));
  return host;
}

std::vector<std::string_view> tracer_capabilities() {
  std::vector<std::string_view> names;
  names.reserve(std::size(bpf_capabilities) + std::size(process_capabilities));
  for (const Capability& capability : bpf_capabilities) names.push_back(capability.name);
  for (const Capability& capability : process_capabilities) names.push_back(capability.name);
  return names;
}

std::string setcap_command() {
  std::string capabilities;
  for (const std::string_view name : tracer_capabilities()) {
    if (!capabilities.empty()) capabilities += ',';
    for (const char letter : name) capabilities += letter == '_' ? letter : static_cast<char>(letter - 'A' + 'a');
  }
  const std::string self = link_target("/proc/self/exe");
  return fmt::format("sudo setcap {}=ep {}", capabilities, self.empty() ? "rtev-bpf" : self);
}

HostFeatures inspect_view(const HostRoots& roots) {
  HostFeatures host;
  const Rights rights = rights_of(roots);
  host.features = {check_proc(roots), check_user_namespace(roots)};
  for (const auto& capability : process_capabilities) host.features.push_back(check_capability(capability, rights));
  host.features.push_back(check_map_files(roots, rights));
  add_pid_namespace(host, roots);
  return host;
}

HostFeatures inspect_own_view(const HostRoots& roots) {
  HostFeatures host;
  host.features = {check_proc(roots)};
  add_pid_namespace(host, roots);
  return host;
}

}  // namespace rtev::kernel
