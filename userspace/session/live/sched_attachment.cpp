// SPDX-License-Identifier: MIT
#include "session/live/sched_attachment.hpp"

#include <cerrno>
#include <utility>

namespace rtev {

void SchedAttachment::begin() {
  const State state = state_;
  if (state == State::detaching || state == State::detached) looking_.at_once();
}

void SchedAttachment::end(std::uint64_t now_ns) {
  const State state = state_;
  if (state != State::detaching && state != State::detached) looking_.at(now_ns + unused_timeout_ns);
}

void SchedAttachment::look(std::uint64_t now_ns) {
  const State state = state_;
  if (state != State::attached && state != State::detached) return looking_.at(now_ns + retry_interval_ns);
  if (any_lives_()) {
    // Not all ends are reported. And if attaching fails it is tried again then.
    looking_.at(now_ns + unused_timeout_ns);
    if (state == State::detached) attach(now_ns);
    return;
  }
  if (state == State::attached) {
    state_ = State::detaching;
    run_later_([this] {
      programs_.detach_sched();
      state_ = State::detached;
    });
  }
}

void SchedAttachment::attach(std::uint64_t now_ns) {
  state_ = State::attaching;
  retrying_.at(now_ns + retry_interval_ns);
  run_later_([this] {
    const auto attached = programs_.attach_sched();
    if (attached)
      state_ = State::attached;
    else
      state_ = attached.error().code == EINPROGRESS ? State::late : State::detached;
  });
}

void SchedAttachment::retry(std::uint64_t now_ns) {
  const State state = state_;
  // Late links have to be taken, also if no process lives any more.
  if (state == State::late) return attach(now_ns);
  if (state == State::attaching) retrying_.at(now_ns + retry_interval_ns);
}

}  // namespace rtev
