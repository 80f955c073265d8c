// SPDX-License-Identifier: MIT
// Content of recordings for viewers: names, spans on the threads that ran them, counters, scheduling, arrows. Read by
// independent parsers and compared with the stream.

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "live/harness.hpp"
#include "rtev/fxt_reader.hpp"
#include "stream/recording_layout.hpp"
#include "support/chrome_check.hpp"
#include "support/perfetto_check.hpp"

namespace rtev::test {
namespace {

/// Thread names by the scheduler events of a process, as viewers show them: "domain 1 backup".
using Threads = std::map<std::int32_t, std::string>;

Threads threads_of(const Trace& trace, pid_t pid) {
  Threads threads;
  for (const Json& change : trace.of("switch")) {
    for (const char* side : {"prev", "next"}) {
      const Json& thread = change[side];
      if (thread["pid"] != pid) continue;
      std::string& name = threads[thread["tid"]];
      if (!thread.contains("domain")) continue;
      name = "domain " + std::to_string(thread["domain"].get<int>());
      const std::string role = thread.value("role", "");
      if (role == "backup" || role == "tick") name += " " + role;
    }
  }
  return threads;
}

/// Two programs in one recording, in each format.
class RecordViewLive : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Tracer tracer({"-q", "-o", dir / "a.fxt"}, {.format = {"record"}});
    Process domains(with_events("domains", {"2", "4"})), systhreads(with_events("systhreads", {"3"}));
    domains_ = domains.pid();
    systhreads_ = systhreads.pid();
    systhreads.lines_until("ready");
    for (const std::string& line : systhreads.go_until("done")) taking_turns_.insert(std::stoi(line));
    for (Process* process : {&systhreads, &domains}) EXPECT_EQ(run_through(*process).status.code(), 0);
    tracer.interrupt();
    trace_ = dumped(dir / "a.fxt");
    ASSERT_EQ(taking_turns_.size(), 3u);
  }

  std::string in(const std::string& ending) const {
    convert(dir / "a.fxt", dir / ("a." + ending));
    return read_file(dir / ("a." + ending));
  }
  std::size_t events(pid_t pid, std::string_view type) const { return trace_.of(pid, type).size(); }

  /// Checks the name of a thread.
  void expect_named(pid_t pid, std::int32_t tid, const std::string& expected, const std::string& name) const {
    if (expected.empty()) return;  // unknown from scheduler events
    const bool is_systhread = pid == systhreads_ && tid != pid && expected == "domain 0";
    EXPECT_EQ(name, is_systhread ? "domain 0 systhread" : expected) << tid << " of " << pid;
  }

  pid_t domains_ = 0, systhreads_ = 0;
  std::set<std::int32_t> taking_turns_;  ///< systhreads
  Trace trace_;
};

TEST_F(RecordViewLive, ChromeTraceMatchesTheStream) {
  const ChromeTrace chrome = read_chrome_trace(in("json"));
  EXPECT_THAT(chrome.problems, IsEmpty());
  EXPECT_EQ(chrome.process_names.at(domains_), "domains");
  EXPECT_EQ(chrome.process_names.at(systhreads_), "systhreads");

  for (const pid_t pid : {domains_, systhreads_}) {
    const Threads threads = threads_of(trace_, pid);
    std::size_t spans = 0, on_threads = 0, running = 0;
    for (const auto& [row, row_spans] : chrome.spans) {
      if (row.first != pid) continue;
      EXPECT_THAT(chrome.row_names.at(row), StartsWith("domain "));
      const bool is_thread = threads.contains(static_cast<std::int32_t>(row.second));
      const auto states = chrome.states.find(row);
      for (const ChromeTrace::Span& span : row_spans) {
        EXPECT_EQ(span.category, "gc");
        EXPECT_LE(span.from, span.to);
        spans += !span.args.contains("begin");  // not drawn later, from a summary
        if (!is_thread || states == chrome.states.end()) continue;
        ++on_threads;
        running += std::ranges::any_of(states->second, [&](const ChromeTrace::State& state) {
          return state.name == "Running" && state.from <= span.from && span.from <= state.to;
        });
      }
    }
    EXPECT_EQ(spans, events(pid, "begin"));
    // A new domain's events may be on a row of their own, or on the wrong one, until its thread is known.
    EXPECT_GT(on_threads * 10, spans * 8);
    EXPECT_GT(running * 20, on_threads * 19) << running << " of " << on_threads;
    for (const auto& [tid, name] : threads) {
      const ChromeTrace::Row row{pid, tid};
      expect_named(pid, tid, name, chrome.row_names.at(row));
      EXPECT_THAT(chrome.states.at(row), Not(IsEmpty()));
    }
    std::size_t values = 0;
    for (const auto& [graph, points] : chrome.counters) values += graph.first == pid ? points.size() : 0;
    EXPECT_EQ(values, events(pid, "counter"));
    EXPECT_THAT(chrome.counters,
                Contains(::testing::Key(std::pair<std::int64_t, std::string>(pid, "minor_allocated domain 0 bytes"))));
  }

  // Each nested in another one, on the same thread.
  for (const auto& [row, spans] : chrome.spans) {
    for (auto inner = spans.begin(); inner != spans.end(); ++inner) {
      if (inner->name != "minor_local_roots") continue;
      const auto outer = std::find_if(std::make_reverse_iterator(inner), spans.rend(),
                                      [&](const ChromeTrace::Span& span) { return span.depth + 1 == inner->depth; });
      ASSERT_NE(outer, spans.rend());
      EXPECT_EQ(outer->name, "minor");
      EXPECT_GE(outer->to, inner->to);
    }
  }
  const auto names = [&](pid_t pid) {
    std::set<std::string> all;
    for (const auto& [row, name] : chrome.row_names)
      if (row.first == pid) all.insert(name);
    return all;
  };
  EXPECT_THAT(names(domains_), IsSupersetOf({"domain 0", "domain 1", "domain 2", "domain 1 backup"}));
  for (const std::int32_t tid : taking_turns_)
    EXPECT_THAT(chrome.spans, Contains(::testing::Key(ChromeTrace::Row(systhreads_, tid))));

  std::size_t arrows = 0;
  for (const ChromeTrace::Arrow& arrow : chrome.arrows) {
    if (arrow.from.first != domains_) continue;
    ++arrows;
    EXPECT_EQ(arrow.from_span, "stw_leader");
    EXPECT_EQ(arrow.to_span, "stw_handler");
    EXPECT_EQ(arrow.to.first, domains_);
    EXPECT_NE(arrow.from, arrow.to);
  }
  EXPECT_GT(arrows, 0u);
}

