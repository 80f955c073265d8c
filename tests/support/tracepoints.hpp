// SPDX-License-Identifier: MIT
// Which tracepoints a process has BPF programs attached to.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>

#include "support/poll_until.hpp"

namespace rtev::test {

/// The names of the tracepoints of all links that the process holds.
inline std::set<std::string> tracepoints_of(pid_t pid) {
  std::set<std::string> names;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fdinfo", gone)) {
    std::ifstream fields(entry.path());
    for (std::string field, name; fields >> field;) {
      if (field == "tp_name:" && fields >> name) names.insert(name);
    }
  }
  return names;
}

/// Waits until the BPF programs of the scheduler are attached by a tracer, or are not. False at the timeout.
inline bool await_sched_programs(pid_t tracer, bool attached, std::chrono::seconds timeout = wait_timeout) {
  return poll_until([&] { return tracepoints_of(tracer).contains("sched_switch") == attached; }, timeout);
}

}  // namespace rtev::test
