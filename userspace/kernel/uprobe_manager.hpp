// SPDX-License-Identifier: MIT
// Which binaries are probed, and for how long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file_links.hpp"
#include "base/mappings_check.hpp"
#include "base/unique_fd.hpp"
#include "bpf/records.h"
#include "kernel/uprobe_link.hpp"
#include "rtev/error.hpp"

namespace rtev::kernel {

/// What it takes to probe one binary.
struct ProbePlan {
  std::vector<ProbeSite> sites;
  rtev_ringless_binary ringless{};  ///< for the programs of --ringless, except for the round
  std::string why_not{};            ///< why there are no sites; without sites and reason there is nothing to probe
};

/// BPF programs that are attached to binaries. Thread-safe.
class UprobePrograms {
 public:
  virtual ~UprobePrograms() = default;
  /// Probes a binary, given by its open file, in all processes that run it, now and later. `round` counts the
  /// attachments of the binary from 1 on. An error if no site could be probed, or fewer than the programs need; with
  /// the code EINPROGRESS it is to be called again.
  virtual Result<AttachedUprobes> probe(int file, std::uint32_t binary_id, const ProbePlan& plan,
                                        std::uint32_t round) = 0;
  /// The binary is not probed any more.
  virtual void forget(std::uint32_t /*binary_id*/) {}
};

/// A binary that processes run.
struct ProbedBinary {
  std::uint32_t id = 0;
  std::uint32_t user = 0;  ///< whose process was inspected
  /// Whether a process runs it, as far as is known by now. Called on any thread.
  std::function<bool()> in_use = [] { return false; };
};

/// When a binary gets its probes.
enum class AttachPolicy : std::uint8_t {
  at_once,     ///< when it is added
  on_request,  ///< after request(); detach() and request() may alternate
};

/// Attaches the probes of binaries and detaches them. Probes stay for a minute after the last process of a binary
/// ended, since the next one may be short-lived; not for ever, since a probe keeps a deleted file on its disk. A
/// failure is remembered as long. Users can make as many binaries as they like, so the number of binaries is bounded,
/// by user and in all: for a new one the oldest that are not in use are detached and forgotten. add(), attach(),
/// detach(), detach_unused() and the destructor may wait for the kernel: do not call them on the thread that reads
/// rings. Thread-safe.
///
/// A file is left alone while the check of its mappings says that the kernel would wait: it is attached to later. Links
/// are given away to be closed; those of files whose mappings do not allow it then count like those of binaries.
class UprobeManager {
 public:
  /// How much there may be before room is made for another binary. What is in use is kept: the new one is refused then.
  struct Bound {
    std::size_t binaries;
    std::size_t descriptors;  ///< of open files and of links: a binary may need a link for each function
  };
  static constexpr Bound user_bound{.binaries = 128, .descriptors = 512};
  static constexpr Bound total_bound{.binaries = 512, .descriptors = 2048};

  /// Closes links, sooner or later. Returns those that it does not take now.
  using GiveLinks = std::function<std::vector<FileLinks>(std::vector<FileLinks> files)>;

  /// Without a check every file can be attached to at once. Without `give` links are closed at once.
  UprobeManager(UprobePrograms& programs, AttachPolicy policy, MappingsCheck check = {}, GiveLinks give = {})
      : programs_(programs), policy_(policy), check_(std::move(check)), give_(std::move(give)) {}
  UprobeManager(const UprobeManager&) = delete;
  UprobeManager& operator=(const UprobeManager&) = delete;
  ~UprobeManager();

  /// Adds a binary, given by its open file, unless it is known. Attaches if the policy says so or it was requested.
  /// False as attach().
  bool add(int file, ProbedBinary added, ProbePlan plan);
  /// Requests probes, for a binary that may be added later. True if attach() has something to do.
  bool request(std::uint32_t binary_id);
  /// Attaches if the binary is known, requested, not attached, and attaching has not failed. False if it
  /// cannot be done now: because of the file's mappings, or since its former links are still open. To be called again.
  bool attach(std::uint32_t binary_id);
  /// Detaches until the next request().
  void detach(std::uint32_t binary_id);
  /// Detaches and forgets binaries that have not been in use for a minute, and tries again to attach what could not be
  /// attached. `now_ns` is CLOCK_MONOTONIC.
  void detach_unused(const std::set<std::uint32_t>& in_use, std::uint64_t now_ns);

  /// Since when a binary is attached (CLOCK_MONOTONIC); nothing while it is not.
  std::optional<std::uint64_t> attached_since(std::uint32_t binary_id) const;
  /// Why attaching to a binary failed; nothing if it did not.
  std::optional<std::string> failure(std::uint32_t binary_id) const;

  /// Probes were attached or detached.
  struct Change {
    std::uint32_t binary;
    bool attached;
    std::uint64_t time_ns;  ///< all events after it are seen, or none
  };
  /// Changes since the last call, in order. Only with AttachPolicy::on_request.
  std::vector<Change> take_changes();

  struct Figures {
    std::size_t failed = 0;             ///< attempts so far, also for lack of room, and those that go on
    std::optional<Error> last_error{};  ///< of the last of them
    std::size_t skipped = 0;            ///< sites so far that cannot be probed, in binaries with others that can
    /// Binaries that the kernel takes up to a second each to detach, one after the other: it has no uprobe_multi.
    std::size_t slow_to_detach = 0;
  };
  Figures figures() const;

 private:
  struct Binary {
    ProbedBinary of{};
    std::uint64_t last_use = 0;  ///< number of the last add()
    std::shared_ptr<UniqueFd> file{};
    ProbePlan plan{};
    std::vector<UprobeLink> links{};
    bool requested = false;
    bool attaching = false;
    bool postponed = false;  ///< it could not be attached to when this was tried last
    std::optional<std::string> failure{};
    std::uint32_t round = 0;
    std::uint64_t attached_since_ns = 0;
    std::uint64_t unused_since_ns = 0;  ///< 0: in use
  };
  using Entries = std::map<std::uint32_t, Binary>;
  /// Links that are being closed.
  struct Detached {
    std::uint32_t binary;
    std::uint32_t user;
    std::size_t links;
    UniqueFd closing;   ///< a pipe that ends when they are closed
    bool late = false;  ///< the mappings of the file did not allow it at first
  };
  struct Given {
    std::uint32_t binary;
    FileLinks links;
  };
  void note_change(const Change& change);
  void take_links(std::uint32_t binary_id, Binary& binary);
  Entries::iterator forget(Entries::iterator entry, std::uint64_t now_ns);
  bool is_full(std::optional<std::uint32_t> user, const Bound& bound, std::uint32_t except) const;
  void forget_unused(std::optional<std::uint32_t> user, const Bound& bound, std::uint32_t except);
  bool make_room(const ProbedBinary& binary);
  bool is_detaching(std::uint32_t binary_id);
  void forget_closed();
  rtev_mappings mappings(const UniqueFd* file) const;
  void fail(Binary& binary, Error error);
  void give_links();

  UprobePrograms& programs_;
  AttachPolicy policy_;
  MappingsCheck check_;
  GiveLinks give_;
  mutable std::mutex mutex_;
  Entries binaries_;
  std::set<std::uint32_t> requested_;             ///< before they are added
  std::map<std::uint32_t, std::string> refused_;  ///< binaries for which there was no room, and why
  std::uint64_t last_use_ = 0;
  std::vector<Change> changes_;
  Figures figures_;  ///< except for slow_to_detach, and for what is postponed
  std::vector<Detached> detached_;
  std::vector<Given> to_give_;
};

}  // namespace rtev::kernel
