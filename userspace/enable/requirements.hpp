// SPDX-License-Identifier: MIT
// What a program needs to make its ring: the runtime aborts it if it cannot.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "enable/ring_place.hpp"
#include "enable/target.hpp"

namespace rtev::enable {

/// Something that was looked at before anything is written.
struct Requirement {
  EnableResult result{};  ///< of the attempt if it is not met
  std::string what{};     ///< "directory of the ring"
  bool is_met = false;
  std::string found{};  ///< may hold any bytes that the process chose
  std::string hint{};   ///< what the user can do; empty if it is met
};

/// What one can do about a filter of system calls or a security profile, and about a limit of open files.
inline constexpr const char* confined_hint = "if its rules allow it to make files there, use --allow-confined";
inline constexpr const char* files_hint = "raise its limit: prlimit --nofile";

/// Requirement::what of the one that no file has the ring's name.
inline constexpr const char* free_name = "name of the ring";

struct Requirements {
  std::vector<Requirement> list{};
  /// Where the ring is to be made: an absolute path, as the runtime has it.
  RingPath directory{};
  bool is_led = false;  ///< the runtime goes there only if it is led there: see lead_to_directory()

  RingParts parts{};  ///< of its file

  /// The first one that is not met.
  const Requirement* missing() const;
};

/// What a program may be or use, at a risk.
struct Allowed {
  bool confined = false;  ///< under a filter of system calls or a security profile, which nobody can look into
  bool readable =
      false;  ///< a directory that others may read: see RingPath. OCAML_RUNTIME_EVENTS_DIR may always name one
};

/// Refuses rings of a size that the runtime cannot make. A program whose events are on writes beyond the end of their
/// file.
Checked<void> check_ring_size(const Target& target);

/// Looks at everything that the program needs, as the program: with its user, groups, root directory and limits. May
/// wait for as long as a file system does; the part that may wait for ever is done by a process of
/// its own, which is left behind then.
///
/// A program without OCAML_RUNTIME_EVENTS_DIR would make its ring, and its children theirs, in the directory that it
/// works in at that moment: it may go to one where another user has put a link of the ring's name, and would write to
/// what that leads to. So the runtime is led to the directory of a variable like HOME, and stays led: see
/// lead_to_directory().
/// `memory_left`: see kernel::GroupMemory::left(). `silent`: directories that did not answer; they are not looked at
/// again, and more are added.
Requirements check_requirements(const Target& target, const Allowed& allowed, std::optional<std::uint64_t> memory_left,
                                std::set<std::string>& silent);

/// Whether it may open the files that its ring takes, and some more. Part of check_requirements(), for right before its
/// events are started: others may make a program open files.
bool has_spare_files(const HeldProcess& process);

}  // namespace rtev::enable
