// SPDX-License-Identifier: MIT
// What this host allows a tracer to do, and what is missing.
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
  degraded,  ///< tracing works, with what `found` says less
  missing,   ///< tracing cannot work
};

/// One thing the host offers or does not.
struct Feature {
  std::string name;
  FeatureStatus status = FeatureStatus::ok;
  std::string found;
  std::string hint{};  ///< what to do; empty where there is nothing to do
};

/// Where the kernel's own file systems are; tests put made-up trees there.
struct HostRoots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

struct HostFeatures {
  std::vector<Feature> features;  ///< in the order in which to read them
  bool uprobe_multi = false;

  /// The first that is missing, or nullptr.
  const Feature* blocking() const;
};

/// Looks at the host, as the calling process may use it.
HostFeatures inspect_host(const HostRoots& roots, const BpfAbilities& abilities);
inline HostFeatures inspect_host() {
  return inspect_host({}, probe_bpf());
}

/// The part of it that looking at processes and their rings needs, without BPF.
HostFeatures inspect_view(const HostRoots& roots = {});

/// A kernel's release, e.g. "6.1.0-18-amd64".
struct KernelVersion {
  unsigned major = 0, minor = 0;
  auto operator<=>(const KernelVersion&) const = default;
};
std::optional<KernelVersion> parse_kernel_version(std::string_view release);

/// The oldest kernel that will do.
inline constexpr KernelVersion oldest_kernel{6, 1};

}  // namespace rtev::kernel
