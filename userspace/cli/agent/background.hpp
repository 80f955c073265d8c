// SPDX-License-Identifier: MIT
// A command that goes on in the background once it has done what its caller waits for.
#pragma once

#include <functional>
#include <utility>

#include "base/unique_fd.hpp"

namespace rtev::cli {

/// The part in the background. What waits for it is the process that was called.
class Background {
 public:
  /// Runs a function in a process that is nobody's child, and returns its exit status in this one: as soon as the
  /// function calls ready(), 0. Call it before there are threads.
  static int run(const std::function<int(Background& background)>& work);

  void ready() { report(0); }

 private:
  explicit Background(UniqueFd waits) : waits_(std::move(waits)) {}
  void report(int status);

  UniqueFd waits_;
};

}  // namespace rtev::cli
