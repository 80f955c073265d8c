// SPDX-License-Identifier: MIT
// Rings that are read without tracing: preserved files, and what a live process's ring holds now.
#pragma once

#include "cli/options.hpp"
#include "rtev/error.hpp"
#include "rtev/ring_reader.hpp"
#include "stream/registry.hpp"

namespace rtev::cli {

/// True for a target that is a pid and no file.
bool names_a_process(const std::string& target);

/// The hint where a target cannot be read.
inline constexpr const char* what_can_be_read = "give a recording, a file PID.events of an OCaml 5 program, or its pid";

/// A ring, and whose it is.
struct OpenRing {
  ProcessInfo process;
  RingReader ring;
};

/// Opens options.target, a file or a pid, and finds out how its events are to be named.
Result<OpenRing> open_ring(const Options& options);

}  // namespace rtev::cli
