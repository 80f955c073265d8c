// SPDX-License-Identifier: MIT
// The report of `rtev-bpf diff` as data, as text and as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/diff/recorded_program.hpp"

namespace rtev {

/// What a figure says of a program.
enum class DiffRole : std::uint8_t {
  symptom,  ///< what the program or its users suffer from: pauses, time in the GC, memory, time of spans
  cause,    ///< what may be behind it: what the program, its settings and the host do
  detail,   ///< where it is: phases, kinds of pauses, functions
};
std::string_view to_string(DiffRole role);

enum class DiffUnit : std::uint8_t { ns, share, per_second, bytes, bytes_per_second, number };
std::string_view to_string(DiffUnit unit);

/// Of B, compared with A.
enum class DiffVerdict : std::uint8_t {
  same,  ///< no significant change
  better,
  worse,
  more,  ///< significant, and neither better nor worse
  less,
  too_few,  ///< too few values to tell
  small,    ///< significant, but smaller than what is reported
};
std::string_view to_string(DiffVerdict verdict);

struct DiffFigure {
  std::string id{};    ///< for programs
  std::string name{};  ///< for people; may hold names that a program made: escape it
  DiffRole role = DiffRole::detail;
  DiffUnit unit = DiffUnit::number;
  double a = 0, b = 0;
  DiffVerdict verdict = DiffVerdict::same;
  std::optional<double> p{};  ///< adjusted for the number of figures; nothing if it was not tested

  bool changed() const {
    return verdict != DiffVerdict::same && verdict != DiffVerdict::too_few && verdict != DiffVerdict::small;
  }
  /// b / a; nothing if a is 0.
  std::optional<double> ratio() const { return a > 0 ? std::optional(b / a) : std::nullopt; }
  /// How large the change is, whichever its direction: the logarithm of the ratio, at most that of 1000.
  double size() const;
};

/// What is known without a test: a parameter or a version that differs.
struct DiffSetting {
  std::string id{}, name{}, a{}, b{};  ///< escape the values
};

/// A recording, or what is in it of a program.
struct DiffSide {
  std::uint64_t processes = 0;
  std::uint64_t running_ns = 0;  ///< at least one process ran
  LostWords lost{};
  std::uint64_t longest_pause_ns = 0;
  double lossy_share = 0;  ///< of its slices: those with lost events, which are not compared
  std::size_t slices = 0;  ///< that are compared
};

struct DiffProgram {
  std::string name_a{}, name_b{};  ///< differ if there was one program in each; escape them
  DiffSide a{}, b{};
  std::uint64_t slice_ns = 0;
  std::string why_not{};  ///< why nothing is compared; empty: it is
  std::vector<DiffSetting> settings{};
  std::vector<DiffFigure>
      figures{};  ///< those that changed first: symptoms, causes, details, each in order of importance
  bool lacks_room = false;
  /// Its threads waited longer for a CPU, and neither its domains nor its own CPU time say why: other load of the host.
  bool has_other_load = false;

  /// Whether the change can come from that: such a figure is no regression.
  bool is_of_other_load(const DiffFigure& figure) const;
  /// "worse", "better", "mixed", "changed" (neither better nor worse), "same" or "not_compared". By the symptoms; by
  /// the causes if no symptom changed.
  std::string_view verdict() const;
  std::size_t count(DiffVerdict verdict) const;
};

struct DiffRun {
  std::string file{};  ///< escape it
  std::string host{}, kernel{}, version{};
  std::uint64_t run_ns = 0, run_realtime_ns = 0, start_ns = 0, end_ns = 0;
  bool truncated = false;  ///< its end is missing: totals of what was lost are unknown
  NotRecorded not_recorded{};
  bool scheduler_seen = false;
  std::uint64_t scheduler_dropped = 0, samples_dropped = 0, rings_missed = 0, processes_left_out = 0;
};

struct DiffReport {
  std::string version{};  ///< of rtev-bpf that compares
  DiffRun a{}, b{};
  double min_change = 0;
  std::vector<DiffProgram> programs{};              ///< those that are worse first
  std::vector<std::string> only_a{}, only_b{};      ///< names; escape them
  std::vector<std::string> off_in_a{}, off_in_b{};  ///< of these: those that ran in A or B, too, with events off
  bool full = false;

  /// Why it must be taken for a regression; empty if there is none.
  std::string regression() const;
};

struct DiffOptions {
  double min_change = 0.05;  ///< least change of a figure that is reported; of percentiles and maxima several times it
  bool full = false;
};

/// Compares two recordings.
DiffReport compare(const RecordedRun& a, const RecordedRun& b, const DiffOptions& options);

/// For people: on one screen unless report.full.
std::string diff_text(const DiffReport& report);
/// One JSON object, schema 1, in one line, with its end. docs/json.md documents the schema.
std::string diff_json(const DiffReport& report);

/// "310µs", "4.1%", "12.1/s".
std::string value_text(DiffUnit unit, double value);
/// "7.1 times", "+34%", "new", "gone".
std::string change_text(const DiffFigure& figure);

}  // namespace rtev
