// SPDX-License-Identifier: MIT
// A recording is complete: what real programs do, read back from it, is what the live stream showed. Its exports are
// what a live export of the same stream is.
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

#include "formats/chrome/chrome_sink.hpp"
#include "formats/fxt/fxt_sink.hpp"
#include "formats/jsonl/jsonl_sink.hpp"
#include "formats/output/output.hpp"
#include "formats/perfetto/perfetto_sink.hpp"
#include "live/harness.hpp"
#include "recording/recording_file.hpp"
#include "session/live/live_session.hpp"
#include "session/live/live_sources.hpp"
#include "support/chrome_check.hpp"
#include "support/perfetto_check.hpp"

namespace rtev::test {
namespace {

class RecordLive : public LiveTest {
 protected:
  /// Path of a recording in that format.
  std::string file(const std::string& ending) const { return dir / ("trace." + ending); }
  /// Records a program that does almost nothing.
  std::string recorded(const std::string& ending, const Strings& options = {}) const {
    Strings arguments{"record", "-q", "-o", file(ending)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", ocaml_program("hello")});
    const Outcome outcome = run_tool(arguments);
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    return file(ending);
  }
};

/// Writes one stream in all formats at once.
class AllFormats final : public Sink {
 public:
  explicit AllFormats(const TempDir& dir)
      : fxt_(create(dir / "a.fxt")), json_(create(dir / "a.json")), pftrace_(create(dir / "a.pftrace")) {}

  void header(const RunHeader& header) override {
    for (Sink* sink : sinks_) sink->header(header);
  }
  void consume(const Batch& batch, const Registry& registry) override {
    for (Sink* sink : sinks_) sink->consume(batch, registry);
  }
  void flush() override {
    for (Sink* sink : sinks_) sink->flush();
  }
  void summary(const RunSummary& summary, const Registry& registry) override {
    for (Sink* sink : sinks_) sink->summary(summary, registry);
  }

  const StringOutput& lines() const { return lines_; }
  const FxtSink& fxt() const { return fxt_sink_; }

 private:
  static FdOutput create(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) throw std::system_error(errno, std::generic_category(), path);
    return {std::move(fd), path};
  }

  StringOutput lines_;
  FdOutput fxt_, json_, pftrace_;
  JsonlSink jsonl_{lines_};
  FxtSink fxt_sink_{fxt_};
  ChromeSink chrome_{json_};
  PerfettoSink perfetto_{pftrace_};
  std::array<Sink*, 4> sinks_{&jsonl_, &fxt_sink_, &chrome_, &perfetto_};
};

/// The tracer in this process, running from construction to stop().
class InProcess {
 public:
  InProcess(const LiveOptions& options, AllFormats& sink) : end_(::eventfd(0, EFD_CLOEXEC)) {
    auto attached = AttachedPrograms::load(options);
    if (!attached) throw std::runtime_error(attached.error().message());
    session_ = LiveSession::start(
        options, options.programs.sched != RTEV_SCHED_OFF,
        [&](const Sources::StreamParts& stream) {
          return std::make_unique<LiveSources>(options, stream, std::move(*attached), helper_);
        },
        sink, sink.lines(), stop_);
    thread_ = std::jthread([this] { session_->run({.readable_fd = end_.get()}); });
  }
  InProcess(const InProcess&) = delete;
  InProcess& operator=(const InProcess&) = delete;
  ~InProcess() { stop(); }

  void stop() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(end_.get(), &one, sizeof one);
    if (thread_.joinable()) thread_.join();
  }

