// SPDX-License-Identifier: MIT
// Time until an event is shown, and until the tracer has exited.
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <deque>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "bench/benchmarks.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/tool.hpp"
#include "rtev/ring_writer.hpp"
#include "support/temp_dir.hpp"

namespace rtev::bench {
namespace {

using Json = nlohmann::json;

double ms_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return (static_cast<double>(to_ns) - static_cast<double>(from_ns)) / 1e6;
}

/// The tracer's JSON lines, each with its time of arrival.
class Stream {
 public:
  Stream() : path_(directory_ / "stream") {
    if (::mkfifo(path_.c_str(), 0600) != 0) throw std::system_error(errno, std::generic_category(), "mkfifo");
    // Opened first and for reading and writing, so that neither side blocks.
    fd_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!fd_) throw std::system_error(errno, std::generic_category(), "open " + path_.string());
    tool_.emplace(std::vector<std::string>{"-f", "jsonl", "-o", path_.string()});
  }
  ~Stream() { tool_->process().signal(SIGKILL); }

  struct Line {
    Json event;
    std::uint64_t arrived_ns;
  };
  /// The next line that contains `text`.
  Line next(std::string_view text) {
    while (true) {
      for (std::size_t end; (end = bytes_.find('\n')) != std::string::npos;) {
        const std::string line = bytes_.substr(0, end);
        bytes_.erase(0, end + 1);
        if (line.find(text) != std::string::npos) return {Json::parse(line), arrived_ns_};
      }
      receive();
    }
  }

 private:
  void receive() {
    pollfd readable{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    const auto limit = std::chrono::milliseconds(test::wait_timeout).count();
    if (::poll(&readable, 1, static_cast<int>(limit)) == 0)
      throw std::runtime_error("timeout: no output of the tracer");
    std::array<char, 65536> chunk;
    const ssize_t size = ::read(fd_.get(), chunk.data(), chunk.size());
    arrived_ns_ = monotonic_ns();
    if (size > 0) bytes_.append(chunk.data(), static_cast<std::size_t>(size));
  }

  test::TempDir directory_;
  std::filesystem::path path_;
  UniqueFd fd_;
  std::optional<Tool> tool_;
  std::string bytes_;
  std::uint64_t arrived_ns_ = 0;  ///< of the last chunk of bytes_
};

/// Times of one run of a program that does almost nothing.
struct RunTimes {
  std::uint64_t exec_ns = 0, first_event_ns = 0, first_arrived_ns = 0, last_arrived_ns = 0, exit_ns = 0,
                exit_arrived_ns = 0;
};

RunTimes watch_hello(Stream& stream, const std::filesystem::path& directory) {
  test::Process program(ocaml_program("hello", directory));
  const std::string of_it = fmt::format("\"pid\":{},", program.pid());
  RunTimes times;
  while (times.exit_ns == 0) {
    const auto [event, arrived_ns] = stream.next(of_it);
    const std::string type = event.value("type", "");
    const std::uint64_t time = event.value("ts", std::uint64_t{0});
    if (type == "process") {
      const std::string action = event.value("action", "");
      if (action == "exec" || action == "found") times.exec_ns = time;
      if (action == "exit") {
        times.exit_ns = time;
        times.exit_arrived_ns = arrived_ns;
      }
    } else if (type == "begin" || type == "end" || type == "counter" || type == "lifecycle") {
      if (times.first_event_ns == 0) {
        times.first_event_ns = time;
        times.first_arrived_ns = arrived_ns;
      }
      times.last_arrived_ns = arrived_ns;
    }
  }
  if (times.exec_ns == 0 || times.first_event_ns == 0) throw std::runtime_error("events of a program did not arrive");
  program.wait();
  return times;
}

void program_runs(Report& report, const Effort& effort) {
  const int samples = effort.rounds < 7 ? 10 : 50;
  const test::TempDir directory;
  Stream stream;
  Series first{.name = "rtev-bpf", .runs = {}}, own{.name = "the program", .runs = {}}, delivery = first, last = first,
                                                                                        exit = first;
  watch_hello(stream, directory.path());  // the first inspection of the binary
  for (int i = 0; i < samples; ++i) {
    const RunTimes times = watch_hello(stream, directory.path());
    first.runs.push_back(ms_between(times.exec_ns, times.first_arrived_ns));
    own.runs.push_back(ms_between(times.exec_ns, times.first_event_ns));
    delivery.runs.push_back(ms_between(times.first_event_ns, times.first_arrived_ns));
    last.runs.push_back(ms_between(times.exit_ns, times.last_arrived_ns));
    exit.runs.push_back(ms_between(times.exit_ns, times.exit_arrived_ns));
  }
  const auto add = [&](const char* what, const Series& series, std::optional<Goal> goal, const char* note) {
    report.add(
        {.section = "latency", .what = what, .unit = "ms", .subject = series, .goal = std::move(goal), .note = note});
  };
  add("exec to first event delivered", first, Goal::at_most(1, "ms"),
      "an OCaml hello world, JSON lines read from a pipe; the two rows below are what it is made of");
  add("  exec to first event written", own, std::nullopt, "by the program: its start, and the making of its ring");
  add("  first event written to delivered", delivery, Goal::at_most(1, "ms"),
      "finding the ring, reading, and holding back until no older event can come");
  add("exit to last event delivered", last, Goal::at_most(50, "ms"), "the same runs; the last event of the ring");
  add("exit to exit delivered", exit, Goal::at_most(50, "ms"), "the line that says so");
}

/// Single events of a process that otherwise sleeps.
void rare_events(Report& report, const Effort& effort) {
  const int samples = effort.rounds < 7 ? 10 : 50;
  const test::TempDir directory;
  Stream stream;
  auto writer = RingWriter::create({.directory = directory.path().string()});
  if (!writer) throw std::runtime_error(writer.error().message());
  const auto event = writer->register_event("bench.rare", UserType::unit);
  if (!event) throw std::runtime_error(event.error().message());
  Series series{.name = "rtev-bpf", .runs = {}};
  for (int i = 0; i < samples; ++i) {
    // Not a multiple of any of the tracer's intervals.
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 7 * (i % 5)));
    writer->domain(0).write(*event);
    const auto [line, arrived_ns] = stream.next("bench.rare");
    series.runs.push_back(ms_between(line.value("ts", std::uint64_t{0}), arrived_ns));
  }
  report.add({.section = "latency",
              .what = "rare event written to delivered",
              .unit = "ms",
              .subject = series,
              .note = "a user event every few hundredths of a second, of a process that sleeps in between"});
}

