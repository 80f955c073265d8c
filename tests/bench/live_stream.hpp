// SPDX-License-Identifier: MIT
// The live stream of rtev-bpf, read from a pipe as fast as it comes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "bench/recorded.hpp"
#include "bench/tool.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {

/// Runs rtev-bpf with JSON lines to a pipe. Keeps what it says of losses only, however long it runs.
class LiveStream {
 public:
  explicit LiveStream(std::vector<std::string> arguments);

  /// Ends the tracer.
  Recorded stop();

 private:
  void read(const std::stop_token& stop);
  void see(std::string_view line);

  test::TempDir directory_;
  UniqueFd fd_;
  Recorded recorded_;
  std::string last_line_;
  std::optional<Tool> tool_;
  std::jthread reader_;
};

}  // namespace rtev::bench
