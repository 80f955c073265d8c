// SPDX-License-Identifier: MIT
// What Stats keeps of processes and domains while the stream goes by.
#pragma once

#include <algorithm>
#include <ranges>

#include "analysis/open_spans.hpp"
#include "analysis/stats/stats_sink.hpp"

namespace rtev {

/// How much of an interval lies between two times, in ns.
inline std::uint64_t overlap(const ThreadInterval& interval, std::uint64_t begin_ns, std::uint64_t end_ns) {
  const std::uint64_t begin = std::max(interval.begin_ns, begin_ns), end = std::min(interval.end_ns, end_ns);
  return end > begin ? end - begin : 0;
}

inline std::uint64_t distance(std::uint64_t begin_ns, std::uint64_t end_ns) {
  return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

/// The domain of a thread as far as that is known; -1 if not. The main thread runs domain 0 in every program that OCaml
/// starts, but one that ends before it was ever off a cpu did not show it.
inline std::int32_t domain_of(const ThreadInterval& interval) {
  return interval.domain < 0 && interval.tid == interval.pid ? 0 : interval.domain;
}

/// A domain of a process, from its spawn to its end.
struct Stats::Incarnation {
  std::uint16_t domain = 0;
  std::uint32_t number = 0;
  bool adopted = false;  ///< the PauseFinder knows it, too
  bool ended = false;
  std::uint64_t begin_ns = 0;
  std::uint64_t first_ns = 0;  ///< of its oldest event
  std::uint64_t end_ns = 0;    ///< if ended
  std::uint64_t last_ns = 0;   ///< of its newest event
  std::optional<std::uint64_t> pause_since_ns;
  std::int32_t pause_tid = 0;  ///< the thread that the pause began in; 0: unknown
  ThreadTracker::Snapshot pause_begin{};
  OpenSpans<64> open_spans;  ///< of the program
  Tally tally;

  std::uint64_t end_or(std::uint64_t now_ns) const { return ended ? end_ns : std::max(now_ns, last_ns); }
};

/// Spans whose lengths are summed up without remembering when each began. Modulo 2^64: right once all are counted.
struct SpanSum {
  std::uint64_t open = 0;
  std::uint64_t ns = 0;

  void begin(std::uint64_t time_ns) {
    ++open;
    ns -= time_ns;
  }
  void end(std::uint64_t time_ns) {
    --open;
    ns += time_ns;
  }
  /// The open spans until now included.
  std::uint64_t until(std::uint64_t now_ns) const { return ns + open * now_ns; }
};

struct Stats::Process {
  Process(std::size_t& total, std::uint64_t from_ns) : total_bytes(total), shown_from_ns(from_ns) {
    charge(sizeof(Process));
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { total_bytes -= bytes; }

  std::size_t& total_bytes;     ///< of all processes
  std::size_t bytes = 0;        ///< of this one
  std::uint64_t shown_from_ns;  ///< what began before does not make the time of domains longer
  ProcessIndex index = 0;
  ProcessStats stats;  ///< what does not come from domains
  bool ended = false;
  bool ending = false;
  bool paused = false;       ///< once, at least
  bool lacks_past = false;   ///< its ring overwrote its past before it was read
  bool lacks_rings = false;  ///< some were not read to their end
  std::uint64_t end_ns = 0;
  std::optional<std::uint64_t> ring_ns;  ///< when its ring was opened, or its probes found it
  std::uint64_t cpu_ns = 0;
  std::uint64_t sampled_ns = 0, gc_sampled_ns = 0;  ///< see StatsFigures

  struct Domain {
    std::unique_ptr<Incarnation> current;  ///< null: none, or merged
    std::uint32_t incarnations = 0;
    bool merged = false;          ///< the present incarnation is among the others
    bool merged_adopted = false;  ///< as Incarnation::adopted
  };
  std::vector<Domain> domains;                       ///< by number
  std::deque<std::unique_ptr<Incarnation>> retired;  ///< oldest first
  Tally others;                                      ///< domains that are not remembered one by one
  std::uint64_t other_count = 0;
  LibrarySpans libraries;
  SpanSum other_domains, other_pauses;                     ///< of merged domains that run: these are not in `others`
  bool lacks_collections = false;                          ///< the domain that counts the collections of all is merged
  bool lacks_heap = false;                                 ///< so is one that had words in the heap
  std::array<std::uint64_t, Tally::phase_ids> greatest{};  ///< of its domains' counts, by phase
  std::array<Gauge, Tally::counter_ids> gauges{};          ///< sums over the domains that live, by counter

  void is_tracked(std::uint64_t time_ns) {
    if (!stats.cpu_since_ns) stats.cpu_since_ns = time_ns;
  }
  void learn(const ProcessInfo& from);
  void learn_memory(std::uint64_t max_rss_bytes) {
    stats.max_rss_bytes = std::max(stats.max_rss_bytes.value_or(0), max_rss_bytes);
  }

  /// The present incarnation of a domain, or a new one.
  Incarnation& domain_at(std::uint16_t domain, std::uint64_t time_ns);
  /// The incarnation that the time of a thread counts for: a thread may outlive its domain a little.
  Incarnation* domain_during(std::int32_t domain, std::uint64_t begin_ns);
  void count(const Event& event, const Batch& batch, const RingInfo& ring);
  void charge(std::size_t more) {
    bytes += more;
    total_bytes += more;
  }
  void uncharge(std::size_t less) {
    bytes -= less;
    total_bytes -= less;
  }
  bool is_merged(std::int32_t domain) const {
    const auto number = static_cast<std::size_t>(domain);
    return domain >= 0 && number < domains.size() && domains[number].merged;
  }
  /// Counts a domain that ended with the others.
  void merge(const Incarnation& old);
  /// Likewise one that runs, from now on.
  void merge(Domain& domain);
  void end_merged(Domain& domain, std::uint64_t time_ns) {
    domain.merged = false;
    other_domains.end(time_ns);
  }
  /// The others as of now.
  Tally others_until(std::uint64_t time_ns) const;
  /// A domain ended; at most `max_retired` are remembered one by one.
  void retire(std::unique_ptr<Incarnation> domain, std::uint64_t time_ns, std::size_t max_retired);
  /// Of a heap counter.
  void note_heap(std::size_t id, std::uint64_t time_ns);
  void set_gauge(std::size_t id, std::uint64_t before, std::uint64_t after) {
    Gauge& gauge = gauges[id];
    gauge.last += after - before;  // modulo 2^64: right again when impossible values have gone
    gauge.max = std::max(gauge.max, gauge.last);
  }

  std::uint64_t end_or(std::uint64_t now_ns) const { return ended ? end_ns : now_ns; }

 private:
  /// Where it is in `stats.user_events`, if there is room. Spans of libraries count by their own names.
  std::optional<std::size_t> count_user_event(const Event& event, const RingInfo& ring,
                                              std::optional<std::string_view> library_span = {});
  void count_library_span(Incarnation* domain, Tally& tally, const Event& event, const RingInfo& ring,
                          const LibrarySpanEvent& what);
  void end_span(const std::optional<OpenSpan>& span, std::uint64_t time_ns);
};

}  // namespace rtev
