// SPDX-License-Identifier: MIT
// Names of groups of processes, which metrics are counted by: what stays the same when a service is started again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rtev/error.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// What a process is part of, from its control group. Empty where it is not.
struct ControlGroupName {
  std::string unit{};       ///< of systemd: "web.service"
  std::string container{};  ///< its name, or the first 12 digits of its id
  std::string workload{};   ///< in Kubernetes the name of the pod without what is generated; else a named container
};
/// Understands the paths of systemd, Docker, Podman, containerd, CRI-O, LXC and systemd-nspawn.
ControlGroupName parse_control_group(const ServiceIdentity& service);

/// A template such as "{service|exe}/{version}": of names in braces the first that is not empty stands there.
class GroupTemplate {
 public:
  static constexpr std::string_view standard = "{service|workload|unit|exe}";
  /// Longer names are cut, in bytes.
  static constexpr std::size_t max_name_bytes = 128;

  /// Fails on unknown names and on braces that do not match.
  static Result<GroupTemplate> parse(std::string_view text);

  /// Printable, and not empty.
  std::string name_of(const ProcessInfo& process) const;

 private:
  struct Part {
    std::string literal{};
    std::vector<std::string> alternatives{};  ///< if there is no literal
  };
  std::vector<Part> parts_;
};

}  // namespace rtev
