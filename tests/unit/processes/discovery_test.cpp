// SPDX-License-Identifier: MIT
// The scan and lifecycle records in different orders, for a real process that maps a ring and does nothing.
#include "processes/discovery.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "support/ring_file_builder.hpp"
#include "support/temp_dir.hpp"

namespace rtev {
namespace {

namespace make = test::make;
using testing::ElementsAre;

constexpr std::uint64_t ns_per_tick = 10'000'000;

/// Records what happens to processes, and is what BPF would be.
class Listener : public ProcessEvents, public KernelControl {
 public:
  struct Change {
    std::uint64_t time_ns;
    ProcessAction action;
    ProcessIndex process;
    bool operator==(const Change&) const = default;
  };
  void on_process(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) override {
    changes.push_back({time_ns, action, record.process});
  }
  void on_ring(ProcessIndex process, std::uint32_t, std::shared_ptr<RingReader> ring) override {
    ring->poll([&](const Batch& batch) { events[process] += batch.events().size(); });
  }
  void on_image_end(const ImageEnd& end) override {
    ended.push_back(end.process);
    by_exec.push_back(end.by_exec);
  }
  void track(std::int32_t, const rtev_tracked&) override {}
  void untrack(std::int32_t) override {}
  void ring_opened(std::int32_t, std::uint64_t announced_ns) override { opened.push_back(announced_ns); }
  void ring_found(std::int32_t, const rtev_ring&) override {}
  bool is_latest_ring(std::int32_t, std::uint64_t) override { return true; }
  std::optional<SavedRingFile> take_saved_ring(std::int32_t, std::uint64_t from_ns, std::uint64_t to_ns) override {
    if (!saved || saved_ns < from_ns || saved_ns > to_ns) return std::nullopt;
    return std::exchange(saved, std::nullopt);
  }

  std::vector<Change> changes;
  std::map<ProcessIndex, std::size_t> events;
  std::vector<std::uint64_t> opened;  ///< when announced
  std::vector<ProcessIndex> ended;
  std::vector<bool> by_exec;           ///< those, in the same order
  std::optional<SavedRingFile> saved;  ///< of the ring that was announced at saved_ns
  std::uint64_t saved_ns = 0;
};

/// Maps what its parent maps, until its end.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) ::pause();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

class DiscoveryTest : public testing::Test {
 protected:
  DiscoveryTest()
      : ring_(dir_ / "ring", {}),
        inspector_(cache_, [](int, const std::shared_ptr<const Binary>&) {}),
        discovery_({.procfs = Procfs(),
                    .registry = registry_,
                    .processes = processes_,
                    .cache = cache_,
                    .inspector = inspector_,
                    .events = listener_,
                    .kernel = listener_},
                   {.filter = {.pids = {child_.pid()}}}) {
    std::filesystem::rename(dir_ / "ring", dir_ / (std::to_string(child_.pid()) + ".events"));
    ring_.append(0, make::begin(scan_ns_ - 500, 3));
  }

  void scan() {
    discovery_.begin_scan(scan_ns_);
    while (discovery_.scan_some(scan_ns_, 1000)) {
    }
  }
  void report(rtev_lifecycle_type type, std::uint64_t time_ns, bool image_ended = false) {
    LifecycleEvent event{};
    event.record.type = type;
    event.record.time_ns = time_ns;
    event.record.start_time = Procfs().stat(child_.pid()).value().start_ticks * ns_per_tick;
    event.record.tgid = static_cast<std::uint32_t>(child_.pid());
    std::string_view("before").copy(event.record.comm, sizeof event.record.comm);
    event.image_ended = image_ended;
    if (type == RTEV_RING) event.rings = open_mapped_rings(Procfs(), child_.pid());
    discovery_.take(std::move(event));
  }
  /// BPF saved a ring with two events.
  void save(std::uint64_t announced_ns) {
    test::RingFileBuilder before;
    before.append(0, make::begin(announced_ns + 1, 3));
    before.append(0, make::end(announced_ns + 2, 3));
    before.save(dir_ / "saved");
    listener_.saved = SavedRingFile{.fd = UniqueFd(::open((dir_ / "saved").c_str(), O_RDWR)), .cut = {}, .last = true};
    listener_.saved_ns = announced_ns;
  }
  std::vector<Listener::Change> changes_of(ProcessIndex process) const {
    auto changes = listener_.changes;
    std::erase_if(changes, [&](const Listener::Change& change) { return change.process != process; });
    return changes;
  }