 private:
  UniqueFd end_;
  StopSignal stop_;
  helper::HelperProcess helper_ = helper::HelperProcess::start().value();
  std::unique_ptr<LiveSession> session_;
  std::jthread thread_;
};

std::string replayed(const std::string& path) {
  StringOutput lines;
  JsonlSink jsonl(lines);
  auto file = RecordingFile::open(open_file(path), path);
  if (!file || !*file) throw std::runtime_error("no recording: " + path);
  const auto end = (*file)->replay(jsonl);
  EXPECT_TRUE(end) << end.error().message();
  EXPECT_TRUE(end && end->complete) << path;
  EXPECT_EQ(end ? end->note : "", "") << path;
  return lines.text();
}

/// A viewer has nothing to complain about.
void expect_clean_for_viewers(const fs::path& path) {
  if (path.extension() == ".json") {
    EXPECT_THAT(read_chrome_trace(read_file(path)).problems, IsEmpty()) << path;
  } else if (path.extension() == ".pftrace") {
    EXPECT_EQ(read_perfetto(read_file(path)).all_errors(), "") << path;
  }
}

/// Spans of the stream, on all rows of a Chrome trace.
std::size_t spans_in(const fs::path& path) {
  std::size_t count = 0;
  for (const auto& [row, spans] : read_chrome_trace(read_file(path)).spans)
    count += static_cast<std::size_t>(
        std::ranges::count_if(spans, [](const ChromeTrace::Span& span) { return !span.args.contains("begin"); }));
  return count;
}

TEST_F(RecordLive, TheRecordingHoldsTheWholeStream) {
  Process before(with_events("busy_alloc", {"5"}), "ready");
  AllFormats formats(dir);
  LiveOptions options;
  options.discovery.history = true;
  options.command_line = {"rtev-bpf", "record", "-o", "\"é\xff"};
  InProcess tracer(options, formats);
  {
    // Their rings are too small, so words are lost.
    Command hasty = with_events("busy_alloc", {"300"});
    hasty.env["OCAMLRUNPARAM"] = "e=8";
    Process domains(with_events("domains", {"3", "3"})), threads(with_events("systhreads")),
        forker(with_events("forker")), user(with_events("user_events")), buckets(with_events("alloc_buckets")),
        hello(with_events("hello")), exec(with_events("exec_chain", {ocaml_program("hello")})),
        uncaught(with_events("uncaught")), lossy(hasty), killed(with_events("killed"));
    for (Process* process : {&before, &domains, &threads, &forker, &user, &buckets, &hello, &exec, &uncaught, &lossy})
      process->close_stdin();
    killed.go_until("busy");
    killed.signal(SIGKILL);
    for (Process* process :
         {&before, &domains, &threads, &forker, &user, &buckets, &hello, &exec, &uncaught, &lossy, &killed})
      process->wait();
  }
  tracer.stop();

  EXPECT_FALSE(formats.fxt().writer().error());
  EXPECT_EQ(formats.fxt().writer().refused(), 0u);
  const std::string& shown = formats.lines().text();
  const Trace trace = Trace::parse(shown);
  std::set<std::string> types;
  for (const Json& event : trace.events) types.insert(event["type"]);
  EXPECT_THAT(types, IsSupersetOf({"begin", "end", "counter", "alloc", "lifecycle", "user", "lost", "process", "switch",
                                   "wakeup"}));
  EXPECT_EQ(first_difference(shown, replayed(dir / "a.fxt")), "");
  for (const char* ending : {"json", "pftrace"}) {
    expect_clean_for_viewers(dir / (std::string("a.") + ending));
    convert(dir / "a.fxt", dir / (std::string("converted.") + ending));
    expect_clean_for_viewers(dir / (std::string("converted.") + ending));
  }
  EXPECT_EQ(spans_in(dir / "converted.json"), spans_in(dir / "a.json"));
}

class RecordFxtLive : public RecordLive, public ::testing::WithParamInterface<const char*> {};

TEST_P(RecordFxtLive, ConvertsToEveryFormat) {
  const std::string recorded = file(GetParam());
  const Outcome outcome = run_tool({"record", "-o", recorded, "--", "sh", "-c", "\"$0\" 2 2; \"$1\"; exit 7",
                                    ocaml_program("domains"), ocaml_program("user_events")});
  EXPECT_EQ(outcome.status.code(), 7) << outcome.err;
  EXPECT_EQ(outcome.out, "ready\ndone\nready\nwritten\n") << "stdout is all the program's";
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("wrote " + recorded), HasSubstr(" of 2 OCaml processes in ")));
  struct stat status{};
  ASSERT_EQ(::stat(recorded.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(read_file(recorded).starts_with("\x1f\x8b"), recorded.ends_with(".gz"));

  const Outcome shown = dump(recorded);
  EXPECT_THAT(shown.err, Not(HasSubstr("not complete")));
  const Trace trace = Trace::parse(shown.out);
  EXPECT_THAT(trace.of("user"), Not(IsEmpty()));
  EXPECT_THAT(trace.of("switch"), Not(IsEmpty()));
  for (const char* ending : {"fxt", "fxt.gz", "jsonl", "json", "pftrace"}) {
    const std::string converted = dir / (std::string("converted.") + ending);
    convert(recorded, converted);
    if (std::string(ending).starts_with("fxt"))
      EXPECT_EQ(first_difference(shown.out, dump(converted).out), "") << ending;
    else if (std::string(ending) == "jsonl")
      EXPECT_EQ(first_difference(shown.out, read_file(converted)), "");
    else
      expect_clean_for_viewers(converted);
  }
  const Outcome text = run_tool({"dump", recorded});
  EXPECT_EQ(text.status.code(), 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("minor"), HasSubstr("domains"), Not(HasSubstr("{"))));
}

INSTANTIATE_TEST_SUITE_P(Formats, RecordFxtLive, ::testing::Values("fxt", "fxt.gz"), by_label);

class RecordExportLive : public RecordLive, public ::testing::WithParamInterface<const char*> {};

/// An export can be written live, and is not read back.
TEST_P(RecordExportLive, IsWrittenLiveAndNotReadBack) {
  const std::string written = recorded(GetParam());
  EXPECT_EQ(read_file(written).starts_with("\x1f\x8b"), written.ends_with(".gz"));
  expect_clean_for_viewers(written);
  if (written.ends_with(".jsonl")) Trace::parse(read_file(written));
  for (const Strings& arguments :
       {Strings{"dump", written}, {"convert", written, "-o", file("fxt")}, {"latency", "-i", written}}) {
    const Outcome outcome = run_tool(arguments);
    EXPECT_EQ(outcome.status.code(), 1);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(written), HasSubstr("export"), HasSubstr("hint:"), HasSubstr(".fxt")));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, RecordExportLive,
                         ::testing::Values("json", "pftrace", "jsonl", "json.gz", "pftrace.gz", "jsonl.gz"), by_label);

