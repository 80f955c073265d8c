// SPDX-License-Identifier: MIT
// Which processes are OCaml's, where their rings are, how they live and die.
//
// Subscribe first, scan second, be idempotent, rescan for ever: records from the kernel and the scan of /proc lead to
// the same ensure(), so neither a process that starts during the scan nor a record that was dropped is missed for good.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "bpf/records.h"
#include "inspect/inspector.hpp"
#include "inspect/procfs.hpp"
#include "processes/lifecycle_reader.hpp"
#include "processes/pending_rings.hpp"
#include "processes/ring_opener.hpp"
#include "processes/saved_ring.hpp"
#include "rtev/ring_reader.hpp"
#include "stream/registry.hpp"

namespace rtev {

struct DiscoveryOptions {
  std::vector<std::int32_t> pids;       ///< only these, if any
  std::vector<std::string> name_globs;  ///< only processes whose comm matches one, if any
  bool only_followed = false;           ///< only processes that the kernel side follows: no scan
  bool history = false;                 ///< hand out what rings held before they were opened
  std::uint64_t since_ns = 0;           ///< rings that began later are read from their beginning in any case
  bool even_gone = false;               ///< also processes that turn out to be OCaml's only after their end
  std::string forced_version;           ///< decode with this version's table; empty: find out
};

/// What discovery has others do. Calls come from the thread that drives discovery.
class DiscoveryListener {
 public:
  virtual ~DiscoveryListener() = default;
  /// Something happened to a process.
  virtual void on_process(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) = 0;
  /// A ring was opened. The registry keeps it as well, for the names of user events.
  virtual void on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) = 0;
  /// The ring that a process announced then is among those opened.
  virtual void on_announced(std::int32_t pid, std::uint64_t birth_ns) = 0;
  /// A ring that was opened may never have been announced.
  virtual void on_found(std::int32_t pid, const rtev_ring& ring) = 0;
  /// Whether the process, as far as is known, announced no other ring since then.
  virtual bool is_latest_ring(std::int32_t pid, std::uint64_t birth_ns) = 0;
  /// A process image ended; its rings will not be written any more. The last of them was announced, or found, at
  /// `birth_ns`. By exec the process goes on as another one.
  virtual void on_image_end(ProcessIndex process, const std::vector<std::uint32_t>& slots, std::uint64_t birth_ns,
                            std::uint64_t time_ns, bool by_exec) = 0;
  /// The kernel side should watch the threads of a process. It stops by itself when the image ends.
  virtual void on_track(std::int32_t pid, const rtev_tracked& tracked) = 0;
  /// It should not (any more): the process is not to be traced, or was gone before it was told to.
  virtual void on_untrack(std::int32_t pid) = 0;
  /// What was saved of a ring that the process announced at some time in [from_ns, to_ns] and that is gone since, or
  /// another program's; nothing if nothing was.
  virtual std::optional<DrainedFile> take_drained(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns) = 0;
};

class Discovery {
 public:
  Discovery(Procfs procfs, Registry& registry, BinaryCache& cache, Inspector& inspector, DiscoveryListener& listener,
            DiscoveryOptions options);

  /// Begins to look at all processes, to find what was missed and what has gone unnoticed.
  void begin_scan(std::uint64_t now_ns);
  /// Looks at some of them; false once all have had their turn.
  bool scan_some(std::uint64_t now_ns, std::size_t most);
  /// Takes what the lookout saw, one sighting after the other.
  void take(Sighting sighting);
  /// Goes on with processes whose binaries have been inspected, and with rings that were not ready yet.
  /// All records of what happened before `told_until_ns` have been taken.
  void tick(std::uint64_t now_ns, std::uint64_t told_until_ns);

