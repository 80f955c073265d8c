// SPDX-License-Identifier: MIT
// What discovery reports about processes to the rest of the tracer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rtev/ring_reader.hpp"
#include "stream/records.hpp"

namespace rtev {

/// The end of a process image. Its rings are not written to any more.
struct ImageEnd {
  ProcessIndex process;
  std::vector<std::uint32_t> slots;  ///< of its rings
  std::uint64_t announced_ns;        ///< when the last of its rings was announced, or found
  std::uint64_t time_ns;
  bool by_exec;  ///< the process continues with another image
};

/// Receives the life of process images. Each image begins once (an action found, exec or fork), and then ends at most
/// once (an action exit, followed by on_image_end). Times are ns of CLOCK_MONOTONIC. Called on the thread that drives
/// Discovery.
class ProcessEvents {
 public:
  virtual ~ProcessEvents() = default;
  virtual void on_process(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) = 0;
  /// A ring was opened. The registry keeps it as well, to resolve names of user events.
  virtual void on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) = 0;
  virtual void on_image_end(const ImageEnd& end) = 0;
};

}  // namespace rtev
