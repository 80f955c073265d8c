// SPDX-License-Identifier: MIT
#include "formats/fxt/stack_writer.hpp"

#include <algorithm>
#include <ranges>

#include "formats/fxt/metadata_writer.hpp"
#include "stream/recording_layout.hpp"

namespace rtev::record {
namespace {

bool is_set(const std::vector<bool>& flags, std::size_t index) {
  return index < flags.size() && flags[index];
}

void set(std::vector<bool>& flags, std::size_t index) {
  if (index >= flags.size()) flags.resize(std::max(index + 1, 2 * flags.size()));
  flags[index] = true;
}

}  // namespace

void StackWriter::write(StackIndex stack, const StackTable& stacks) {
  if (stack == 0 || is_set(stacks_, stack)) return;
  if (stacks.is_reserved(stack)) {
    set(stacks_, stack);
    waiting_.push_back(stack);
    return;
  }
  path_.clear();
  for (StackIndex one = stack; one != 0 && !is_set(stacks_, one) && path_.size() < StackTable::max_depth;
       one = stacks.caller_of(one))
    path_.push_back(one);
  // Callers first.
  for (const StackIndex one : path_ | std::views::reverse) {
    set(stacks_, one);
    write_frame(stacks.frame_of(one), stacks);
    Metadata(writer_, metadata_stack)
        .add("caller", stacks.caller_of(one))
        .add("frame", stacks.frame_of(one))
        .write(one);
  }
}

void StackWriter::write_frame(FrameIndex index, const StackTable& stacks) {
  if (index == 0 || is_set(frames_, index)) return;
  set(frames_, index);
  Metadata metadata(writer_, metadata_frame);
  frame_fields(stacks.frame(index), metadata);
  metadata.write(index);
}

void StackWriter::finish(const StackTable& stacks) {
  for (const StackIndex stack : waiting_) {
    if (stacks.is_reserved(stack)) continue;  // it stays unknown
    stacks_[stack] = false;
    write(stack, stacks);
  }
  waiting_.clear();
}

}  // namespace rtev::record
