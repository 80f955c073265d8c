// SPDX-License-Identifier: MIT
#include "enable/bounded_task.hpp"

#include <system_error>
#include <thread>
#include <utility>

namespace rtev::enable {

bool run_detached(std::packaged_task<void()> task) {
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

bool run_bounded(std::packaged_task<void()> task, std::chrono::nanoseconds limit) {
  const auto finished = task.get_future();
  return run_detached(std::move(task)) && finished.wait_for(limit) == std::future_status::ready;
}

}  // namespace rtev::enable
