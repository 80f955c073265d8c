// SPDX-License-Identifier: MIT
// What a ring holds now, in order of time over its domains: for ring files, and for a look at a live ring.
#pragma once

#include <string>

#include "rtev/error.hpp"
#include "rtev/ring_reader.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct SnapshotOptions {
  ProcessInfo process;  ///< whose ring it is; family_source assumed: find out from the ring
  std::vector<std::string> command_line;
};

/// Gives the sink all that the ring holds now. Memory is bounded, whatever the size of the ring: the domain that is
/// furthest behind is read next.
RunSummary dump_snapshot(RingReader ring, const SnapshotOptions& options, Sink& sink, Registry& registry);

/// The decode family, if the content of the ring determines it. Reads the ring once.
std::optional<Family> guess_family(RingReader& ring);

}  // namespace rtev
