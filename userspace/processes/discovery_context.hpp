// SPDX-License-Identifier: MIT
// What discovery works with, what it reports to, and what it is asked to do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/change_check.hpp"
#include "base/clock.hpp"
#include "base/page_check.hpp"
#include "base/timed_tasks.hpp"
#include "bpf/records.h"
#include "helper/process_queries.hpp"
#include "inspect/inspector.hpp"
#include "processes/process_table.hpp"
#include "processes/rings/saved_rings.hpp"
#include "rtev/ring_reader.hpp"
#include "stream/records.hpp"
#include "stream/registry.hpp"

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

/// Tells the BPF programs which processes and rings there are, and gets what they saved of rings. `announced_ns` is the
/// time of the RTEV_RING record of a ring. Called on the thread that drives Discovery.
class KernelControl {
 public:
  virtual ~KernelControl() = default;
  /// Watches the threads of a process until its image ends.
  virtual void track(std::int32_t pid, const rtev_tracked& tracked) = 0;
  /// Stops that: the process is not to be traced, or ended before track().
  virtual void untrack(std::int32_t pid) = 0;
  /// The ring that the process announced at this time is open.
  virtual void ring_opened(std::int32_t pid, std::uint64_t announced_ns) = 0;
  /// A ring was opened that may never have been announced.
  virtual void ring_found(std::int32_t pid, const rtev_ring& ring) = 0;
  /// False if the process is known to have announced another ring after this time.
  virtual bool is_latest_ring(std::int32_t pid, std::uint64_t announced_ns) = 0;
  /// Rings announced so far: while this is the same, so are the answers of is_latest_ring().
  virtual std::uint64_t announcements() = 0;
  /// See ChangeCheck.
  virtual bool is_being_changed(int fd, FileUse use) = 0;
  /// See PageCheck.
  virtual void look_at_pages(std::span<PageRange> ranges) = 0;
  /// The saved copy of a ring that the process announced in [from_ns, to_ns], if there is one. Each copy is returned
  /// once.
  virtual std::optional<SavedRingFile> take_saved_ring(std::int32_t pid, std::uint64_t from_ns,
                                                       std::uint64_t to_ns) = 0;
};

/// For discovery without BPF.
class NoKernelControl : public KernelControl {
 public:
  void track(std::int32_t, const rtev_tracked&) override {}
  void untrack(std::int32_t) override {}
  void ring_opened(std::int32_t, std::uint64_t) override {}
  void ring_found(std::int32_t, const rtev_ring&) override {}
  bool is_latest_ring(std::int32_t, std::uint64_t) override { return true; }
  std::uint64_t announcements() override { return 0; }
  bool is_being_changed(int, FileUse) override { return false; }
  void look_at_pages(std::span<PageRange>) override {}
  std::optional<SavedRingFile> take_saved_ring(std::int32_t, std::uint64_t, std::uint64_t) override { return {}; }
};

struct DiscoveryOptions {
  ProcessFilter filter{};
  bool history = false;        ///< deliver what rings held before they were opened
  std::uint64_t since_ns = 0;  ///< rings created later are read from their beginning in any case
  bool even_gone = false;      ///< also processes that turn out to be OCaml programs only after their end
  std::size_t rings_memory = std::size_t{64} << 20;  ///< bytes that the state of all rings may take
  std::size_t ring_descriptors = 1 << 16;            ///< descriptors that all rings may hold
  bool services = false;                             ///< ask each process which service it belongs to
  std::string forced_version{};                      ///< decode with this version's table; empty: find out
};

/// All must outlive Discovery.
struct DiscoveryContext {
  ProcessQueries& queries;
  Registry& registry;
  ProcessTable& processes;
  BinaryCache& cache;
  Inspector& inspector;
  ProcessEvents& events;
  KernelControl& kernel;
  TimedTasks& tasks;  ///< of the loop that calls Discovery::tick()
  std::function<std::uint64_t()> clock = monotonic_ns;
};

}  // namespace rtev
