// SPDX-License-Identifier: MIT
// The program of tests/variety in all its builds, and what to expect of each.
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
  const char* kind;       ///< name of its file, as in tests/variety/build
  const char* what;       ///< row of docs/tested.md
  bool named = true;      ///< whether symbols show the version
  bool allocs = false;    ///< whether its runtime counts allocations by size
  bool is_mapped = true;  ///< whether the domain of a thread can be found
};

struct Variety {
  const char* ocaml;  ///< "5.1"
  Build build;

  std::filesystem::path program() const;
  /// OCaml's own reader, of the same version.
  std::filesystem::path reader() const;
};

std::ostream& operator<<(std::ostream& out, const Variety& variety);

/// All builds possible with the installed versions.
std::vector<Variety> all_varieties();

/// Compares what the tracer delivered with the preserved ring, with the run's own count, and with the threads that it
/// wrote to its rings.
void expect_whole(const Trace& trace, const Variety& variety, const std::filesystem::path& directory, pid_t pid,
                  const std::string& out);

}  // namespace rtev::test
