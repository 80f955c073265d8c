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
#include <unordered_map>

#include "helper/process_queries.hpp"
#include "inspect/inspector.hpp"
#include "processes/discovery.hpp"
#include "session/live/ring_poller.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// How busy a process is, and what /proc says of it.
struct ProcessUse {
  double events_per_second = 0;
  std::optional<double> cpu_share{};  ///< of one CPU
  std::uint64_t memory_bytes = 0;     ///< in RAM; 0: unknown
  std::string arguments{};            ///< see ProcessView::arguments
};

/// Finds processes once, and reads their rings to measure how busy they are. One thread.
class ProcessLister : private ProcessEvents, private NoKernelControl {
 public:
  using Consumer = std::function<void(const Batch&)>;
  /// For this time rings are read, and CPU time is measured. Nothing: rates are those of the past, from the events that
  /// rings hold, and from the CPU time since the start of the process.
  using Sample = std::optional<std::chrono::nanoseconds>;
  /// `helper` must outlive the object. `consume` gets the events of each ring in order; nothing orders those of several
  /// rings.
  ProcessLister(const helper::HelperProcess& helper, ProcessFilter filter, std::size_t ring_descriptors, Sample sample,
                Consumer consume);
  ~ProcessLister() override;

  /// Returns when all processes are found and their rings were read.
  void run();

  /// What was found, with the words that were read of each process.
  const Registry& registry() const { return registry_; }
  /// For how long rings were read; 0 without a sample.
  double seconds() const { return seconds_; }
  ProcessUse use_of(ProcessIndex process) const;

 private:
  /// Of the process at the beginning, if there is a sample, and at the end.
  struct Use {
    std::optional<ProcessStat> before{}, after{};
    std::uint64_t after_ticks = 0;  ///< boot_ticks() at the end
    std::string arguments{};
    double events_per_second = 0;
  };
  /// Events that were read of a domain.
  struct Written {
    std::uint64_t since_ns, until_ns;
    std::uint64_t events = 0;
  };

  void count(const Batch& batch);
  void add_rates();
  std::optional<double> cpu_share_of(const Use& use) const;
  void read_for(std::chrono::nanoseconds sample);
  void wait() const;
  void wait_for_answers(std::uint64_t deadline_ns);
  void ask_for_use(std::optional<ProcessStat> Use::* when);
  void note_ends();
  void track(std::int32_t pid, const rtev_tracked& tracked) override;
  void on_process(std::uint64_t, ProcessAction, const ProcessRecord&) override {}
  void on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) override;
  void on_image_end(const ImageEnd&) override {}

  Sample sample_;
  TimedTasks tasks_;
  Registry registry_;
  helper::HelperQueries queries_;
  ProcessTable processes_;
  BinaryCache cache_;
  Inspector inspector_;
  RingPoller rings_;
  Discovery discovery_;
  std::map<ProcessIndex, Use> uses_;
  std::unordered_map<std::uint32_t, Written> written_;  ///< by Event::source
  std::uint64_t end_ns_ = 0;                            ///< when rings had been read
  double seconds_ = 0;
};

}  // namespace rtev
