// SPDX-License-Identifier: MIT
#include "session/live/stacks/stack_namer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string>

#include "unwind/frame_names.hpp"

namespace rtev {
namespace {

/// Code of a known file is code also where it has no name.
FrameKind frame_kind(NamedFrame::Kind kind) {
  return kind == NamedFrame::Kind::ocaml ? FrameKind::ocaml : FrameKind::c;
}

/// The loop of OCaml's bytecode interpreter, whose frames are not on the C stack.
bool interprets_bytecode(const NamedFrame& frame) {
  return frame.function == "caml_interprete" || frame.function == "caml_bytecode_interpreter";
}

std::string hex(std::span<const std::uint8_t> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

FrameIndex StackNamer::kernel_frame(std::uint64_t address) {
  if (kernel_frames_.size() >= max_places) kernel_frames_.clear();
  const auto [known, is_new] = kernel_frames_.try_emplace(address);
  if (!is_new) return known->second;
  const KernelSymbols::Function function = kernel_symbols_.at(address);
  // Of one function there is one frame, wherever in it the thread was.
  known->second = stacks_.add_frame({.kind = FrameKind::kernel,
                                     .address = function.name.empty() ? address : function.begin,
                                     .function = function.name});
  return known->second;
}

const StackNamer::Frames& StackNamer::frames_of(const UnwoundFrame& frame, const AddressSpace& space) {
  const CodeMapping* const mapping = frame.mapping != AddressSpace::npos ? &space.mapping(frame.mapping) : nullptr;
  if (mapping == nullptr || !mapping->tables) {
    const std::uint64_t address = mapping != nullptr ? frame.pc - mapping->begin + mapping->file_offset : frame.pc;
    scratch_.assign({stacks_.add_frame({.kind = mapping != nullptr ? FrameKind::c : FrameKind::unknown,
                                        .address = address,
                                        .object = mapping != nullptr ? std::string_view(mapping->path) : ""})});
    return scratch_;
  }
  const ObjectTables& tables = *mapping->tables;
  if (places_.size() >= max_places) places_.clear();
  const std::uint64_t key =
      std::uint64_t{tables.id()} << 33 | std::uint64_t{frame.address} << 1 | (frame.is_return_address ? 1 : 0);
  const auto [known, is_new] = places_.try_emplace(key);
  if (!is_new) return known->second;
  const std::string build_id = hex(tables.build_id());
  for (const NamedFrame& named : name_frame(tables, frame.address, frame.is_return_address)) {
    if (interprets_bytecode(named)) known->second.push_back(stacks_.add_frame({.kind = FrameKind::bytecode}));
    known->second.push_back(stacks_.add_frame({.kind = frame_kind(named.kind),
                                               .inlined = named.is_inlined,
                                               .line = named.line,
                                               .address = tables.link_base() + named.address,
                                               .function = named.function,
                                               .file = named.file,
                                               .object = mapping->path,
                                               .build_id = build_id}));
  }
  return known->second;
}

StackIndex StackNamer::add(const Unwound& unwound, const AddressSpace& space, std::span<const std::uint64_t> kernel) {
  path_.clear();
  for (const std::uint64_t address : kernel) path_.push_back(kernel_frame(address));
  const auto add_end = [this](FrameKind kind) { path_.push_back(stacks_.add_frame({.kind = kind})); };
  for (const UnwoundFrame& frame : unwound.frames) {
    if (frame.follows_gap) add_end(FrameKind::cut);
    const Frames& frames = frames_of(frame, space);
    path_.insert(path_.end(), frames.begin(), frames.end());
  }
  switch (unwound.end) {
    case StackEnd::complete:
      break;
    case StackEnd::truncated:
      add_end(FrameKind::cut);
      break;
    case StackEnd::not_copied:
    case StackEnd::too_deep:
    case StackEnd::unknown:
      path_.push_back(0);
      break;
  }
  StackIndex stack = 0;
  for (const FrameIndex frame : path_ | std::views::reverse) stack = stacks_.add_stack(stack, frame);
  return stack;
}

}  // namespace rtev
