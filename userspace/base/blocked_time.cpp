// SPDX-License-Identifier: MIT
#include "base/blocked_time.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/parse.hpp"
#include "base/proc_files.hpp"

namespace rtev {

BlockedTime::BlockedTime() : schedstat_(open_proc("/proc/thread-self/schedstat", O_RDONLY)), last_(read()) {}

std::uint64_t BlockedTime::take() {
  const Times now = read(), before = std::exchange(last_, now);
  if (now.waits == before.waits) return 0;
  const std::uint64_t elapsed = now.now_ns - before.now_ns;
  return elapsed - std::min(elapsed, now.ran_ns - before.ran_ns + now.delayed_ns - before.delayed_ns);
}

BlockedTime::Times BlockedTime::read() const {
  Times times;
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  times.waits = static_cast<std::uint64_t>(usage.ru_nvcsw);
  // Time on a CPU, time waited for one, and number of turns. The first is not up to date.
  std::array<char, 64> text{};
  if (const ssize_t bytes = ::pread(schedstat_.get(), text.data(), text.size(), 0); bytes > 0) {
    const std::string_view numbers(text.data(), static_cast<std::size_t>(bytes));
    const std::size_t second = numbers.find(' ') + 1;  // 0 if there is none
    times.delayed_ns = parse_leading_number<std::uint64_t>(numbers.substr(second)).value_or(0);
  }
  timespec ran{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
  times.ran_ns = static_cast<std::uint64_t>(ran.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(ran.tv_nsec);
  times.now_ns = monotonic_ns();
  return times;
}

}  // namespace rtev
