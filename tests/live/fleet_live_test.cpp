// SPDX-License-Identifier: MIT
// Recordings of several hosts, loaded into ClickHouse and DuckDB by the files of contrib/: their queries must answer
// what the reports say of the same recordings.
#include <cstdlib>
#include <map>
#include <utility>

#include "live/analysis_fixture.hpp"
#include "live/database.hpp"
#include "live/spans.hpp"

namespace rtev::test {
namespace {

/// Figures by name, summed over reports.
using Figures = std::map<std::string, std::int64_t>;

class FleetLive : public AnalysisLive, public ::testing::WithParamInterface<std::string> {
 protected:
  struct Recording {
    std::string path{}, host{}, label{};
    bool has_spans = false;  ///< user spans; a report on spans of a recording without any fails
  };

  void SetUp() override {
    AnalysisLive::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const std::string obstacle = database_obstacle(GetParam());
    if (obstacle.empty()) return;
    if (std::getenv("CI") != nullptr) FAIL() << obstacle;
    GTEST_SKIP() << obstacle;
  }

  /// A command on a host of this name.
  static Strings on_host(const std::string& host, Strings command) {
    command.insert(command.begin(), {"unshare", "--uts", "sh", "-c",
                                     "echo " + host + " > /proc/sys/kernel/hostname && exec \"$@\"", "sh"});
    return command;
  }

  const Recording& record_on(const std::string& host, const std::string& program, const Strings& arguments,
                             const std::string& label = {}) {
    const std::string path = dir / (std::to_string(recordings_.size()) + ".fxt.gz");
    Strings command{tool(), "record", "-q", "-o", path, "--", ocaml_program(program)};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Outcome outcome = run({.argv = on_host(host, std::move(command))});
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    const bool has_spans = program == "requests" || program == "named_spans";
    return recordings_.emplace_back(path, host, label, has_spans);
  }

  /// The tracer stands still while a program writes more than its ring holds.
  void record_loss_on(const std::string& host) {
    const std::string path = dir / "lossy.fxt";
    Command how = with_events("busy_alloc", {"400"});
    how.env["OCAMLRUNPARAM"] = "e=12";
    Process program(how, "ready");
    Tracer tracer({"-q", "-o", path, "-p", std::to_string(program.pid())},
                  {.format = {"record", "--sched", "off"}, .wrapper = on_host(host, {})});
    tracer.process().stop();
    program.go_until("done");
    tracer.process().resume();
    EXPECT_EQ(run_through(program).status.code(), 0);
    tracer.interrupt();
    recordings_.emplace_back(path, host, "");
  }

  void record_fleet() {
    record_on("web-1", "collections", {"1100"}, "before");
    record_on("web-2", "collections", {"1100"}, "after");
    record_on("batch-1", "collections", {"50", "5", "2", "2", "2"});
    record_on("web-1", "requests", {"3"}, "before");
    record_on("web-2", "requests", {"2"}, "after");
    record_on("batch-1", "named_spans", {"10"});
    record_on("batch-1", "growing", {"1200"});
    record_loss_on("batch-2");
  }

  void load() {
    database_ = start_database(GetParam(), dir / "database");
    std::map<std::string, Strings> files;
    for (const Recording& recording : recordings_) files[recording.label].push_back(recording.path);
    for (const auto& [label, paths] : files) database_->import(paths, label);
  }

  static std::string service_of(const Json& process) {
    return fs::path(process.at("exe").get<std::string>()).filename();
  }
  /// A row of an answer by some of its columns.
  static std::string key_of(const Json& row, const Strings& columns) {
    std::string key;
    for (const std::string& column : columns)
      key += (row.at(column).is_string() ? row.at(column).get<std::string>() : row.at(column).dump()) + "|";
    return key;
  }
  /// Compares columns of an answer with figures, by key. All rows must be in both.
  void expect(const std::string& query, const Strings& keys, const Strings& columns,
              const std::map<std::string, Figures>& expected) const {
    std::map<std::string, Figures> answered;
    for (const Json& row : database_->answer(query)) {
      Figures& figures = answered[key_of(row, keys)];
      for (const std::string& column : columns) figures[column] = row.at(column).get<std::int64_t>();
    }
    EXPECT_FALSE(expected.empty()) << query;
    EXPECT_EQ(answered, expected) << query;
  }
  Json latency_of(const Recording& recording, const Strings& options = {}) const {
    Strings arguments{"latency", "-q", "-i", recording.path};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return report(arguments);
  }

