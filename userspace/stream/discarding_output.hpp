// SPDX-License-Identifier: MIT
// An Output for sinks whose text nobody reads.
#pragma once

#include <optional>
#include <string_view>

#include "stream/sink.hpp"

namespace rtev {

class DiscardingOutput final : public Output {
 public:
  bool write(std::string_view) override { return true; }
  const std::optional<Error>& error() const override { return none_; }

 private:
  std::optional<Error> none_{};
};

}  // namespace rtev
