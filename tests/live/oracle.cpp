// SPDX-License-Identifier: MIT
#include "live/oracle.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "live/harness.hpp"

namespace rtev::test {
namespace {

/// JSON cannot represent names that are not UTF-8; both sides replace such names with this.
const std::string ill_formed = "<ill-formed>";

std::string unhex(const std::string& hex) {
  std::string text;
  if (hex == "-") return text;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    text.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return text;
}

bool is_utf8(const std::string& text) {
  try {
    return !Json(text).dump().empty();
  } catch (const Json::type_error&) {
    return false;
  }
}

Records parse(const std::string& out) {
  Records records;
  std::istringstream lines(out);
  for (std::string text; std::getline(lines, text);) {
    if (text == "drained") continue;
    std::istringstream fields(text);
    int domain = 0;
    std::uint64_t time = 0;
    std::string kind, name, value;
    fields >> domain >> time >> kind >> name >> value;
    name = unhex(name);
    records[domain].push_back(record(time, kind, is_utf8(name) ? name : ill_formed, value));
  }
  if (records.empty()) throw std::runtime_error("oracle: no events, but every ring begins with one");
  return records;
}

std::string value_of(const Json& event, const std::string& kind) {
  if (kind == "counter" || kind == "lifecycle" || kind == "user_int")
    return std::to_string(event.value("value", std::int64_t{0}));
  if (kind == "user_custom") {
    const std::string bytes = event.value("bytes", "");
    return bytes.empty() ? "-" : bytes;
  }
  if (kind == "lost") return std::to_string(event.value("words", std::uint64_t{0}));
  if (kind != "alloc") return "-";
  std::string buckets;
  for (const Json& bucket : event.at("buckets"))
    buckets += (buckets.empty() ? "" : ",") + std::to_string(bucket.get<std::uint64_t>());
  return buckets;
}

}  // namespace

Records oracle(const std::filesystem::path& directory, pid_t pid, const std::filesystem::path& reader) {
  const Outcome outcome = run({.argv = {reader, directory, std::to_string(pid)}});
  if (outcome.status.code() != 0) throw std::runtime_error("oracle: " + outcome.err);
  return parse(outcome.out);
}

std::map<pid_t, Records> oracle(const std::filesystem::path& directory, const std::vector<pid_t>& pids) {
  Process process({.argv = {ocaml_program("oracle"), directory, "-"}});
  std::map<pid_t, Records> all;
  for (const pid_t pid : pids) {
    process.write(std::to_string(pid) + "\n");
    std::string lines;
    for (const std::string& line : process.lines_until("drained")) lines += line + "\n";
    all[pid] = parse(lines);
  }
  process.close_stdin();
  const Outcome outcome = process.wait();
  if (outcome.status.code() != 0) throw std::runtime_error("oracle: " + outcome.err);
  return all;
}

Records oracle(const std::filesystem::path& directory, pid_t pid) {
  return oracle(directory, pid, ocaml_program("oracle"));
}

FollowingOracle::FollowingOracle(const std::filesystem::path& directory, pid_t pid)
    : process_({.argv = {ocaml_program("oracle"), directory, std::to_string(pid), "1"}}) {
  process_.lines_until("drained");
}

Records FollowingOracle::take() {
  process_.go();
  const Outcome outcome = process_.wait();
  if (outcome.status.code() != 0) throw std::runtime_error("oracle: " + outcome.err);
  return parse(outcome.out);
}

std::string record(std::uint64_t time, const std::string& kind, const std::string& name, const std::string& value) {
  return std::to_string(time) + ' ' + kind + ' ' + name + ' ' + value;
}

Records records(const std::vector<Json>& events) {
  Records records;
  for (const Json& event : events) {
    std::string kind = event.value("type", "");
    if (kind == "user") kind += "_" + event.value("kind", "");
    // Null if the program did not register the name of an event; the oracle prints none then.
    std::string name = event.contains("name") && event["name"].is_string() ? event["name"] : Json("");
    if (name.find("\uFFFD") != std::string::npos) name = ill_formed;
    records[event.value("domain", -1)].push_back(
        record(event.value("ts", std::uint64_t{0}), kind, name, value_of(event, kind)));
  }
  return records;
}

std::string difference(const Records& expected, const Records& got) {
  std::ostringstream text;
  for (const auto& [domain, lines] : got)
    if (!expected.contains(domain)) text << "domain " << domain << " is not in the ring; ";
  for (const auto& [domain, lines] : expected) {
    const auto other = got.find(domain);
    const std::vector<std::string> none, &others = other == got.end() ? none : other->second;
    const auto [want, have] = std::ranges::mismatch(lines, others);
    if (want == lines.end() && have == others.end()) continue;
    text << "domain " << domain << ", event " << want - lines.begin() << " of " << lines.size() << ": \""
         << (want == lines.end() ? "the end" : *want) << "\" in the ring, \""
         << (have == others.end() ? "the end" : *have) << "\" of " << others.size() << " delivered; ";
  }
  return text.str();
}

void expect_exact(const Trace& trace, const Records& left, pid_t pid) {
  ASSERT_EQ(count(left, "lost", ""), 0u) << "the program wrote more than its ring holds";
  EXPECT_EQ(difference(left, records(trace.from_rings(pid))), "");
  expect_all_delivered(trace, pid);
}

void expect_all_delivered(const Trace& trace, pid_t pid) {
  auto words = trace.words(pid);
  EXPECT_GT(words["written"], 0u);
  EXPECT_EQ(words["delivered"], words["written"]);
}

void expect_exact(const Trace& trace, const std::filesystem::path& directory, pid_t pid) {
  expect_exact(trace, oracle(directory, pid), pid);
}

std::vector<std::int64_t> steps(const Trace& trace, pid_t pid, const std::string& comm) {
  std::vector<std::int64_t> numbers;
  for (const Json& event : trace.of(pid, "user")) {
    if (event["name"] == "step" && (comm.empty() || event["comm"] == comm)) numbers.push_back(event["value"]);
  }
  return numbers;
}

std::vector<std::int64_t> count_to(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

std::size_t count(const Records& records, const std::string& kind, const std::string& name) {
  const std::string wanted = " " + kind + " " + name + " ";
  std::size_t found = 0;
  for (const auto& [domain, lines] : records)
    found += static_cast<std::size_t>(
        std::ranges::count_if(lines, [&](const std::string& text) { return text.contains(wanted); }));
  return found;
}

}  // namespace rtev::test
