// SPDX-License-Identifier: MIT
// A made-up host with a few processes, for tests of the order in which discovery learns of things: a folder that looks
// like /proc, ring files, lifecycle records and a clock. What the processes do and when it is noticed are separate
// steps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/inspector.hpp"
#include "processes/discovery.hpp"
#include "session/live/ring_poller.hpp"
#include "support/immediate_queries.hpp"
#include "support/ring_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace rtev::test {

/// What BPF saves of rings: nothing, all, not what other threads write after the copy, or what is no ring.
enum class Saving : std::uint8_t { off, whole, incomplete, unusable };

struct FakeHostOptions {
  Saving saving = Saving::whole;
  bool same_paths = false;  ///< as in containers that share a directory: all processes use the same ring file
};

/// Steps of the host take a millisecond, and so do those of the tracer except for tick().
class FakeHost : private ProcessEvents, private KernelControl {
 public:
  static constexpr std::size_t ring_events = 3;

  explicit FakeHost(const FakeHostOptions& options = {});
  ~FakeHost() override;

  /// Steps in a row, each a letter and the number of its process (0 if there is none); blanks are ignored. Of the host:
  ///   A B C s  exec of an OCaml program of this name, or of a shell; creates the process if there is none
  ///   b        the process runs program B already, and the record of that exec is not written yet (B writes it)
  ///   f        process 0 forks this one
  ///   r        creates its ring, in the file that lies there if there is one, and writes events to it
  ///   u        removes the file of its ring, as the runtime does at exit(3)
  ///   x a      writes its exit record (a: aborted), and is still in /proc
  ///   .        is gone from /proc
  /// And of the tracer:
  ///   l L      looks up the first record that waits, all records
  ///   d        drops the newest record: it finds no room in the kernel's buffer
  ///   R        delivers the event that was looked up last again
  ///   t        takes what was looked up, and does what a session does in a tick
  ///   n        looks at all processes
  void play(std::string_view steps);
  /// Time passes, and all is read that waits.
  void settle();

  /// Looks up the first record that waits, on the lifecycle reader's thread in reality. False if there is none.
  bool look_up();
  /// Events that were looked up and not taken yet.
  std::deque<ResolvedRecord>& events() { return events_; }
  std::uint64_t now_ns() const { return now_ns_; }
  std::size_t records_waiting() const { return records_.size(); }

  /// An image that ran, whether or not the tracer knows.
  struct TrueImage {
    int process;
    std::uint64_t start_ticks;
    std::string program;
    std::size_t rings = 0;  ///< it created
  };
  /// An image that was reported.
  struct Image {
    std::int32_t pid;
    std::uint64_t start_ticks;
    std::string comm;
    std::vector<ProcessAction> actions;  ///< in order of time, as the timeline delivers them
    std::int64_t status = 0;             ///< of its exit
    std::vector<std::uint64_t> times;    ///< of the actions
    std::size_t ends = 0;                ///< calls of on_image_end()
    std::vector<std::uint16_t> ids{};    ///< of events that were delivered for it: the number of their true image
  };
  const std::vector<TrueImage>& true_images() const { return true_images_; }
  const std::map<ProcessIndex, Image>& images() const { return images_; }
  int number_of(const Image& image) const { return image.pid - first_pid; }
  /// "A: exec ring replaced 3; B1: …": program and process of each image, what was reported of it, and the number of
  /// its events. An exit is "exit", or "replaced" if it was by exec, or "unseen".
  std::string story() const;
  std::size_t rings_created() const { return rings_.size(); }
  /// Not those that a forked child continues to read after its parent has ended.
  std::size_t rings_opened() const { return rings_opened_; }
  /// As in the summary: could not be read, or not to the end.
  std::size_t rings_missed() const { return discovery_->rings_missed() + poller_.taken_over(); }
  /// Of these, how many a process is charged with.
  std::size_t rings_charged() const;
  /// Opened, and not known to be read to the end.
  std::size_t rings_unfinished() const { return incomplete_copies_ + poller_.taken_over(); }
  std::size_t events_delivered() const;
  bool has_unopened() const { return tasks_.next_due_ns().has_value(); }

