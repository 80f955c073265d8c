// SPDX-License-Identifier: MIT
// The OCaml processes of the host at one moment. Needs no BPF.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "helper/process_queries.hpp"
#include "inspect/inspector.hpp"
#include "processes/discovery.hpp"
#include "session/live/ring_poller.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// What /proc says of a process.
struct ProcessUse {
  std::optional<double> cpu_share{};  ///< of one CPU while its rings were read
  std::uint64_t memory_bytes = 0;     ///< in RAM; 0: unknown
  std::string arguments{};            ///< see ProcessView::arguments
};

/// Finds processes once and reads their rings for a moment, to measure how busy they are. One thread.
class ProcessLister : private ProcessEvents, private NoKernelControl {
 public:
  using Consumer = std::function<void(const Batch&)>;
  /// `helper` must outlive the object. `consume` gets the events of each ring in order; nothing orders those of several
  /// rings.
  ProcessLister(const helper::HelperProcess& helper, ProcessFilter filter, std::size_t ring_descriptors,
                Consumer consume);

  /// Returns when all processes are found and their rings were read for this time.
  void run(std::chrono::nanoseconds sample);

  /// What was found, with the words that each process wrote meanwhile.
  const Registry& registry() const { return registry_; }
  /// For how long rings were read.
  double seconds() const { return seconds_; }
  ProcessUse use_of(ProcessIndex process) const;

 private:
  /// Of the process at the beginning and at the end.
  struct Use {
    std::optional<ProcessStat> before{}, after{};
    std::string arguments{};
  };

  void wait_for_answers(std::uint64_t deadline_ns);
  void ask_for_use(std::optional<ProcessStat> Use::* when);
  void note_ends();
  void track(std::int32_t pid, const rtev_tracked& tracked) override;
  void on_process(std::uint64_t, ProcessAction, const ProcessRecord&) override {}
  void on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) override;
  void on_image_end(const ImageEnd&) override {}

  TimedTasks tasks_;
  Registry registry_;
  helper::HelperQueries queries_;
  ProcessTable processes_;
  BinaryCache cache_;
  Inspector inspector_;
  RingPoller rings_;
  Discovery discovery_;
  std::map<ProcessIndex, Use> uses_;
  double seconds_ = 1;
};

}  // namespace rtev
