// SPDX-License-Identifier: MIT
// Which service a process belongs to, as far as its control group and its environment say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rtev {

/// The texts are under the control of whoever started the process: escape them. Each is cut to max_bytes.
struct ServiceIdentity {
  static constexpr std::size_t max_bytes = 512;

  std::string name{};       ///< OTEL_SERVICE_NAME, or service.name in OTEL_RESOURCE_ATTRIBUTES
  std::string version{};    ///< service.version in OTEL_RESOURCE_ATTRIBUTES
  std::string cgroup{};     ///< path of the control group, e.g. "/system.slice/web.service"
  std::string host_name{};  ///< HOSTNAME: in Kubernetes the name of the pod

  bool operator==(const ServiceIdentity&) const = default;
  bool is_empty() const { return name.empty() && version.empty() && cgroup.empty() && host_name.empty(); }
  std::size_t text_bytes() const { return name.size() + version.size() + cgroup.size() + host_name.size(); }
};

/// `cgroup_file`: the content of /proc/PID/cgroup; `environment`: that of /proc/PID/environ. Any bytes.
ServiceIdentity parse_service_identity(std::string_view cgroup_file, std::string_view environment);

}  // namespace rtev
