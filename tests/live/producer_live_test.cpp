// SPDX-License-Identifier: MIT
// Processes that publish events with RingWriter, under the tracer: found like OCaml's, shown as what they are.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <rtev/ring_writer.hpp>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Options = RingWriter::Options;
using Strings = std::vector<std::string>;

/// A forked child of the test that makes a writer and lets it be used at gates.
class Publisher {
 public:
  using Act = std::function<void(RingWriter&)>;
  /// Returns when the writer is made. It is given to `acts` in turn, one for each go(); then the process ends.
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
  /// Lets it act once, and returns when it has.
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

/// A bit of everything, on both domains.
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

  void expect_exact(const Trace& trace, pid_t pid) const {
    const Records expected = oracle(dir.path(), pid);
    EXPECT_EQ(count(expected, "lost", ""), 0u);
    EXPECT_EQ(difference(expected, records(trace.from_rings(pid))), "");
    auto words = trace.words(pid);
    EXPECT_GT(words["written"], 0u);
    EXPECT_EQ(words["delivered"], words["written"]);
  }
  static void expect_librtev(const Json& image) {
    EXPECT_EQ(image["runtime"], "librtev");
    EXPECT_TRUE(image["version"].is_null());
    EXPECT_EQ(image["family_source"], "producer");
  }
  static Json figures(const Trace& trace, pid_t pid) {
    for (const Json& process : trace.summary["processes"])
      if (process["pid"] == pid) return process;
    return Json::object();
  }
};

TEST_F(ProducerLive, StartedUnderTheTracer) {
  Tracer tracer({"--sched", "off"});
  Publisher publisher(options(), {write_all, write_all});
  const pid_t pid = publisher.pid();
  publisher.go();
  publisher.go();
  EXPECT_EQ(publisher.end(), 0);
  const Trace trace = tracer.stop();
  expect_exact(trace, pid);
  EXPECT_EQ(trace.actions(pid), (Strings{"found", "ring", "stop", "exit"}));
  expect_librtev(trace.action(pid, "found"));
  EXPECT_EQ(trace.action(pid, "ring")["runtime"], "librtev");
  EXPECT_EQ(trace.action(pid, "ring")["path"], ring_of(pid).string());
  EXPECT_EQ(trace.action(pid, "ring")["max_domains"], 2);
  expect_librtev(figures(trace, pid));
}

TEST_F(ProducerLive, StartedBeforeTheTracer) {
  Publisher publisher(options(), {write_all, write_all});
  const pid_t pid = publisher.pid();
  publisher.go();
  Tracer tracer({"--sched", "off", "--history"});
  publisher.go();
  EXPECT_EQ(publisher.end(), 0);
  const Trace trace = tracer.stop();
  expect_exact(trace, pid);
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
                                    writer.domain(0).lifecycle(fork_parent, child);
                                    ::waitpid(child, nullptr, 0);
                                  },
                                  write_all});
  const pid_t pid = publisher.pid();
  publisher.go();
  publisher.go();
  EXPECT_EQ(publisher.end(), 0);
  const Trace trace = tracer.stop();
  expect_exact(trace, pid);
  pid_t child = 0;
  for (const Json& event : trace.of(pid, "lifecycle"))
    if (event["name"] == "fork_parent") child = event["value"];
  expect_exact(trace, child);
  expect_librtev(trace.action(child, "fork"));
}

TEST_F(ProducerLive, TextSaysSo) {
  Tracer tracer({"--sched", "off"}, {.format = {"-f", "text"}});
  Publisher publisher(options(), {write_all});
  publisher.go();
  publisher.end();
  const Outcome outcome = tracer.interrupt();
  EXPECT_THAT(outcome.out, HasSubstr("process found  librtev  /"));
  EXPECT_THAT(outcome.out, HasSubstr(".events  of librtev\n"));
  EXPECT_THAT(outcome.out, HasSubstr("> \"request\""));
  EXPECT_THAT(outcome.err, HasSubstr(" librtev "));
}

TEST_F(ProducerLive, PsListsIt) {
  Publisher publisher(options(), {write_all});
  publisher.go();
  const Outcome outcome = run_tool({"ps", "-p", std::to_string(publisher.pid())});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("RUNTIME"));
  EXPECT_THAT(outcome.out, HasSubstr(std::to_string(publisher.pid()) + " rtev-live-tests librtev active "));
}

TEST_F(ProducerLive, TheMarkDecidesTheTableUnlessOneIsForced) {
  Options old = options();
  old.family = Family::before_5_3;
  Publisher publisher(old, {[](RingWriter& writer) {
                        writer.domain(0).begin(*find_phase(Family::before_5_3, "minor"));
                        writer.domain(0).counter(*find_counter(Family::before_5_3, "major_heap_large_words"), 1);
                      }});
  publisher.go();
  const auto first_begin = [&](Strings arguments) {
    arguments.insert(arguments.begin(), {"dump", "-f", "jsonl"});
    const Outcome dump = run_tool(arguments);
    EXPECT_EQ(dump.status.code(), 0) << dump.err;
    const Trace trace = Trace::parse(dump.out);
    EXPECT_EQ(trace.summary["processes"][0]["runtime"], "librtev");
    return trace.of("begin").front()["name"].get<std::string>();
  };
  const std::string pid = std::to_string(publisher.pid()), file = ring_of(publisher.pid());
  EXPECT_EQ(first_begin({pid}), "minor");
  EXPECT_EQ(first_begin({file}), "minor");
  EXPECT_EQ(first_begin({"--ocaml-version", "5.3", file}), "major_mark");
  EXPECT_EQ(publisher.end(), 0);
  EXPECT_EQ(first_begin({file}), "minor") << "what stays behind says it, too";
  EXPECT_THAT(run_tool({"dump", file}).err, HasSubstr(" librtev "));
}

}  // namespace
}  // namespace rtev::test
