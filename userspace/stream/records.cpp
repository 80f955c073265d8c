// SPDX-License-Identifier: MIT
#include "stream/records.hpp"

#include <algorithm>

namespace rtev {

std::string_view to_string(ProcessAction action) {
  switch (action) {
    case ProcessAction::found:
      return "found";
    case ProcessAction::exec:
      return "exec";
    case ProcessAction::fork:
      return "fork";
    case ProcessAction::ring:
      return "ring";
    case ProcessAction::pause:
      return "pause";
    case ProcessAction::resume:
      return "resume";
    case ProcessAction::stop:
      return "stop";
    case ProcessAction::exit:
      return "exit";
    case ProcessAction::probe:
      return "probe";
  }
  return "unknown";
}

std::string_view to_string(ThreadRole role) {
  switch (role) {
    case ThreadRole::unknown:
      break;
    case ThreadRole::mutator:
      return "mutator";
    case ThreadRole::backup:
      return "backup";
    case ThreadRole::tick:
      return "tick";
  }
  return "unknown";
}

std::string_view to_string(LeftState state) {
  switch (state) {
    case LeftState::preempted:
      return "preempted";
    case LeftState::sleeping:
      return "sleeping";
    case LeftState::uninterruptible:
      return "uninterruptible";
    case LeftState::stopped:
      return "stopped";
    case LeftState::traced:
      return "traced";
    case LeftState::dead:
      return "dead";
    case LeftState::idle:
      return "idle";
    case LeftState::other:
      break;
  }
  return "other";
}

std::string_view Thread::comm() const {
  return {comm_bytes.data(), static_cast<std::size_t>(std::ranges::find(comm_bytes, '\0') - comm_bytes.begin())};
}

}  // namespace rtev
