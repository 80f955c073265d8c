// SPDX-License-Identifier: MIT
// Whatever comes, figures stay possible.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "unit/analysis/stats/stats_fixture.hpp"

namespace rtev::test {
namespace {

void expect_possible(const StatsFigures& figures, std::string_view where) {
  EXPECT_LE(figures.gc_ns, figures.domain_ns) << where;
  if (const auto share = figures.gc_share()) {
    EXPECT_GE(*share, 0) << where;
    EXPECT_LE(*share, 1) << where;
  }
}

/// All numbers of a JSON value are natural numbers, or shares.
void expect_natural(const nlohmann::json& value, const std::string& where) {
  if (value.is_structured()) {
    for (const auto& [key, member] : value.items()) expect_natural(member, where + '/' + key);
  } else if (where.ends_with("gc_share") || where.ends_with("/min") || where.find("/p99") != std::string::npos) {
    EXPECT_TRUE(value.is_null() || (value >= 0.0 && value <= 1.0)) << where << ' ' << value;
  } else if (value.is_number()) {
    EXPECT_TRUE(value.is_number_unsigned()) << where << ' ' << value;
  }
}

class StatsRandomTest : public testing::TestWithParam<unsigned> {
 protected:
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>{0, bound - 1}(random_);
  }

  /// Forward as a rule, at times back or far.
  std::uint64_t next_time() {
    const std::uint64_t dice = below(1000);
    if (dice == 0) return below(2) == 0 ? 0 : UINT64_MAX;
    if (dice < 20) return time_ - std::min(time_, below(1000));
    return time_ += below(500);
  }
  std::uint64_t any_value() { return below(50) == 0 ? UINT64_MAX - below(3) : below(100'000); }

  Thread any_thread() {
    Thread thread = make_thread(static_cast<std::int32_t>(100 + below(3)), static_cast<std::int32_t>(100 + below(9)),
                                "server", below(5) != 0);
    thread.domain = static_cast<std::int32_t>(below(6)) - 1;
    return thread;
  }

  ProcessIndex any_process() { return processes_[below(processes_.size())]; }

  void feed_process() {
    const auto action = static_cast<ProcessAction>(below(8));
    const std::int64_t detail = action == ProcessAction::exit ? static_cast<std::int64_t>(below(3)) - 2 : 128;
    feed(Events(0).add_record(next_time(), EventKind::process, ProcessRecord{any_process(), 0, detail},
                              static_cast<std::uint16_t>(action)));
    if (action == ProcessAction::exit) start_process();
  }

  void feed_any() {
    const auto domain = static_cast<std::uint16_t>(below(4));
    const std::uint64_t dice = below(100);
    Events events(slots_[below(slots_.size())]);
    if (dice < 60) {
      events.add(next_time(), below(2) == 0 ? EventKind::begin : EventKind::end, static_cast<std::uint16_t>(below(55)),
                 0, domain);
    } else if (dice < 75) {
      events.add(next_time(), EventKind::counter, static_cast<std::uint16_t>(below(35)), any_value(), domain);
    } else if (dice < 80) {
      events.add(next_time(), EventKind::lifecycle, static_cast<std::uint16_t>(below(9)), 1, domain);
    } else if (dice < 83) {
      events.add_record(next_time(), EventKind::lost, Loss{any_value(), below(time_ + 1), time_}, 0, domain);
    } else if (dice < 88) {
      events.add(next_time(), static_cast<EventKind>(5 + below(4)), static_cast<std::uint16_t>(below(100)), 1, domain);
    } else if (dice < 99) {
      const auto state = static_cast<LeftState>(below(8));
      Events kernel(0);
      kernel.add_record(
          next_time(), EventKind::sched_switch,
          SchedSwitch{
              .cpu = static_cast<std::uint32_t>(below(4)), .state = state, .prev = any_thread(), .next = any_thread()},
          0, first_sched_stream);
      feed(kernel);
      return;
    } else {
      feed_process();
      return;
    }
    ++ring_events_;
    feed(events);
  }

  void feed(const Events& events) { stats_.consume(events.batch(), world_.registry); }

  void start_process() {
    ProcessInfo info = World::default_info();
    info.pid = static_cast<std::int32_t>(100 + below(3));
    info.family = below(2) == 0 ? Family::before_5_3 : Family::since_5_3;
    processes_.push_back(world_.registry.add_process(info));
    slots_.push_back(world_.add_ring(processes_.back()));
  }

  void check() {
    StatsReport report = stats_.report(world_.registry);
    std::uint64_t events = report.other_processes.events + report.other_processes.losses;
    for (const ProcessStats& process : report.processes) {
      expect_possible(process.figures, "process");
      expect_possible(process.other_domains, "other domains");
      for (const DomainStats& domain : process.domains) {
        expect_possible(domain.figures, "domain");
        EXPECT_EQ(domain.figures.wall_ns, domain.figures.domain_ns);
        EXPECT_LE(domain.figures.wall_ns, process.figures.wall_ns);
      }
      events += process.figures.events + process.figures.losses;
    }
    expect_possible(report.other_processes, "other processes");
    expect_possible(report.total, "total");
    EXPECT_EQ(events, ring_events_);
    EXPECT_EQ(report.total.events + report.total.losses, ring_events_);
    const std::string text = stats_text(report, true) + stats_text(report, false);
    EXPECT_THAT(text, testing::Not(testing::ContainsRegex("nan|inf|-[0-9]+[num]?s")));
    expect_natural(nlohmann::json::parse(stats_json(report)), "");
  }

  World world_;
  Stats stats_{{.ended_processes = 4, .ended_domains = 5, .max_bytes = 24 << 10}};
  std::vector<ProcessIndex> processes_{world_.process};
  std::vector<std::uint32_t> slots_{world_.slot};
  std::uint64_t ring_events_ = 0;

 private:
  std::mt19937_64 random_{GetParam()};
  std::uint64_t time_ = 1'000'000;
};

TEST_P(StatsRandomTest, FiguresStayPossible) {
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    for (int i = 0; i < 250; ++i) feed_any();
    check();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, StatsRandomTest, testing::Range(0u, 20u));

}  // namespace
}  // namespace rtev::test
