// SPDX-License-Identifier: MIT
// A made-up host with one pid, for tests of the order in which discovery learns of things: a folder that looks like
// /proc, ring files, lifecycle records and a clock. What the processes do and when it is noticed are separate steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inspect/inspector.hpp"
#include "processes/discovery.hpp"
#include "session/ring_poller.hpp"
#include "support/ring_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace rtev::test {

/// What BPF saves of rings.
enum class Saving { off, known };

/// The things that happen on the host, in the order in which they happen, and the steps of the tracer.
class FakeHost : private ProcessEvents, private KernelControl {
 public:
  static constexpr std::int32_t pid = 4242;
  static constexpr std::size_t events_of_a_ring = 3;

  explicit FakeHost(Saving saving = Saving::known);
  ~FakeHost() override;

  // The host. Each step takes a millisecond.
  /// The process, which is created if there is none, runs another program. Its name is 'A', 'B', … for OCaml programs
  /// and "sh" for another one. A ring file of the image before stays as it is.
  void exec(const std::string& program);
  /// The image creates its ring, in the file of the image before if that is still there, and writes events to it.
  void create_ring();
  /// The runtime removes the file of its ring, as it does at exit(3).
  void remove_ring_file();
  /// The process writes its exit record, and is still in /proc.
  void exit(int wait_status = 0);
  /// It is gone from /proc.
  void vanish();

  // The tracer.
  /// Looks up the first records that wait, on the lifecycle reader's thread in reality. False if there is none.
  bool look_up();
  /// Removes the record that waits at this position: it found no room in the kernel's buffer.
  void drop_record(std::size_t position);
  /// Records are delivered again, or in another order, from here on.
  std::deque<LifecycleEvent>& events() { return events_; }
  /// Takes what was looked up, and does what a session does in a tick.
  void tick();
  void scan();
  /// Time passes, and all is read that waits.
  void settle();

  // What came of it.
  struct Image {
    std::string comm;
    std::vector<ProcessAction> actions;  ///< in order of time, as the timeline releases them
    std::vector<std::uint64_t> times;    ///< of the actions
    std::size_t ends = 0;                ///< calls of on_image_end()
    std::vector<std::uint16_t> ids{};    ///< of events that were delivered for it
  };
  const std::map<ProcessIndex, Image>& images() const { return images_; }
  /// "A: exec ring exit(3); …", with the number of events.
  std::string story() const;
  std::uint64_t rings_missed() const { return discovery_->rings_missed() + poller_.taken_over(); }
  std::size_t rings_opened() const { return rings_opened_; }
  std::size_t rings_created() const { return rings_.size(); }
  /// Events of images carry the number of their image's program: 1 for 'A', 2 for 'B'…
  static std::uint16_t event_id(const std::string& program) {
    return static_cast<std::uint16_t>(program.front() - '@');
  }
  bool has_unopened() const { return discovery_->unopened_since().has_value(); }
  std::size_t records_waiting() const { return records_.size(); }

 private:
  struct Record {
    rtev_lifecycle lifecycle;
    std::vector<std::byte> tail;
  };
  struct Ring {
    std::uint64_t announced_ns;
    std::unique_ptr<RingFileBuilder> file;
    bool opened = false;  ///< as BPF knows
    bool is_taken_over = false;
    std::optional<std::filesystem::path> saved{};
  };
  void add_record(rtev_lifecycle_type type, std::vector<std::byte> tail = {}, std::uint64_t detail = 0);
  std::vector<std::byte> ring_record_tail() const;
  void write(const std::filesystem::path& path, const std::string& text) const;
  void save_ring(bool by_exec);
  std::filesystem::path process_dir() const { return proc_ / std::to_string(pid); }
  std::filesystem::path ring_path() const { return dir_ / (std::to_string(pid) + ".events"); }

  void on_process(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) override;
  void on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) override;
  void on_image_end(const ImageEnd& end) override;
  void track(std::int32_t, const rtev_tracked&) override {}
  void untrack(std::int32_t) override {}
  void ring_opened(std::int32_t, std::uint64_t announced_ns) override;
  void ring_found(std::int32_t, const rtev_ring&) override {}
  bool is_latest_ring(std::int32_t, std::uint64_t announced_ns) override;
  std::optional<SavedRingFile> take_saved_ring(std::int32_t, std::uint64_t from_ns, std::uint64_t to_ns) override;

  const Saving saving_;
  TempDir dir_, proc_;
  std::uint64_t now_ns_;
  std::uint64_t start_ticks_ = 1000;
  std::string program_;  ///< that runs; empty: none
  std::deque<Record> records_;
  std::deque<LifecycleEvent> events_;
  std::deque<Ring> rings_;
  bool has_ring_ = false;  ///< the image that runs, the last of them
  Registry registry_;
  ProcessTable processes_{Procfs(proc_.path()), registry_};
  BinaryCache cache_;
  Inspector inspector_{cache_, [](int, const std::shared_ptr<const Binary>&) {}};
  RingPoller poller_;
  std::unique_ptr<Discovery> discovery_;
  std::unique_ptr<LifecycleLookup> lookup_;
  std::map<ProcessIndex, Image> images_;
  std::size_t rings_opened_ = 0;
};

/// Whether the image of each event can be known: not if the record of an exec was dropped or delivered in a wrong
/// order.
enum class Attribution { known, unknown };

/// Fails the test if a host whose processes have ended has not been followed correctly. `name`: the order of its steps.
void check_invariants(const FakeHost& host, const std::string& name, Attribution attribution = Attribution::known);

}  // namespace rtev::test