  /// True while programs, or the shared runtimes they led to, are being inspected.
  bool is_inspecting() const;
  /// Events since then may still lack the facts to name them: a ring's program is being inspected.
  std::optional<std::uint64_t> unnamed_since(std::uint64_t now_ns) const;
  /// Since when rings may be written that are not open yet.
  std::optional<std::uint64_t> unopened_since() const { return births_.oldest_ns(); }
  /// When tick() has something to do again, as far as only time tells.
  std::optional<std::uint64_t> next_look_ns() const;
  /// True for a process that is part of the stream.
  bool traces(std::int32_t pid) const {
    const auto found = processes_.find(pid);
    return found != processes_.end() && found->second.index;
  }
  /// The image that runs under a pid, as far as is known: who did what was done under that number.
  struct Tenant {
    ProcessIndex index;
    std::uint64_t began_ns;  ///< what was done before was another's; 0: not known, for it was found running
    std::uint64_t since_ns;  ///< when it came into view: until what was told by then is taken, it may be known yet
  };
  /// Nothing if it is not part of the stream.
  std::optional<Tenant> tenant(std::int32_t pid) const;
  /// A process that runs without a ring, as far as is known.
  struct Ringless {
    ProcessIndex index;
    std::uint32_t binary;
    std::uint64_t since_ns;  ///< when it came into view
    bool newborn;            ///< which is when it began
    bool forked;             ///< by another of its program
  };
  /// Those of one binary.
  std::vector<Ringless> ringless(std::uint32_t binary_id) const;
  /// That of a pid, if it is one.
  std::optional<Ringless> ringless_process(std::int32_t pid) const;
  /// Binaries that have such processes.
  std::set<std::uint32_t> ringless_binaries() const;
  /// Rings that processes announced and that could never be read.
  std::uint64_t rings_missed() const { return births_.given_up(); }
  /// Of OCaml's programs, those that SIGABRT ended before they had a ring, as the runtime does where it cannot make
  /// one.
  std::uint64_t aborted_without_ring() const { return aborted_without_ring_; }
  /// More may be among them: their programs are being inspected.
  bool inspects_aborted() const { return !aborted_.empty(); }
  /// Adds to the facts of running images the most memory that they have had so far, for the end of the run; of so many
  /// as are ever listed.
  void note_memory();
  /// Binaries with living processes.
  std::set<std::uint32_t> binaries_in_use() const;

 private:
  /// A program needs a shared runtime, which the dynamic linker maps at some time after its exec.
  struct Loading {
    std::shared_ptr<const Binary> program;
    std::uint64_t due_ns;  ///< when to look again
    std::uint64_t wait_ns;
  };
  struct Process {
    std::int32_t pid = 0;
    std::uint64_t start_ticks = 0;
    ProcessAction origin = ProcessAction::found;
    std::int32_t peer = 0;
    std::uint64_t since_ns = 0;
    std::uint64_t exec_ns = 0;  ///< of a process that the scan found: the exec of its program, where it was told later
    /// The most pages the process had before this image, which its figure at the end includes; nothing: not known.
    std::optional<std::uint32_t> max_rss_before{};
    ProcessInfo facts{};                       ///< until the registry has them
    bool has_ring = false;                     ///< known to be OCaml's by its ring
    bool by_loader = false;                    ///< run by a dynamic loader, and its program not found yet
    bool library_tried = false;                ///< its shared runtime has been looked for
    std::optional<FileIdentity> exe{};         ///< the program it runs
    std::optional<FileIdentity> inspecting{};  ///< the file whose inspection it waits for
    std::optional<Loading> loading{};          ///< while what holds its runtime is not mapped yet
    std::optional<ProcessIndex> index{};       ///< once it is known to be OCaml's
    std::shared_ptr<const Binary> binary{};
    std::vector<std::uint32_t> slots{};
    std::vector<RingOpener::FileId> files{};  ///< its rings
    std::uint64_t birth_ns = 0;               ///< of the last of them: when it was announced or found
  };
  /// How a process came into view.
  struct Origin {
    ProcessAction action;
    std::uint64_t time_ns = 0;
    std::uint32_t generation = 0;
    bool has_ring = false;
    bool followed = false;
  };
  /// A process that was found gone, while the record of its exit may still be on its way.
  struct Vanished {
    std::int32_t pid;
    std::uint64_t start_ticks;
    std::uint64_t noticed_ns;
  };
  void look_at(std::int32_t pid, std::uint64_t now_ns);
  void on_exec(Sighting& sighting);
  void on_exit(const rtev_lifecycle& record);
  void on_fork(const rtev_lifecycle& record);
  void on_ring(Sighting& sighting);
  void on_probe(const rtev_lifecycle& record);

