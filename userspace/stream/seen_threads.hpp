// SPDX-License-Identifier: MIT
// Which domains and threads a stream has: for --domain and --tid that match none of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "stream/records.hpp"
#include "stream/sink.hpp"
#include "stream/thread_selection.hpp"

namespace rtev {

/// Passes a stream on, and remembers what it has of these kinds. One thread.
class SeenThreads final : public ForwardingSink {
 public:
  SeenThreads(Sink& sink, ThreadSelection wanted) : ForwardingSink(sink), wanted_(std::move(wanted)) {}

  void consume(const Batch& batch, const Registry& registry) override;

  /// Of the wanted ones those that no event was of.
  ThreadSelection unmatched() const;
  /// Domains that wrote events.
  const std::set<std::int32_t>& domains() const { return domains_; }
  /// Some threads of OCaml processes.
  const std::set<std::int32_t>& tids() const { return tids_; }

 private:
  static constexpr std::size_t max_tids = 100;

  void see(const Thread& thread);
  void see_tid(std::int32_t tid, bool is_listed);

  ThreadSelection wanted_;
  std::set<std::int32_t> domains_, tids_;
  std::set<std::int32_t> matched_tids_;
};

}  // namespace rtev
