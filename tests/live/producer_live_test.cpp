// SPDX-License-Identifier: MIT
// Processes that write events with RingWriter are found like OCaml's, and shown as producers.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <rtev/ring_writer.hpp>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

using Options = RingWriter::Options;

/// A forked child of the test with a RingWriter. Gates control when it writes.
class Publisher {
 public:
  using Act = std::function<void(RingWriter&)>;
  /// Returns when the writer exists. The child calls `acts` in turn, one for each go(), and exits.
  Publisher(const Options& options, const std::vector<Act>& acts) {
    int to_child[2], to_test[2];
    if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(to_test, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(to_child[1]);
      in_ = UniqueFd(to_child[0]);
      out_ = UniqueFd(to_test[1]);
      ::_exit(publish(options, acts));
    }
    in_ = UniqueFd(to_test[0]);
    out_ = UniqueFd(to_child[1]);
    ::close(to_child[0]);
    ::close(to_test[1]);
    take();
  }
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  ~Publisher() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  /// Runs the next act; returns when it is done.
  void go() {
    give();
    take();
  }
  int end() {
    out_.reset();
    int status = -1;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

 private:
  int publish(const Options& options, const std::vector<Act>& acts) {
    auto writer = RingWriter::create(options);
    if (!writer) return 1;
    give();
    for (const Act& act : acts) {
      if (!take()) break;
      act(*writer);
      give();
    }
    take();
    writer->stop();
    return 0;
  }
  void give() { [[maybe_unused]] const ssize_t put = ::write(out_.get(), "", 1); }
  bool take() {
    char byte = 0;
    return ::read(in_.get(), &byte, 1) == 1;
  }

  pid_t pid_ = -1;
  UniqueFd in_, out_;
};

/// Writes some events of every kind, on both domains.
void write_all(RingWriter& writer) {
  const auto request = *writer.register_event("request", UserType::span);
  const auto number = *writer.register_event("number", UserType::integer);
  const auto blob = *writer.register_event("blob", UserType::custom);
  for (std::uint32_t i = 0; i < 2000; ++i) {
    DomainWriter events = writer.domain(i % 2);
    events.begin(request);
    events.begin(*find_phase(Family::since_5_3, "minor"));
    events.counter(*find_counter(Family::since_5_3, "minor_allocated"), i);
    events.end(*find_phase(Family::since_5_3, "minor"));
    events.write(number, static_cast<std::int32_t>(i));
    events.write(blob, std::as_bytes(std::span(&i, 1)));
    events.end(request);
  }
}

class ProducerLive : public LiveTest {
 protected:
  Options options() const { return {.directory = dir.path(), .domains = 2, .preserve = true}; }

  static void expect_librtev(const Json& image) {
    EXPECT_EQ(image["runtime"], "librtev");
    EXPECT_TRUE(image["version"].is_null());
    EXPECT_EQ(image["family_source"], "producer");
  }
};

TEST_F(ProducerLive, NewProducerIsDelivered) {
  Tracer tracer({"--sched", "off"});
  Publisher publisher(options(), {write_all, write_all});
  const pid_t pid = publisher.pid();
  publisher.go();
  publisher.go();
  EXPECT_EQ(publisher.end(), 0);
  const Trace trace = tracer.stop();
  expect_exact(trace, dir.path(), pid);
  EXPECT_EQ(trace.actions(pid), (Strings{"found", "ring", "stop", "exit"}));
  expect_librtev(trace.action(pid, "found"));
  EXPECT_EQ(trace.action(pid, "ring")["runtime"], "librtev");
  EXPECT_EQ(trace.action(pid, "ring")["path"], ring_of(pid).string());
  EXPECT_EQ(trace.action(pid, "ring")["max_domains"], 2);
  expect_librtev(trace.process(pid));
}

TEST_F(ProducerLive, RunningProducerIsDelivered) {
  Publisher publisher(options(), {write_all, write_all});
  const pid_t pid = publisher.pid();
  publisher.go();
  Tracer tracer({"--sched", "off", "--history"});
  publisher.go();
  EXPECT_EQ(publisher.end(), 0);
  const Trace trace = tracer.stop();
  expect_exact(trace, dir.path(), pid);
  expect_librtev(trace.action(pid, "found"));
}

TEST_F(ProducerLive, ForkedChildHasItsOwnRing) {
  Tracer tracer({"--sched", "off"});
  Publisher publisher(options(), {[](RingWriter& writer) {
                                    const pid_t child = ::fork();
                                    if (child == 0) {
                                      write_all(writer);
                                      writer.stop();
                                      ::_exit(0);
                                    }
                                    writer.domain(0).lifecycle(Lifecycle::fork_parent, child);
                                    ::waitpid(child, nullptr, 0);
                                  },
                                  write_all});
  const pid_t pid = publisher.pid();
  publisher.go();
  publisher.go();
  EXPECT_EQ(publisher.end(), 0);
  const Trace trace = tracer.stop();
  expect_exact(trace, dir.path(), pid);
  pid_t child = 0;
  for (const Json& event : trace.of(pid, "lifecycle"))
    if (event["name"] == "fork_parent") child = event["value"];
  expect_exact(trace, dir.path(), child);
  expect_librtev(trace.action(child, "fork"));
}

TEST_F(ProducerLive, TextShowsTheProducer) {
  Tracer tracer({"--sched", "off", "-v"}, {.format = {"-f", "text"}});
  Publisher publisher(options(), {write_all});
  publisher.go();
  publisher.end();
  const Outcome outcome = tracer.interrupt();
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("process found  librtev  /"), HasSubstr(".events  of librtev\n"),
                                 HasSubstr("> \"request\"")));
  EXPECT_THAT(outcome.err, HasSubstr(" librtev "));
}