TEST_F(RecordLive, FormatCanDifferFromTheName) {
  EXPECT_THAT(read_chrome_trace(read_file(recorded("data", {"-f", "chrome"}))).problems, IsEmpty());
  const Outcome outcome = run_tool({"record", "-q", "-o", file("fxt"), "-f", "chrome", "--", "true"});
  EXPECT_EQ(outcome.status.code(), 2);
  EXPECT_THAT(outcome.err, HasSubstr("its suffix is that of fxt, and -f asks for chrome"));
  EXPECT_FALSE(fs::exists(file("fxt")));
}

TEST_F(RecordLive, FileBelongsToWhoCalledSudo) {
  ASSERT_EQ(::chown(dir.path().c_str(), nobody, nobody), 0);
  const std::map<std::string, std::string> sudo{{"SUDO_UID", "65534"}, {"SUDO_GID", "65534"}, {"SUDO_USER", "nobody"}};
  ASSERT_EQ(run_tool({"record", "-q", "-o", file("fxt"), "--", "true"}, {.argv = {}, .env = sudo}).status.code(), 0);
  ASSERT_EQ(run_tool({"convert", "-q", file("fxt"), "-o", file("json")}, {.argv = {}, .env = sudo}).status.code(), 0);
  for (const char* ending : {"fxt", "json"}) {
    struct stat status{};
    ASSERT_EQ(::stat(file(ending).c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, nobody);
    EXPECT_EQ(status.st_gid, nobody);
    EXPECT_EQ(status.st_mode & 07777, 0600u);
  }
  const Outcome theirs = run_tool({"dump", "-f", "jsonl", file("fxt")}, {.argv = {}, .user = nobody});
  EXPECT_EQ(theirs.status.code(), 0) << theirs.err;
  Trace::parse(theirs.out);
}

TEST_F(RecordLive, GoesThroughPipes) {
  const Outcome outcome = run({.argv = {"sh", "-c",
                                        "\"$0\" record -q -f fxt -o - -- sh -c '\"$0\" 2 2 >/dev/null' \"$1\" | \"$0\" "
                                        "convert -q - -f fxt -o - | \"$0\" dump -q -f jsonl -",
                                        tool(), ocaml_program("domains")}});
  EXPECT_EQ(outcome.status.code(), 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(Trace::parse(outcome.out).of("begin"), Not(IsEmpty()));
}

TEST_F(RecordLive, TerminalsGetOnlyText) {
  const std::string recording = recorded("fxt");
  const Command terminal{.argv = {}, .terminal = true};
  for (const Strings& arguments :
       {Strings{"record", "-o", "-", "-d", "1s"}, {"convert", recording, "-f", "pftrace", "-o", "-"}}) {
    const Outcome outcome = run_tool(arguments, terminal);
    EXPECT_EQ(outcome.status.code(), 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("terminal"), HasSubstr("hint:")));
  }
  const Outcome lines = run_tool({"convert", recording, "-f", "jsonl", "-o", "-"}, terminal);
  EXPECT_EQ(lines.status.code(), 0);
  EXPECT_EQ(first_difference(dump(recording).out, lines.out), "");
}

TEST_F(RecordLive, RecordingIsNotOverwrittenByItsConversion) {
  const std::string recording = recorded("fxt"), content = read_file(recording);
  const Outcome outcome = run_tool({"convert", recording, "-o", recording});
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, HasSubstr(recording));
  EXPECT_TRUE(read_file(recording) == content);
}

TEST_F(RecordLive, WholeHostForASecond) {
  Process first(with_events("killed")), second(with_events("killed"));
  for (Process* process : {&first, &second}) {
    process->go_until("busy");
  }
  const Outcome outcome = run_tool({"record", "-d", "1s", "-o", file("fxt")});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_TRUE(first.running() && second.running());
  const Trace trace = dumped(file("fxt"));
  EXPECT_GE(trace.summary["duration_ns"], 1'000'000'000);
  for (const Process* process : {&first, &second}) {
    EXPECT_THAT(trace.actions(process->pid()), ElementsAre("found", "ring"));
    EXPECT_THAT(trace.of(process->pid(), "begin"), Not(IsEmpty()));
    EXPECT_GT(trace.words(process->pid())["delivered"], 0u);
  }
  convert(file("fxt"), file("json"));
  const ChromeTrace chrome = read_chrome_trace(read_file(file("json")));
  EXPECT_THAT(chrome.problems, IsEmpty());
  for (const Process* process : {&first, &second}) {
    EXPECT_THAT(chrome.process_names.at(process->pid()), HasSubstr("killed"));
    const ChromeTrace::Row main{process->pid(), process->pid()};
    EXPECT_EQ(chrome.row_names.at(main), "domain 0");
    EXPECT_THAT(chrome.spans.at(main), Not(IsEmpty()));
    EXPECT_THAT(chrome.states.at(main), Not(IsEmpty()));
  }
}

}  // namespace
}  // namespace rtev::test