TEST_F(RecordViewLive, PerfettoTraceMatchesTheStream) {
  const PerfettoTrace perfetto = read_perfetto(in("pftrace"));
  EXPECT_EQ(perfetto.all_errors(), "");
  EXPECT_EQ(perfetto.bytes_left, 0u);
  EXPECT_EQ(perfetto.processes.at(domains_), "domains");
  EXPECT_EQ(perfetto.processes.at(systhreads_), "systhreads");

  for (const pid_t pid : {domains_, systhreads_}) {
    const Threads threads = threads_of(trace_, pid);
    for (const auto& [tid, name] : threads) {
      EXPECT_EQ(perfetto.threads.at(tid).tgid, pid);
      expect_named(pid, tid, name, perfetto.threads.at(tid).name);
    }
    std::size_t spans = 0, on_threads = 0, values = 0;
    for (const auto& [uuid, track] : perfetto.tracks) {
      if (track.pid != pid) continue;
      EXPECT_EQ(track.unit.empty(), !track.is_counter) << track.name;
      values += track.values.size();
      for (const PerfettoSlice& slice : track.slices) {
        EXPECT_TRUE(slice.ended) << slice.name;
        spans += !slice.details.contains("begin");  // which no event began
        on_threads += threads.contains(track.tid);
      }
    }
    EXPECT_EQ(spans, events(pid, "begin"));
    EXPECT_GT(on_threads * 10, spans * 8);
    EXPECT_EQ(values, events(pid, "counter"));
  }
  for (const std::int32_t tid : taking_turns_) EXPECT_THAT(perfetto.thread(systhreads_, tid).slices, Not(IsEmpty()));

  using Turn = std::tuple<std::uint64_t, std::uint32_t, std::int32_t, std::int32_t>;
  std::set<Turn> expected, shown;
  for (const Json& change : trace_.of("switch"))
    expected.emplace(change["ts"], change["cpu"], change["prev"]["tid"], change["next"]["tid"]);
  for (const PerfettoSwitch& change : perfetto.switches)
    shown.emplace(change.time, change.cpu, change.prev, change.next);
  EXPECT_TRUE(std::ranges::includes(shown, expected)) << "other slices were drawn from summaries";
  EXPECT_EQ(perfetto.wakings.size(), trace_.of("wakeup").size());

  std::map<std::uint64_t, std::string> leaving;
  std::size_t arrows = 0;
  for (const auto& [uuid, track] : perfetto.tracks)
    for (const PerfettoSlice& slice : track.slices)
      for (const std::uint64_t flow : slice.flows_out) leaving[flow] = slice.name;
  for (const auto& [uuid, track] : perfetto.tracks) {
    for (const PerfettoSlice& slice : track.slices) {
      if (track.pid != domains_) continue;
      for (const std::uint64_t flow : slice.flows_in) {
        ++arrows;
        EXPECT_EQ(slice.name, "stw_handler");
        EXPECT_EQ(leaving[flow], "stw_leader");
      }
    }
  }
  EXPECT_GT(arrows, 0u);
}

