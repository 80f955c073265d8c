// SPDX-License-Identifier: MIT
#include "live/tracer.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <stdexcept>

namespace rtev::test {
namespace {

/// Fields each type of event must have, besides "ts" and "type".
const std::map<std::string, std::vector<std::string>, std::less<>> schema{
    {"begin", {"pid", "comm", "domain", "name"}},
    {"end", {"pid", "comm", "domain", "name"}},
    {"counter", {"pid", "comm", "domain", "name", "value"}},
    {"alloc", {"pid", "comm", "domain", "buckets"}},
    {"lifecycle", {"pid", "comm", "domain", "name", "value"}},
    {"user", {"pid", "comm", "domain", "name", "id", "kind"}},
    {"lost", {"pid", "comm", "domain", "words", "from", "to", "reason"}},
    {"dropped", {"buffer", "records", "from", "to"}},
    {"samples", {"records", "from", "to"}},
    {"sample", {"kind", "pid", "comm", "tid", "cpu", "stack"}},
    {"process", {"pid", "comm", "action"}},
    {"switch", {"cpu", "prev", "next"}},
    {"wakeup", {"tid", "pid", "cpu", "by"}},
};

const std::set<std::string, std::less<>> ring_types{"begin", "end", "counter", "alloc", "lifecycle", "user", "lost"};

std::string missing_field(const Json& event) {
  for (const char* field : {"ts", "type"})
    if (!event.contains(field)) return field;
  const std::string reason = event["type"] == "lost" ? event.value("reason", "") : "";
  const std::string kind_of_loss = reason == "dropped" ? reason : reason.ends_with("samples") ? "samples" : "";
  const auto known = schema.find(kind_of_loss.empty() ? event["type"].get<std::string>() : kind_of_loss);
  if (known == schema.end()) return "a known type";
  for (const std::string& field : known->second)
    if (!event.contains(field)) return field;
  if (event["type"] != "user") return {};
  const std::string kind = event["kind"];
  if (kind == "int") return event.contains("value") ? "" : "value";
  if (kind == "custom") return event.contains("bytes") ? "" : "bytes";
  return kind == "unit" || kind == "begin" || kind == "end" ? "" : "a known kind";
}

/// Holds for every run.
void check(const Trace& trace) {
  EXPECT_EQ(trace.header.value("schema", 0), 2);
  std::uint64_t before = 0;
  std::map<std::string, int> wrong;  // one message for each kind of error, not for each event
  for (const Json& event : trace.events) {
    if (const std::string missing = missing_field(event); !missing.empty()) {
      if (wrong["lacks " + missing]++ == 0) ADD_FAILURE() << "lacks " << missing << ": " << event;
      continue;
    }
    const std::uint64_t time = event["ts"];
    if (event.value("late", false)) continue;
    if (time < before && wrong["order"]++ == 0)
      ADD_FAILURE() << "not late, but earlier than " << before << ": " << event;
    before = std::max(before, time);
  }
  for (const auto& [mistake, count] : wrong) EXPECT_EQ(count, 0) << mistake;

  EXPECT_TRUE(trace.summary.contains("processes")) << trace.summary;
  // If the end of a recording is missing, the number of words written is unknown.
  if (trace.summary.value("truncated", false)) return;
  for (const Json& process : trace.summary.value("processes", Json::array())) {
    const Json words = process.value("words", Json::object());
    std::uint64_t sum = 0;
    for (const char* part : {"delivered", "lost", "before_attach", "corrupt", "unread"})
      sum += words.value(part, std::uint64_t{0});
    EXPECT_EQ(words.value("written", std::uint64_t{0}), sum) << process;
  }
}

}  // namespace

std::string tool() {
  const char* other = std::getenv("RTEV_TOOL");
  return other != nullptr ? other : RTEV_TOOL;
}

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> objects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    objects.push_back(Json::parse(line, nullptr, false));
    if (objects.back().is_object()) continue;
    ADD_FAILURE() << "not a JSON object: " << line.substr(0, 500);
    objects.back() = Json::object();
  }
  return objects;
}

Trace Trace::parse(const std::string& lines) {
  Trace trace;
  for (Json& json : json_lines(lines)) {
    const std::string type = json.value("type", "");
    EXPECT_TRUE(trace.summary.is_null()) << "after the summary: " << json;
    if (trace.header.is_null()) {
      EXPECT_EQ(type, "header") << json;
      trace.header = std::move(json);
    } else if (type == "summary") {
      trace.summary = std::move(json);
    } else {
      trace.events.push_back(std::move(json));
    }
  }
  if (trace.header.is_null() || trace.summary.is_null()) throw std::runtime_error("no header or no summary");
  check(trace);
  return trace;
}

std::vector<Json> Trace::of(std::string_view type) const {
  std::vector<Json> found;
  for (const Json& event : events)
    if (event.value("type", "") == type) found.push_back(event);
  return found;
}

