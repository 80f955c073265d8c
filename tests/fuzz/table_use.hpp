// SPDX-License-Identifier: MIT
// Uses object tables as the tracer does, at places and on stacks that follow from the input.
#pragma once

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "fuzz/fuzzing.hpp"
#include "unwind/frame_names.hpp"
#include "unwind/unwinder.hpp"

namespace rtev::fuzz {

inline void use_tables(ObjectTables made, std::uint32_t seed) {
  constexpr std::uint64_t begin = 0x10000, size = 0x8000, stack_begin = 0x7f0000;
  constexpr std::size_t max_frames = 64;
  const auto tables = std::make_shared<const ObjectTables>(std::move(made));
  std::mt19937 random(seed);
  // Of a function, a call or the code in general, so that most look-ups find something.
  const auto place = [&]() -> std::uint32_t {
    const auto any = static_cast<std::uint32_t>(random() % 0x9000);
    if (random() % 2 == 0) return any;
    const auto call = tables->call_from(any);
    return call ? call->return_address : any;
  };
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t address = place();
    const CfiRule rule = tables->rule(tables->rule_number(address));
    for (const auto& saved : rule.saved) tables->expression(saved.value);
    const auto function = tables->function_at(address);
    check(function.end == 0 || tables->rule(tables->rule_number(function.begin)).saved.size() < 256, "a function");
    for (const bool is_return : {false, true}) {
      const auto frames = name_frame(*tables, address, is_return);
      check(!frames.empty() && frames.size() <= ObjectTables::max_inlined, "one name for a frame, or some");
    }
  }

  const AddressSpace space({{.begin = begin, .end = begin + size, .file_offset = 0x1000, .tables = tables}});
  Unwinder unwinder;
  Unwound unwound;
  for (int i = 0; i < 8; ++i) {
    std::vector<std::uint64_t> words(64);
    const auto word = [&]() -> std::uint64_t {
      return random() % 2 != 0 ? begin + random() % size : stack_begin + 8 * (random() % 64);
    };
    for (auto& each : words) each = word();
    const MemoryCopy copy{stack_begin, std::as_bytes(std::span{words})};
    StackCopy stack{.registers = {}, .copies = {&copy, 1}};
    for (auto& each : stack.registers) each = stack_begin + 8 * (random() % 64);
    const bool is_arm = tables->machine() == 183;
    stack.registers[is_arm ? 32 : 16] = begin + random() % size;
    unwinder.unwind(stack, space, max_frames, unwound);
    check(!unwound.frames.empty() && unwound.frames.size() <= max_frames, "as many frames as asked for");
    check(unwound.end != StackEnd::too_deep || unwound.frames.size() == max_frames, "too deep");
  }
}

}  // namespace rtev::fuzz
