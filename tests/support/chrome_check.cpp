// SPDX-License-Identifier: MIT
#include "support/chrome_check.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <tuple>

namespace rtev::test {
namespace {

using nlohmann::json;

class Reader {
 public:
  Reader(const std::string& text, bool is_cut) {
    const json parsed = json::parse(text, nullptr, false);
    if (!parsed.is_array()) {
      note("not an array of JSON");
      return;
    }
    trace_.events = parsed.get<std::vector<json>>();
    std::vector<std::pair<std::uint64_t, const json*>> ordered;  // by time, then in file order
    for (const json& event : trace_.events) {
      if (!is_well_formed(event)) continue;
      if (event["ph"] == "M") {
        metadata(event);
      } else {
        named_before_use(event);
        ordered.emplace_back(ChromeTrace::ns(event["ts"]), &event);
      }
    }
    std::ranges::sort(ordered);
    for (const auto& [time, event] : ordered) add(*event);
    if (!is_cut) finished();
    for (auto& [row, states] : trace_.states) one_at_a_time(states, "states");
    for (auto& [cpu, turns] : running_) one_at_a_time(turns, "turns on a cpu");
  }

  ChromeTrace take() { return std::move(trace_); }

 private:
  using Row = ChromeTrace::Row;
  struct Departure {
    Row row;
    std::string span;
    bool has_arrived = false;
  };

  void note(const std::string& what, const json& event = {}) {
    trace_.problems.push_back(event.is_null() ? what : what + ": " + event.dump());
  }

  static json args_of(const json& event) { return event.value("args", json::object()); }
  static Row row_of(const json& event) { return {event["pid"], event["tid"]}; }

  bool is_well_formed(const json& event) {
    const auto has = [&](const char* key, auto is_right) { return event.contains(key) && is_right(event[key]); };
    const auto is_text = [](const json& value) {
      return value.is_string() && !value.get_ref<const std::string&>().empty();
    };
    const auto is_number = [](const json& value) { return value.is_number() && value >= 0; };
    const auto is_id = [](const json& value) { return value.is_number_integer() && value >= 0 && value <= INT32_MAX; };
    bool good = event.is_object() && has("ph", is_text) && has("pid", is_id) && has("tid", is_id);
    if (good && event["ph"] != "E") good = has("name", is_text);
    if (good && event["ph"] == "E") good = !event.contains("name");
    if (good && event["ph"] != "M") good = has("ts", is_number);
    if (good && event["ph"] == "T") good = has("dur", is_number);
    for (const char* key : {"ts", "dur"}) {
      if (good && event.contains(key) && !is_exact(event[key])) note("time that viewers read differently", event);
    }
    if (good && event.contains("args")) good = event["args"].is_object();
    if (!good) note("not an event", event);
    return good;
  }

  /// Perfetto does not round.
  static bool is_exact(const json& microseconds) {
    return static_cast<std::uint64_t>(microseconds.get<double>() * 1000) == ChromeTrace::ns(microseconds);
  }

  void metadata(const json& event) {
    const std::string name = event["name"];
    const json args = args_of(event);
    if (name == "process_name") {
      trace_.process_names[event["pid"]] = args.value("name", "");
    } else if (name == "thread_name") {
      trace_.row_names[row_of(event)] = args.value("name", "");
    } else if (name == "process_sort_index") {
      trace_.process_order[event["pid"]] = args.value("sort_index", 0);
    } else if (name == "thread_sort_index") {
      trace_.row_order[row_of(event)] = args.value("sort_index", 0);
    } else if (name == "rtev_header") {
      trace_.header = args;
    } else if (name == "rtev_summary") {
      trace_.summary = args;
    }
  }

  void named_before_use(const json& event) {
    if (event["ph"] == "i" && event.value("s", "") == "g") return;
    if (trace_.process_names[event["pid"]].empty()) note("process without a name", event);
    if (trace_.row_names[row_of(event)].empty()) note("row without a name", event);
  }

  void add(const json& event) {
    const std::string phase = event["ph"];
    if (phase == "B") return begin(event);
    if (phase == "E") return end(event);
    if (phase == "i") return instant(event);
    if (phase == "C") return counter(event);
    if (phase == "s" || phase == "f") return flow(event);
    if (phase == "T") return state(event);
    note("unknown phase", event);
  }

  void begin(const json& event) {
    auto& spans = trace_.spans[row_of(event)];
    auto& open = open_[row_of(event)];
    const std::uint64_t time = ChromeTrace::ns(event["ts"]);
    spans.push_back({.name = event["name"],
                     .category = event.value("cat", ""),
                     .from = time,
                     .to = time,
                     .depth = open.size(),
                     .args = args_of(event)});
    open.push_back(spans.size() - 1);
  }

