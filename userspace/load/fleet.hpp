// SPDX-License-Identifier: MIT
// The parent of all processes of a load: starts, replaces and ends them, and collects their reports.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "load/load_options.hpp"
#include "load/plan.hpp"
#include "load/report.hpp"
#include "rtev/error.hpp"

namespace rtev::load {

/// For a process without other threads, after catch_stop_signals() and block_stop_signals(). run() may be called once.
class Fleet {
 public:
  struct Place {
    std::string directory;
    bool is_temporary = false;
  };
  /// `open_mask`: the signal mask that block_stop_signals() returned.
  Fleet(const LoadOptions& options, std::span<const Plan> plans, Place place, const sigset_t& open_mask)
      : options_(options), plans_(plans), place_(std::move(place)), open_mask_(open_mask) {}

  /// Runs the whole load and prints the report to stdout, also after an error. Returns the error of the first process
  /// that failed.
  Result<Totals> run();
  /// From the first event to the end of the last process.
  std::uint64_t duration_ns() const { return ended_ns_ - began_ns_; }

 private:
  struct Child {
    pid_t pid = -1;
    std::uint32_t number = 0;
    UniqueFd report;
    std::string received;
    bool is_ready = false;
  };

  Result<void> start(std::uint32_t number);
  /// Waits for children, stdin and signals, and handles them.
  void step();
  void receive(Child& child);
  /// For a child that has closed its pipe: it is about to end.
  void reap(const Child& child);
  void print(const ProcessReport& report);
  bool is_replaced() const;
  bool all_ready() const;
  void read_stdin();
  void open_gate();
  void end_all();
  void fail(Error error);

  const LoadOptions& options_;
  std::span<const Plan> plans_;
  Place place_;
  sigset_t open_mask_;
  std::vector<Child> children_;
  UniqueFd gate_in_, gate_out_;
  bool is_announced_ = false;  ///< "ready" was printed
  bool is_ending_ = false;
  std::uint64_t began_ns_ = 0, ended_ns_ = 0, end_ns_ = UINT64_MAX;
  Totals totals_;
  std::optional<Error> failure_;
};

}  // namespace rtev::load
