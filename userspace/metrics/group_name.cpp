// SPDX-License-Identifier: MIT
#include "metrics/group_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/escape.hpp"
#include "base/parse.hpp"
#include "base/program_names.hpp"

namespace rtev {
namespace {

constexpr std::array<std::string_view, 8> names{"service", "version", "workload", "container",
                                                "unit",    "exe",     "comm",     "cgroup"};

bool is_all(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

constexpr std::string_view digits = "0123456789";
/// Of names that Kubernetes generates.
constexpr std::string_view generated = "bcdfghjklmnpqrstvwxz2456789";

constexpr std::size_t shown_id_digits = 12;

/// Removes "-SUFFIX" if the last part of the name is such a one.
template <typename IsSuffix>
bool remove_suffix(std::string_view& name, const IsSuffix& is_suffix) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0 || !is_suffix(name.substr(dash + 1))) return false;
  name = name.substr(0, dash);
  return true;
}

/// "web-7d4b9c6f5d-x2x7z" (a Deployment), "db-0" (a StatefulSet), "job-28391820-abcde" (a CronJob): the name before.
std::string_view workload_of_pod(std::string_view pod) {
  const auto is_number = [](std::string_view part) { return is_all(part, digits); };
  constexpr std::size_t pod_suffix = 5, min_hash = 6, max_hash = 10;
  const bool has_pod_suffix =
      remove_suffix(pod, [](std::string_view part) { return part.size() == pod_suffix && is_all(part, generated); });
  if (!has_pod_suffix) {
    remove_suffix(pod, is_number);
  } else if (!remove_suffix(pod, is_number)) {
    remove_suffix(pod, [](std::string_view part) {
      return part.size() >= min_hash && part.size() <= max_hash && is_all(part, generated) &&
             part.find_first_of(digits) != std::string_view::npos;
    });
  }
  return pod;
}

/// "docker-0123456789abcdef.scope", "pod.slice:cri-containerd:0123456789abcdef", "0123456789abcdef": the id, shortened.
std::string container_id(std::string_view part) {
  constexpr std::string_view scope = ".scope";
  if (part.ends_with(scope)) part.remove_suffix(scope.size());
  if (const std::size_t at = part.find_last_of("-:"); at != std::string_view::npos) part.remove_prefix(at + 1);
  constexpr std::size_t min_digits = 32;
  if (part.size() < min_digits || !is_all(part, "0123456789abcdef")) return {};
  return std::string(part.substr(0, shown_id_digits));
}

/// What is between a beginning and an end; empty if the text has not both.
std::string_view between(std::string_view text, std::string_view begin, std::string_view end) {
  if (text.size() <= begin.size() + end.size() || !text.starts_with(begin) || !text.ends_with(end)) return {};
  return text.substr(begin.size(), text.size() - begin.size() - end.size());
}

/// The name of a container that has one.
std::string_view container_name(std::string_view part, std::string_view before) {
  for (const auto& [begin, end] :
       {std::pair{"lxc.payload.", ""}, {"machine-", ".scope"}, {"systemd-nspawn@", ".service"}})
    if (const auto name = between(part, begin, end); !name.empty()) return name;
  return before == "lxc" ? part : std::string_view{};
}

std::string value_of(std::string_view name, const ProcessInfo& process, const ControlGroupName& group) {
  const ServiceIdentity& service = process.service;
  if (name == "service") return service.name;
  if (name == "version") return service.version;
  if (name == "workload") return group.workload;
  if (name == "container") return group.container;
  if (name == "unit") return group.unit;
  if (name == "cgroup") return service.cgroup;
  if (name == "comm" || process.exe.empty()) return process.comm;
  return std::string(runs_another_file(process.exe) ? full_name(process.names()) : file_name_of(process.exe));
}

}  // namespace

ControlGroupName parse_control_group(const ServiceIdentity& service) {
  ControlGroupName group;
  std::string_view before;
  bool in_kubernetes = false;
  for (std::string_view rest = service.cgroup; !rest.empty();) {
    const std::string_view part = take_until(rest, '/');
    if (part.empty()) continue;
    in_kubernetes |= part.starts_with("kubepods");
    if (part.ends_with(".service") && !part.starts_with("user@")) group.unit = part;
    if (const auto name = container_name(part, before); !name.empty()) group.container = group.workload = name;
    if (auto id = container_id(part); !id.empty()) group.container = std::move(id);
    before = part;
  }
  if (in_kubernetes) group.workload = workload_of_pod(service.host_name);
  return group;
}

Result<GroupTemplate> GroupTemplate::parse(std::string_view text) {
  const auto refused = [whole = text](std::string why) {
    return std::unexpected(Error{.what = "cannot name groups by",
                                 .subject = escaped(whole),
                                 .why = std::move(why),
                                 .hint = fmt::format("a template is text with names in braces: {}, e.g. '{}'",
                                                     fmt::join(names, ", "), standard)});
  };
  GroupTemplate made;
  while (!text.empty()) {
    const std::size_t open = text.find_first_of("{}");
    if (open != 0) made.parts_.push_back({.literal = std::string(text.substr(0, open))});
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find('}', open);
    if (text[open] == '}' || close == std::string_view::npos) return refused("a brace has no other one");
    Part part;
    const std::string_view alternatives = text.substr(open + 1, close - open - 1);
    for (std::size_t at = 0; at <= alternatives.size();) {
      const std::string_view name = alternatives.substr(at, alternatives.find('|', at) - at);
      at += name.size() + 1;
      if (std::ranges::find(names, name) == names.end()) return refused(fmt::format("there is no '{}'", escaped(name)));
      part.alternatives.emplace_back(name);
    }
    made.parts_.push_back(std::move(part));
    text.remove_prefix(close + 1);
  }
  if (made.parts_.empty()) return refused("it is empty");
  return made;
}

std::string GroupTemplate::name_of(const ProcessInfo& process) const {
  const ControlGroupName group = parse_control_group(process.service);
  std::string name;
  for (const Part& part : parts_) {
    name += part.literal;
    for (const std::string& alternative : part.alternatives) {
      const std::string value = value_of(alternative, process, group);
      name += value;
      if (!value.empty()) break;
    }
  }
  if (name.empty()) return "unknown";
  return escaped(std::string_view(name).substr(0, max_name_bytes));
}

}  // namespace rtev
