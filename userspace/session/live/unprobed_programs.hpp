// SPDX-License-Identifier: MIT
// Programs without a ring that could not be probed, with the reasons: for the end of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace rtev {

/// Memory is bounded: beyond max_remembered programs processes are only counted.
class UnprobedPrograms {
 public:
  static constexpr std::size_t max_named = 8, max_remembered = 256;

  /// One more process. `exe` is its program as the process sees it: any bytes.
  void add(std::int32_t pid, std::string_view exe, std::string_view why);

  std::uint64_t processes() const { return processes_; }
  /// For people: some lines that name each program with a process of it and the reason, and a hint. Empty if there
  /// are none.
  std::string text() const;

 private:
  struct Program {
    std::int32_t pid;  ///< of the first of its processes
    std::size_t order;
    std::uint64_t processes = 0;
  };
  using Name = std::pair<std::string, std::string>;  ///< path and reason

  std::map<Name, Program> programs_;
  std::uint64_t processes_ = 0;
  std::uint64_t nameless_ = 0;  ///< of the processes, those whose program is not remembered
};

}  // namespace rtev
