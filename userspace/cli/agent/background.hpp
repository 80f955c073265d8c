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
  /// Runs a function in a process in the background. Returns 0 when the function calls ready(). If the function returns
  /// before, returns its exit status. Call it before there are threads.
  static int run(const std::function<int(Background& background)>& work);

  void ready() { report(0); }

 private:
  explicit Background(UniqueFd waits) : waits_(std::move(waits)) {}
  void report(int status);

  UniqueFd waits_;
};

}  // namespace rtev::cli
