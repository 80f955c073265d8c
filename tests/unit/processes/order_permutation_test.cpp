// SPDX-License-Identifier: MIT
// All orders of small sets: when the lifecycle reader looks records up, when the main thread takes them, when a scan
// happens, which records are dropped, and records in any order at all. Whatever the order, each image is reported to
// begin once and to end once, each ring is read or counted as missed once, and no event is attributed to another image.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "unit/processes/fake_host.hpp"

namespace rtev::test {
namespace {

/// Steps of processes, see FakeHost::play(): each a letter and perhaps a number.
using Life = std::vector<std::string>;

Life parse(const std::string& steps) {
  Life life;
  for (const char c : steps) {
    if (std::isdigit(c) != 0)
      life.back().push_back(c);
    else if (c != ' ')
      life.emplace_back(1, c);
  }
  return life;
}

bool is_exec(const std::string& step) {
  return (step[0] >= 'A' && step[0] <= 'C') || step[0] == 's';
}

bool writes_a_record(const std::string& step) {
  return is_exec(step) || step[0] == 'f' || step[0] == 'r' || step[0] == 'x';
}

std::size_t records_of(const Life& life) {
  return static_cast<std::size_t>(std::ranges::count_if(life, writes_a_record));
}

/// All ways to mix the steps of a life with look-ups of the records that they write.
std::vector<Life> schedules(const Life& life) {
  std::vector<Life> all;
  const std::size_t records = records_of(life);
  Life schedule;
  const std::function<void(std::size_t, std::size_t, std::size_t)> extend = [&](std::size_t lived, std::size_t written,
                                                                                std::size_t looked_up) {
    if (lived == life.size() && looked_up == records) {
      all.push_back(schedule);
      return;
    }
    if (lived < life.size()) {
      schedule.push_back(life[lived]);
      extend(lived + 1, written + writes_a_record(life[lived]), looked_up);
      schedule.pop_back();
    }
    if (looked_up < written) {
      schedule.emplace_back("l");
      extend(lived, written, looked_up + 1);
      schedule.pop_back();
    }
  };
  extend(0, 0, 0);
  return all;
}

std::string joined(const Life& steps) {
  std::string text;
  for (const std::string& step : steps) text += step;
  return text;
}

/// Calls check(i) for some of `count` orders, evenly spread. With RTEV_ALL_ORDERS for all of small sets, and for many
/// of large ones.
template <typename Check>
void for_some(std::size_t count, Check check) {
  const std::size_t orders = std::min<std::size_t>(count, std::getenv("RTEV_ALL_ORDERS") != nullptr ? 20'000 : 24);
  for (std::size_t i = 0; i < orders && !testing::Test::HasFailure(); ++i) check(i * count / orders);
}

struct Scenario {
  std::string name;
  std::string steps;
  bool same_paths = false;
};

void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.steps;
}

class Orders : public testing::TestWithParam<Scenario> {
 protected:
  const Life life = parse(GetParam().steps);
  FakeHostOptions saving(Saving saving) const { return {.saving = saving, .same_paths = GetParam().same_paths}; }
};

TEST_P(Orders, MainThreadAndScanAtAnyTime) {
  const std::vector<Life> all = schedules(life);
  const std::size_t positions = all.front().size() + 1;
  for_some(all.size() * positions * positions, [&](std::size_t order) {
    Life schedule = all[order / (positions * positions)];
    const auto insert = [&](std::size_t position, const char* step) {
      schedule.insert(schedule.begin() + static_cast<std::ptrdiff_t>(position), step);
    };
    insert(order / positions % positions, "n");
    insert(order % positions, "t");
    const std::string name = joined(schedule);
    FakeHost host(saving(Saving::whole));
    host.play(name);
    host.settle();
    check_invariants(host, name);
    check_all_accounted(host, name);
  });
}

TEST_P(Orders, MainThreadIsAlwaysThere) {
  const std::vector<Life> all = schedules(life);
  for_some(all.size(), [&](std::size_t order) {
    std::string prompt;
    for (const std::string& step : all[order]) prompt += step == "l" ? "lt" : step;
    FakeHost host(saving(Saving::whole));
    host.play(prompt);
    host.settle();
    check_invariants(host, prompt);
    check_all_accounted(host, prompt);
  });
}

TEST_P(Orders, WithoutSavedRings) {
  const std::vector<Life> all = schedules(life);
  for_some(all.size(), [&](std::size_t order) {
    const std::string name = joined(all[order]);
    FakeHost host(saving(Saving::off));
    host.play(name);
    host.settle();
    check_invariants(host, name);
  });
}

TEST_P(Orders, AnyRecordsDropped) {
  // Looked up at once without scans or with a scan after each step, or looked up when all is over.
  constexpr std::array ways{"lt", "lnt", ""};
  for_some(ways.size() << records_of(life), [&](std::size_t order) {
    const std::string after = ways[order % ways.size()];
    std::size_t dropped = order / ways.size();
    Attribution attribution = Attribution::known;
    std::string name;
    FakeHost host(saving(Saving::whole));
    for (const std::string& step : life) {
      const std::size_t before = host.records_waiting();
      std::string steps = step;
      host.play(step);
      if (writes_a_record(step)) {
        if ((dropped & 1) != 0 && host.records_waiting() > before) {
          host.play("d");
          steps += "d";
          if (is_exec(step) || GetParam().same_paths) attribution = Attribution::unknown;
        }
        dropped >>= 1;
      }
      host.play(after);
      name += steps + after;
    }
    host.settle();
    check_invariants(host, name, attribution);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Lives, Orders,
    testing::Values(Scenario{"Ring", "Arx."}, Scenario{"RingTakenDown", "Arux."}, Scenario{"NextProgram", "ArBx."},
                    Scenario{"NextProgramWithARing", "ArBrx."}, Scenario{"NextProgramNotOCaml", "Arsx."},
                    Scenario{"ProgramBefore", "ABrx."}, Scenario{"SameProgramAgain", "AArx."},
                    Scenario{"PidReuse", "Arx.Brx."}, Scenario{"PidReuseAndFileRemoved", "Arux.Bx."},
                    Scenario{"Fork", "Arf1r1x1.1x."}, Scenario{"ForkAndParentEndsFirst", "Arf1x.r1x1.1"},
                    Scenario{"ForkBeforeTheRing", "Af1rr1xx1..1"}, Scenario{"ForkAndExec", "Arf1B1r1x1.1x."},
                    Scenario{"SamePathOneAfterTheOther", "Arx.B1r1x1.1", true},
                    Scenario{"SamePathAndFileRemoved", "Arux.B1r1x1.1", true}),
    [](const auto& scenario) { return scenario.param.name; });

/// In reality the records of one process are read in order.
class AnyOrder : public testing::TestWithParam<const char*> {};

TEST_P(AnyOrder, OfRecords) {
  const Life life = parse(GetParam());
  std::vector<std::vector<std::size_t>> orders;
  std::vector<std::size_t> order(records_of(life));
  std::iota(order.begin(), order.end(), 0);
  do orders.push_back(order);
  while (std::ranges::next_permutation(order).found);
  for_some(orders.size(), [&](std::size_t number) {
    FakeHost host;
    for (const std::string& step : life) {
      host.play(step);
      host.look_up();
    }
    std::deque<ResolvedRecord> events;
    std::string name = GetParam();
    for (const std::size_t position : orders[number]) {
      if (position >= host.events().size()) continue;
      events.push_back(std::move(host.events()[position]));
      name.append(" ").append(std::to_string(position));
    }
    host.events() = std::move(events);
    host.settle();
    check_invariants(host, name, Attribution::unknown);
  });
}

INSTANTIATE_TEST_SUITE_P(Lives, AnyOrder, testing::Values("Arx.", "Arux.", "ArBx.", "ArBrx.", "Arsx.", "ABrx."));

/// Two processes whose ring files are one: the events of both are mixed, but none is reported twice.
TEST(SharedPath, AtTheSameTimeInAnyOrder) {
  const std::vector<Life> all = schedules(parse("ArB1r1x1.1x."));
  for_some(all.size(), [&](std::size_t order) {
    const std::string name = joined(all[order]);
    FakeHost host({.same_paths = true});
    host.play(name);
    host.settle();
    check_invariants(host, name, Attribution::unknown);
  });
}

}  // namespace
}  // namespace rtev::test