  const std::uint64_t scan_ns_ = monotonic_ns();
  const std::uint64_t ring_ns_ = scan_ns_ - 10'000'000, exec_ns_ = scan_ns_ - 1'000'000;
  test::TempDir dir_;
  test::RingFileBuilder ring_;
  const Child child_;
  Registry registry_;
  ProcessTable processes_{Procfs(), registry_};
  BinaryCache cache_;
  Listener listener_;
  Inspector inspector_;
  Discovery discovery_;
};

using enum ProcessAction;

TEST_F(DiscoveryTest, RingOfAnImageThatEndedBeforeTheScanIsReadFromItsSavedCopy) {
  save(ring_ns_);
  scan();
  const ProcessIndex later = processes_.current_image(child_.pid()).value().index;
  report(RTEV_RING, ring_ns_);
  report(RTEV_EXEC, exec_ns_);

  ASSERT_EQ(listener_.ended.size(), 1u);
  const ProcessIndex before = listener_.ended.front();
  EXPECT_NE(before, later);
  using Change = Listener::Change;
  EXPECT_THAT(changes_of(before),
              ElementsAre(Change{ring_ns_, found, before}, Change{ring_ns_, ProcessAction::ring, before},
                          Change{exec_ns_, exit, before}));
  EXPECT_EQ(registry_.process(before).comm, "before");
  EXPECT_TRUE(registry_.process(before).ended);
  EXPECT_EQ(listener_.events[before], 2u);
  EXPECT_FALSE(registry_.process(later).ended);
  EXPECT_EQ(listener_.events[later], 1u);
  EXPECT_EQ(discovery_.rings_missed(), 0u);
  EXPECT_TRUE(processes_.traces(child_.pid()));
}

TEST_F(DiscoveryTest, RingOfAnImageThatEndedBeforeTheScanIsMissedIfItWasNotSaved) {
  scan();
  report(RTEV_RING, ring_ns_, true);
  report(RTEV_EXEC, exec_ns_);
  EXPECT_EQ(discovery_.rings_missed(), 1u);
  EXPECT_EQ(listener_.events.size(), 1u);
  EXPECT_FALSE(discovery_.unopened_since());
}

TEST_F(DiscoveryTest, RingThatTheScanReadsIsNotMissed) {
  scan();
  report(RTEV_RING, ring_ns_);
  discovery_.tick(scan_ns_ + 1'000'000, scan_ns_ - 1);
  EXPECT_THAT(listener_.opened, ElementsAre()) << "the record of a next exec may still arrive";
  discovery_.tick(scan_ns_ + 2'000'000, scan_ns_ + 2'000'000);
  EXPECT_THAT(listener_.opened, ElementsAre(ring_ns_));
  EXPECT_EQ(discovery_.rings_missed(), 0u);
  EXPECT_FALSE(discovery_.unopened_since());
  EXPECT_TRUE(listener_.ended.empty());
}

/// As on a busy host: the exiting process writes its exit record, and may lose its cpu before it is gone.
TEST_F(DiscoveryTest, ExitedProcessIsNotFoundAgain) {
  scan();
  report(RTEV_EXIT, scan_ns_ + 1);
  scan();
  EXPECT_EQ(listener_.ended.size(), 1u);
  EXPECT_EQ(listener_.events.size(), 1u) << "the ring was read twice";
  EXPECT_FALSE(processes_.traces(child_.pid()));
}

TEST_F(DiscoveryTest, RingIsReadOnceWhoeverReportsIt) {
  report(RTEV_RING, ring_ns_);
  scan();
  report(RTEV_EXEC, ring_ns_ - 5);
  EXPECT_EQ(listener_.events.size(), 1u);
  EXPECT_EQ(listener_.events[processes_.current_image(child_.pid()).value().index], 1u);
  EXPECT_TRUE(listener_.ended.empty());
}

TEST_F(DiscoveryTest, EventsBeforeTheExecAreNotAttributedToTheImageThatTheScanFound) {
  scan();
  const auto unknown = processes_.current_image(child_.pid());
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->began_ns, 0u) << "it may have been running for long";
  EXPECT_EQ(unknown->since_ns, scan_ns_);
  report(RTEV_EXEC, exec_ns_);
  const auto known = processes_.current_image(child_.pid());
  ASSERT_TRUE(known);
  EXPECT_EQ(known->index, unknown->index);
  EXPECT_EQ(known->began_ns, exec_ns_);
  EXPECT_EQ(known->since_ns, scan_ns_);
}

TEST_F(DiscoveryTest, EndOfAnImageReportsWhetherItWasByExec) {
  scan();
  report(RTEV_EXEC, scan_ns_ + 5);
  EXPECT_FALSE(processes_.current_image(child_.pid())) << "what runs now is not known to be an OCaml program";
  report(RTEV_RING, scan_ns_ + 7);
  report(RTEV_EXIT, scan_ns_ + 9);
  EXPECT_THAT(listener_.by_exec, ElementsAre(true, false));
}

}  // namespace
}  // namespace rtev