  void end(const json& event) {
    auto& open = open_[row_of(event)];
    if (open.empty()) return note("end without begin", event);
    ChromeTrace::Span& span = trace_.spans[row_of(event)][open.back()];
    span.to = ChromeTrace::ns(event["ts"]);
    const json args = args_of(event);
    for (const auto& [key, value] : args.items()) {
      if (span.args.contains(key) && key != "late") note("argument of begin and end", event);
      span.args[key] = value;
    }
    open.pop_back();
  }

  void instant(const json& event) {
    const std::string scope = event.value("s", "");
    if (scope != "t" && scope != "p" && scope != "g") note("unknown scope", event);
    trace_.instants[row_of(event)].push_back({event["name"], ChromeTrace::ns(event["ts"]), scope, args_of(event)});
  }

  void counter(const json& event) {
    const json args = args_of(event);
    if (args.size() != 1) note("not one value", event);
    for (const auto& [key, value] : args.items()) {
      if (!value.is_number()) note("value that is no number", event);
      const std::pair<std::int64_t, std::string> graph{event["pid"], event["name"].get<std::string>() + " " + key};
      trace_.counters[graph].push_back({ChromeTrace::ns(event["ts"]), value});
    }
  }

  /// Arrows start and end at the span that is open at their place.
  void flow(const json& event) {
    const auto open = open_.find(row_of(event));
    if (open == open_.end() || open->second.empty()) return note("arrow outside of spans", event);
    if (!event.contains("id") || !event["id"].is_number_unsigned()) return note("arrow without an id", event);
    const std::string span = trace_.spans[row_of(event)][open->second.back()].name;
    const std::tuple<std::string, std::string, std::uint64_t> key{event["name"], event.value("cat", ""), event["id"]};
    if (event["ph"] == "s") {
      if (!departures_.try_emplace(key, Departure{row_of(event), span}).second) note("arrow that left twice", event);
      return;
    }
    if (event.value("bp", "") != "e") note("arrow that is not bound to its span", event);
    const auto departure = departures_.find(key);
    if (departure == departures_.end()) return note("arrow from nowhere", event);
    if (std::exchange(departure->second.has_arrived, true)) note("arrow that arrived twice", event);
    trace_.arrows.push_back({departure->second.row, row_of(event), departure->second.span, span});
  }

  void state(const json& event) {
    const std::uint64_t from = ChromeTrace::ns(event["ts"]), to = from + ChromeTrace::ns(event["dur"]);
    const json args = args_of(event);
    trace_.states[row_of(event)].push_back({event["name"], from, to, args});
    if (event["name"] != "Running") return;
    if (!args.contains("cpu")) return note("turn on no cpu", event);
    running_[args["cpu"]].push_back(trace_.states[row_of(event)].back());
  }

  void one_at_a_time(const std::vector<ChromeTrace::State>& states, const std::string& what) {
    for (std::size_t i = 1; i < states.size(); ++i) {
      if (states[i].from < states[i - 1].to) note(what + " that overlap at " + std::to_string(states[i].from));
    }
  }

  void finished() {
    for (const auto& [row, open] : open_) {
      for (const std::size_t span : open) note("span that never ends: " + trace_.spans[row][span].name);
    }
    if (trace_.header.is_null()) note("no header");
    if (trace_.summary.is_null()) note("no summary");
  }

  ChromeTrace trace_;
  std::map<Row, std::vector<std::size_t>> open_;  ///< indexes of trace_.spans, outermost first
  std::map<std::tuple<std::string, std::string, std::uint64_t>, Departure> departures_;
  std::map<std::int64_t, std::vector<ChromeTrace::State>> running_;  ///< by cpu
};

}  // namespace

std::uint64_t ChromeTrace::ns(const json& microseconds) {
  return static_cast<std::uint64_t>(std::llround(microseconds.get<double>() * 1000));
}

ChromeTrace::Row ChromeTrace::row(const std::string& name) const {
  std::vector<Row> found;
  for (const auto& [row, row_name] : row_names) {
    if (row_name == name) found.push_back(row);
  }
  if (found.size() != 1) throw std::runtime_error(std::to_string(found.size()) + " rows called " + name);
  return found.front();
}

ChromeTrace read_chrome_trace(const std::string& text) {
  return Reader(text, false).take();
}

ChromeTrace read_cut_chrome_trace(std::string text) {
  text.erase(text.find_last_not_of(",\n ") + 1);
  if (text.empty() || text.back() != ']') text += ']';
  return Reader(text, true).take();
}

}  // namespace rtev::test
