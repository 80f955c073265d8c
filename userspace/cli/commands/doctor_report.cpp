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

/// Whether this host can be traced; if not, what works first, and which rights are missing.
std::string verdict(const kernel::HostFeatures& host, std::string_view setcap) {
  const kernel::Feature* const blocking = host.blocking();
  std::string text = "rtev-bpf can trace this host.\n";
  if (blocking != nullptr) {
    text = "What works here:\n";
    if (host.denies_bpf)
      text +=
          "  rtev-bpf -- CMD          trace a program that it starts; also record, pauses, ... -- CMD\n"
          "  rtev-bpf -p PID          trace a program of this user; also record, pauses, ... -p PID\n";
    text += "  rtev-bpf pauses -i FILE  read a recording; also dump, convert and all other reports\n";
    text += fmt::format("\nrtev-bpf cannot trace this host: see {} above\n", blocking->name);
  }
  if (!host.lacks_capabilities) return text;
  // A program's file cannot give root what root was started without.
  std::string container;
  for (const std::string_view name : kernel::tracer_capabilities())
    container.append(" --cap-add=").append(name.substr(4));
  // In a container they do not suffice.
  if (!host.is_root && (blocking == nullptr || blocking->name.starts_with("CAP_")))
    text += fmt::format("\nTo trace this host without root, once:\n  {}\n", escaped(setcap));
  return text + fmt::format("\nTo trace this host from a container:\n  --pid=host{}\n", container);
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
    // One line below gives all capabilities.
    if (!feature.hint.empty() && !feature.name.starts_with("CAP_"))
      text += fmt::format("{:<{}}{}\n", "", indent, folded("hint: " + feature.hint, indent, indent));
  }
  if (host.blocking() == nullptr) text.append("\n").append(confinement);
  return text + "\n" + verdict(host, setcap);
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
