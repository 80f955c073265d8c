// SPDX-License-Identifier: MIT
// Latency fed with pauses of one process, and its reports.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/latency/latency_sink.hpp"
#include "formats/output/output.hpp"
#include "support/json_members.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev {

using test::HasMembers;
using namespace nlohmann::literals;

inline constexpr std::uint16_t stw_leader = 35, domain_wait = test::phase_wait;
inline constexpr std::uint64_t start = 1'000'000;

class LatencyTest : public testing::Test {
 protected:
  explicit LatencyTest() { make({}); }

  void make(LatencyOptions options) {
    output = {};
    latency.emplace(std::move(options), output);
    RunHeader header;
    header.start_ns = start;
    latency->header(header);
  }
  void feed(const test::Events& events) { latency->consume(events.batch(), world.registry); }
  void pause(std::uint64_t begin, std::uint64_t ns, std::uint16_t domain = 0, std::uint16_t phase = test::phase_major,
             std::uint32_t slot = 0) {
    feed(test::Events{slot == 0 ? world.slot : slot}
             .add(start + begin, EventKind::begin, phase, 0, domain)
             .add(start + begin + ns, EventKind::end, phase, 0, domain));
  }
  void begin(std::uint64_t at, std::uint16_t phase = test::phase_major) {
    feed(test::Events{world.slot}.add(start + at, EventKind::begin, phase));
  }
  void end(std::uint64_t at, std::uint16_t phase = test::phase_major) {
    feed(test::Events{world.slot}.add(start + at, EventKind::end, phase));
  }
  void add(std::uint64_t at, const SchedSwitch& change) {
    feed(test::Events{0}.add_record(start + at, EventKind::sched_switch, change, 0, first_sched_stream));
  }
  void lose(std::uint64_t at, std::uint64_t words) {
    feed(test::Events{world.slot}.add_record(start + at, EventKind::lost, Loss{words, start, start + at}));
  }
  ProcessIndex add_process(std::int32_t pid, std::string comm) {
    ProcessInfo info;
    info.pid = pid;
    info.comm = std::move(comm);
    return world.registry.add_process(std::move(info));
  }
  void exit(ProcessIndex process, std::uint64_t at) {
    feed(test::Events{0}.add_record(start + at, EventKind::process, ProcessRecord{process, 0, 0},
                                    static_cast<std::uint16_t>(ProcessAction::exit)));
  }
  nlohmann::json report() { return nlohmann::json::parse(latency->report_json(world.registry)); }
  std::string text() { return latency->report_text(world.registry); }
  std::vector<nlohmann::json> written() const {
    std::vector<nlohmann::json> lines;
    std::istringstream in{output.text()};
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  test::World world;
  StringOutput output;
  std::optional<Latency> latency;
};

}  // namespace rtev
