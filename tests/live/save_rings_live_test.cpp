// SPDX-License-Identifier: MIT
// Rings that the tracer could not open in time because it was stopped while their programs ran. BPF saves them when
// they are unmapped.
#include <optional>

#include "live/harness.hpp"
#include "live/oracle.hpp"
#include "rtev/ring_reader.hpp"

namespace rtev::test {
namespace {

/// A tracer that is stopped while programs run.
class SaveRingsLive : public LiveTest {
 protected:
  /// Starts the tracer and stops it when it knows this binary and has probed its functions.
  void stop_tracer_of(const std::string& name, const Strings& arguments, Strings options = {}) {
    known_.emplace(program(name, arguments), "ready");
    options.insert(options.end(), {"-n", name});
    stop_tracer(options);
  }
  void stop_tracer(Strings options) {
    options.insert(options.end(), {"--sched", "off"});
    tracer_.emplace(options);
    tracer_->process().stop();
  }
  Trace resume_tracer() {
    tracer_->process().resume();
    return tracer_->stop();
  }

  /// Runs `numbered 10`, of a binary unknown to the tracer, and expects all of its events.
  void expect_saved_by_all(const Command& command) {
    stop_tracer({"--save-rings", "all"});
    const pid_t pid = run_to_end(command);
    const Trace trace = resume_tracer();
    const auto events = trace.of(pid, "user");
    ASSERT_EQ(events.size(), 10u);
    for (const Json& event : events) EXPECT_EQ(event["name"], "number");
    expect_all_delivered(trace, pid);
    EXPECT_THAT(trace.actions(pid), IsSupersetOf({"ring", "stop", "exit"}));
  }

 private:
  std::optional<Process> known_;
  std::optional<Tracer> tracer_;
};

struct SavedRun {
  const char* label;
  const char* what;  ///< row of docs/tested.md
  const char* program;
  Strings arguments;
};

class SaveKnownRingsLive : public SaveRingsLive, public ::testing::WithParamInterface<SavedRun> {};

/// The ring file stays, for comparison. The tracer still reads the saved ring, since it looks for that first.
TEST_P(SaveKnownRingsLive, SavesWhatTheRingHolds) {
  covers("lifecycle", std::string("ends while the tracer is stopped: ") + GetParam().what);
  stop_tracer_of(GetParam().program, {"1", "1"});
  const pid_t pid = run_to_end(preserved(GetParam().program, GetParam().arguments));
  Records truth = oracle(dir.path(), pid);
  fs::remove(ring_of(pid));
  const Trace trace = resume_tracer();
  Records delivered = records(trace.from_rings(pid));
  // The oracle and the tracer place the loss of what was overwritten early at different times.
  for (Records* all : {&truth, &delivered})
    for (auto& [domain, lines] : *all) std::erase_if(lines, [](const auto& line) { return line.contains(" lost "); });
  EXPECT_EQ(difference(truth, delivered), "");
  EXPECT_EQ(trace.summary["rings_missed"], 0);
  EXPECT_THAT(trace.actions(pid), IsSupersetOf({"ring", "stop", "exit"}));
  EXPECT_EQ(trace.action(pid, "ring")["path"], ring_of(pid).string());
  EXPECT_EQ(trace.words(pid)["before_attach"], 0u) << "the program began under the tracer";
  EXPECT_EQ(trace.words(pid)["corrupt"], 0u);
}

INSTANTIATE_TEST_SUITE_P(Programs, SaveKnownRingsLive,
                         ::testing::Values(SavedRun{"Short", "a short program", "numbered", {"20"}},
                                           SavedRun{"Domains", "several domains", "domains", {"3", "3"}},
                                           SavedRun{"UserEvents", "user events of every type", "user_events", {}},
                                           SavedRun{"FullRing", "a full ring", "busy_alloc", {"700"}}),
                         by_label);

TEST_F(SaveRingsLive, SavesTheRingsOf200Programs) {
  covers("lifecycle", "200 programs end while the tracer is stopped");
  stop_tracer_of("numbered", {"0", "gated"});
  std::vector<pid_t> pids;
  for (int i = 0; i < 200; ++i) pids.push_back(run_to_end(with_events("numbered", {"10"})));
  const Trace trace = resume_tracer();
  EXPECT_EQ(trace.summary["rings_missed"], 0);
  for (const pid_t pid : pids) {
    const auto events = trace.of(pid, "user");
    ASSERT_EQ(events.size(), 10u) << pid;
    for (int n = 0; n < 10; ++n) EXPECT_EQ(events[static_cast<std::size_t>(n)]["value"], n);
    expect_all_delivered(trace, pid);
  }
}

TEST_F(SaveRingsLive, AllSavesRingsOfUnknownPrograms) {
  covers("lifecycle", "a program of an unknown binary ends while the tracer is stopped (--save-rings all)");
  expect_saved_by_all(copied(with_events("numbered", {"10"}), "unseen"));
}

TEST_F(SaveRingsLive, AllSavesRingsOfStrippedPrograms) {
  covers("lifecycle", "a stripped program ends while the tracer is stopped (--save-rings all)");
  const Command stripped = copied(with_events("numbered", {"10"}), "stripped");
  ASSERT_EQ(run({.argv = {"strip", stripped.argv[0]}}).status.code(), 0);
  expect_saved_by_all(stripped);
}

TEST_F(SaveRingsLive, OffSavesNothing) {
  stop_tracer_of("numbered", {"0", "gated"}, {"--save-rings", "off"});
  const pid_t pid = run_to_end(with_events("numbered", {"10"}));
  const Trace trace = resume_tracer();
  EXPECT_EQ(trace.summary["rings_missed"], 1);
  EXPECT_TRUE(trace.from_rings(pid).empty());
}

/// Twelve full rings are more than the buffer of saved rings holds.
TEST_F(SaveRingsLive, WordsThatDoNotFitIntoTheBufferAreCounted) {
  covers("lifecycle", "more rings end while the tracer is stopped than BPF can save: counted");
  stop_tracer_of("busy_alloc", {"1"});
  std::map<pid_t, std::uint64_t> written;
  for (int i = 0; i < 12; ++i) {
    const pid_t pid = run_to_end(preserved("busy_alloc", {"700"}));
    const auto file = RingReader::open(ring_of(pid));
    ASSERT_TRUE(file);
    written[pid] = file->accounting().written;
    fs::remove(ring_of(pid));
  }
  const Trace trace = resume_tracer();
  EXPECT_GT(trace.summary["drops"]["save"], 0);
  EXPECT_EQ(trace.summary["rings_missed"], 0);
  std::uint64_t lost = 0, delivered = 0;
  for (const auto& [pid, words] : written) {
    auto figures = trace.words(pid);
    EXPECT_EQ(figures["written"], words);
    EXPECT_EQ(figures["corrupt"], 0u);
    EXPECT_EQ(figures["lost"], trace.lost_words(pid));
    lost += figures["lost"];
    delivered += figures["delivered"];
  }
  EXPECT_GT(lost, 0u);
  EXPECT_GT(delivered, 0u);
}

}  // namespace
}  // namespace rtev::test