 private:
  static constexpr std::int32_t first_pid = 4242;
  struct Record {
    rtev_lifecycle lifecycle;
    std::vector<std::byte> tail;
  };
  struct Ring {
    int process;
    std::uint64_t announced_ns;
    std::filesystem::path path;
    std::unique_ptr<RingFileBuilder> file;
    bool opened = false;  ///< as BPF knows
    std::optional<std::filesystem::path> saved{};
    bool saved_whole = false;
  };
  struct Process {
    std::uint64_t start_ticks = 1000;
    std::string program{};       ///< that runs; empty: the process does not exist
    bool exec_written = true;    ///< the record of its exec
    Ring* ring = nullptr;        ///< that it created and maps
    std::size_t true_image = 0;  ///< index
  };
  void play(char step, int process);
  void load(const std::string& program, int process);
  void exec(const std::string& program, int process);
  void fork(int child);
  void create_ring(int process);
  void exit(int process, int wait_status);
  void vanish(int process);
  void tick();
  void add_record(rtev_lifecycle_type type, int process, std::vector<std::byte> tail = {}, std::uint64_t detail = 0);
  std::vector<std::byte> ring_record_tail(int process) const;
  void add_to_proc(int process) const;
  void map_ring(int process, const std::filesystem::path& ring) const;
  void save_ring(int process, bool by_exec);
  static std::int32_t pid_of(int process) { return first_pid + process; }
  int ns_pid_of(int process) const { return options_.same_paths ? 7 : pid_of(process); }
  std::filesystem::path process_dir(int process) const { return proc_ / std::to_string(pid_of(process)); }
  std::filesystem::path ring_path(int process) const { return dir_ / (std::to_string(ns_pid_of(process)) + ".events"); }

  void on_process(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) override;
  void on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) override;
  void on_image_end(const ImageEnd& end) override;
  void track(std::int32_t pid, const rtev_tracked&) override { tracked_.insert(pid); }
  void untrack(std::int32_t pid) override { tracked_.erase(pid); }
  void ring_opened(std::int32_t pid, std::uint64_t announced_ns) override;
  void ring_found(std::int32_t, const rtev_ring&) override {}
  bool is_latest_ring(std::int32_t pid, std::uint64_t announced_ns) override;
  std::uint64_t announcements() override { return rings_.size(); }
  bool is_being_changed(int, FileUse) override { return false; }
  void look_at_pages(std::span<PageRange>) override {}
  std::optional<SavedRingFile> take_saved_ring(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns) override;
  std::optional<SavedRingFile> take_saved(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns);

  const FakeHostOptions options_;
  TempDir dir_, proc_;
  std::uint64_t now_ns_;
  TimedTasks tasks_;
  std::array<Process, 3> processes_on_host_;
  std::set<std::int32_t> tracked_;  ///< by BPF, which reports forks and exits of these
  std::deque<Record> records_;
  std::deque<ResolvedRecord> events_;
  std::deque<Ring> rings_;
  std::vector<TrueImage> true_images_;
  Registry registry_;
  Procfs procfs_{proc_.path()};
  ImmediateQueries queries_{proc_.path()};
  ProcessTable processes_{[this](std::int32_t pid) { return procfs_.stat(pid).has_value(); }, registry_};
  BinaryCache cache_;
  Inspector inspector_{cache_, [](int, const std::shared_ptr<const Binary>&, std::uint32_t) { return true; }};
  RingPoller poller_;
  std::unique_ptr<Discovery> discovery_;
  LifecycleLookup lookup_;
  std::map<ProcessIndex, Image> images_;
  std::size_t rings_opened_ = 0;
  std::size_t incomplete_copies_ = 0;  ///< that were read in the place of a ring
};

/// Whether the image of each event can be known: not if the record of an exec was dropped or delivered in a wrong
/// order, or if two processes write one file.
enum class Attribution : std::uint8_t { known, unknown };

/// Fails the test if a host whose processes have ended has not been followed correctly. `name`: the order of its steps.
void check_invariants(const FakeHost& host, const std::string& name, Attribution attribution = Attribution::known);

/// The same if no record was dropped: each ring was read to its end, or counted as missed.
void check_all_accounted(const FakeHost& host, const std::string& name);

}  // namespace rtev::test
