// SPDX-License-Identifier: MIT
#include "bench/producer.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace rtev::bench {
namespace {

template <typename Value>
Value or_throw(Result<Value> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

// A minor collection: 18 spans, 9 counters.
constexpr unsigned spans_nested = 6, counters_in_a_row = 9, spans_in_a_row = 12;
constexpr unsigned runtime_cycle = 2 * spans_nested + counters_in_a_row + 2 * spans_in_a_row;

constexpr unsigned user_cycle = 16;
constexpr std::array<std::byte, 24> payload_bytes{std::byte{1}, std::byte{2}, std::byte{3}};

}  // namespace

std::string_view name_of(Mix mix) {
  return mix == Mix::runtime ? "runtime events" : "user events";
}

std::uint64_t cheap_clock() {
  constexpr unsigned calls_between = 64;
  thread_local std::uint64_t last = 0;
  thread_local unsigned calls = 0;
  last = calls++ % calls_between == 0 ? std::max(last + 1, monotonic_ns()) : last + 1;
  return last;
}

CpuBinding::CpuBinding(int cpu) {
  ::sched_getaffinity(0, sizeof before_, &before_);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  if (::sched_setaffinity(0, sizeof cpus, &cpus) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot run on cpu " + std::to_string(cpu));
}

CpuBinding::~CpuBinding() {
  ::sched_setaffinity(0, sizeof before_, &before_);
}

std::uint64_t thread_cpu_ns() {
  return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

Composer::Composer(RingWriter& writer, std::uint32_t domain, Mix mix) : domain_(writer.domain(domain)), mix_(mix) {
  span_ = or_throw(writer.register_event("bench.span", UserType::span));
  number_ = or_throw(writer.register_event("bench.number", UserType::integer));
  unit_ = or_throw(writer.register_event("bench.unit", UserType::unit));
  payload_ = or_throw(writer.register_event("bench.payload", UserType::custom));
}

void Composer::step() {
  if (mix_ == Mix::runtime)
    runtime_step();
  else
    user_step();
  ++events_;
}

void Composer::runtime_step() {
  const unsigned at = std::exchange(at_, at_ + 1 == runtime_cycle ? 0 : at_ + 1);
  constexpr unsigned counters = spans_nested, spans = counters + counters_in_a_row, ends = spans + 2 * spans_in_a_row;
  if (at < counters) {
    domain_.begin(static_cast<Phase>(at));
  } else if (at < spans) {
    domain_.counter(static_cast<Counter>(at - counters), events_);
  } else if (at < ends) {
    const auto phase = static_cast<Phase>(spans_nested + (at - spans) / 2);
    (at - spans) % 2 == 0 ? domain_.begin(phase) : domain_.end(phase);
  } else {
    domain_.end(static_cast<Phase>(runtime_cycle - 1 - at));
  }
}

void Composer::user_step() {
  const unsigned at = std::exchange(at_, (at_ + 1) % (2 * user_cycle));
  if (at % user_cycle == user_cycle - 1) {
    at < user_cycle ? domain_.write(unit_) : domain_.write(payload_, payload_bytes);
    return;
  }
  switch (at % user_cycle % 3) {
    case 0:
      domain_.begin(span_);
      break;
    case 1:
      domain_.write(number_, static_cast<std::int32_t>(at));
      break;
    default:
      domain_.end(span_);
  }
}

Ring::Ring(unsigned log2_words, std::uint32_t domains, std::uint64_t (*clock)()) : log2_words_(log2_words) {
  writer_ = or_throw(RingWriter::create(
      {.directory = directory_.path().string(), .domains = domains, .log2_words = log2_words, .clock = clock}));
}

std::uint64_t Ring::fill(Mix mix) {
  // The largest message of a mix, and the word that a ring keeps free.
  constexpr std::uint64_t spare = 16;
  const std::uint64_t full = (std::uint64_t{1} << log2_words_) - spare;
  std::vector<Composer> composers;
  for (std::uint32_t domain = 0; domain < writer_->domains(); ++domain) composers.emplace_back(*writer_, domain, mix);
  std::uint64_t events = 1;  // the ring's start event
  bool any = true;
  while (std::exchange(any, false)) {
    for (std::uint32_t domain = 0; domain < composers.size(); ++domain) {
      if (writer_->words_written(domain) >= full) continue;
      composers[domain].step();
      ++events;
      any = true;
    }
  }
  return events;
}

Produced produce_for(Ring& ring, Mix mix, double events_per_second, double seconds) {
  constexpr std::uint64_t flat_out_step = 1024;
  constexpr double longest_lag_ns = 100'000;
  Composer composer(ring.writer(), 0, mix);
  const std::uint64_t words = ring.writer().words_written(0), start = monotonic_ns();
  const auto end = start + static_cast<std::uint64_t>(seconds * 1e9);
  double due = static_cast<double>(start);
  std::uint64_t now = start;
  for (; now < end; now = monotonic_ns()) {
    if (events_per_second == 0) {
      for (std::uint64_t i = 0; i < flat_out_step; ++i) composer.step();
      continue;
    }
    const double gap_ns = 1e9 / events_per_second;
    due = std::max(due, static_cast<double>(now) - longest_lag_ns);
    for (; due <= static_cast<double>(now); due += gap_ns) composer.step();
  }
  return {.events = composer.events(), .words = ring.writer().words_written(0) - words, .ns = now - start};
}

}  // namespace rtev::bench
