// SPDX-License-Identifier: MIT
// Waiting for what only questions tell.
#pragma once

#include <chrono>
#include <thread>

namespace rtev::test {

/// Timeout of every wait in tests. Generous, since sanitizers and loaded machines are slow.
inline constexpr std::chrono::seconds wait_timeout{30};

/// Asks again and again until the answer is yes; false after `limit`.
template <typename Question>
bool poll_until(const Question& question, std::chrono::nanoseconds limit = wait_timeout) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!question()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // between two questions
  }
  return true;
}

}  // namespace rtev::test
