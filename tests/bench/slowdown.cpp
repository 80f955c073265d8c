// SPDX-License-Identifier: MIT
// Cost of reading for a producer that does nothing but write.
#include <fmt/core.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/peer.hpp"
#include "bench/producer.hpp"
#include "bench/tool.hpp"

namespace rtev::bench {
namespace {

constexpr int producer_cpu = 0, reader_cpu = 1;

/// The time the producer needs to write a number of events to a new ring.
double seconds_for(Ring& ring, std::uint64_t events) {
  const CpuBinding binding(producer_cpu);
  return static_cast<double>(produce(ring, Mix::runtime, events).ns) / 1e9;
}

/// A reader during the measurement.
struct Reader {
  std::string name;
  std::function<double(std::uint64_t)> run;
  Series percent{};
};

std::vector<Reader> settings(unsigned log2_words) {
  std::vector<Reader> all;
  all.push_back({.name = "rtev-bpf", .run = [=](std::uint64_t events) {
                   Ring ring(log2_words);
                   Tool tool(with_pid(to_nothing(), ::getpid()), reader_cpu);
                   const double seconds = seconds_for(ring, events);
                   tool.interrupt();
                   return seconds;
                 }});
  if (!has_ocaml()) return all;
  for (const int interval_us : {1000, 0}) {
    all.push_back({.name = fmt::format("{}{}", name_of(PeerKind::c), interval_us == 0 ? "" : ", each ms"),
                   .run = [=](std::uint64_t events) {
                     Ring ring(log2_words);
                     FollowingPeer peer(PeerKind::c, ring.directory(), ::getpid(), reader_cpu, interval_us);
                     const double seconds = seconds_for(ring, events);
                     peer.stop();
                     return seconds;
                   }});
  }
  return all;
}

void measure(Report& report, unsigned log2_words, std::uint64_t events, const Effort& effort) {
  std::vector<Reader> readers = settings(log2_words);
  Series alone{.name = "alone", .runs = {}};
  for (int round = 0; round < effort.rounds; ++round) {
    Ring ring(log2_words);
    const double seconds = seconds_for(ring, events);
    alone.runs.push_back(static_cast<double>(events) / seconds / 1e6);
    for (Reader& reader : readers) reader.percent.runs.push_back((reader.run(events) / seconds - 1) * 100);
  }
  for (Reader& reader : readers) reader.percent.name = reader.name;
  Row row{.section = "slowdown",
          .what = fmt::format("e={}, flat-out producer takes longer by", log2_words),
          .unit = "%",
          .subject = readers.front().percent,
          .note = fmt::format("alone it writes {:.1f} M events/s ({:.1f}..{:.1f})", alone.median(), alone.least(),
                              alone.greatest())};
  for (std::size_t i = 1; i < readers.size(); ++i) {
    Row compared = row;
    compared.peer = readers[i].percent;
    if (i == 1) {
      compared.goal = Goal{.text = "less than the C reader at 1 ms", .met = [](double more) { return more < 0; }};
      compared.figure = row.subject.median() - readers[i].percent.median();
      compared.note += "; judged is the difference in percentage points";
    }
    report.add(std::move(compared));
  }
  if (readers.size() == 1) report.add(std::move(row));
}

}  // namespace

void slowdown(Report& report, const Effort& effort) {
  // The number of events that a fast producer writes in the time of a run.
  const auto events = static_cast<std::uint64_t>(25e6 * effort.seconds);
  for (const unsigned log2_words : {16u, 20u}) measure(report, log2_words, events, effort);
}

}  // namespace rtev::bench
