// SPDX-License-Identifier: MIT
#include "stream/stacks.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace rtev {
namespace {

constexpr std::uint64_t key_of(StackIndex caller, FrameIndex frame) {
  return std::uint64_t{caller} << 32 | frame;
}

constexpr std::size_t combine(std::size_t hash, std::size_t more) {
  return (hash ^ more) * 0x9E3779B97F4A7C15;
}

}  // namespace

std::string_view to_string(FrameKind kind) {
  static constexpr std::array<std::string_view, 6> names{"unknown", "cut", "ocaml", "c", "kernel", "bytecode"};
  const auto index = static_cast<std::size_t>(kind);
  return index < names.size() ? names[index] : names.front();
}

bool is_glue(std::string_view function) {
  constexpr std::array<std::string_view, 6> glue{"caml_c_call",  "caml_c_call_stack_args",    "caml_start_program",
                                                 "caml_call_gc", "caml_alloc_small_dispatch", "caml_program"};
  return std::ranges::find(glue, function) != glue.end();
}

StackTable::StackTable() : frames_(1), stacks_(2) {
  stack_indices_.emplace(key_of(0, 0), unknown());
}

std::size_t StackTable::FrameHash::operator()(const StackFrame& frame) const {
  constexpr std::hash<std::string_view> text;
  std::size_t hash = combine(frame.address, std::size_t{frame.line} << 8 | static_cast<std::size_t>(frame.kind));
  hash = combine(hash, text(frame.function));
  hash = combine(hash, text(frame.file));
  return combine(hash, text(frame.object));
}

bool StackTable::keep(std::string_view& text) {
  text = text.substr(0, max_text);
  if (text.empty()) {
    text = {};
    return true;
  }
  // Not looked for first: almost all texts are known.
  const auto [kept, is_new] = texts_.emplace(text);
  if (is_new) text_bytes_ += text.size();
  text = *kept;
  return text_bytes_ <= max_text_bytes;
}

bool StackTable::keep_texts(StackFrame& frame) {
  if (text_bytes_ > max_text_bytes) return false;
  return keep(frame.function) && keep(frame.file) && keep(frame.object) && keep(frame.build_id);
}

FrameIndex StackTable::add_frame(const StackFrame& frame) {
  if (const auto known = frame_indices_.find(frame); known != frame_indices_.end()) return known->second;
  StackFrame kept = frame;
  if (frames_.size() >= max_frames || !keep_texts(kept)) return 0;
  const auto index = static_cast<FrameIndex>(frames_.size());
  frames_.push_back(kept);
  frame_indices_.emplace(kept, index);
  return index;
}

StackIndex StackTable::add_stack(StackIndex caller, FrameIndex frame) {
  const auto [known, is_new] = stack_indices_.try_emplace(key_of(caller, frame), unknown());
  if (!is_new) return known->second;
  if (stacks_.size() >= max_stacks) {
    stack_indices_.erase(known);
    return unknown();
  }
  known->second = static_cast<StackIndex>(stacks_.size());
  stacks_.push_back({.caller = caller, .frame = frame});
  return known->second;
}

StackIndex StackTable::reserve() {
  if (stacks_.size() >= max_stacks) return unknown();
  stacks_.push_back({.is_reserved = true});
  return static_cast<StackIndex>(stacks_.size() - 1);
}

void StackTable::set_reserved(StackIndex reserved, StackIndex same_as) {
  if (!is_reserved(reserved) || same_as >= stacks_.size()) return;
  stacks_[reserved] = stacks_[same_as];
}

const StackFrame& StackTable::innermost_ocaml(StackIndex stack) const {
  const StackFrame* found = nullptr;
  for_each_frame(stack, [&](FrameIndex, const StackFrame& frame) {
    if (found == nullptr && frame.kind == FrameKind::ocaml) found = &frame;
  });
  return found != nullptr ? *found : frame(frame_of(stack));
}

FrameKind StackTable::outermost(StackIndex stack) const {
  FrameKind outermost = FrameKind::unknown;
  for_each_frame(stack, [&](FrameIndex, const StackFrame& frame) { outermost = frame.kind; });
  return outermost;
}

bool StackTable::is_complete(StackIndex stack) const {
  const FrameKind kind = outermost(stack);
  return kind != FrameKind::unknown && kind != FrameKind::cut;
}

bool StackTable::restore_frame(FrameIndex index, const StackFrame& frame) {
  if (index == 0 || index >= max_frames) return false;
  StackFrame kept = frame;
  if (!keep_texts(kept)) return false;
  if (index >= frames_.size()) frames_.resize(index + std::size_t{1});
  frames_[index] = kept;
  return true;
}

bool StackTable::restore_stack(StackIndex index, StackIndex caller, FrameIndex frame) {
  if (index == 0 || index >= max_stacks || caller >= max_stacks || frame >= max_frames) return false;
  if (index >= stacks_.size()) stacks_.resize(index + std::size_t{1});
  stacks_[index] = {.caller = caller, .frame = frame};
  return true;
}

bool StackTable::restore_reserved(StackIndex index) {
  if (!restore_stack(index, 0, 0)) return false;
  stacks_[index].is_reserved = true;
  return true;
}

}  // namespace rtev
