// SPDX-License-Identifier: MIT
// Which of the conditions that are met lead to a dump.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace rtev::flight {

/// Why a condition that was met led to no dump.
enum class Suppressed : std::uint8_t {
  not_armed,  ///< too little is in memory yet
  repeated,   ///< it was met shortly before: trouble that goes on
  cooldown,   ///< there was a dump for the same program
  max_dumps,  ///< there were enough dumps, or enough for its user
  ongoing,    ///< it has stayed true since it was counted last: not counted
};
inline constexpr std::size_t suppressed_count = 4;
/// "not-armed", "repeated", "cooldown", "max-dumps".
std::string_view to_string(Suppressed reason);

/// Whose condition is met. Programs choose their names, so one of another user is another one.
struct Program {
  std::uint32_t user = UINT32_MAX;  ///< ProcessInfo::user; UINT32_MAX: it belongs to no process
  std::string name{};
};

/// Users have equal shares of the dumps, at least one each, of which there may be as many again. Memory is bounded by
/// their number. One thread.
class TriggerLimits {
 public:
  struct Options {
    std::uint64_t cooldown_ns = 30'000'000'000;  ///< after a dump, for the same program
    /// A condition that was met counts again once it was not for so long.
    std::uint64_t rearm_ns = 10'000'000'000;
    std::size_t max_dumps = 10;  ///< in `period_ns`
    std::uint64_t period_ns = 3'600'000'000'000;
  };
  explicit TriggerLimits(const Options& options) : options_(options) {}

  /// The stream has so much in memory from then on.
  void arm_at(std::uint64_t time_ns) { armed_ns_ = time_ns; }
  /// A condition, by its index, is met for a program. Nothing if it leads to a dump, which is counted. `users`: how
  /// many users have programs now, with its own; called only if it matters.
  std::optional<Suppressed> check(std::size_t condition, const Program& program, std::uint64_t time_ns,
                                  const std::function<std::size_t()>& users);
  /// The same while a dump is made, which it may extend: nothing, `repeated` or `ongoing`.
  std::optional<Suppressed> note(std::size_t condition, const Program& program, std::uint64_t time_ns);

 private:
  static constexpr std::size_t max_programs = 1024;  ///< of a user

  struct Met {
    std::uint64_t last_ns = 0;
    std::optional<std::uint64_t> counted_ns{};  ///< when it was last counted as repeated
  };
  struct User {
    std::map<std::pair<std::size_t, std::string>, Met> met{};  ///< by condition and program
    std::map<std::string, std::uint64_t> dumped{};             ///< when last, by program
    std::deque<std::uint64_t> dumps{};                         ///< of the period
  };

  bool has_room(std::uint32_t user, std::uint64_t time_ns, const std::function<std::size_t()>& users);

  Options options_;
  std::uint64_t armed_ns_ = 0;
  std::map<std::uint32_t, User> users_;
};

}  // namespace rtev::flight
