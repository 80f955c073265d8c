// SPDX-License-Identifier: MIT
// Programs that could not be traced, with the reasons: for the end of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace rtev {

/// What the text for people says besides names and reasons.
struct LeftOutWording {
  std::string_view one, many;  ///< "1 process ...", "processes ..." after their number
  std::string_view hint;
};
inline constexpr LeftOutWording unprobed_wording{
    .one = "1 process without a ring could not be probed, so its events are missing",
    .many = "processes without a ring could not be probed, so their events are missing",
    .hint = "start such programs with a ring (OCAML_RUNTIME_EVENTS_START=1), or link them with symbols"};
inline constexpr LeftOutWording not_enabled_wording{
    .one = "the events of 1 process could not be switched on",
    .many = "processes could not have their events switched on",
    .hint = "rtev-bpf doctor -p PID lists what a program lacks; --ringless traces some of them by uprobes"};

/// Memory is bounded: beyond max_remembered programs processes are only counted.
class LeftOutPrograms {
 public:
  static constexpr std::size_t max_named = 8, max_remembered = 256;

  explicit LeftOutPrograms(const LeftOutWording& wording) : wording_(wording) {}

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

  LeftOutWording wording_;
  std::map<Name, Program> programs_;
  std::uint64_t processes_ = 0;
  std::uint64_t nameless_ = 0;  ///< of the processes, those whose program is not remembered
};

}  // namespace rtev
