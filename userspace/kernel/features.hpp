// SPDX-License-Identifier: MIT
// What this host allows the tracer to do, and what is missing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/uprobe_link.hpp"

namespace rtev::kernel {

enum class FeatureStatus : std::uint8_t {
  ok,
  degraded,  ///< tracing works, with the restriction that `found` states
  missing,   ///< tracing cannot work
};

/// One thing that tracing needs.
struct Feature {
  std::string name;
  FeatureStatus status = FeatureStatus::ok;
  std::string found;
  std::string hint{};  ///< what to do about it; may be empty
};

/// Of the running kernel. Not from /proc, which may be mounted without it (subset=pid).
std::string running_release();

/// Where the kernel's file systems are mounted, and its release; tests have their own.
struct HostRoots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
  std::string release = running_release();
};

struct HostFeatures {
  std::vector<Feature> features{};  ///< causes before their effects
  bool uprobe_multi = false;
  bool lacks_capabilities = false;  ///< of tracer_capabilities()
  bool is_root = false;
  bool denies_bpf = false;  ///< this process cannot trace with BPF; others of this host may

  /// The first missing feature, or nullptr.
  const Feature* blocking() const;
};

/// Inspects the host with the rights of the calling process.
HostFeatures inspect_host(const HostRoots& roots, const BpfAbilities& abilities);
inline HostFeatures inspect_host() {
  return inspect_host({}, probe_bpf());
}

/// What a tracer that is not root has to hold: "CAP_BPF", ...
std::vector<std::string_view> tracer_capabilities();
/// The command that gives them to this program, for root to run. Can hold any bytes of its path.
std::string setcap_command();

/// Only what is needed to find processes and read their rings without BPF.
HostFeatures inspect_view(const HostRoots& roots = {});
/// Of that, what is needed for processes of this user.
HostFeatures inspect_own_view(const HostRoots& roots = {});

/// A kernel's release, e.g. "6.1.0-18-amd64".
struct KernelVersion {
  unsigned major = 0, minor = 0;
  auto operator<=>(const KernelVersion&) const = default;
};
std::optional<KernelVersion> parse_kernel_version(std::string_view release);
/// False if the version of the running kernel is unknown.
bool is_kernel_since(KernelVersion version);

/// The oldest supported kernel.
inline constexpr KernelVersion oldest_kernel{6, 1};

}  // namespace rtev::kernel
