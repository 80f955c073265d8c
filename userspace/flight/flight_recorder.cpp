// SPDX-License-Identifier: MIT
#include "flight/flight_recorder.hpp"

#include <algorithm>
#include <set>

#include "base/clock.hpp"
#include "stream/run_clock.hpp"

namespace rtev::flight {
namespace {

/// A window that long is worth a dump, also if more is to be kept.
constexpr std::uint64_t max_arming_ns = 10'000'000'000;

/// A dump that is extended again and again ends after so many times of `--after`.
constexpr std::uint64_t max_extensions = 10;

Program program_of(ProcessIndex index, const ProcessInfo& process) {
  if (index == 0) return {};
  return {.user = process.user, .name = process.service.name.empty() ? process.comm : process.service.name};
}

/// Of those who have programs that run, and this one.
std::size_t users_with(std::uint32_t user, const Registry& registry) {
  std::set<std::uint32_t> users{user};
  for (const ProcessInfo& process : registry.processes())
    if (!process.ended) users.insert(process.user);
  return users.size();
}

DumpResult not_made(std::string why) {
  return {.error = Error{.what = "no dump was made", .why = std::move(why)}};
}

}  // namespace

FlightRecorder::FlightRecorder(RecorderOptions options, DumpDirectory directory, DumpWriter::Done done)
    : options_(std::move(options)),
      history_(options_.history),
      limits_(options_.limits),
      done_(std::move(done)),
      writer_(
          std::make_unique<DumpWriter>(std::move(directory), [this](const DumpResult& result) { on_done(result); })) {
  if (!options_.conditions.empty())
    finder_.emplace(options_.conditions,
                    [this](const Firing& firing, const Registry& registry) { on_firing(firing, registry); });
}

FlightRecorder::~FlightRecorder() = default;

void FlightRecorder::header(const RunHeader& header) {
  header_ = header;
  writer_->remove_partial();
  history_.begin(header.start_ns);
  if (!is_held_) limits_.arm_at(header.start_ns + std::min(options_.history.keep_ns, max_arming_ns));
}

void FlightRecorder::take_over_at(std::uint64_t time_ns, const Registry& registry) {
  if (finder_) finder_->check_at(time_ns, registry);
  is_held_ = false;
}

void FlightRecorder::consume(const Batch& batch, const Registry& registry) {
  history_.consume(batch, registry);
  if (finder_) finder_->consume(batch, registry);
  hand_over_closed();
}

void FlightRecorder::advance(std::uint64_t time_ns, const Registry& registry) {
  history_.advance(time_ns);
  if (finder_) finder_->advance(time_ns, registry);
  take_requests();
}

bool FlightRecorder::wants_checkpoint() const {
  return history_.wants_checkpoint() || (current_ && history_.time_ns() >= current_->end_ns);
}

void FlightRecorder::checkpoint(const RunSummary& so_far, const Registry& registry) {
  history_.checkpoint(so_far, registry);
  hand_over_closed();
  if (current_ && history_.closed_ns() >= current_->end_ns) end_dump(so_far, registry, false);
}

void FlightRecorder::summary(const RunSummary& summary, const Registry& registry) {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  history_.advance(summary.end_ns);
  history_.checkpoint(summary, registry);
  take_requests();
  hand_over_closed();
  if (current_) end_dump(summary, registry, true);
  // Stacks refer to texts of the registry.
  writer_->wait();
}

void FlightRecorder::on_firing(const Firing& firing, const Registry& registry) {
  const Condition& condition = options_.conditions[firing.condition];
  const ProcessInfo& process = registry.process(firing.process);
  const Program program = program_of(firing.process, process);
  // What is late in the stream fires at the time of the stream.
  const std::uint64_t now_ns = std::max(firing.time_ns, history_.time_ns());
  if (current_) {
    if (const auto again = limits_.note(firing.condition, program, now_ns)) return count(*again);
    ++joined_;
    return extend(now_ns + options_.after_ns);
  }
  const auto users = [&] { return users_with(program.user, registry); };
  if (const auto why = limits_.check(firing.condition, program, now_ns, users)) return count(*why);
  if (is_held_) return;
  begin_dump({.trigger = std::string(to_string(condition.what)),
              .what = condition.text,
              .value = value_text(condition, firing.value),
              .pid = firing.process != 0 ? process.pid : 0,
              .program = program.name},
             now_ns + options_.after_ns);
}

void FlightRecorder::count(Suppressed reason) {
  if (reason != Suppressed::ongoing) ++suppressed_[static_cast<std::size_t>(reason)];
}

std::future<DumpResult> FlightRecorder::request_dump(const std::string& trigger) {
  Waiting waiting;
  auto result = waiting.get_future();
  const std::lock_guard lock(mutex_);
  if (ended_) {
    waiting.set_value(not_made("the recorder has ended"));
  } else {
    requests_.emplace_back(trigger, std::move(waiting));
  }
  return result;
}

void FlightRecorder::take_requests() {
  std::vector<std::pair<std::string, Waiting>> requests;
  {
    const std::lock_guard lock(mutex_);
    requests.swap(requests_);
  }
  if (signalled_.exchange(false)) requests.emplace_back("signal", Waiting());
  for (auto& [trigger, waiting] : requests) {
    if (current_) {
      ++joined_;
    } else {
      begin_dump({.trigger = trigger, .what = trigger}, history_.time_ns());
    }
    const std::lock_guard lock(mutex_);
    waiting_.emplace(current_->number, std::move(waiting));
  }
}

void FlightRecorder::begin_dump(DumpCause cause, std::uint64_t end_ns) {
  RunHeader header = header_;
  header.start_ns = header.shown_from_ns = history_.begin_ns();
  follow_clock(header);
  const DumpName name{
      .host = header_.host, .realtime_ns = clock_ns(CLOCK_REALTIME), .trigger = cause.trigger, .pid = cause.pid};
  auto states = history_.states();
  const auto state = std::make_shared<const Chunk>(std::move(states.extract(history_.first_number()).mapped()));
  const std::uint64_t number =
      writer_->begin({.cause = std::move(cause), .name = name.text(), .header = std::move(header), .state = state});
  current_ = Current{.number = number,
                     .next = history_.first_number(),
                     .end_ns = end_ns,
                     .base = history_.base(),
                     .states = std::move(states)};
  hand_over_closed();
}

void FlightRecorder::extend(std::uint64_t end_ns) {
  const std::uint64_t begin_ns = current_->base.time_ns;
  const std::uint64_t last_ns = begin_ns + options_.history.keep_ns + max_extensions * options_.after_ns;
  current_->end_ns = std::max(current_->end_ns, std::min(end_ns, last_ns));
}

/// Before chunks are dropped.
void FlightRecorder::hand_over_closed() {
  if (current_) {
    const std::uint64_t closed = history_.first_number() + history_.chunks().size();
    for (; current_->next < closed; ++current_->next) {
      if (auto state = current_->states.extract(current_->next))
        writer_->add(std::make_shared<const Chunk>(std::move(state.mapped())));
      writer_->add(history_.share(current_->next));
    }
    if (writer_->waiting_bytes() > 2 * options_.history.max_bytes && current_->end_ns > history_.time_ns()) {
      current_->end_ns = history_.time_ns();
      ++cut_short_;
    }
  }
  history_.evict();
}

void FlightRecorder::end_dump(const RunSummary& so_far, const Registry& registry, bool is_last) {
  PeriodFigures figures;
  figures.begin(current_->base);
  RunSummary summary = figures.summary(so_far);
  summary.end_ns = history_.closed_ns();
  PeriodFigures::Processes processes = figures.processes(registry, is_last);
  writer_->end({.summary = std::move(summary),
                .list = {.processes = std::move(processes.list), .others = processes.others},
                .base = std::move(current_->base.processes)});
  current_.reset();
}

/// By the writing thread.
void FlightRecorder::on_done(const DumpResult& result) {
  ++(result.error ? failed_ : written_);
  removed_ += result.removed;
  std::vector<Waiting> waiting;
  {
    const std::lock_guard lock(mutex_);
    const auto [first, last] = waiting_.equal_range(result.number);
    for (auto at = first; at != last; ++at) waiting.push_back(std::move(at->second));
    waiting_.erase(first, last);
  }
  done_(result);
  for (Waiting& one : waiting) one.set_value(result);
}

RecorderFigures FlightRecorder::figures() const {
  return {.written = written_,
          .failed = failed_,
          .joined = joined_,
          .cut_short = cut_short_,
          .removed = removed_,
          .suppressed = suppressed_,
          .kept_bytes = history_.bytes()};
}

}  // namespace rtev::flight
