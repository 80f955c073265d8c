// SPDX-License-Identifier: MIT
// Live rings: the share of events that readers get from a producer at full speed, and the highest rate without loss.
#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/peer.hpp"
#include "bench/producer.hpp"
#include "bench/tool.hpp"
#include "rtev/ring_reader.hpp"

namespace rtev::bench {
namespace {

constexpr int producer_cpu = 0, reader_cpu = 1;

/// A thread that follows a ring with a RingReader.
class OurReader {
 public:
  OurReader(const Ring& ring, int interval_us) : reader_(open(ring)), interval_us_(interval_us) {
    thread_ = std::jthread([this](const std::stop_token& stop) { follow(stop); });
  }

  Followed stop() {
    thread_.request_stop();
    thread_.join();
    const Accounting words = reader_.accounting();
    return {.events = words.events, .lost_words = words.lost, .polls = polls_, .failed_polls = 0, .cpu_ns = cpu_ns_};
  }

 private:
  static RingReader open(const Ring& ring) {
    auto reader = RingReader::open(ring.path(), {.history = RingReader::History::skip});
    if (!reader) throw std::runtime_error(reader.error().message());
    return std::move(*reader);
  }

  void follow(const std::stop_token& stop) {
    const CpuBinding binding(reader_cpu);
    const std::uint64_t start = thread_cpu_ns();
    const timespec pause{.tv_sec = 0, .tv_nsec = interval_us_ * 1000L};
    const auto see = [&](const Batch& batch) {
      for (const Event& event : batch.events()) time_sum_ += event.time;
    };
    for (bool last = false; !last;) {
      last = stop.stop_requested();
      bool complete = reader_.poll(see).complete;
      ++polls_;
      while (last && !complete) complete = reader_.poll(see).complete;
      if (interval_us_ > 0) ::nanosleep(&pause, nullptr);
    }
    cpu_ns_ = thread_cpu_ns() - start;
  }

  RingReader reader_;
  int interval_us_;
  std::uint64_t time_sum_ = 0, polls_ = 0, cpu_ns_ = 0;
  std::jthread thread_;
};

/// rtev-bpf, which reads and merges all rings, and writes nothing. Without scheduler events it holds events back for
/// longer: a thread that has the time of an event, and lost its CPU, may publish it late.
class ToolReader {
 public:
  ToolReader(const Ring&, bool scheduler)
      : tool_(with_pid(scheduler ? to_nothing({}) : to_nothing(), ::getpid()), reader_cpu) {}

  Followed stop() {
    const std::uint64_t cpu = tool_.cpu_ns() - cpu_at_start_;
    const ToolFigures figures = figures_of(tool_.interrupt().out, ::getpid());
    return {.events = figures.events, .lost_words = figures.lost_words, .polls = 0, .failed_polls = 0, .cpu_ns = cpu};
  }

 private:
  Tool tool_;
  std::uint64_t cpu_at_start_ = tool_.cpu_ns();
};

struct Run {
  Produced produced;
  Followed followed;
};

/// One run: a reader follows a new ring while it is written.
using Follow = std::function<Run(unsigned log2_words, double events_per_second, double seconds)>;

template <typename Reader, typename... Arguments>
Run follow(unsigned log2_words, double events_per_second, double seconds, Arguments... arguments) {
  Ring ring(log2_words);
  Run run;
  Reader reader(ring, arguments...);
  {
    const CpuBinding binding(producer_cpu);
    run.produced = produce_for(ring, Mix::runtime, events_per_second, seconds);
  }
  run.followed = reader.stop();
  return run;
}

struct PeerReader : FollowingPeer {
  PeerReader(const Ring& ring, PeerKind kind, int interval_us)
      : FollowingPeer(kind, ring.directory(), ::getpid(), reader_cpu, interval_us) {}
};

Follow ours(int interval_us) {
  return [=](unsigned e, double rate, double s) { return follow<OurReader>(e, rate, s, interval_us); };
}
Follow tool(bool scheduler) {
  return [=](unsigned e, double rate, double s) { return follow<ToolReader>(e, rate, s, scheduler); };
}
Follow peer(PeerKind kind, int interval_us) {
  return [=](unsigned e, double rate, double s) { return follow<PeerReader>(e, rate, s, kind, interval_us); };
}

/// Results of all runs of one reader.
struct Reader {
  std::string name;
  Follow follow;
  Series share{}, lost{};          // %
  Series delivered{}, produced{};  // M events/s
  Series busy{};                   // % of a cpu
  std::uint64_t failed_polls = 0;

  Reader(std::string called, Follow how) : name(std::move(called)), follow(std::move(how)) {
    share.name = lost.name = delivered.name = produced.name = name;
  }

