// SPDX-License-Identifier: MIT
#include "base/service_identity.hpp"

#include <algorithm>
#include <optional>

#include "base/parse.hpp"

namespace rtev {
namespace {

std::string clipped(std::string_view text) {
  return std::string(text.substr(0, ServiceIdentity::max_bytes));
}

/// %XX stands for a byte, as in URLs.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte =
        text[i] == '%' && text.size() - i > 2 ? parse_number<unsigned char>(text.substr(i + 1, 2), 16) : std::nullopt;
    decoded += byte ? static_cast<char>(*byte) : text[i];
    if (byte) i += 2;
  }
  return decoded;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// "service.name=web,service.version=2.1"
void add_resource_attributes(ServiceIdentity& identity, std::string_view attributes) {
  while (!attributes.empty()) {
    const std::string_view attribute = take_until(attributes, ',');
    const std::size_t equals = attribute.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = trimmed(attribute.substr(0, equals)), value = trimmed(attribute.substr(equals + 1));
    if (key == "service.name" && identity.name.empty()) identity.name = clipped(percent_decoded(value));
    if (key == "service.version") identity.version = clipped(percent_decoded(value));
  }
}

/// The path in the unified hierarchy, which systemd and container engines use; in that of systemd on older hosts.
std::string_view cgroup_path(std::string_view file) {
  std::string_view unified, systemd;
  while (!file.empty()) {
    const std::string_view line = take_until(file, '\n');
    constexpr std::string_view unified_prefix = "0::", systemd_mark = ":name=systemd:";
    if (line.starts_with(unified_prefix)) unified = line.substr(unified_prefix.size());
    if (const std::size_t at = line.find(systemd_mark); at != std::string_view::npos)
      systemd = line.substr(at + systemd_mark.size());
  }
  return unified.size() > 1 || systemd.empty() ? unified : systemd;
}

}  // namespace

ServiceIdentity parse_service_identity(std::string_view cgroup_file, std::string_view environment) {
  ServiceIdentity identity{.cgroup = clipped(cgroup_path(cgroup_file))};
  std::string_view attributes;
  while (!environment.empty()) {
    const std::string_view variable = take_until(environment, '\0');
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = variable.substr(0, equals), value = variable.substr(equals + 1);
    if (name == "OTEL_SERVICE_NAME") identity.name = clipped(value);
    if (name == "OTEL_RESOURCE_ATTRIBUTES") attributes = value;
    if (name == "HOSTNAME") identity.host_name = clipped(value);
  }
  add_resource_attributes(identity, attributes);
  return identity;
}

}  // namespace rtev
