// SPDX-License-Identifier: MIT
// In which order the scan and the kernel side tell of one process, which maps a ring and does nothing.
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
#include "support/ring_file.hpp"
#include "support/temp_dir.hpp"

namespace rtev {
namespace {

namespace make = test::make;
using testing::ElementsAre;

constexpr std::uint64_t ns_per_tick = 10'000'000;

/// What became of rings and processes.
class Listener : public DiscoveryListener {
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
  void on_announced(std::int32_t, std::uint64_t birth_ns) override { announced.push_back(birth_ns); }
  void on_found(std::int32_t, const rtev_ring&) override {}
  bool is_latest_ring(std::int32_t, std::uint64_t) override { return true; }
  void on_image_end(ProcessIndex process, const std::vector<std::uint32_t>&, std::uint64_t, std::uint64_t,
                    bool exec) override {
    ended.push_back(process);
    by_exec.push_back(exec);
  }
  void on_track(std::int32_t, const rtev_tracked&) override {}
  void on_untrack(std::int32_t) override {}
  std::optional<DrainedFile> take_drained(std::int32_t, std::uint64_t from_ns, std::uint64_t to_ns) override {
    if (!saved || saved_ns < from_ns || saved_ns > to_ns) return std::nullopt;
    return std::exchange(saved, std::nullopt);
  }

  std::vector<Change> changes;
  std::map<ProcessIndex, std::size_t> events;
  std::vector<std::uint64_t> announced;
  std::vector<ProcessIndex> ended;
  std::vector<bool> by_exec;         ///< those, in the same order
  std::optional<DrainedFile> saved;  ///< of the ring that was announced at saved_ns
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
        discovery_(Procfs(), registry_, cache_, inspector_, listener_, only(child_.pid())) {
    std::filesystem::rename(dir_ / "ring", dir_ / (std::to_string(child_.pid()) + ".events"));
    ring_.append(0, make::begin(scan_ns_ - 500, 3));
  }

  static DiscoveryOptions only(pid_t pid) {
    DiscoveryOptions options;
    options.pids = {pid};
    return options;
  }
  void scan() {
    discovery_.begin_scan(scan_ns_);
    while (discovery_.scan_some(scan_ns_, 1000)) {
    }
  }
  void tell(rtev_lifecycle_type type, std::uint64_t time_ns, bool over = false) {
    Sighting sighting{};
    sighting.record.type = type;
    sighting.record.time_ns = time_ns;
    sighting.record.start_time = Procfs().stat(child_.pid()).value().start_ticks * ns_per_tick;
    sighting.record.tgid = static_cast<std::uint32_t>(child_.pid());
    std::string_view("before").copy(sighting.record.comm, sizeof sighting.record.comm);
    sighting.over = over;
    if (type == RTEV_RING) sighting.rings = pin_rings(Procfs(), child_.pid());
    discovery_.take(std::move(sighting));
  }
  /// What the kernel side saved of a ring with two events.
  void save(std::uint64_t birth_ns) {
    test::RingFileBuilder before;
    before.append(0, make::begin(birth_ns + 1, 3));
    before.append(0, make::end(birth_ns + 2, 3));
    before.save(dir_ / "saved");
    listener_.saved = DrainedFile{.fd = UniqueFd(::open((dir_ / "saved").c_str(), O_RDWR)), .cut = {}, .last = true};
    listener_.saved_ns = birth_ns;
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
  BinaryCache cache_;
  Listener listener_;
  Inspector inspector_;
  Discovery discovery_;
};

using enum ProcessAction;

TEST_F(DiscoveryTest, RingOfAProgramThatEndedBeforeTheScanIsReadFromWhatWasSaved) {
  save(ring_ns_);
  scan();
  const ProcessIndex later = discovery_.tenant(child_.pid()).value().index;
  tell(RTEV_RING, ring_ns_);
  tell(RTEV_EXEC, exec_ns_);

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
  EXPECT_TRUE(discovery_.traces(child_.pid()));
}

TEST_F(DiscoveryTest, RingOfAProgramThatEndedBeforeTheScanIsMissedWhereNothingWasSaved) {
  scan();
  tell(RTEV_RING, ring_ns_, true);
  tell(RTEV_EXEC, exec_ns_);
  EXPECT_EQ(discovery_.rings_missed(), 1u);
  EXPECT_EQ(listener_.events.size(), 1u);
  EXPECT_FALSE(discovery_.unopened_since());
}

TEST_F(DiscoveryTest, RingThatTheScanReadsIsNotMissed) {
  scan();
  tell(RTEV_RING, ring_ns_);
  discovery_.tick(scan_ns_ + 1'000'000, scan_ns_ - 1);
  EXPECT_THAT(listener_.announced, ElementsAre()) << "the exec of a next program may not be told yet";
  discovery_.tick(scan_ns_ + 2'000'000, scan_ns_ + 2'000'000);
  EXPECT_THAT(listener_.announced, ElementsAre(ring_ns_));
  EXPECT_EQ(discovery_.rings_missed(), 0u);
  EXPECT_FALSE(discovery_.unopened_since());
  EXPECT_TRUE(listener_.ended.empty());
}

/// As on a busy host: the exit is told by the process, which may lose its cpu before it has gone.
TEST_F(DiscoveryTest, ProcessWhoseExitWasToldIsNotFoundAgain) {
  scan();
  tell(RTEV_EXIT, scan_ns_ + 1);
  scan();
  EXPECT_EQ(listener_.ended.size(), 1u);
  EXPECT_EQ(listener_.events.size(), 1u) << "the ring was read twice";
  EXPECT_FALSE(discovery_.traces(child_.pid()));
}

TEST_F(DiscoveryTest, RingIsReadOnceWhoeverTellsOfIt) {
  tell(RTEV_RING, ring_ns_);
  scan();
  tell(RTEV_EXEC, ring_ns_ - 5);
  EXPECT_EQ(listener_.events.size(), 1u);
  EXPECT_EQ(listener_.events[discovery_.tenant(child_.pid()).value().index], 1u);
  EXPECT_TRUE(listener_.ended.empty());
}

TEST_F(DiscoveryTest, WhatWasDoneBeforeTheExecIsNotTheDoingOfTheProgramThatTheScanFinds) {
  scan();
  const auto unknown = discovery_.tenant(child_.pid());
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->began_ns, 0u) << "it may have been running for long";
  EXPECT_EQ(unknown->since_ns, scan_ns_);
  tell(RTEV_EXEC, exec_ns_);
  const auto known = discovery_.tenant(child_.pid());
  ASSERT_TRUE(known);
  EXPECT_EQ(known->index, unknown->index);
  EXPECT_EQ(known->began_ns, exec_ns_);
  EXPECT_EQ(known->since_ns, scan_ns_);
}

TEST_F(DiscoveryTest, ItIsSaidWhetherAnImageEndedByExec) {
  scan();
  tell(RTEV_EXEC, scan_ns_ + 5);
  EXPECT_FALSE(discovery_.tenant(child_.pid())) << "what runs now is not known to be OCaml's";
  tell(RTEV_RING, scan_ns_ + 7);
  tell(RTEV_EXIT, scan_ns_ + 9);
  EXPECT_THAT(listener_.by_exec, ElementsAre(true, false));
}

}  // namespace
}  // namespace rtev
