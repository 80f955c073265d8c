// SPDX-License-Identifier: MIT
// All orders of small sets: when the lifecycle reader looks records up, when the main thread takes them, when a scan
// happens, which records are dropped, and records in any order at all. Whatever the order, each image begins once and
// ends once, each ring is opened, saved or counted as missed once, and no event is attributed to another image.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "unit/processes/fake_host.hpp"

namespace rtev::test {
namespace {

/// A process's life: 'A', 'B' for an exec of that program, 'r' its ring, 'u' its file is removed, 'x' exit, '.' gone.
void live(FakeHost& host, char step) {
  switch (step) {
    case 'r':
      return host.create_ring();
    case 'u':
      return host.remove_ring_file();
    case 'x':
      return host.exit();
    case '.':
      return host.vanish();
    case 's':
      return host.exec("sh");
    default:
      return host.exec(std::string(1, step));
  }
}

bool is_exec(char step) {
  return (step >= 'A' && step <= 'C') || step == 's';
}

bool writes_a_record(char step) {
  return step != 'u' && step != '.';
}

std::size_t records_of(const std::string& life) {
  return static_cast<std::size_t>(std::ranges::count_if(life, writes_a_record));
}

/// All ways to mix the steps of a life with look-ups ('l') of the records that they write.
std::vector<std::string> schedules(const std::string& life) {
  std::vector<std::string> all;
  const std::size_t records = records_of(life);
  std::string schedule;
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
      schedule.push_back('l');
      extend(lived, written, looked_up + 1);
      schedule.pop_back();
    }
  };
  extend(0, 0, 0);
  return all;
}

/// Plays a schedule; 't' is a tick of the main thread, 'n' a scan.
void play(FakeHost& host, const std::string& schedule) {
  for (const char step : schedule) {
    if (step == 'l')
      host.look_up();
    else if (step == 't')
      host.tick();
    else if (step == 'n')
      host.scan();
    else
      live(host, step);
  }
  host.settle();
}

std::string inserted(std::string schedule, std::size_t position, char step) {
  return schedule.insert(position, 1, step);
}

std::size_t delivered(const FakeHost& host) {
  std::size_t events = 0;
  for (const auto& [index, image] : host.images()) events += image.ids.size();
  return events;
}

/// Of all rings that were created, where no record was dropped.
void check_all_accounted(const FakeHost& host, const std::string& name) {
  EXPECT_EQ(host.rings_opened() + host.rings_missed(), host.rings_created()) << name << " -> " << host.story();
  EXPECT_EQ(delivered(host), host.rings_opened() * FakeHost::events_of_a_ring) << name << " -> " << host.story();
}

/// All orders of short lives; of longer ones some, evenly spread, unless RTEV_ALL_ORDERS is set.
template <typename Order>
std::vector<Order> sampled(std::vector<Order> orders) {
  constexpr std::size_t max_orders = 60;
  if (std::getenv("RTEV_ALL_ORDERS") != nullptr || orders.size() <= max_orders) return orders;
  std::vector<Order> some;
  for (std::size_t i = 0; i < max_orders; ++i) some.push_back(orders[i * orders.size() / max_orders]);
  return some;
}

class OrderOfALife : public testing::TestWithParam<const char*> {};

TEST_P(OrderOfALife, MainThreadAndScanAtAnyTime) {
  std::vector<std::string> orders;
  for (const std::string& schedule : schedules(GetParam())) {
    for (std::size_t scan = 0; scan <= schedule.size(); ++scan) {
      const std::string with_scan = inserted(schedule, scan, 'n');
      for (std::size_t tick = 0; tick <= with_scan.size(); ++tick) orders.push_back(inserted(with_scan, tick, 't'));
    }
    // The main thread is always there.
    std::string prompt;
    for (const char step : schedule) prompt.append(step == 'l' ? "lt" : std::string(1, step));
    orders.push_back(prompt);
  }
  for (const std::string& order : sampled(std::move(orders))) {
    FakeHost host;
    play(host, order);
    check_invariants(host, order);
    check_all_accounted(host, order);
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(OrderOfALife, WithoutSavedRings) {
  for (const std::string& schedule : sampled(schedules(GetParam()))) {
    FakeHost host(Saving::off);
    play(host, schedule);
    check_invariants(host, schedule);
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(OrderOfALife, AnyRecordsDropped) {
  const std::string life = GetParam();
  const std::size_t records = records_of(life);
  for (unsigned dropped = 0; dropped < 1u << records; ++dropped) {
    // Looked up at once without scans or with a scan after each step, or looked up when all is over.
    for (const auto& [late, scans] : {std::pair(false, false), std::pair(false, true), std::pair(true, false)}) {
      std::string name = life + (late ? " late" : "") + (scans ? " scans" : "") + " drops";
      Attribution attribution = Attribution::known;
      FakeHost host;
      std::size_t record = 0;
      for (const char step : life) {
        live(host, step);
        if (writes_a_record(step) && (dropped >> record++ & 1)) {
          host.drop_record(host.records_waiting() - 1);
          name.append(" ").append(std::to_string(record));
          if (is_exec(step)) attribution = Attribution::unknown;
        }
        if (!late) host.look_up();
        if (scans) host.scan();
        if (!late) host.tick();
      }
      host.settle();
      check_invariants(host, name, attribution);
      ASSERT_FALSE(HasFailure());
    }
  }
}

/// In reality the records of one process are read in order.
TEST_P(OrderOfALife, RecordsInAnyOrder) {
  const std::string life = GetParam();
  std::vector<std::vector<std::size_t>> orders;
  std::vector<std::size_t> order(records_of(life));
  std::iota(order.begin(), order.end(), 0);
  do orders.push_back(order);
  while (std::ranges::next_permutation(order).found);
  for (const auto& positions : sampled(std::move(orders))) {
    FakeHost host;
    for (const char step : life) {
      live(host, step);
      if (writes_a_record(step)) host.look_up();
    }
    std::deque<LifecycleEvent> events;
    std::string name = life;
    for (const std::size_t position : positions) {
      events.push_back(std::move(host.events()[position]));
      name.append(" ").append(std::to_string(position));
    }
    host.events() = std::move(events);
    host.settle();
    check_invariants(host, name, Attribution::unknown);
    ASSERT_FALSE(HasFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Lives, OrderOfALife, testing::Values("Arx.", "Arux.", "ArBx.", "ArBrx.", "Arsx.", "ABrx."));

}  // namespace
}  // namespace rtev::test
