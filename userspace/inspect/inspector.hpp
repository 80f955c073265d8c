// SPDX-License-Identifier: MIT
// Inspects binaries on a thread of its own: a large symbol table or the kernel's grace period for a new uprobe must not
// delay the reading of rings.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "inspect/binary_cache.hpp"

namespace rtev {

/// A worker that inspects binaries into a BinaryCache and then has their runtime functions probed.
class Inspector {
 public:
  /// Called on the worker's thread for every OCaml binary it meets, with the binary's open file.
  using Prepare = std::function<void(int fd, const std::shared_ptr<const Binary>& binary)>;

  Inspector(BinaryCache& cache, Prepare prepare);
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;
  /// Finishes the job at hand, drops the others.
  ~Inspector();

  /// Requests the inspection of a file; take_inspected() returns it when that is done. `urgent` ones (a ring waits for
  /// a name) go first. False, and nothing is done, if too many jobs wait already.
  bool inspect(UniqueFd fd, const FileIdentity& identity, bool urgent);
  /// Requests that a binary which is known already is prepared (again).
  void prepare(UniqueFd fd, std::shared_ptr<const Binary> binary);
  /// Runs a task that would delay the reading of rings.
  void run_later(std::function<void()> task);

  /// Readable (epoll) while inspected files wait to be taken.
  int event_fd() const { return event_.get(); }
  /// Files inspected since the last call; the cache holds what was found.
  std::vector<FileIdentity> take_inspected();
  /// True when no job waits or runs. For tests and for the end of the first scan.
  bool idle() const;

 private:
  struct Job {
    UniqueFd fd;
    std::optional<FileIdentity> identity;    ///< to be inspected
    std::shared_ptr<const Binary> binary{};  ///< or to be prepared
    std::function<void()> task{};            ///< or to be run
  };
  bool add(Job job, bool urgent);
  void run();
  void work(Job job);

  BinaryCache& cache_;
  Prepare prepare_;
  EventFd event_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::vector<FileIdentity> inspected_;
  bool working_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace rtev