  std::vector<Recording> recordings_;
  std::unique_ptr<Database> database_;
};

std::int64_t number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? 0 : found->get<std::int64_t>();
}

TEST_P(FleetLive, QueriesAnswerWhatReportsSay) {
  record_fleet();
  load();

  std::map<std::string, Figures> pauses, shares, calls, queues, allocated, grown;
  std::vector<std::int64_t> spans;
  std::map<std::string, Json> distributions;  // of recordings with one program, by its service and label
  for (const Recording& recording : recordings_) {
    const Json latency = latency_of(recording);
    const Json stats = report({"stats", "-q", "-i", recording.path});
    std::map<int, std::string> versions;
    for (const Json& process : stats.at("processes")) {
      const std::string service = service_of(process) + "|";
      const Json& version = process.at("version");  // null where a program ended before its file was read
      versions[process.at("pid")] = version.is_string() ? version.get<std::string>() : "";
      if (number(process, "domain_ns") == 0) continue;
      Figures& share = shares[service];
      for (const char* name : {"domain_ns", "gc_ns", "cpu_ns", "gc_cpu_ns"}) share[name] += number(process, name);
      Figures& words = allocated[service];
      words["minor_words"] += number(process.at("words"), "minor");
      words["promoted_words"] += number(process.at("words"), "promoted");
      words["major_words"] += number(process.at("words"), "major");
      words["minor_collections"] += number(process.at("collections"), "minor");
      for (const auto& [name, count] : process.at("explicit").items()) {
        if (count == 0) continue;
        Figures& call = calls[service + "explicit_gc_" + name + "|"];
        call["calls"] += count.get<std::int64_t>();
        const Json phases = latency_of(recording, {"--phase", "explicit_gc_" + name});
        call["pauses"] += number(phases.at("all"), "count");
        call["total_ns"] += number(phases.at("all"), "total_ns");
        call["max_ns"] = std::max(call["max_ns"], number(phases.at("all"), "max_ns"));
      }
      if (const Json& heap = process.at("heap_words"); heap.is_object() && number(heap, "span_ns") >= 1'000'000'000)
        grown[service + recording.host + "|"] = {{"first_words", number(heap, "first")},
                                                 {"last_words", number(heap, "last")},
                                                 {"seen_ns", number(heap, "span_ns")}};
    }
    for (const Json& process : latency.at("processes")) {
      if (number(process, "count") == 0) continue;
      const std::string key = service_of(process) + "|" + recording.label + "|";
      distributions[key] = process;
      Figures& figures = pauses[key + versions.at(process.at("pid")) + "|"];
      figures["pauses"] += number(process, "count");
      figures["total_ns"] += number(process, "total_ns");
      figures["max_ns"] = std::max(figures["max_ns"], number(process, "max_ns"));
      const Json& time = process.at("time_ns");
      if (number(time, "unknown") == number(process, "total_ns")) continue;
      Figures& queue = queues[recording.host + "|"];
      queue["all_on_cpu_ns"] += number(time, "on_cpu");
      queue["all_runnable_ns"] += number(time, "runnable");
      queue["all_blocked_ns"] += number(time, "sleeping") + number(time, "uninterruptible") + number(time, "stopped");
    }
    if (!recording.has_spans) continue;
    const Json all_spans = latency_of(recording, {"--span", "*"});
    for (const Json& group : all_spans.at("spans"))
      for (const Json& span : group.at("slowest")) spans.push_back(span.at("duration_ns"));
  }

  expect("worst-pauses", {"service", "release", "ocaml"}, {"pauses", "total_ns", "max_ns"}, pauses);
  expect("gc-share", {"service"}, {"domain_ns", "gc_ns", "cpu_ns", "gc_cpu_ns"}, shares);
  expect("explicit-gc", {"service", "name"}, {"calls", "pauses", "total_ns", "max_ns"}, calls);
  expect("run-queue", {"host"}, {"all_on_cpu_ns", "all_runnable_ns", "all_blocked_ns"}, queues);
  expect("allocation", {"service"}, {"minor_words", "promoted_words", "major_words", "minor_collections"}, allocated);
  expect("heap-growth", {"service", "host"}, {"first_words", "last_words", "seen_ns"}, grown);

  const auto releases = database_->answer("regressions");
  ASSERT_THAT(releases, SizeIs(1));
  EXPECT_EQ(releases[0].at("service"), "collections");
  for (const auto& [side, label] : {std::pair("old", "before"), {"new", "after"}}) {
    const std::string of = side;
    std::vector<std::uint64_t> lengths;
    for (const Json& row : database_->rows("SELECT duration_ns FROM rtev WHERE kind = 'pause' AND state = 'done' AND "
                                           "service = 'collections' AND release = '" +
                                           std::string(label) + "' ORDER BY duration_ns"))
      lengths.push_back(row.at("duration_ns"));
    EXPECT_EQ(difference(distributions.at(std::string("collections|") + label + "|"), lengths), "");
    EXPECT_EQ(releases[0].at(of + "_pauses"), lengths.size());
    for (const auto& [column, quantile] : {std::pair("_p50_ns", 0.5), {"_p99_ns", 0.99}}) {
      const auto rank = static_cast<std::size_t>(quantile * static_cast<double>(lengths.size()));
      EXPECT_THAT(releases[0].at(of + column).get<std::uint64_t>(), AllOf(Ge(lengths[rank - 1]), Le(lengths[rank])))
          << of << column;
    }
  }

  std::ranges::sort(spans, std::ranges::greater{});
  spans.resize(std::min<std::size_t>(spans.size(), 50));
  std::vector<std::int64_t> slowest;
  for (const Json& row : database_->answer("slow-spans")) {
    slowest.push_back(row.at("duration_ns"));
    EXPECT_LE(row.at("gc_ns").get<std::int64_t>(), slowest.back());
    const std::string name = row.at("name");
    if (name == "collect") {
      EXPECT_GT(row.at("gc_share").get<double>(), 0.9);
    } else if (name == "sleep") {
      // It sleeps for 20 ms, a part of which it may spend runnable, before it is off its CPU.
      EXPECT_GE(row.at("blocked_ns").get<std::int64_t>(), 10'000'000);
    }
  }
  EXPECT_EQ(slowest, spans);

  // Each program ran to its end, in less than a second but for those that take longer.
  std::map<std::string, Figures> lives;
  for (const Recording& recording : recordings_) {
    const Trace trace = dumped(recording.path);
    std::map<pid_t, std::int64_t> begun;
    for (const Json& event : trace.of("process")) {
      if (event.at("action") == "exec") begun[event.at("pid")] = event.at("ts");
      if (event.at("action") != "exit" || !begun.contains(event.at("pid"))) continue;
      const std::int64_t length = event.at("ts").get<std::int64_t>() - begun.at(event.at("pid"));
      if (length >= 1'000'000'000) continue;
      Figures& life = lives[service_of(trace.process(event.at("pid"))) + "|"];
      ++life["processes"];
      life["failed"] += event.at("status") == Json{{"code", 0}} ? 0 : 1;
      life["max_ns"] = std::max(life["max_ns"], length);
    }
  }
  expect("short-lived", {"service"}, {"processes", "failed", "max_ns"}, lives);

  const Json lossy = dumped(recordings_.back().path).summary;
  std::int64_t lost = 0;
  for (const Json& process : lossy.at("processes")) lost += number(process.at("words"), "lost");
  EXPECT_GT(lost, 0);
  expect("losses", {"host"}, {"lost_words", "rings_missed", "dropped", "without_end"},
         {{"batch-2|", {{"lost_words", lost}, {"rings_missed", 0}, {"dropped", 0}, {"without_end", 0}}}});
}

TEST_P(FleetLive, RecordingsTablesAndJsonLinesAreLoadedOnce) {
  const Recording whole = record_on("web-1", "requests", {"1"});
  const Recording cut = record_on("web-2", "requests", {"1"});
  const std::string broken = dir / "cut.fxt", table = dir / "table.csv.gz", lines = dir / "lines.jsonl.gz";
  convert(cut.path, broken);
  fs::resize_file(broken, fs::file_size(broken) / 2);
  convert(whole.path, table);
  convert(whole.path, lines);
  database_ = start_database(GetParam(), dir / "database");
  for (int i = 0; i < 2; ++i) database_->import({whole.path, broken, table, lines});

  const auto runs = database_->rows("SELECT host, state FROM rtev WHERE kind = 'run' ORDER BY host");
  EXPECT_EQ(Json(runs), Json::parse(R"([{"host":"web-1","state":"done"},{"host":"web-2","state":"truncated"}])"));
  const auto incomplete = database_->answer("losses");
  ASSERT_THAT(incomplete, SizeIs(1));
  EXPECT_EQ(incomplete[0].at("host"), "web-2");
  EXPECT_EQ(incomplete[0].at("without_end"), 1);

  const Trace trace = dumped(whole.path);
  std::map<std::string, std::size_t> expected, loaded;
  for (const Json& event : trace.events) ++expected[event.at("type")];
  for (const Json& row : database_->rows("SELECT type, count(*) AS events FROM rtev_events GROUP BY type"))
    loaded[row.at("type")] = row.at("events");
  EXPECT_EQ(loaded, expected);
  const auto first = database_->rows("SELECT host, min(time_ns) AS first_ns FROM rtev_events GROUP BY host");
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].at("host"), "web-1");
  EXPECT_EQ(first[0].at("first_ns").get<std::int64_t>() - trace.events.front().at("ts").get<std::int64_t>(),
            trace.header.at("start_realtime").get<std::int64_t>() - trace.header.at("start").get<std::int64_t>());
}

INSTANTIATE_TEST_SUITE_P(Databases, FleetLive, ::testing::Values("clickhouse", "duckdb"), by_label);

}  // namespace
}  // namespace rtev::test