  static std::optional<Ringless> as_ringless(const Process& process);
  bool wanted(std::int32_t pid, const std::string& comm, bool followed) const;
  Process* find(std::int32_t pid);
  Process* ensure(std::int32_t pid, Image image, const Origin& origin);
  bool inspect(Process& process, Result<UniqueFd> file);
  bool resolve(Process& process, const std::shared_ptr<const Binary>& binary);
  bool find_runtime(Process& process, const std::shared_ptr<const Binary>& program);
  void look_for_libraries(std::uint64_t now_ns);
  void adopt(Process& process);
  void describe(Process& process);
  void track(const Process& process);
  bool is_alive(const Process& process) const;
  bool open_rings(Process& process, const std::vector<PinnedRing>& pins, std::uint64_t time_ns,
                  const RingOpener::Origin& origin);
  bool note_shared(Process& process, const std::vector<PinnedRing>& pins);
  static bool reads(const Process& process, const std::vector<PinnedRing>& pins);
  void watch_found(Process& process, const PinnedRing& pin, std::uint64_t time_ns);
  bool try_birth(Process& process, Births::Birth& birth);
  bool open_drained(Process& process, const Births::Birth& birth, std::uint64_t ended_ns, bool by_exec);
  bool open_last_ring(Process& process, const Births::Birth& birth, std::uint64_t ended_ns, bool by_exec);
  void force_version(ProcessInfo& facts) const;
  void find_program(Process& process, const FilePlace& place);
  void add_image_before(const Process& process, Births::Birth& birth, std::uint64_t ended_ns);
  void conclude(Process& process, std::uint64_t time_ns, bool by_exec);
  void end_image(Process& process, std::uint64_t time_ns, bool by_exec);
  void end(std::int32_t pid, std::uint64_t time_ns, std::int64_t status, std::uint32_t max_rss_pages = 0);
  void note_abort(const Process& process, std::int64_t status);
  void emit(const Process& process, std::uint64_t time_ns, ProcessAction action, std::int32_t peer = 0,
            std::int64_t detail = 0);
  void take_inspected();

  Procfs procfs_;
  Registry& registry_;
  BinaryCache& cache_;
  Inspector& inspector_;
  DiscoveryListener& listener_;
  DiscoveryOptions options_;
  RingOpener opener_;
  std::unordered_map<std::int32_t, Process> processes_;
  std::set<std::int32_t> loading_;  ///< whose runtimes are not mapped yet
  std::vector<Process> ghosts_;     ///< gone, but their events wait for the inspection of their binaries
  Births births_;
  std::vector<Vanished> vanished_;
  std::uint64_t next_look_at_vanished_ns_ = 0;
  std::vector<std::int32_t> to_scan_;
  /// Pids and start times of processes whose exit was told. The kernel tells of it while the process still has its
  /// memory, and on a busy host it may be a while until it has gone: the scan shall not find it again.
  std::unordered_map<std::int32_t, std::uint64_t> ended_;
  std::uint64_t aborted_without_ring_ = 0;
  std::vector<FileIdentity> aborted_;  ///< likewise, of programs that are being inspected
  std::uint64_t told_until_ns_ = 0;    ///< see tick()
  bool scanned_ = false;               ///< once; what a scan finds from then on is new
};

}  // namespace rtev
