// SPDX-License-Identifier: MIT
// Waiting for what only questions tell.
#pragma once

#include <chrono>
#include <thread>

#include "live/harness.hpp"

namespace rtev::test {

/// Asks again and again until the answer is yes; false after wait_timeout.
template <typename Question>
bool poll_until(const Question& question) {
  const auto deadline = std::chrono::steady_clock::now() + wait_timeout;
  while (!question()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // between two questions
  }
  return true;
}

}  // namespace rtev::test
