// SPDX-License-Identifier: MIT
// A tracer that cannot keep up with the scheduler says when events are missing, and reports show that time as unknown.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "base/unique_fd.hpp"
#include "kernel/sched_records.hpp"
#include "live/analysis_fixture.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

/// Reads from a fifo. Can pause, so that the fifo fills up.
class SlowReader {
 public:
  explicit SlowReader(const std::string& path)
      : ours_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)),
        // poll() on the fifo shows whether it has room. The open write end also prevents an early end of the stream.
        probe_(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)),
        thread_([this](const std::stop_token& stop) { read(stop); }) {}

  void pause() {
    const std::lock_guard lock(mutex_);
    paused_ = true;
  }
  void resume() {
    {
      const std::lock_guard lock(mutex_);
      paused_ = false;
    }
    changed_.notify_all();
  }
  bool is_full() const {
    pollfd room{.fd = probe_.get(), .events = POLLOUT, .revents = 0};
    return ::poll(&room, 1, 0) == 0;
  }
  /// Waits for all writers to close the fifo, and returns everything written.
  std::string finish() {
    probe_.reset();
    thread_.request_stop();
    thread_.join();
    return text_;
  }

 private:
  void read(const std::stop_token& stop) {
    std::array<char, 1 << 16> bytes;
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [this] { return !paused_; });
      pollfd more{.fd = ours_.get(), .events = POLLIN, .revents = 0};
      const bool ready = ::poll(&more, 1, 10) > 0;
      const ssize_t size = ready ? ::read(ours_.get(), bytes.data(), bytes.size()) : -1;
      if (size > 0) {
        text_.append(bytes.data(), static_cast<std::size_t>(size));
      } else if (stop.stop_requested()) {
        return;
      }
    }
  }

  UniqueFd ours_, probe_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool paused_ = false;
  std::string text_;
  std::jthread thread_;
};

/// Two threads on one cpu that wake each other in turn: two switches and two wakeups per round.
class PingPong {
 public:
  explicit PingPong(int cpu) {
    for (auto& ends : pipes_) {
      std::array<int, 2> fds{-1, -1};
      EXPECT_EQ(::pipe2(fds.data(), O_CLOEXEC), 0);
      ends = {UniqueFd(fds[0]), UniqueFd(fds[1])};
    }
    for (std::size_t side = 0; side < players_.size(); ++side)
      players_[side] = std::jthread([this, side, cpu] { play(side, cpu); });
    const char ball = 0;
    EXPECT_EQ(::write(pipes_[0][1].get(), &ball, 1), 1);
  }
  PingPong(const PingPong&) = delete;
  PingPong& operator=(const PingPong&) = delete;
  ~PingPong() { stop(); }

  /// Runs that many more rounds. Throws on timeout.
  void play_on(std::uint64_t more) const {
    until([this, end = rounds_ + more] { return rounds_ >= end; });
  }
  template <typename Condition>
  static void until(Condition condition) {
    if (!poll_until(condition)) throw std::runtime_error("timeout while waiting for a condition");
  }

  void stop() {
    over_ = true;
    for (auto& player : players_) {
      if (player.joinable()) player.join();
    }
  }

 private:
  void play(std::size_t side, int cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<std::size_t>(cpu), &cpus);
    EXPECT_EQ(::sched_setaffinity(0, sizeof cpus, &cpus), 0);
    char ball = 0;
    while (!over_ && ::read(pipes_[side][0].get(), &ball, 1) == 1) {
      rounds_ += side;
      if (over_ || ::write(pipes_[1 - side][1].get(), &ball, 1) != 1) break;
    }
    // The other thread may be waiting.
    [[maybe_unused]] const ssize_t written = ::write(pipes_[1 - side][1].get(), &ball, 1);
  }

  std::array<std::array<UniqueFd, 2>, 2> pipes_;
  std::atomic<std::uint64_t> rounds_ = 0;
  std::atomic<bool> over_ = false;
  std::array<std::jthread, 2> players_;
};

