// SPDX-License-Identifier: MIT
// A file system that answers one process, and nobody else; and memory that it does not let go.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace rtev::hostile {

/// One folder in which every name is a file of 64 MiB that begins with `content`. Mounted at `at`, in a new mount
/// namespace of this process. Goes with the namespace's last process and its server; requests that wait fail then.
class SilentMount {
 public:
  explicit SilentMount(std::filesystem::path at);

  /// Goes on as an unprivileged user, for whom a set-user-ID program mounts it: fusermount3(1).
  struct Helper {};
  SilentMount(std::filesystem::path at, Helper helper);

  /// Starts the server, in a process of its own: its end frees all who wait, but a process that has files open here,
  /// too, would wait for itself when it ends. Writes are never answered.
  void serve(pid_t user, const std::string& content = {}) const;
  /// In a child that was forked before: the file system must not live as long as this process, which may wait for it.
  void leave() const;
  std::filesystem::path operator/(const std::string& name) const { return at_ / name; }

 private:
  std::filesystem::path at_;
  int device_ = -1;
};

/// A mapping by which a process locks the map of its own memory.
class MapLock {
 public:
  /// In the process that the mount answers.
  explicit MapLock(const SilentMount& mount);

  /// Replaces the mapping, whose dirty page nobody takes: the kernel locks the map until that is done. Also in a
  /// process that shares the memory. Returns if the file system answers, or its server has ended.
  void hold() const;

 private:
  volatile int* mapping_;
};

}  // namespace rtev::hostile
