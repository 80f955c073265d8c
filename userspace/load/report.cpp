// SPDX-License-Identifier: MIT
#include "load/report.hpp"

#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "base/json_writer.hpp"

namespace rtev::load {
namespace {

struct Envelope {
  std::int64_t pid;
  std::uint64_t duration_ns;
  std::uint64_t path_size;
  std::uint64_t domains;
};
static_assert(std::is_trivially_copyable_v<DomainReport>);

std::uint64_t sum(const EventCounts& events) {
  return std::accumulate(events.begin(), events.end(), std::uint64_t{0});
}

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

void add_events(JsonWriter& json, const EventCounts& events) {
  json.key("events").object([&] {
    for (std::size_t kind = 0; kind < events.size(); ++kind)
      json.member(to_string(static_cast<EventKind>(kind)), events[kind]);
  });
  json.member("total", sum(events));
}

}  // namespace

std::uint64_t DomainReport::total() const {
  return sum(events);
}

std::uint64_t Totals::total() const {
  return sum(events);
}

void Totals::add(const ProcessReport& report) {
  ++processes;
  for (const DomainReport& domain : report.domains) {
    for (std::size_t kind = 0; kind < events.size(); ++kind) events[kind] += domain.events[kind];
    words += domain.words;
  }
}

std::string encode(const ProcessReport& report) {
  const Envelope envelope{.pid = report.pid,
                          .duration_ns = report.duration_ns,
                          .path_size = report.path.size(),
                          .domains = report.domains.size()};
  std::string bytes(reinterpret_cast<const char*>(&envelope), sizeof envelope);
  bytes += report.path;
  return bytes.append(reinterpret_cast<const char*>(report.domains.data()),
                      report.domains.size() * sizeof(DomainReport));
}

std::optional<ProcessReport> decode(std::string_view bytes) {
  Envelope envelope;
  if (bytes.size() < sizeof envelope) return std::nullopt;
  std::memcpy(&envelope, bytes.data(), sizeof envelope);
  bytes.remove_prefix(sizeof envelope);
  if (envelope.path_size > bytes.size()) return std::nullopt;
  ProcessReport report{.pid = static_cast<pid_t>(envelope.pid),
                       .path = std::string(bytes.substr(0, envelope.path_size)),
                       .duration_ns = envelope.duration_ns,
                       .domains = {}};
  bytes.remove_prefix(envelope.path_size);
  if (bytes.size() % sizeof(DomainReport) != 0 || bytes.size() / sizeof(DomainReport) != envelope.domains)
    return std::nullopt;
  report.domains.resize(envelope.domains);
  if (!bytes.empty()) std::memcpy(report.domains.data(), bytes.data(), bytes.size());
  return report;
}

std::string json_header() {
  return "{\"schema\":1,\"processes\":[\n";
}

std::string json_process(const ProcessReport& report) {
  JsonWriter json;
  json.object([&] {
    json.member("pid", report.pid);
    json.member("path", report.path);
    json.key("domains").array([&] {
      for (std::size_t i = 0; i < report.domains.size(); ++i) {
        const DomainReport& domain = report.domains[i];
        json.object([&] {
          json.member("domain", i);
          add_events(json, domain.events);
          json.member("words", domain.words);
          json.member("first_ns", domain.first_ns);
          json.member("last_ns", domain.last_ns);
        });
      }
    });
    json.member("seconds", seconds(report.duration_ns));
  });
  return std::string(json.text());
}

std::string json_footer(const Totals& totals, std::uint64_t duration_ns) {
  const double rate = duration_ns == 0 ? 0 : static_cast<double>(totals.total()) / seconds(duration_ns);
  JsonWriter json;
  json.object([&] {
    json.member("processes", totals.processes);
    add_events(json, totals.events);
    json.member("words", totals.words);
    json.member("seconds", seconds(duration_ns));
    json.member("events_per_second", std::llround(rate));
  });
  return "\n],\"total\":" + std::string(json.text()) + "}\n";
}

}  // namespace rtev::load
