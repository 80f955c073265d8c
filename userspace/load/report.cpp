// SPDX-License-Identifier: MIT
#include "load/report.hpp"

#include <fmt/format.h>

#include <cstring>
#include <numeric>
#include <type_traits>

#include "base/escape.hpp"
#include "stream/records.hpp"

namespace rtev::load {
namespace {

struct Envelope {
  std::int64_t pid;
  std::uint64_t lived_ns;
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

std::string json_events(const EventCounts& events) {
  std::string json;
  for (std::size_t kind = 0; kind < events.size(); ++kind)
    json += fmt::format("{}\"{}\":{}", json.empty() ? '{' : ',', to_string(static_cast<EventKind>(kind)), events[kind]);
  return json + '}';
}

std::string json_domain(std::size_t index, const DomainReport& domain) {
  return fmt::format(R"({{"domain":{},"events":{},"total":{},"words":{},"first_ns":{},"last_ns":{}}})", index,
                     json_events(domain.events), domain.total(), domain.words, domain.first_ns, domain.last_ns);
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
                          .lived_ns = report.lived_ns,
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
                       .lived_ns = envelope.lived_ns,
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
  TextBuffer path;
  add_json_string(path, report.path);
  std::string domains;
  for (std::size_t i = 0; i < report.domains.size(); ++i)
    domains += (i == 0 ? "" : ",") + json_domain(i, report.domains[i]);
  return fmt::format(R"({{"pid":{},"path":{},"domains":[{}],"seconds":{:.6f}}})", report.pid, path.text(), domains,
                     seconds(report.lived_ns));
}

std::string json_footer(const Totals& totals, std::uint64_t duration_ns) {
  const double rate = duration_ns == 0 ? 0 : static_cast<double>(totals.total()) / seconds(duration_ns);
  return fmt::format(
      "\n],\"total\":{{\"processes\":{},\"events\":{},\"total\":{},\"words\":{},\"seconds\":{:.6f},"
      "\"events_per_second\":{:.0f}}}}}\n",
      totals.processes, json_events(totals.events), totals.total(), totals.words, seconds(duration_ns), rate);
}

}  // namespace rtev::load
