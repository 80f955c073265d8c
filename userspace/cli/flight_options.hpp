// SPDX-License-Identifier: MIT
// Options of the flight recorder, which several subcommands share.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flight/condition.hpp"
#include "flight/flight_recorder.hpp"
#include "formats/output/free_space.hpp"

namespace CLI {
class App;
}

namespace rtev::cli {

struct FlightOptions {
  std::optional<std::chrono::nanoseconds> keep{};  ///< nothing: 30 s, if there are conditions
  std::uint64_t keep_bytes = std::uint64_t{64} << 20;
  std::vector<flight::Condition> conditions{};
  std::chrono::nanoseconds after{std::chrono::seconds{2}};
  std::string directory{};  ///< empty: see default_dump_directory()
  std::chrono::nanoseconds cooldown{std::chrono::seconds{30}};
  std::size_t max_dumps = 10;
  std::chrono::nanoseconds max_dumps_in{std::chrono::hours{1}};
  std::uint64_t max_disk_bytes = std::uint64_t{1} << 30;
  FreeSpaceFloor min_free{.share = 0.05};
  std::string program{};  ///< --exec

  bool is_on() const { return keep.has_value() || !conditions.empty(); }
  flight::RecorderOptions recorder() const;
};

/// All but --min-free: see add_min_free_option().
void add_flight_options(CLI::App& app, FlightOptions& options);

}  // namespace rtev::cli