/// Ctrl-C with this many binaries attached.
void leaving(Report& report, const Effort& effort) {
  constexpr int many = 50;
  const test::TempDir directory;
  std::deque<test::Process> programs;
  for (int i = 0; i < many; ++i) {
    const auto copy = directory / fmt::format("program{}", i);
    test::Command command = ocaml_program("busy_alloc", directory.path());
    std::filesystem::copy_file(command.argv[0], copy);
    command.argv[0] = copy.string();
    programs.emplace_back(command);
    programs.back().lines_until("ready");
  }
  Series attach{.name = "rtev-bpf", .runs = {}}, leave = attach;
  for (int round = 0; round < std::max(3, effort.rounds); ++round) {
    const std::uint64_t launched = monotonic_ns();
    Tool tool({"-o", "/dev/null"});
    const std::uint64_t ready = monotonic_ns();
    tool.interrupt();
    leave.runs.push_back(ms_between(ready, monotonic_ns()));
    attach.runs.push_back(ms_between(launched, ready));
  }
  report.add({.section = "latency",
              .what = fmt::format("Ctrl-C to exit, {} binaries attached", many),
              .unit = "ms",
              .subject = leave,
              .goal = Goal::at_most(1000, "ms"),
              .note = "running programs with rings, copies of one; until the tracer's process has ended"});
  report.add({.section = "latency",
              .what = fmt::format("start to ready, {} binaries to attach", many),
              .unit = "ms",
              .subject = attach,
              .note = "the same runs"});
}

}  // namespace

void latency(Report& report, const Effort& effort) {
  if (has_ocaml()) program_runs(report, effort);
  rare_events(report, effort);
  if (has_ocaml()) leaving(report, effort);
}

}  // namespace rtev::bench
