// SPDX-License-Identifier: MIT
// What reports say of recordings that lack records: what is not known is never 0.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "analysis/latency/latency_sink.hpp"
#include "analysis/pauses/pauses_sink.hpp"
#include "analysis/profile/profile_sink.hpp"
#include "analysis/spans/spans_sink.hpp"
#include "analysis/stalls/stalls_sink.hpp"
#include "analysis/stats/stats_sink.hpp"
#include "analysis/tasks/tasks_sink.hpp"
#include "formats/text/run_summary.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/recording/recording.hpp"

namespace rtev::test {
namespace {

constexpr std::uint64_t ms = 1'000'000;

/// Spans, collections, turns of an event loop and stacks of one thread.
std::string recording_of_all_kinds() {
  World world;
  world.user_names = {{1, "request"}};
  StackTable& stacks = world.registry.stacks();
  const StackIndex stack = stacks.add_stack(
      0, stacks.add_frame({.kind = FrameKind::ocaml, .line = 3, .function = "Shop.answer", .file = "shop.ml"}));
  Recording recording;
  RunHeader header = make_header();
  header.start_ns = 1;
  recording.header(header);
  const Thread thread = a_thread(4242, 4242, 0);
  Events events(world.slot), process(0);
  const auto consume = [&](Events& each) {
    recording.consume(each.batch(), world.registry);
    each = Events(&each == &events ? world.slot : 0);
  };
  const auto add_sched = [&](std::uint64_t time_ns, const auto& record, EventKind kind) {
    Events one(0);
    one.add_record(time_ns, kind, record, 0, first_sched_stream);
    recording.consume(one.batch(), world.registry);
  };
  for (const ProcessAction action : {ProcessAction::exec, ProcessAction::ring})
    process.add_record(10, EventKind::process, ProcessRecord{.process = world.process, .peer = 0, .detail = 1},
                       static_cast<std::uint16_t>(action));
  consume(process);
  constexpr std::uint64_t turns = 40;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    const std::uint64_t begin = ms + turn * 10 * ms, longer = turn == turns / 2 ? 8 * ms : 2 * ms;
    add_sched(begin, enters(thread), EventKind::sched_switch);
    events.add(begin + 1, EventKind::user_begin, 1)
        .add(begin + ms / 2, EventKind::begin, phase_minor)
        .add(begin + ms / 2 + 1, EventKind::counter, counter_minor_allocated, 8000)
        .add(begin + ms, EventKind::end, phase_minor)
        .add(begin + longer, EventKind::user_end, 1);
    consume(events);
    Events sample(0);
    sample.add_record(begin + longer + 1, EventKind::sample,
                      Sample{.process = world.process,
                             .pid = 4242,
                             .tid = 4242,
                             .domain = 0,
                             .cpu = 0,
                             .stack = stack,
                             .weight = ms,
                             .role = ThreadRole::mutator,
                             .holds_lock = true,
                             .zero = {}},
                      static_cast<std::uint16_t>(SampleKind::on_cpu), sample_stream);
    recording.consume(sample.batch(), world.registry);
    add_sched(begin + longer + 2, blocks(thread, Syscall::epoll_wait), EventKind::sched_switch);
    add_sched(begin + 10 * ms - 100, wakes(thread), EventKind::wakeup);
  }
  world.registry.process(world.process).words = {.written = 1000, .delivered = 1000, .events = 5 * turns};
  world.registry.process(world.process).domains = 1;
  recording.end(world.registry);
  return recording.recorded();
}

using Reports = std::map<std::string, nlohmann::json>;

Reports reports_of(std::string_view file) {
  Reports reports;
  const auto replay = [&](Sink& sink, auto&& report) {
    struct AtEnd final : ForwardingSink {
      using ForwardingSink::ForwardingSink;
      void summary(const RunSummary& summary, const Registry& registry) override {
        sink_.summary(summary, registry);
        done(registry);
      }
      std::function<void(const Registry&)> done;
    } at_end(sink);
    at_end.done = [&](const Registry& registry) {
      const auto json = nlohmann::json::parse(report(registry));
      reports[json["type"]] = json;
    };
    Replay reader(at_end);
    static_cast<void>(reader.feed(bytes_of(file)));  // some cannot be read to the end
    EXPECT_TRUE(reader.finish());
  };
  StringOutput no_output;
  Latency latency({}, no_output);
  replay(latency, [&](const Registry& registry) { return latency.report_json(registry); });
  Pauses pauses({.top = 3});
  replay(pauses, [&](const Registry&) { return pauses.report_json(); });
  Stats stats{StatsOptions{}};
  replay(stats, [&](const Registry& registry) { return stats.report_json(registry); });
  Spans spans({.pattern = "*"});
  replay(spans, [&](const Registry&) { return spans.report_json(); });
  Stalls stalls({.min_ns = 5 * ms});
  replay(stalls, [&](const Registry&) { return stalls.report_json(); });
  Tasks tasks{TasksOptions{}};
  replay(tasks, [&](const Registry&) { return tasks.report_json(); });
  Profile profile{ProfileOptions{}};
  replay(profile, [&](const Registry& registry) { return profile_json(profile.report(registry)); });
  reports["dump"] = nlohmann::json::parse(lines_of(replayed(file).lines).back());
  return reports;
}

template <typename Record>
std::string kind_of(const Record& record) {
  if constexpr (std::is_same_v<Record, fxt::parsed::UserspaceObject>) {
    return record.arguments.empty() ? "" : std::string(record.arguments.front().name.text);
  } else if constexpr (std::is_same_v<Record, fxt::parsed::EventRecord>) {
    return fmt::format("event {} {}", record.category.text, static_cast<int>(record.type));
  } else if constexpr (std::is_same_v<Record, fxt::parsed::ContextSwitch>) {
    return "switch";
  } else if constexpr (std::is_same_v<Record, fxt::parsed::Wakeup>) {
    return "wakeup";
  } else {
    return "";
  }
}

/// Each record, by its kind. Strings and threads have none, and are not taken away: the rest could not be read.
std::vector<std::pair<std::string, std::string_view>> records_of(std::string_view file) {
  std::vector<std::pair<std::string, std::size_t>> begins;
  FxtReader reader;
  const auto fed = reader.feed(bytes_of(file), [&](const fxt::Record& record) {
    begins.emplace_back(std::visit([](const auto& one) { return kind_of(one); }, record), reader.offset());
  });
  EXPECT_TRUE(fed);
  std::vector<std::pair<std::string, std::string_view>> records;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::size_t end = i + 1 < begins.size() ? begins[i + 1].second : file.size();
    records.emplace_back(begins[i].first, file.substr(begins[i].second, end - begins[i].second));
  }
  return records;
}

