// SPDX-License-Identifier: MIT
// Writes the stacks and frames that samples refer to, each once.
#pragma once

#include <cstdint>
#include <vector>

#include "rtev/fxt_writer.hpp"
#include "stream/stacks.hpp"

namespace rtev::record {

class StackWriter {
 public:
  explicit StackWriter(FxtWriter& writer) : writer_(writer) {}

  /// Before the sample. A stack that is not known yet is written by finish().
  void write(StackIndex stack, const StackTable& stacks);
  void finish(const StackTable& stacks);

 private:
  void write_frame(FrameIndex index, const StackTable& stacks);

  FxtWriter& writer_;
  std::vector<bool> stacks_, frames_;  ///< those that are written
  std::vector<StackIndex> waiting_;    ///< those that are not known yet
  std::vector<StackIndex> path_;       ///< of the stack in hand
};

}  // namespace rtev::record
