// SPDX-License-Identifier: MIT
#include "session/live/sched_attachment.hpp"

#include <cerrno>
#include <utility>

namespace rtev {

void SchedAttachment::begin() {
  const State state = state_;
  if (state == State::detaching || state == State::detached) look_ns_ = 0;
}

void SchedAttachment::end(std::uint64_t now_ns) {
  const State state = state_;
  if (state != State::detaching && state != State::detached) look_ns_ = now_ns + unused_timeout_ns;
}

void SchedAttachment::tick(std::uint64_t now_ns) {
  last_tick_ns_ = now_ns;
  const State state = state_;
  // Late links have to be taken, also if no process lives any more.
  if (state == State::late && now_ns >= asked_ns_ + retry_interval_ns) return attach(now_ns);
  if ((state != State::attached && state != State::detached) || !look_ns_ || now_ns < *look_ns_) return;
  if (any_lives_()) {
    // Not all ends are reported. And if attaching fails it is tried again then.
    look_ns_ = now_ns + unused_timeout_ns;
    if (state == State::detached) attach(now_ns);
    return;
  }
  look_ns_.reset();
  if (state == State::attached) {
    state_ = State::detaching;
    run_later_([this] {
      programs_.detach_sched();
      state_ = State::detached;
    });
  }
}

void SchedAttachment::attach(std::uint64_t now_ns) {
  asked_ns_ = now_ns;
  state_ = State::attaching;
  run_later_([this] {
    const auto attached = programs_.attach_sched();
    if (attached)
      state_ = State::attached;
    else
      state_ = attached.error().code == EINPROGRESS ? State::late : State::detached;
  });
}

std::optional<std::uint64_t> SchedAttachment::next_tick_ns() const {
  const State state = state_;
  if (state == State::late) return asked_ns_ + retry_interval_ns;
  if (state == State::attaching || (state == State::detaching && look_ns_)) return last_tick_ns_ + retry_interval_ns;
  return look_ns_;
}

}  // namespace rtev
