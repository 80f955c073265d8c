// SPDX-License-Identifier: MIT
// Finds the rings of a command by their directory, and those of chosen processes by their mappings.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "helper/process_queries.hpp"
#include "inspect/process_view.hpp"
#include "inspect/procfs.hpp"
#include "session/rootless/directory_watch.hpp"

namespace rtev {

/// A command whose rings are in a directory.
struct FollowedCommand {
  std::int32_t pid = 0;
  std::string name{};        ///< of the program
  std::string directory{};   ///< of its rings
  bool is_private = false;   ///< nobody else's rings are there
  bool keeps_rings = false;  ///< files stay when programs end: they are removed when they are read
};

/// A ring, or several, that a process may have.
struct FoundRings {
  static constexpr std::uint64_t quick_tries = 100;

  std::int32_t pid;
  std::uint64_t found_ns;
  bool is_new;                        ///< began while the session ran
  std::vector<OpenedRing> rings;      ///< empty: the process has none so far
  Image at_first{};                   ///< what the process ran when the ring was found, as far as that is known
  std::optional<ProcessView> view{};  ///< of the process, once known
  std::uint64_t tries = 0;            ///< to open it: its header may not be valid yet

  /// False for one whose program may have stopped while it made it.
  bool is_soon_ready() const { return tries < quick_tries; }
};

/// One thread.
class RingFinder {
 public:
  /// True if this file is being read for this process already.
  using IsRead = std::function<bool(const OpenedRing& ring, std::int32_t pid)>;
  /// Without a command, the processes are those of `pids`. `queries` must outlive the object.
  RingFinder(ProcessQueries& queries, const std::optional<FollowedCommand>& command,
             const std::vector<std::int32_t>& pids, IsRead is_read);

  /// Looks for new rings. `now`: also where it is not time yet.
  void look(std::uint64_t now_ns, bool now);
  /// The process runs another program, which may have a ring.
  void look_again(std::int32_t pid, std::uint64_t now_ns);
  /// Rings that were found. Whoever opens them removes those that are done with.
  std::vector<FoundRings>& found() { return found_; }
  const std::vector<FoundRings>& found() const { return found_; }
  bool has_found(std::int32_t pid) const;
  /// Since when rings may be written that are not open yet.
  std::optional<std::uint64_t> unopened_since() const;
  /// True if each of the chosen processes that runs was looked at.
  bool has_looked_at_all() const;
  /// Removes the file of an ended process.
  void remove(std::int32_t pid, const RingFileId& file) const { directory_->remove(pid, file); }

  /// Readable when there is something for look() to do; -1 if only time decides.
  int event_fd() const { return directory_ ? directory_->event_fd() : -1; }
  /// When there is something to do for look(), or with what was found.
  std::optional<std::uint64_t> next_look_ns(std::uint64_t now_ns) const;

 private:
  /// A process of -p.
  struct Chosen {
    std::uint64_t next_look_ns = 0;
    bool is_asked = false;
    bool was_looked_at = false;
  };
  void add(std::int32_t pid);
  void take_look(std::int32_t pid, ProcessView view);

  ProcessQueries& queries_;
  IsRead is_read_;
  Procfs procfs_;
  std::optional<DirectoryWatch> directory_;
  std::uint64_t next_listing_ns_ = 0;
  std::map<std::int32_t, Chosen> chosen_;
  std::vector<FoundRings> found_;
};

}  // namespace rtev
