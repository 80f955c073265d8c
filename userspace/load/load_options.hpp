// SPDX-License-Identifier: MIT
// The command line of rtev-load.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/mix.hpp"
#include "load/plan.hpp"
#include "rtev/ring_writer.hpp"

namespace rtev::load {

struct LoadOptions {
  using Duration = std::chrono::nanoseconds;

  std::uint32_t processes = 1;
  std::uint32_t domains = 1;
  std::optional<std::uint64_t> rate = 1000;  ///< events per second of each domain; nothing: as fast as possible
  std::optional<std::uint64_t> events{};     ///< of each domain
  std::optional<Duration> duration{};
  std::optional<Duration> process_lifetime{};
  std::optional<Duration> domain_lifetime{};

  std::optional<Mix> mix{};
  std::uint64_t seed = 1;
  bool cached_clock = false;
  std::vector<std::string> names{};

  std::string directory{};  ///< empty: a temporary one
  bool preserve = false;
  std::uint32_t log2_words = 16;
  std::optional<std::uint32_t> rings{};
  RingWriter::Format format = RingWriter::Format::since_5_1;
  std::optional<Family> family{};

  bool wait = false;
  bool quiet = false;

  bool is_idle() const { return rate == 0; }

  /// The events of one domain, with all defaults filled in.
  PlanOptions plan(std::uint32_t domain) const;
  /// How each process creates its rings in a directory.
  RingWriter::Options writer(const std::string& in_directory) const;
};

/// The defaults, with those that the environment sets for OCaml programs.
LoadOptions options_from_environment();

/// Gives `app` the options of rtev-load, and its help.
void set_up_command_line(CLI::App& app, LoadOptions& options);

/// Throws CLI::ParseError if options contradict each other.
void check_options(const LoadOptions& options);

}  // namespace rtev::load
