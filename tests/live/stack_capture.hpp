// SPDX-License-Identifier: MIT
// Copies stacks of another process's threads with ptrace(2): what unwinding gets from BPF in the tracer.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unwind/address_space.hpp"
#include "unwind/stack_copy.hpp"

namespace rtev::test {

/// A copied stack with the memory that it refers to.
struct CapturedStack {
  StackCopy stack;
  std::deque<std::vector<std::byte>> memory;
  std::vector<MemoryCopy> copies;
};

/// Stops threads of a process for a moment, one at a time. Failures throw std::runtime_error.
class StackCapture {
 public:
  explicit StackCapture(pid_t pid);
  StackCapture(const StackCapture&) = delete;
  StackCapture& operator=(const StackCapture&) = delete;
  ~StackCapture();

  /// With the tables of all that is mapped.
  const AddressSpace& space() const { return space_; }
  /// The threads that there are now.
  std::vector<pid_t> threads() const;
  /// The C stack of a thread from its stack pointer on, and the OCaml stacks of its fibers as a whole.
  std::unique_ptr<CapturedStack> capture(pid_t thread);

 private:
  void copy(CapturedStack& into, std::uint64_t begin, std::uint64_t end) const;
  std::optional<std::uint64_t> word(std::uint64_t address) const;
  bool is_runtime_code(std::uint64_t address) const;
  void copy_fibers(CapturedStack& into, std::uint64_t stack_info) const;

  pid_t pid_;
  std::int64_t caml_state_tls_ = 0;
  AddressSpace space_;
  std::vector<pid_t> seized_;
};

}  // namespace rtev::test
