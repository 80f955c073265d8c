// SPDX-License-Identifier: MIT
// Rings that are read without tracing: ring files, and the ring of a running process.
#pragma once

#include <string>

#include "rtev/error.hpp"
#include "rtev/ring_reader.hpp"
#include "stream/registry.hpp"

namespace rtev::cli {

/// True for a target that is a process id and not the name of a file.
bool names_a_process(const std::string& target);

/// The hint where a target cannot be read.
inline constexpr const char* readable_targets_hint =
    "give a recording, a ring file PID.events of an OCaml 5 program, or the id of a process";

/// A ring and its process.
struct OpenRing {
  ProcessInfo process;
  RingReader ring;
};

/// Opens the ring of a file or a process, and finds out how to name its events: as `ocaml_version` does, if not empty.
Result<OpenRing> open_ring(const std::string& target, const std::string& ocaml_version);

}  // namespace rtev::cli
