// SPDX-License-Identifier: MIT
#include "session/run_header.hpp"

#include <sys/resource.h>
#include <sys/utsname.h>

#include "base/clock.hpp"
#include "rtev/version.hpp"

namespace rtev {

RunHeader make_run_header(const std::vector<std::string>& command_line, std::uint64_t start_ns) {
  utsname host{};
  ::uname(&host);
  return {.version = RTEV_VERSION,
          .host = host.nodename,
          .kernel = host.release,
          .machine = host.machine,
          .command_line = command_line,
          .start_ns = start_ns,
          .start_realtime_ns = clock_ns(CLOCK_REALTIME) - (monotonic_ns() - start_ns)};
}

void fill_own_cost(RunSummary& summary) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto nanoseconds = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_usec) * 1000;
  };
  summary.own_cpu_ns = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
  summary.own_max_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace rtev
