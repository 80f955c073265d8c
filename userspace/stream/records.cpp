// SPDX-License-Identifier: MIT
#include "stream/records.hpp"

#include <algorithm>

#include "base/enum_names.hpp"

namespace rtev {

std::string_view to_string(ProcessAction action) {
  static constexpr std::string_view names[]{"found", "exec", "fork",  "ring",       "pause", "resume",
                                            "stop",  "exit", "probe", "unreadable", "enable"};
  return name_at(names, action);
}

std::string_view to_string(Unreadable why) {
  static constexpr std::string_view names[]{"unknown", "file system", "no answer", "memory", "other user", "too large"};
  return name_at(names, why);
}

std::string_view to_string(EnableResult result) {
  static constexpr std::string_view names[]{
      "done",       "resumed",   "nothing to do",    "gone",       "no OCaml", "unknown version",
      "no symbols", "denied",    "unexpected value", "directory",  "space",    "limit",
      "memory",     "seccomp",   "profile",          "debugged",   "suspect",  "not running",
      "no answer",  "own pause", "switched off",     "privileged", "ring size"};
  return name_at(names, result);
}

std::string_view to_string(SampleKind kind) {
  static constexpr std::string_view names[]{"on-cpu", "off-cpu", "allocation"};
  return name_at(names, kind);
}

std::string_view to_string(ThreadRole role) {
  static constexpr std::string_view names[]{"unknown", "mutator", "backup", "tick"};
  return name_at(names, role);
}

std::string_view to_string(LeftState state) {
  static constexpr std::string_view names[]{"preempted", "sleeping", "uninterruptible", "stopped", "traced", "dead",
                                            "idle",      "other"};
  return name_at(names, state);
}

std::string_view to_string(Syscall syscall) {
  static constexpr std::string_view names[]{
      "unknown",   "page_fault", "other",     "select",    "poll",  "epoll_wait", "io_uring_enter", "futex",
      "nanosleep", "wait",       "read",      "write",     "fsync", "open",       "accept",         "connect",
      "recv",      "send",       "file_lock", "file_name", "mmap",  "sendfile",   "ioctl"};
  return name_at(names, syscall);
}

std::string_view Thread::comm() const {
  return {comm_bytes.data(), static_cast<std::size_t>(std::ranges::find(comm_bytes, '\0') - comm_bytes.begin())};
}

}  // namespace rtev
