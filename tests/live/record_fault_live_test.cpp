// SPDX-License-Identifier: MIT
// Recordings and exports when something fails: the disk is full, the reader leaves, the tracer or the program is
// killed. And the progress that is shown meanwhile.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>

#include "base/clock.hpp"
#include "live/harness.hpp"
#include "live/oracle.hpp"
#include "support/chrome_check.hpp"
#include "support/perfetto_check.hpp"

namespace rtev::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// A file system of limited size. Not mounted in any visible place; gone with the object.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& size) {
    const UniqueFd context(::fsopen("tmpfs", FSOPEN_CLOEXEC));
    if (!context) fail_errno("fsopen");
    if (::fsconfig(context.get(), FSCONFIG_SET_STRING, "size", size.c_str(), 0) != 0) fail_errno("fsconfig");
    if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) fail_errno("fsconfig");
    root_ = UniqueFd(::fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
    if (!root_) fail_errno("fsmount");
  }

  /// A path valid in all processes while this process runs.
  fs::path path() const { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(root_.get()); }

 private:
  UniqueFd root_;
};

/// Notified of each write to a file.
class Writes {
 public:
  explicit Writes(const fs::path& file) : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (!fd_ || ::inotify_add_watch(fd_.get(), file.c_str(), IN_MODIFY) < 0) fail_errno("inotify");
  }

  void wait() {
    pollfd fd{fd_.get(), POLLIN, 0};
    if (::poll(&fd, 1, static_cast<int>(std::chrono::milliseconds(wait_timeout).count())) <= 0)
      throw std::runtime_error("timeout: no more writes to the recording");
    std::array<char, 4096> events;
    while (::read(fd_.get(), events.data(), events.size()) > 0) {
    }
  }

 private:
  UniqueFd fd_;
};

class RecordFaultLive : public LiveTest {
 protected:
  std::string file(const std::string& ending) const { return dir / ("trace." + ending); }
};

struct FaultyFormat {
  const char* label;  ///< suffix of the file
  const char* disk;   ///< size of a disk with room for many events of a program
};

class RecordFaultFormatLive : public RecordFaultLive, public ::testing::WithParamInterface<FaultyFormat> {
 protected:
  std::string file() const { return RecordFaultLive::file(GetParam().label); }
};

/// What is in the file of a trace, as far as these tests ask.
struct Content {
  std::vector<std::uint64_t> begins{};  ///< times of a process's spans, in order
  std::size_t switches = 0;             ///< of any thread
};

Content in_recording(const std::string& path, pid_t pid, bool complete) {
  const Outcome shown = dump(path);
  const auto incomplete = HasSubstr(path + " is truncated");
  EXPECT_THAT(shown.err, ::testing::Conditional(complete, Not(incomplete), incomplete));
  const Trace trace = Trace::parse(shown.out);
  Content content{.switches = trace.of("switch").size()};
  for (const Json& begin : trace.of(pid, "begin")) content.begins.push_back(begin["ts"]);
  return content;
}

Content in_lines(const std::string& text, pid_t pid, bool complete) {
  Content content;
  bool has_summary = false;
  for (const Json& line : json_lines(text)) {
    const std::string type = line["type"];
    if (type == "begin" && line["pid"] == pid) content.begins.push_back(line["ts"]);
    content.switches += type == "switch";
    has_summary |= type == "summary";
  }
  EXPECT_EQ(has_summary, complete);
  return content;
}

Content in_chrome(const std::string& text, pid_t pid, bool complete) {
  const ChromeTrace trace = complete ? read_chrome_trace(text) : read_cut_chrome_trace(text);
  EXPECT_THAT(trace.problems, IsEmpty());
  EXPECT_EQ(trace.summary.is_null(), !complete);
  Content content;
  const std::uint64_t origin = trace.header["ts_origin"];
  for (const auto& [row, spans] : trace.spans) {
    if (row.first != pid) continue;
    for (const ChromeTrace::Span& span : spans) content.begins.push_back(origin + span.from);
  }
  for (const auto& [row, states] : trace.states) content.switches += states.size();
  return content;
}

Content in_perfetto(const std::string& bytes, pid_t pid, bool complete) {
  const PerfettoTrace trace = read_perfetto(bytes, complete ? Ending::complete : Ending::open);
  EXPECT_EQ(trace.all_errors(), "");
  Content content{.switches = trace.switches.size()};
  for (const auto& [uuid, track] : trace.tracks) {
    if (track.pid != pid) continue;
    for (const PerfettoSlice& slice : track.slices) content.begins.push_back(slice.time);
  }
  return content;
}

/// A file that is cut must be good up to its last whole record, or line.
Content content_of(const std::string& path, pid_t pid, bool complete) {
  const fs::path extension = fs::path(path).extension();
  Content content;
  if (extension == ".pftrace") {
    content = in_perfetto(read_file(path), pid, complete);
  } else if (extension == ".json" || extension == ".jsonl") {
    std::string text = read_file(path);
    if (!complete) text.erase(text.rfind('\n') + 1);
    content = extension == ".json" ? in_chrome(text, pid, complete) : in_lines(text, pid, complete);
  } else {
    content = in_recording(path, pid, complete);
  }
  std::ranges::sort(content.begins);
  return content;
}

