// SPDX-License-Identifier: MIT
// Writes switches and wakeups. The fields of a thread that rarely change are written once, as metadata.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/recent_entries.hpp"
#include "rtev/fxt_writer.hpp"
#include "stream/recording_layout.hpp"

namespace rtev::record {

/// Memory is bounded: at most max_threads are known at a time.
class SchedWriter {
 public:
  explicit SchedWriter(FxtWriter& writer)
      : writer_(writer), extra_(writer.intern("rtev")), flags_(writer.intern("flags")), drawn_(writer.intern(drawn)) {}

  /// False if it does not fit into a scheduling record; then nothing is written.
  bool write(const Event& event, const SchedSwitch& change);
  bool write(const Event& event, const Wakeup& wakeup);
  /// For viewers only: a thread has left its CPU by this time.
  void left_cpu(std::uint64_t time, std::uint32_t cpu, std::int32_t tid);

 private:
  /// The fields of a thread that rarely change.
  struct ThreadFields {
    std::int32_t pid;
    std::int32_t domain;
    ThreadRole role;
    bool tracked;
    std::array<std::uint64_t, 2> comm;  ///< the bytes, compared as two numbers

    bool operator==(const ThreadFields& other) const {
      return pid == other.pid && domain == other.domain && role == other.role && tracked == other.tracked &&
             comm[0] == other.comm[0] && comm[1] == other.comm[1];
    }
  };
  struct Idle {
    ThreadFields fields;
    std::int16_t priority;

    bool operator==(const Idle&) const = default;
  };

  static ThreadFields fields_of(const Thread& thread);
  bool define(const Thread& thread);
  bool define(const Thread& one, const Thread& other);
  std::uint32_t define_idle(const Thread& thread);
  std::uint32_t idle_on(std::uint32_t cpu, const Thread& thread);
  void finish(fxt::Arguments& arguments, const SchedExtra& extra, const Event& event);

  FxtWriter& writer_;
  fxt::StringRef extra_, flags_, drawn_;                    ///< names of arguments
  std::unordered_map<std::int32_t, ThreadFields> threads_;  ///< by tid
  RecentEntries<ThreadFields> recent_;
  std::vector<Idle> idle_;  ///< by number
  std::uint32_t next_idle_ = 0;
  std::vector<std::uint32_t> idle_of_cpu_;  ///< 1 + number, as of the last switch
};

}  // namespace rtev::record
