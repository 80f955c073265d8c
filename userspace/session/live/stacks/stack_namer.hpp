// SPDX-License-Identifier: MIT
// Names the frames of unwound stacks, and adds the stacks to a StackTable.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stream/stacks.hpp"
#include "unwind/address_space.hpp"
#include "unwind/kernel_symbols.hpp"
#include "unwind/unwinder.hpp"

namespace rtev {

/// One thread.
class StackNamer {
 public:
  /// `stacks` must outlive it.
  StackNamer(StackTable& stacks, KernelSymbols kernel_symbols)
      : stacks_(stacks), kernel_symbols_(std::move(kernel_symbols)) {}

  /// `kernel`: addresses of the kernel's code that the thread was in, innermost first.
  StackIndex add(const Unwound& unwound, const AddressSpace& space, std::span<const std::uint64_t> kernel);

 private:
  using Frames = std::vector<FrameIndex>;  ///< of one place: innermost first, those that are inlined and the function
  const Frames& frames_of(const UnwoundFrame& frame, const AddressSpace& space);
  FrameIndex kernel_frame(std::uint64_t address);

  static constexpr std::size_t max_places = std::size_t{1} << 17;

  StackTable& stacks_;
  KernelSymbols kernel_symbols_;
  std::unordered_map<std::uint64_t, Frames> places_;  ///< by tables, address, and whether it is a return address
  std::unordered_map<std::uint64_t, FrameIndex> kernel_frames_;  ///< by address
  std::vector<FrameIndex> path_;                                 ///< of the stack in hand, innermost first
  Frames scratch_;
};

}  // namespace rtev