/// A program that collects garbage until it is killed.
void keep_busy(Process& program) {
  program.go_until("busy");
}

TEST_P(RecordFaultFormatLive, FullDiskIsAnErrorAndLeavesAReadableFile) {
  const SmallDisk disk(GetParam().disk);
  const std::string full = disk.path() / (std::string("trace.") + GetParam().label);
  Process program(with_events("busy_alloc", {"100000"}), "ready");
  Tracer tracer({"-q", "-p", std::to_string(program.pid()), "--min-free", "0", "-o", full}, {.format = {"record"}});
  program.go();
  const Outcome outcome = tracer.process().wait();
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("cannot write to " + full), HasSubstr("No space left"), HasSubstr("hint:")));
  EXPECT_TRUE(program.running());

  EXPECT_THAT(content_of(full, program.pid(), false).begins, Not(IsEmpty()));
}

/// The floor of free space ends the recording before the disk is full: also where what is on its way to the file takes
/// more than the floor.
TEST_P(RecordFaultFormatLive, LowDiskEndsWithACompleteFile) {
  for (const auto& [size, floor] : {std::pair("128m", "123m"), std::pair("6m", "1%")}) {
    SCOPED_TRACE(size);
    const SmallDisk disk(size);
    const std::string path = disk.path() / (std::string("trace.") + GetParam().label);
    Process program(with_events("killed"), "ready");
    Tracer tracer({"-p", std::to_string(program.pid()), "-o", path, "--min-free", floor}, {.format = {"record"}});
    keep_busy(program);
    const Outcome outcome = tracer.process().wait();
    EXPECT_EQ(outcome.status.code(), 1);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("less than --min-free is free"), HasSubstr("wrote " + path)));
    EXPECT_TRUE(program.running());
    EXPECT_THAT(content_of(path, program.pid(), true).begins, Not(IsEmpty()));
  }
}

/// The file never lags far behind, and is valid wherever it ends.
TEST_P(RecordFaultFormatLive, KilledTracerLeavesAReadableFile) {
  // The documented limit is one second; a loaded machine may take longer.
  constexpr auto recorded = 3s, longest_lag = 2s;
  Process program(with_events("killed"), "ready");
  Tracer tracer({"-q", "-p", std::to_string(program.pid()), "-o", file()}, {.format = {"record"}});
  Writes writes(file());
  keep_busy(program);
  auto last = Clock::now();
  for (const auto end = last + recorded; last < end;) {
    writes.wait();
    const auto now = Clock::now();
    EXPECT_LT(now - last, longest_lag) << "between two writes";
    last = now;
  }
  tracer.process().signal(SIGKILL);
  const std::uint64_t killed_ns = monotonic_ns();
  EXPECT_EQ(tracer.process().wait().status.signal(), SIGKILL);
  EXPECT_TRUE(program.running());

  const Content content = content_of(file(), program.pid(), false);
  ASSERT_THAT(content.begins, Not(IsEmpty()));
  EXPECT_GT(content.begins.back() + std::chrono::nanoseconds(longest_lag).count(), killed_ns);
  EXPECT_LT(content.begins.back(), killed_ns);
  EXPECT_GT(content.switches, 0u);
}