/// A strict parser of the format, with the viewers' rules: names are defined before use, spans nest by time and order.
class FxtView {
 public:
  explicit FxtView(const std::string& file) {
    FxtReader reader;
    const auto fed = reader.feed(std::as_bytes(std::span(file)), [&](const fxt::Record& record) {
      std::visit([this](const auto& one) { take(one); }, record);
    });
    if (!fed) ADD_FAILURE() << fed.error().message();
    const auto end = reader.finish();
    EXPECT_TRUE(end && !end->cut());
    for (auto& [thread, marks] : marks_) nest(thread, marks);
  }

  using Thread = std::pair<std::uint64_t, std::uint64_t>;
  std::map<std::uint64_t, std::string> processes{};
  std::map<std::uint64_t, std::string> threads{};
  std::map<std::uint64_t, std::uint64_t> process_of{};  ///< by tid
  std::map<Thread, std::size_t> spans{};                ///< those of the stream
  std::map<std::uint64_t, std::size_t> counters{};      ///< values by pid
  std::size_t switches = 0, wakeups = 0;
  std::set<std::uint64_t> nameless{};  ///< tids used before they were named

 private:
  struct Mark {
    std::uint64_t time;
    bool is_begin;
    std::string name;
  };

  void take(const fxt::parsed::KernelObject& object) {
    if (object.type == fxt::KernelObjectType::process) {
      processes[object.koid] = object.name.text;
      return;
    }
    threads[object.koid] = object.name.text;
    const auto* process = fxt::parsed::find(object.arguments, "process");
    ASSERT_NE(process, nullptr) << object.name.text;
    process_of[object.koid] = std::get<fxt::Koid>(process->value).id;
  }
  void take(const fxt::parsed::EventRecord& event) {
    use(event.thread.tid);
    EXPECT_EQ(process_of[event.thread.tid], event.thread.pid);
    const Thread thread{event.thread.pid, event.thread.tid};
    switch (event.type) {
      case fxt::EventType::duration_begin:
        spans[thread] += event.category.text != record::drawn;
        marks_[thread].push_back({event.time, true, std::string(event.name.text)});
        break;
      case fxt::EventType::duration_end:
        marks_[thread].push_back({event.time, false, std::string(event.name.text)});
        break;
      case fxt::EventType::counter:
        ++counters[event.thread.pid];
        ASSERT_EQ(event.arguments.size(), 1u);
        EXPECT_THAT(std::string(event.arguments.front().name.text), AnyOf("bytes", "words", "blocks", "value", "work"));
        break;
      default:
        break;
    }
  }
  void take(const fxt::parsed::ContextSwitch& change) {
    switches += fxt::parsed::find(change.arguments, record::drawn) == nullptr;
    use(change.outgoing_tid);
    use(change.incoming_tid);
  }
  void take(const fxt::parsed::Wakeup& wakeup) {
    ++wakeups;
    use(wakeup.tid);
  }
  void take(const fxt::parsed::UnknownRecord&) { ADD_FAILURE() << "unknown record"; }
  template <typename Other>
  void take(const Other&) {}

  void use(std::uint64_t tid) {
    if (tid != 0 && !threads.contains(tid)) nameless.insert(tid);
  }

  static void nest(const Thread& thread, std::vector<Mark>& marks) {
    std::ranges::stable_sort(marks, {}, &Mark::time);
    Strings open;
    for (const Mark& mark : marks) {
      if (mark.is_begin) {
        open.push_back(mark.name);
        continue;
      }
      ASSERT_THAT(open, Not(IsEmpty())) << mark.name << " of " << thread.second;
      ASSERT_EQ(open.back(), mark.name) << "of " << thread.second << " at " << mark.time;
      open.pop_back();
    }
    EXPECT_THAT(open, IsEmpty()) << "of " << thread.second;
  }

  std::map<Thread, std::vector<Mark>> marks_;
};

TEST_F(RecordViewLive, RecordingMatchesTheStream) {
  const FxtView fxt(read_file(dir / "a.fxt"));
  EXPECT_THAT(fxt.nameless, IsEmpty());
  EXPECT_EQ(fxt.processes.at(domains_), "domains");
  EXPECT_EQ(fxt.processes.at(systhreads_), "systhreads");
  for (const auto& [tid, pid] : fxt.process_of) EXPECT_THAT(fxt.processes, Contains(::testing::Key(pid)));
  for (const pid_t pid : {domains_, systhreads_}) {
    std::size_t spans = 0;
    for (const auto& [thread, count] : fxt.spans) spans += thread.first == static_cast<std::uint64_t>(pid) ? count : 0;
    EXPECT_EQ(spans, events(pid, "begin"));
    EXPECT_EQ(fxt.counters.at(pid), events(pid, "counter"));
    for (const auto& [tid, name] : threads_of(trace_, pid)) expect_named(pid, tid, name, fxt.threads.at(tid));
  }
  for (const std::int32_t tid : taking_turns_)
    EXPECT_THAT(fxt.spans, Contains(::testing::Key(FxtView::Thread(systhreads_, tid))));
  EXPECT_EQ(fxt.switches, trace_.of("switch").size());
  EXPECT_EQ(fxt.wakeups, trace_.of("wakeup").size());
}

}  // namespace
}  // namespace rtev::test
