// SPDX-License-Identifier: MIT
#include "cli/commands/doctor_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/escape.hpp"
#include "base/folding.hpp"
#include "base/json_writer.hpp"

namespace rtev::cli {
namespace {

std::string_view name_of(kernel::FeatureStatus status) {
  switch (status) {
    case kernel::FeatureStatus::ok:
      return "ok";
    case kernel::FeatureStatus::degraded:
      return "degraded";
    case kernel::FeatureStatus::missing:
      return "MISSING";
  }
  return "";
}

std::string_view json_name_of(kernel::FeatureStatus status) {
  return status == kernel::FeatureStatus::missing ? "missing" : name_of(status);
}

/// The commands that let others than root trace.
std::string rights_text(std::string_view setcap) {
  std::string container = "--pid=host";
  for (const std::string_view name : kernel::tracer_capabilities())
    container.append(" --cap-add=").append(name.substr(4));
  return fmt::format(
      "\nTo trace this host without root, once:\n  {}\nIn a container:\n  {}\n"
      "Programs of your own need none of this: rtev-bpf -- CMD, or rtev-bpf -p PID.\n",
      escaped(setcap), container);
}

}  // namespace

std::string doctor_text(const kernel::HostFeatures& host, std::string_view setcap, std::string_view confinement) {
  constexpr std::size_t status_width = 8, gap = 2;
  std::size_t width = 0;
  for (const kernel::Feature& feature : host.features) width = std::max(width, feature.name.size());
  const std::size_t indent = status_width + gap + width + gap;
  std::string text;
  for (const kernel::Feature& feature : host.features) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", name_of(feature.status), status_width, feature.name, width,
                        folded(feature.found, indent, indent));
    if (!feature.hint.empty())
      text += fmt::format("{:<{}}{}\n", "", indent, folded("hint: " + feature.hint, indent, indent));
  }
  if (host.lacks_capabilities) text += rights_text(setcap);
  if (const kernel::Feature* const blocking = host.blocking())
    return text + fmt::format("\nrtev-bpf cannot trace here: {}\n", blocking->name);
  return text + fmt::format("\n{}\nrtev-bpf can trace here.\n", confinement);
}

std::string doctor_json(const kernel::HostFeatures& host) {
  JsonWriter json;
  json.object([&] {
    json.member("type", "doctor");
    json.member("schema", 1);
    json.member("can_trace", host.blocking() == nullptr);
    json.key("features").array([&] {
      for (const kernel::Feature& feature : host.features) {
        json.object([&] {
          json.member("name", feature.name);
          json.member("status", json_name_of(feature.status));
          json.member("found", feature.found);
          json.text_or_null("hint", feature.hint);
        });
      }
    });
  });
  return std::string(json.text()) + "\n";
}

}  // namespace rtev::cli