TEST_F(ProducerLive, PsListsIt) {
  Publisher publisher(options(), {write_all});
  publisher.go();
  const Outcome outcome = run_tool({"ps", "-p", std::to_string(publisher.pid())});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("RUNTIME"), ContainsRegex(std::to_string(publisher.pid()) +
                                                                     " +root +rtev-live-tests +librtev +active ")));
}

TEST_F(ProducerLive, ProducerMarkSelectsTheNamesUnlessAVersionIsForced) {
  Options old = options();
  old.family = Family::before_5_3;
  Publisher publisher(old, {[](RingWriter& writer) {
                        writer.domain(0).begin(*find_phase(Family::before_5_3, "minor"));
                        writer.domain(0).counter(*find_counter(Family::before_5_3, "major_heap_large_words"), 1);
                      }});
  publisher.go();
  const auto first_begin = [&](const std::string& source, const Strings& options = {}) {
    const Trace trace = dumped(source, options);
    EXPECT_EQ(trace.summary["processes"][0]["runtime"], "librtev");
    return trace.of("begin").front()["name"].get<std::string>();
  };
  const std::string pid = std::to_string(publisher.pid()), file = ring_of(publisher.pid());
  EXPECT_EQ(first_begin(pid), "minor");
  EXPECT_EQ(first_begin(file), "minor");
  EXPECT_EQ(first_begin(file, {"--ocaml-version", "5.3"}), "major_mark");
  EXPECT_EQ(publisher.end(), 0);
  EXPECT_EQ(first_begin(file), "minor") << "the preserved file has the mark, too";
}

/// An OCaml version that is not installed: what its runtime would write, with the numbers of its runtime_events.h.
struct RuntimeVersion {
  const char* ocaml;
  const char* label;
  RingWriter::Format format;
  std::vector<std::pair<std::uint16_t, const char*>> minor, major;  ///< phases, each nested in the one before
  std::vector<std::pair<std::uint16_t, const char*>> counters;
};

class RuntimeVersionLive : public ProducerLive, public ::testing::WithParamInterface<RuntimeVersion> {};

TEST_P(RuntimeVersionLive, PhasesAndCountersHaveTheNamesOfTheirVersion) {
  const RuntimeVersion& version = GetParam();
  Options old = options();
  old.family = Family::before_5_3;
  old.format = version.format;
  Strings expected;
  const auto collect = [&](RingWriter& writer, std::uint64_t round) {
    DomainWriter domain = writer.domain(0);
    for (const auto* spans : {&version.minor, &version.major}) {
      for (const auto& [id, name] : *spans) domain.begin(Phase{id});
      for (const auto& [id, name] : version.counters) domain.counter(Counter{id}, round);
      for (auto span = spans->rbegin(); span != spans->rend(); ++span) domain.end(Phase{span->first});
    }
  };
  const auto collect_often = [&](RingWriter& writer) {
    for (std::uint64_t round = 0; round < 100; ++round) collect(writer, round);
  };
  for (int round = 0; round < 200; ++round) {
    for (const auto* spans : {&version.minor, &version.major}) {
      for (const auto& [id, name] : *spans) expected.push_back(std::string("begin ") + name);
      for (const auto& [id, name] : version.counters)
        expected.push_back(std::string("counter ") + name + ' ' + std::to_string(round % 100));
      for (auto span = spans->rbegin(); span != spans->rend(); ++span)
        expected.push_back(std::string("end ") + span->second);
    }
  }

  Publisher publisher(old, {collect_often, collect_often});
  const pid_t pid = publisher.pid();
  publisher.go();
  Tracer tracer({"--sched", "off", "--history"});
  publisher.go();
  EXPECT_EQ(publisher.end(), 0);
  const Trace trace = tracer.stop();
  Strings got;
  for (const Json& event : trace.from_rings(pid)) {
    if (event["type"] == "lifecycle") continue;
    std::string line = event["type"].get<std::string>() + ' ' + event["name"].get<std::string>();
    if (event["type"] == "counter") line += ' ' + std::to_string(event["value"].get<int>());
    got.push_back(std::move(line));
  }
  EXPECT_EQ(got, expected);
  expect_all_delivered(trace, pid);
  covers("ring", "written by librtev in that version's format", version.ocaml);
}

INSTANTIATE_TEST_SUITE_P(
    All, RuntimeVersionLive,
    ::testing::Values(RuntimeVersion{"5.0",
                                     "OCaml5_0",
                                     RingWriter::Format::before_5_1,
                                     {{22, "major_gc_stw"}, {10, "minor"}, {11, "minor_local_roots"}},
                                     {{6, "major"}, {24, "major_slice"}, {9, "major_mark"}},
                                     {{4, "minor_promoted"}, {5, "minor_allocated"}}},
                      RuntimeVersion{"5.2",
                                     "OCaml5_2",
                                     RingWriter::Format::since_5_1,
                                     {{32, "stw_leader"}, {10, "minor"}, {35, "minor_remembered_set"}},
                                     {{40, "compaction"}, {41, "compaction_evacuate"}, {42, "compaction_forward"}},
                                     {{4, "minor_promoted"}, {16, "major_heap_large_blocks"}}}),
    by_label);

}  // namespace
}  // namespace rtev::test