  void run(unsigned log2_words, double events_per_second, double seconds) {
    const Run run = follow(log2_words, events_per_second, seconds);
    const auto million_per_second = [&](std::uint64_t events) {
      return static_cast<double>(events) * 1e3 / static_cast<double>(run.produced.ns);
    };
    const auto percent = [](std::uint64_t part, std::uint64_t whole) {
      return 100 * static_cast<double>(part) / static_cast<double>(whole);
    };
    share.runs.push_back(percent(run.followed.events, run.produced.events));
    lost.runs.push_back(percent(run.followed.lost_words, run.produced.words));
    delivered.runs.push_back(million_per_second(run.followed.events));
    produced.runs.push_back(million_per_second(run.produced.events));
    busy.runs.push_back(percent(run.followed.cpu_ns, run.produced.ns));
    failed_polls += run.followed.failed_polls;
  }

  std::string summary() const {
    return fmt::format("{}: {:.1f} of {:.1f} M events/s at {:.0f} % cpu", name, delivered.median(), produced.median(),
                       busy.median());
  }
};

std::string peer_name(PeerKind kind, int interval_us) {
  return fmt::format("{}{}", name_of(kind), interval_us == 0 ? "" : ", each ms");
}

/// Runs all readers in turn; those with the same interval are compared.
void flat_out(Report& report, unsigned log2_words, const Effort& effort) {
  enum : std::size_t {
    ours_at_once,
    ours_each_ms,
    our_tool,
    our_tool_without_scheduler,
    c_at_once,
    c_each_ms,
    ocaml_at_once,
    ocaml_each_ms
  };
  std::vector<Reader> readers{{"librtev", ours(0)},
                              {"librtev, each ms", ours(1000)},
                              {"rtev-bpf", tool(true)},
                              {"rtev-bpf --sched off", tool(false)}};
  if (has_ocaml()) {
    for (const PeerKind kind : {PeerKind::c, PeerKind::ocaml}) {
      for (const int interval_us : {0, 1000})
        readers.emplace_back(peer_name(kind, interval_us), peer(kind, interval_us));
    }
  }
  for (int round = 0; round < effort.rounds; ++round) {
    for (Reader& reader : readers) reader.run(log2_words, 0, effort.seconds);
  }
  const auto compare = [&](const Reader& own, std::size_t other, std::optional<Goal> goal) {
    const Reader* peer = other < readers.size() ? &readers[other] : nullptr;
    Row row{.section = "live",
            .what = fmt::format("e={}, flat-out producer, share delivered", log2_words),
            .unit = "%",
            .subject = own.share,
            .goal = peer != nullptr ? std::move(goal) : std::nullopt,
            .note = own.summary()};
    if (peer != nullptr) {
      row.peer = peer->share;
      row.note += "; " + peer->summary();
      if (peer->failed_polls > 0) row.note += fmt::format("; {} of its polls failed", peer->failed_polls);
    }
    report.add(std::move(row));
  };
  const Goal twice = Goal::at_least(2, "x");
  compare(readers[ours_at_once], c_at_once, twice);
  compare(readers[ours_each_ms], c_each_ms, twice);
  compare(readers[our_tool], c_each_ms, twice);
  compare(readers[our_tool_without_scheduler], c_each_ms, twice);
  if (!has_ocaml()) return;
  compare(readers[ours_at_once], ocaml_at_once, std::nullopt);
  compare(readers[our_tool], ocaml_each_ms, std::nullopt);
}

/// Words lost at a rate that the producer could keep.
void paced(Report& report, const Effort& effort) {
  constexpr unsigned log2_words = 16;
  constexpr double rate_without_loss = 10;
  constexpr std::size_t own = 3;
  for (const double million : {1.0, 2.0, 5.0, rate_without_loss, 15.0}) {
    std::vector<Reader> readers{
        {"librtev, each ms", ours(1000)}, {"rtev-bpf", tool(true)}, {"rtev-bpf --sched off", tool(false)}};
    if (has_ocaml()) readers.emplace_back(peer_name(PeerKind::c, 1000), peer(PeerKind::c, 1000));
    for (int round = 0; round < effort.rounds; ++round) {
      for (Reader& reader : readers) reader.run(log2_words, million * 1e6, effort.seconds);
    }
    for (std::size_t i = 0; i < own; ++i) {
      Row row{.section = "live",
              .what = fmt::format("e={}, {:.0f} M events/s, words lost", log2_words, million),
              .unit = "%",
              .subject = readers[i].lost,
              .note = readers[i].summary()};
      if (readers.size() > own) row.peer = readers[own].lost;
      if (million <= rate_without_loss) {
        row.goal = Goal::at_most(0, "% in any run");
        row.figure = readers[i].lost.greatest();
      }
      report.add(std::move(row));
    }
  }
}

}  // namespace

void live(Report& report, const Effort& effort) {
  // There are many of these runs; half a second is enough.
  const Effort shorter{.rounds = std::min(effort.rounds, 5), .seconds = effort.seconds / 2};
  for (const unsigned log2_words : {16u, 20u}) flat_out(report, log2_words, shorter);
  paced(report, shorter);
}

}  // namespace rtev::bench
