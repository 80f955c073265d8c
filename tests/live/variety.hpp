// SPDX-License-Identifier: MIT
// The program of tests/variety in all the ways it is built, and what is to be expected of each.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "live/oracle.hpp"
#include "live/tracer.hpp"

namespace rtev::test {

/// One way to build a program.
struct Build {
  const char* kind;       ///< as tests/variety/build names its file
  const char* what;       ///< in words, for people
  bool named = true;      ///< its symbols tell the version
  bool allocs = false;    ///< its runtime counts allocations by size
  bool is_mapped = true;  ///< threads can be told which domain they run
};

struct Variety {
  const char* ocaml;  ///< "5.1"
  Build build;

  std::filesystem::path program() const;
  /// OCaml's own reader, of the same version.
  std::filesystem::path reader() const;
};

std::ostream& operator<<(std::ostream& out, const Variety& variety);

/// All that can be built with the versions at hand.
std::vector<Variety> all_varieties();

/// What the summary says of a process.
Json figures_of(const Trace& trace, pid_t pid);

/// What a run of the program says of itself: its user events.
std::size_t user_events_written(const std::string& out);

/// Compares what the tracer delivered of a run that left its ring behind with that ring, with the run's own count and
/// with what it wrote in its rings of its threads.
void expect_whole(const Trace& trace, const Variety& variety, const std::filesystem::path& directory, pid_t pid,
                  const std::string& out);

}  // namespace rtev::test
