// SPDX-License-Identifier: MIT
// Keeps messages to stderr while a screen is shown.
#pragma once

#include "base/unique_fd.hpp"

namespace rtev::cli {

/// What this process and its children write to stderr is shown when the object is destroyed, if stderr is a terminal.
class HeldMessages {
 public:
  HeldMessages();
  HeldMessages(const HeldMessages&) = delete;
  HeldMessages& operator=(const HeldMessages&) = delete;
  ~HeldMessages();

 private:
  UniqueFd stderr_, held_;
};

}  // namespace rtev::cli
