// SPDX-License-Identifier: MIT
// Runs rtev-load for measurements.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "live/child_process.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {

/// An rtev-load whose rings exist. It begins to write at go().
class Load {
 public:
  /// Name of the processes that write.
  static constexpr const char* name = "bench-load";

  explicit Load(const std::vector<std::string>& arguments);

  void go() { process_.go(); }
  const std::filesystem::path& directory() const { return directory_.path(); }
  /// The processes that write.
  const std::vector<pid_t>& pids() const { return pids_; }

  struct Written {
    std::uint64_t events;
    std::uint64_t words;
    double events_per_second;
  };
  /// Waits for the end that the arguments ask for.
  Written wait();
  Written interrupt();

 private:
  test::TempDir directory_;
  test::Process process_;
  std::vector<pid_t> pids_;
};

}  // namespace rtev::bench
