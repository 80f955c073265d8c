// SPDX-License-Identifier: MIT
// rtev-bpf doctor: what this host allows.
#include <fmt/core.h>

#include "cli/options.hpp"
#include "kernel/features.hpp"

namespace rtev::cli {
namespace {

const char* word_for(kernel::FeatureStatus status) {
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

}  // namespace

int run_doctor(const Options& /*options*/) {
  const kernel::HostFeatures host = kernel::inspect_host();
  std::size_t width = 0;
  for (const kernel::Feature& feature : host.features) width = std::max(width, feature.name.size());
  for (const kernel::Feature& feature : host.features) {
    fmt::print("{:<8}  {:<{}}  {}\n", word_for(feature.status), feature.name, width, feature.found);
    if (!feature.hint.empty()) fmt::print("{:<8}  {:<{}}  hint: {}\n", "", "", width, feature.hint);
  }
  if (const kernel::Feature* blocking = host.blocking()) {
    fmt::print("\nrtev-bpf cannot trace here: {}\n", blocking->name);
    return exit_failure;
  }
  fmt::print("\nrtev-bpf can trace here.\n");
  return exit_ok;
}

}  // namespace rtev::cli
