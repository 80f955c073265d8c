// SPDX-License-Identifier: MIT
#include "formats/perfetto/perfetto_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string>

namespace rtev::perfetto {
namespace {

/// Numbers of what stands for functions without a name: above those of names.
constexpr std::uint64_t first_label = std::uint64_t{1} << 32;

/// True if it was not set before.
bool mark_new(std::vector<bool>& flags, std::size_t index) {
  if (index >= flags.size()) flags.resize(std::max(index + 1, 2 * flags.size()));
  if (flags[index]) return false;
  flags[index] = true;
  return true;
}

/// What viewers show instead of the name of a function.
std::string label_of(const StackFrame& frame) {
  switch (frame.kind) {
    case FrameKind::unknown:
    case FrameKind::cut:
    case FrameKind::bytecode:
      return fmt::format("[{}]", to_string(frame.kind));
    default:
      return fmt::format("{:#x}", frame.address);
  }
}

}  // namespace

void Samples::add(std::uint64_t time, const Sample& sample, const StackTable& stacks) {
  if (stacks.is_reserved(sample.stack) && waiting_.size() < max_waiting)
    waiting_.push_back({.time = time, .sample = sample});
  else
    write(time, sample, stacks);
}

void Samples::flush(const StackTable& stacks, bool is_end) {
  std::erase_if(waiting_, [&](const Waiting& one) {
    if (stacks.is_reserved(one.sample.stack) && !is_end) return false;
    write(one.time, one.sample, stacks);
    return true;
  });
}

void Samples::write(std::uint64_t time, const Sample& sample, const StackTable& stacks) {
  // Not known (yet): what is written of a stack stays.
  const StackIndex stack = stacks.is_reserved(sample.stack) ? StackTable::unknown() : sample.stack;
  packets_.add(time, [&](Packet& packet) {
    packet.add_number(TracePacket::sequence_id, sequence_);
    packet.add_number(TracePacket::sequence_flags, is_first_ ? state_cleared | needs_state : needs_state);
    is_first_ = false;
    {
      Message<InternedData> data{packet, TracePacket::interned_data};
      add_stack(data, stack, stacks);
    }
    Message<PerfSample> perf{packet, TracePacket::perf_sample};
    perf.add_number(PerfSample::cpu, sample.cpu);
    perf.add_number(PerfSample::pid, sample.pid);
    perf.add_number(PerfSample::tid, sample.tid);
    // 0 is no stack, in both tables.
    if (stack != 0) perf.add_number(PerfSample::callstack_iid, stack);
    const bool in_kernel = stacks.frame(stacks.frame_of(stack)).kind == FrameKind::kernel;
    perf.add_number(PerfSample::cpu_mode, in_kernel ? mode_kernel : mode_user);
  });
}

void Samples::add_stack(Message<InternedData>& data, StackIndex stack, const StackTable& stacks) {
  if (stack == 0 || !mark_new(stacks_, stack)) return;
  path_.clear();
  stacks.for_each_frame(stack, [&](FrameIndex index, const StackFrame& frame) {
    path_.push_back(index);
    if (mark_new(frames_, index)) add_frame(data, index, frame);
  });
  Message<Callstack> callstack{data, InternedData::callstacks};
  callstack.add_number(Callstack::iid, stack);
  for (const FrameIndex frame : path_ | std::views::reverse)
    callstack.add_number(Callstack::frame_ids, std::uint64_t{frame} + 1);
}

void Samples::add_frame(Message<InternedData>& data, FrameIndex index, const StackFrame& frame) {
  // What it refers to goes first: a message within another one must be complete before the next begins.
  std::uint64_t function = first_label + index;
  if (!frame.function.empty()) {
    function = id_of(data, InternedData::function_names, functions_, frame.function);
  } else {
    Message<InternedName> entry{data, InternedData::function_names};
    entry.add_number(InternedName::iid, function);
    add_text(entry, InternedName::name, label_of(frame));
  }
  const std::uint64_t file = frame.file.empty() ? 0 : id_of(data, InternedData::source_paths, files_, frame.file);
  const std::uint64_t mapping = frame.object.empty() ? 0 : mapping_of(data, frame);
  Message<Frame> entry{data, InternedData::frames};
  entry.add_number(Frame::iid, std::uint64_t{index} + 1);
  entry.add_number(Frame::function_name_id, function);
  if (mapping != 0) {
    entry.add_number(Frame::mapping_id, mapping);
    entry.add_number(Frame::rel_pc, frame.address);
  }
  if (file != 0) entry.add_number(Frame::source_path_iid, file);
  if (frame.line != 0) entry.add_number(Frame::line_number, frame.line);
}

/// The number of a text; it is written before its first use.
std::uint64_t Samples::id_of(Message<InternedData>& data, InternedData table, Texts& known, std::string_view text) {
  const auto [entry, is_new] = known.try_emplace(text.data(), known.size() + 1);
  if (is_new) {
    Message<InternedName> name{data, table};
    name.add_number(InternedName::iid, entry->second);
    add_text(name, InternedName::name, text);
  }
  return entry->second;
}

std::uint64_t Samples::mapping_of(Message<InternedData>& data, const StackFrame& frame) {
  const auto [known, is_new] =
      mappings_.try_emplace({frame.object.data(), frame.build_id.data()}, mappings_.size() + 1);
  if (!is_new) return known->second;
  const std::uint64_t path = id_of(data, InternedData::mapping_paths, objects_, frame.object);
  const std::uint64_t build_id =
      frame.build_id.empty() ? 0 : id_of(data, InternedData::build_ids, build_ids_, frame.build_id);
  Message<Mapping> mapping{data, InternedData::mappings};
  mapping.add_number(Mapping::iid, known->second);
  if (build_id != 0) mapping.add_number(Mapping::build_id, build_id);
  mapping.add_number(Mapping::path_string_ids, path);
  return known->second;
}

}  // namespace rtev::perfetto
