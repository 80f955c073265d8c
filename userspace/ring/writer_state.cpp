// SPDX-License-Identifier: MIT
#include "ring/writer_state.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace rtev {
namespace {

/// The writers of this process, for fork. Never destroyed: a writer with static storage may outlive it otherwise.
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
    if (writer->stage_ == Stage::running) {
      // Two processes must not write to one ring.
      writer->file_ = {};
      std::ranges::fill(writer->producers_, Producer{});
      writer->set(Stage::forked);
    }
    writer->mutex_.unlock();
  }
  writers().mutex.unlock();
}

void WriterState::set(Stage stage) {
  stage_ = stage;
  Gate gate = Gate::closed;
  if (stage == Stage::running && !paused_) gate = Gate::open;
  if (stage == Stage::forked && !paused_) gate = Gate::forked;
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
  // Before the first event, unlike OCaml's runtime: a reader finds the name of every user event.
  for (std::size_t id = 0; id < events_.size(); ++id)
    file_.write_name(static_cast<std::uint16_t>(id), events_[id].name);
  return {};
}

void WriterState::write_lifecycle(std::uint32_t domain, Lifecycle what, std::int64_t value) {
  const auto word = static_cast<std::uint64_t>(value);
  const std::span<const std::uint64_t> payload(&word, what == Lifecycle::ring_stop ? 0 : 1);
  producers_[domain].ring.append(
      message::first_word(2 + payload.size(), false, message::lifecycle, static_cast<std::uint16_t>(what)), clock_(),
      payload);
}

Result<void> WriterState::start(std::uint32_t domain) {
  const std::lock_guard lock(mutex_);
  if (stage_ == Stage::stopped)
    return std::unexpected(Error{.what = "cannot start runtime events",
                                 .why = "they were stopped before",
                                 .hint = "use pause and resume: a process has only one ring"});
  if (stage_ != Stage::fresh) return {};
  if (auto made = make_file(); !made) return made;
  write_lifecycle(domain, Lifecycle::ring_start, owner_);
  set(Stage::running);
  return {};
}

bool WriterState::start_in_child(std::uint32_t domain) {
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::forked) return stage_ == Stage::running && !paused_;
  if (!make_file()) {
    set(Stage::stopped);  // try once, not with each event
    return false;
  }
  write_lifecycle(domain, Lifecycle::ring_start, owner_);
  write_lifecycle(domain, Lifecycle::fork_child, 0);
  set(Stage::running);
  return true;
}

void WriterState::pause(std::uint32_t domain) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(paused_, true)) return;
  if (stage_ == Stage::running) write_lifecycle(domain, Lifecycle::ring_pause, 0);
  set(stage_);
}

void WriterState::resume(std::uint32_t domain) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(paused_, false)) return;
  if (stage_ == Stage::running) write_lifecycle(domain, Lifecycle::ring_resume, 0);
  set(stage_);
}

void WriterState::stop(std::uint32_t domain) {
  const std::lock_guard lock(mutex_);
  // In a child forked by the system call itself the hooks did not run: ring and file are its parent's.
  if (stage_ == Stage::running && owner_ == ::getpid()) {
    write_lifecycle(domain, Lifecycle::ring_stop, 0);
    if (!options_.preserve) file_.remove();
  }
  set(Stage::stopped);
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
