// SPDX-License-Identifier: MIT
// Samples of time on a CPU as Perfetto's call stacks, of which viewers draw flame graphs.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/perfetto/perfetto_packets.hpp"
#include "stream/records.hpp"
#include "stream/stacks.hpp"

namespace rtev::perfetto {

/// They have a sequence of packets of their own. A stack that is not known yet is waited for. Memory is bounded, like
/// that of the StackTable.
class Samples {
 public:
  Samples(PacketWriter& packets, std::uint32_t sequence) : packets_(packets), sequence_(sequence) {}

  void add(std::uint64_t time, const Sample& sample, const StackTable& stacks);
  /// Writes those whose stacks are known by now; at the end all.
  void flush(const StackTable& stacks, bool is_end);

 private:
  struct Waiting {
    std::uint64_t time;
    Sample sample;
  };
  static constexpr std::size_t max_waiting = std::size_t{1} << 16;

  void write(std::uint64_t time, const Sample& sample, const StackTable& stacks);
  void add_stack(Message<InternedData>& data, StackIndex stack, const StackTable& stacks);
  void add_frame(Message<InternedData>& data, FrameIndex index, const StackFrame& frame);
  std::uint64_t mapping_of(Message<InternedData>& data, const StackFrame& frame);

  PacketWriter& packets_;
  std::uint32_t sequence_;
  std::vector<Waiting> waiting_;
  std::vector<bool> stacks_, frames_;  ///< those that are written
  /// Numbers of texts, by address: the StackTable keeps each text once.
  using Texts = std::unordered_map<const char*, std::uint64_t>;
  static std::uint64_t id_of(Message<InternedData>& data, InternedData table, Texts& known, std::string_view text);
  Texts functions_, files_, objects_, build_ids_;
  std::map<std::pair<const char*, const char*>, std::uint64_t> mappings_;  ///< by object and build-id
  std::vector<FrameIndex> path_;                                           ///< of the stack in hand, outermost first
  bool is_first_ = true;
};

}  // namespace rtev::perfetto