std::string without(std::string_view file, const std::set<std::string>& kinds) {
  std::string rest(file.substr(0, records_of(file).front().second.data() - file.data()));
  for (const auto& [kind, bytes] : records_of(file))
    if (!kinds.contains(kind)) rest += bytes;
  return rest;
}

/// Members that say what is missing, or what is counted at the end only.
const std::set<std::string> losses{"lost_words",        "losses",           "rings_missed", "words_before",
                                   "scheduler_dropped", "switches_dropped", "unprobed",     "dropped",
                                   "written",           "delivered",        "lost",         "before_attach",
                                   "corrupt",           "unread",           "forced",       "max_rss_bytes"};

/// The first of these members that is 0 or false; of lists all elements.
std::string first_zero(const nlohmann::json& value, const std::string& name) {
  for (const auto& [key, member] : value.items()) {
    const std::string inner = name + "." + key;
    const bool is_loss = value.is_object() && losses.contains(key);
    if ((is_loss && member.is_number() && member == 0) || (key == "lower_bound" && member == false)) return inner;
    if (!member.is_structured() || key == "events" || key == "unfinished") continue;
    if (const std::string found = first_zero(member, inner); !found.empty()) return found;
  }
  return {};
}

TEST(LostRecords, ARecordingWithoutItsEndDoesNotSayThatNothingIsMissing) {
  const std::string file = recording_of_all_kinds();
  for (const auto& [name, report] : reports_of(file)) {
    if (name != "dump") {
      EXPECT_EQ(report["truncated"], false) << name;
    }
    if (name != "stalls") {
      EXPECT_NE(first_zero(report, name), "") << "the test looks at too little";
    }
  }
  std::set<std::string> kinds;
  for (const auto& [kind, bytes] : records_of(file)) kinds.insert(kind);
  EXPECT_GT(kinds.size(), 15u);
  std::size_t truncated = 0;
  for (const std::string& kind : kinds) {
    if (kind.empty() || kind == "rtev:header") continue;
    for (const auto& [name, report] : reports_of(without(file, {kind}))) {
      if (!report.value("truncated", false)) continue;
      ++truncated;
      EXPECT_EQ(first_zero(report, name), "") << "without " << kind;
    }
  }
  EXPECT_GT(truncated, 7u) << "without the summary, and where the rest cannot be read";
}

TEST(LostRecords, WithoutSwitchesWhatTheySayIsUnknown) {
  const Reports reports = reports_of(without(recording_of_all_kinds(), {"switch", "wakeup"}));
  for (const std::string name : {"latency", "pauses"}) {
    EXPECT_EQ(reports.at(name)["self"]["waits"], nullptr);
    EXPECT_EQ(reports.at(name)["self"]["waited_ns"], nullptr);
  }
  const nlohmann::json pause = reports.at("pauses")["pauses"].at(0);
  for (const std::string key : {"preempted", "blocked", "woken", "migrations"}) EXPECT_EQ(pause[key], nullptr) << key;
}

}  // namespace
}  // namespace rtev::test
