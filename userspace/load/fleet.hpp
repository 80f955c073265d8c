// SPDX-License-Identifier: MIT
// The parent of all processes of a load: starts and replaces them, ends them, gathers what they wrote.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "load/options.hpp"
#include "load/plan.hpp"
#include "load/report.hpp"
#include "rtev/error.hpp"

namespace rtev::load {

/// Runs once, in a process without other threads that catches stop signals and has them blocked.
class Fleet {
 public:
  struct Place {
    std::string directory;
    bool is_private = false;
  };
  /// `open_mask`: lets stop signals through.
  Fleet(const Options& options, std::span<const Plan> plans, Place place, const sigset_t& open_mask)
      : options_(options), plans_(plans), place_(std::move(place)), open_mask_(open_mask) {}

  /// The whole load. The report goes to stdout, also after an error, which is then that of the first process that
  /// failed.
  Result<Totals> run();
  /// From the start of the writing to the end of the last process.
  std::uint64_t duration_ns() const { return ended_ns_ - began_ns_; }

 private:
  struct Child {
    pid_t pid = -1;
    std::uint32_t number = 0;
    UniqueFd report;
    std::string told;
    bool is_ready = false;
  };

  Result<void> start(std::uint32_t number);
  /// Waits for children, the terminal and signals, and does what they ask for.
  void step();
  void hear(Child& child);
  /// The child has closed its pipe: it ends.
  void bury(const Child& child);
  void print(const ProcessReport& report);
  bool is_replaced() const;
  bool all_ready() const;
  void read_stdin();
  void open_gate();
  void end_all();
  void fail(Error error);

  const Options& options_;
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