std::vector<Json> Trace::of(pid_t pid, std::string_view type) const {
  std::vector<Json> found = of(type);
  std::erase_if(found, [&](const Json& event) { return event.value("pid", 0) != pid; });
  return found;
}

std::map<pid_t, Trace> Trace::by_process() const {
  std::map<pid_t, Trace> processes;
  for (const Json& event : events)
    if (event.contains("pid")) processes[event["pid"]].events.push_back(event);
  for (const Json& process : summary["processes"]) processes[process["pid"]].summary["processes"].push_back(process);
  return processes;
}

std::vector<Json> Trace::from_rings(pid_t pid) const {
  std::vector<Json> found;
  for (const Json& event : events)
    if (event.value("pid", 0) == pid && ring_types.contains(event.value("type", ""))) found.push_back(event);
  return found;
}

std::vector<std::string> Trace::actions(pid_t pid) const {
  std::vector<std::string> found;
  for (const Json& event : of(pid, "process")) found.push_back(event.value("action", ""));
  return found;
}

Json Trace::action(pid_t pid, std::string_view action) const {
  std::vector<Json> found = of(pid, "process");
  std::erase_if(found, [&](const Json& event) { return event.value("action", "") != action; });
  EXPECT_EQ(found.size(), 1u) << action << " of " << pid;
  return found.size() == 1 ? found.front() : Json::object();
}

std::map<std::string, std::uint64_t> Trace::words(pid_t pid) const {
  std::map<std::string, std::uint64_t> total;
  for (const Json& process : summary.value("processes", Json::array())) {
    if (process.value("pid", 0) != pid) continue;
    const Json words = process.value("words", Json::object());
    for (const auto& [name, value] : words.items()) total[name] += value.get<std::uint64_t>();
  }
  return total;
}

Json Trace::process(pid_t pid) const {
  for (const Json& process : summary.value("processes", Json::array()))
    if (process["pid"] == pid) return process;
  return Json::object();
}

std::uint64_t Trace::lost_words(pid_t pid) const {
  std::uint64_t words = 0;
  for (const Json& loss : of(pid, "lost"))
    if (loss["words"].is_number()) words += loss["words"].get<std::uint64_t>();
  return words;
}

Tracer::Tracer(std::vector<std::string> arguments, const Options& options) {
  Command command{.argv = options.wrapper, .env = options.env, .terminal = options.terminal};
  command.argv.push_back(tool());
  command.argv.insert(command.argv.end(), options.format.begin(), options.format.end());
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  start_ready(process_, std::move(command));
}

Outcome Tracer::interrupt() {
  process_->signal(SIGINT);
  Outcome outcome = process_->wait();
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  return outcome;
}

Outcome run_tool(std::vector<std::string> arguments, Command command) {
  command.argv = std::move(arguments);
  command.argv.insert(command.argv.begin(), tool());
  return run(command);
}

std::string ps_line(pid_t pid) {
  const Outcome ps = run_tool({"ps", "-d", "1ms", "-p", std::to_string(pid)});
  EXPECT_EQ(ps.status.code(), 0) << ps.err;
  // With a blank between columns.
  std::string line = ps.out.substr(ps.out.find('\n') + 1);
  line.erase(std::ranges::unique(line, [](char a, char b) { return a == ' ' && b == ' '; }).begin(), line.end());
  return line;
}

Outcome dump(const std::string& source, std::vector<std::string> options) {
  options.insert(options.begin(), {"dump", "-f", "jsonl", source});
  Outcome outcome = run_tool(std::move(options));
  EXPECT_EQ(outcome.status.code(), 0) << source << ": " << outcome.err;
  return outcome;
}

Trace dumped(const std::string& source, std::vector<std::string> options) {
  return Trace::parse(dump(source, std::move(options)).out);
}

void convert(const std::filesystem::path& from, const std::filesystem::path& to) {
  const Outcome outcome = run_tool({"convert", "-q", from, "-o", to});
  EXPECT_EQ(outcome.status.code(), 0) << from << " to " << to << ": " << outcome.err;
  EXPECT_EQ(outcome.err, "") << from << " to " << to;
}

std::string first_difference(std::string_view expected, std::string_view got) {
  const auto [want, have] = std::ranges::mismatch(expected, got);
  if (want == expected.end() && have == got.end()) return {};
  const auto at = static_cast<std::size_t>(want - expected.begin());
  const auto line_at = [at](std::string_view text) {
    const std::size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
    text.remove_prefix(newline == std::string_view::npos ? 0 : newline + 1);
    return std::string(text.substr(0, std::min(text.find('\n'), std::size_t{1000})));
  };
  return "expected: " + line_at(expected) + "\ngot: " + line_at(got);
}

}  // namespace rtev::test
