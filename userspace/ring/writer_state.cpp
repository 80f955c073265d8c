// SPDX-License-Identifier: MIT
#include "ring/writer_state.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace rtev {
namespace {

/// The writers of this process, for fork. Never destroyed: a writer with static storage may end after it otherwise.
struct Writers {
  std::mutex mutex;
  std::vector<WriterState*> all;
};
Writers& writers() {
  static Writers& writers = *new Writers;
  return writers;
}

}  // namespace

WriterState::WriterState(RingWriter::Options options, std::filesystem::path directory)
    : options_(std::move(options)),
      directory_(std::move(directory)),
      clock_(options_.clock != nullptr ? options_.clock : monotonic_ns),
      producers_(options_.domains) {
  static const int installed = ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)installed;
  const std::lock_guard lock(writers().mutex);
  writers().all.push_back(this);
}

WriterState::~WriterState() {
  stop(0);
  const std::lock_guard lock(writers().mutex);
  std::erase(writers().all, this);
}

void WriterState::before_fork() {
  writers().mutex.lock();
  for (WriterState* writer : writers().all) writer->mutex_.lock();
}

void WriterState::after_fork_in_parent() {
  for (WriterState* writer : writers().all) writer->mutex_.unlock();
  writers().mutex.unlock();
}

void WriterState::after_fork_in_child() {
  for (WriterState* writer : writers().all) {
    if (writer->life_ == Life::running) {
      // Two processes in one ring would ruin it.
      writer->file_ = {};
      std::ranges::fill(writer->producers_, Producer{});
      writer->set(Life::forked);
    }
    writer->mutex_.unlock();
  }
  writers().mutex.unlock();
}

void WriterState::set(Life life) {
  life_ = life;
  Gate gate = Gate::closed;
  if (life == Life::running && !paused_) gate = Gate::open;
  if (life == Life::forked && !paused_) gate = Gate::forked;
  gate_.store(gate, std::memory_order_release);
}

Result<void> WriterState::make_file() {
  owner_ = ::getpid();
  auto file = RingFile::create((directory_ / (std::to_string(owner_) + ".events")).string(),
                               {.rings = options_.domains,
                                .ring_words = std::uint64_t{1} << options_.log2_words,
                                .names = options_.format == RingWriter::Format::since_5_1,
                                .family = options_.family});
  if (!file) return std::unexpected(std::move(file.error()));
  file_ = std::move(*file);
  for (std::uint32_t i = 0; i < options_.domains; ++i) producers_[i].ring = file_.producer(i);
  // Unlike OCaml's runtime, before the first event: no reader meets a user event without its name.
  for (std::size_t id = 0; id < events_.size(); ++id)
    file_.write_name(static_cast<std::uint16_t>(id), events_[id].name);
  return {};
}

void WriterState::tell(std::uint32_t domain, Lifecycle what, std::int64_t datum) {
  const auto word = static_cast<std::uint64_t>(datum);
  const std::span<const std::uint64_t> payload(&word, what == Lifecycle::ring_stop ? 0 : 1);
  producers_[domain].ring.append(message::first_word(2 + payload.size(), false, message::lifecycle, what), clock_(),
                                 payload);
}

Result<void> WriterState::start(std::uint32_t domain) {
  const std::lock_guard lock(mutex_);
  if (life_ == Life::stopped)
    return std::unexpected(Error{.what = "cannot start runtime events",
                                 .why = "they were stopped",
                                 .hint = "a process has one ring in its life: pause and resume instead"});
  if (life_ != Life::fresh) return {};
  if (auto made = make_file(); !made) return made;
  tell(domain, Lifecycle::ring_start, owner_);
  set(Life::running);
  return {};
}

bool WriterState::adopt_fork(std::uint32_t domain) {
  const std::lock_guard lock(mutex_);
  if (life_ != Life::forked) return life_ == Life::running && !paused_;
  if (!make_file()) {
    set(Life::stopped);  // tried once, not again with each event
    return false;
  }
  tell(domain, Lifecycle::ring_start, owner_);
  tell(domain, Lifecycle::fork_child, 0);
  set(Life::running);
  return true;
}

void WriterState::pause(std::uint32_t domain) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(paused_, true)) return;
  if (life_ == Life::running) tell(domain, Lifecycle::ring_pause, 0);
  set(life_);
}

void WriterState::resume(std::uint32_t domain) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(paused_, false)) return;
  if (life_ == Life::running) tell(domain, Lifecycle::ring_resume, 0);
  set(life_);
}

void WriterState::stop(std::uint32_t domain) {
  const std::lock_guard lock(mutex_);
  // A child that was forked past the C library is told by its pid: ring and file are its parent's.
  if (life_ == Life::running && owner_ == ::getpid()) {
    tell(domain, Lifecycle::ring_stop, 0);
    if (!options_.preserve) file_.remove();
  }
  set(Life::stopped);
}

Result<UserEvent> WriterState::register_event(std::string_view name, UserType type) {
  const auto refuse = [&](const char* why) {
    return std::unexpected(Error{.what = "cannot register user event", .subject = std::string(name), .why = why});
  };
  if (options_.format == RingWriter::Format::before_5_1) return refuse("OCaml 5.0 has no user events");
  if (name.empty() || name.size() >= user_event_name_bytes) return refuse("its name must have 1 to 127 bytes");
  if (name.contains('\0')) return refuse("its name has a NUL byte");

  const std::lock_guard lock(mutex_);
  if (const auto same = std::ranges::find(events_, name, &Registered::name); same != events_.end()) {
    if (same->type != type) return refuse("it is registered with another type");
    return UserEvent{static_cast<std::uint16_t>(same - events_.begin()), type};
  }
  if (events_.size() == user_event_slots) return refuse("all 8192 are in use");
  const auto id = static_cast<std::uint16_t>(events_.size());
  events_.push_back({std::string(name), type});
  if (file_.is_open()) file_.write_name(id, name);
  registered_.store(id + 1u, std::memory_order_relaxed);
  return UserEvent{id, type};
}

std::string WriterState::path() const {
  const std::lock_guard lock(mutex_);
  return file_.path();
}

}  // namespace rtev