TEST_P(RecordFaultFormatLive, TerminatedTracerEndsTheRecording) {
  Process program(with_events("killed"), "ready");
  Tracer tracer({"-o", file()}, {.format = {"record"}});
  keep_busy(program);
  tracer.process().signal(SIGTERM);
  const Outcome outcome = tracer.process().wait();
  EXPECT_EQ(outcome.status.code(), 0);
  EXPECT_THAT(outcome.err, HasSubstr("wrote " + file()));
  EXPECT_THAT(content_of(file(), program.pid(), true).begins, Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(Formats, RecordFaultFormatLive,
                         ::testing::Values(FaultyFormat{"fxt", "1m"}, FaultyFormat{"json", "4m"},
                                           FaultyFormat{"pftrace", "2m"}, FaultyFormat{"jsonl", "1m"},
                                           FaultyFormat{"fxt.gz", "256k"}),
                         by_label);

TEST_F(RecordFaultLive, MaxSizeEndsTheRecording) {
  Process program(with_events("killed"), "ready");
  Tracer tracer({"-p", std::to_string(program.pid()), "-o", file("fxt"), "--max-size", "512k"}, {.format = {"record"}});
  keep_busy(program);
  const Outcome outcome = tracer.process().wait();
  EXPECT_EQ(outcome.status.code(), 0);
  EXPECT_THAT(outcome.err, HasSubstr("has the size of --max-size"));
  EXPECT_GE(fs::file_size(file("fxt")), 512u << 10);
  const Trace trace = Trace::parse(dump(file("fxt")).out);
  EXPECT_THAT(trace.of(program.pid(), "begin"), Not(IsEmpty()));
}

TEST_F(RecordFaultLive, FilesOfASeriesTogetherHaveAllEvents) {
  Process program(with_events("busy_alloc", {"3000"}), "ready");
  Tracer tracer({"-p", std::to_string(program.pid()), "-o", file("fxt"), "--max-size", "256k", "--max-files", "1000"},
                {.format = {"record"}});
  program.go();
  run_through(program);
  tracer.process().wait();
  std::map<std::string, std::uint64_t> words;
  std::uint64_t events = 0, files = 0, next_end = UINT64_MAX;
  for (std::string path = file("fxt"); fs::exists(path); path = file(std::to_string(++files) + ".fxt")) {
    const Trace trace = Trace::parse(dump(path).out);
    EXPECT_FALSE(trace.summary.contains("truncated")) << path;
    EXPECT_LE(trace.summary["end"].get<std::uint64_t>(), next_end) << path;
    next_end = trace.header["start"];
    events += trace.from_rings(program.pid()).size();
    for (const auto& [kind, count] : trace.words(program.pid())) words[kind] += count;
    words["events"] += trace.process(program.pid()).value("events", std::uint64_t{0});
  }
  EXPECT_GT(files, 2u);
  EXPECT_EQ(words["events"], events);
  EXPECT_EQ(words["written"], words["delivered"] + words["before_attach"]);
}

TEST_F(RecordFaultLive, KilledCommandIsRecordedToItsEnd) {
  Process tracer({.argv = {tool(), "record", "-o", file("fxt"), "--", "sh", "-c", "echo $$; exec \"$0\"",
                           ocaml_program("killed")}});
  const pid_t pid = std::stoi(tracer.lines_until("ready").front());
  keep_busy(tracer);  // The tracer hands its stdin and stdout to the program.
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  const Outcome outcome = tracer.wait();
  EXPECT_EQ(outcome.status.code(), 128 + SIGKILL);
  const Outcome shown = dump(file("fxt"));
  EXPECT_THAT(shown.err, Not(HasSubstr("not complete")));
  const Trace trace = Trace::parse(shown.out);
  EXPECT_EQ(trace.action(pid, "exit")["status"], Json({{"signal", SIGKILL}}));
  expect_all_delivered(trace, pid);
}

TEST_F(RecordFaultLive, ClosedPipeIsAnError) {
  Process program(with_events("killed"));
  keep_busy(program);
  const Outcome outcome = run(
      {.argv = {"bash", "-c", "\"$0\" record -q -d 1h -o - | head -c 100 >/dev/null; exit ${PIPESTATUS[0]}", tool()}});
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("stdout"), HasSubstr("Broken pipe")));
}

TEST_F(RecordFaultLive, ConversionToAFullDiskIsAnError) {
  ASSERT_EQ(run_tool({"record", "-q", "-o", file("fxt"), "--", ocaml_program("busy_alloc"), "50"}).status.code(), 0);
  const SmallDisk disk("16k");
  const std::string full = disk.path() / "full.jsonl";
  const Outcome outcome = run_tool({"convert", file("fxt"), "-o", full});
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write to " + full));
}

TEST_F(RecordFaultLive, CutRecordingIsReportedAsIncomplete) {
  ASSERT_EQ(run_tool({"record", "-q", "-o", file("fxt"), "--", ocaml_program("busy_alloc"), "5"}).status.code(), 0);
  fs::resize_file(file("fxt"), fs::file_size(file("fxt")) * 2 / 3 - 3);
  const Outcome shown = dump(file("fxt"));
  EXPECT_THAT(shown.err, HasSubstr(file("fxt") + " is truncated"));
  EXPECT_THAT(Trace::parse(shown.out).of("begin"), Not(IsEmpty()));
}

class RecordProgressLive : public RecordFaultLive {
 protected:
  Outcome record(const Strings& options, bool terminal) {
    Process program(with_events("killed"));
    keep_busy(program);
    Strings arguments{"record", "-d", "1500ms", "-o", file("fxt")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = run_tool(arguments, {.argv = {}, .error_terminal = terminal});
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    return outcome;
  }
};

TEST_F(RecordProgressLive, IsShownOnATerminalAndCleared) {
  const std::string err = record({}, true).err;
  const std::string clear = "\r\x1b[K";
  EXPECT_THAT(err, ContainsRegex("\r\x1b\\[Krecording: [0-9]+s  [0-9,]+ events  [0-9,]+/s  [0-9.]+ .?B  0 words lost"));
  const std::size_t last = err.rfind(clear);
  ASSERT_NE(last, std::string::npos);
  const std::string after = err.substr(last + clear.size());
  EXPECT_THAT(after, AllOf(Not(HasSubstr("recording:")), HasSubstr("wrote " + file("fxt"))));
}

TEST_F(RecordProgressLive, IsNotShownInPipesOrWithQuiet) {
  const std::string piped = record({}, false).err;
  EXPECT_THAT(piped, AllOf(Not(HasSubstr("recording:")), Not(HasSubstr("\x1b")), HasSubstr("wrote " + file("fxt"))));
  EXPECT_EQ(record({"-q"}, true).err, "");
}

}  // namespace
}  // namespace rtev::test