/// If a cpu's next switch does not start with the thread of the previous one, a switch in between is missing. The
/// tracer must have reported each such gap. Exception: on some hosts' kernels the tracepoint is not called while a
/// thread of pid 1 is current; such gaps are not reported.
void expect_gaps_reported(const Trace& trace) {
  constexpr int init = 1;
  struct Last {
    std::uint64_t time;
    Json next;
  };
  std::map<std::uint32_t, Last> cpus;
  std::size_t unreported = 0;
  const std::vector<Json> losses = trace.of("lost");
  for (const Json& event : trace.of("switch")) {
    const std::uint32_t cpu = event["cpu"];
    const std::uint64_t time = event["ts"];
    if (const auto last = cpus.find(cpu);
        last != cpus.end() && last->second.next["tid"] != event["prev"]["tid"] && last->second.next["pid"] != init) {
      const bool reported = std::ranges::any_of(losses, [&](const Json& loss) {
        return loss.value("reason", "") == "dropped" && loss["buffer"] == cpu % kernel::max_sched_buffers &&
               loss["from"] < time && loss["to"] > last->second.time;
      });
      if (!reported && unreported++ == 0)
        ADD_FAILURE() << "missing without a word, after " << last->second.time << " " << last->second.next
                      << " and before " << event;
    }
    cpus[cpu] = {time, event["next"]};
  }
  EXPECT_EQ(unreported, 0u);
}

constexpr std::uint64_t rounds = 4'000;

class DropsLive : public AnalysisLive {};

TEST_F(DropsLive, DroppedSchedulerEventsAreReportedWithTheirTime) {
  const std::string fifo = dir / "stream";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  SlowReader reader(fifo);
  Process process(with_events("collections", {"20", "5", "2"}), "ready");
  // To stdout: files are written by a separate thread with a large queue.
  std::optional<Process> tracer;
  start_ready(tracer, {.argv = {"sh", "-c", R"(exec "$@" > "$0")", fifo, tool(), "-f", "fxt", "--sched", "all",
                                "--buffer", "64K"}});

  PingPong game(0);
  reader.pause();
  game.until([&] { return reader.is_full(); });
  // The tracer blocks at its next write at the latest, and a buffer holds about 600 records.
  game.play_on(rounds);
  const std::uint64_t begin = monotonic_ns();
  process.go_until("done");
  const std::uint64_t end = monotonic_ns();
  game.play_on(rounds / 4);
  game.stop();
  reader.resume();
  process.go();
  process.wait();
  tracer->signal(SIGINT);
  const Outcome outcome = tracer->wait();
  ASSERT_EQ(outcome.status.code(), 0) << outcome.err;
  const std::string file = dir / "trace.fxt";
  std::ofstream(file, std::ios::binary) << reader.finish();
  const Trace trace = dumped(file);

  std::uint64_t reported = 0;
  bool covered = false;
  const std::uint64_t start = trace.header["start"], stop = trace.summary["end"];
  for (const Json& loss : trace.of("lost")) {
    if (loss.value("reason", "") != "dropped") continue;
    const std::uint64_t from = loss["from"], to = loss["to"];
    EXPECT_FALSE(loss.value("late", false)) << loss;
    EXPECT_EQ(loss["ts"], from) << "the loss precedes the events after it";
    EXPECT_GE(from, start) << loss;
    EXPECT_GE(to, from) << loss;
    EXPECT_LE(to, stop) << loss;
    reported += loss["records"].get<std::uint64_t>();
    covered |= loss["buffer"] == 0 && from < begin && to > end;
  }
  EXPECT_TRUE(covered) << "of cpu 0 nothing was read from " << begin << " to " << end;
  const Json& drops = trace.summary["drops"];
  EXPECT_EQ(reported, drops["switch"].get<std::uint64_t>() + drops["wakeup"].get<std::uint64_t>());
  EXPECT_GE(reported, 4 * rounds / 2) << "switches and wakeups of the ping-pong";
  expect_gaps_reported(trace);

  // What the program's threads did meanwhile is unknown.
  const std::string pid = std::to_string(process.pid());
  const Json pauses = report({"pauses", "--top", "1000", "-i", file, "-p", pid});
  EXPECT_EQ(pauses["counts"]["scheduler_dropped"], reported);
  std::size_t within = 0;
  for (const Json& pause : pauses["pauses"]) {
    const std::uint64_t from = pause["begin_ns"], length = pause["duration_ns"];
    if (from < begin || from + length > end) continue;
    ++within;
    EXPECT_EQ(pause["time_ns"]["unknown"], length) << pause;
  }
  EXPECT_GE(within, 20u) << "minor collections alone";
  const Json latency = report({"latency", "-i", file, "-p", pid});
  EXPECT_EQ(latency["scheduler_dropped"], reported);
  EXPECT_GT(latency["all"]["time_ns"]["unknown"], 0u) << latency["all"];
}

}  // namespace
}  // namespace rtev::test
