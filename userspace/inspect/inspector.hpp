// SPDX-License-Identifier: MIT
// Inspects binaries on a thread of its own: a large symbol table or the kernel's grace period for a new uprobe must not
// delay the reading of rings.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/change_check.hpp"
#include "base/cpu_share.hpp"
#include "base/unique_fd.hpp"
#include "inspect/binary_cache.hpp"

namespace rtev {

/// A thread that inspects binaries into a BinaryCache and then has their runtime functions probed. It takes at most a
/// quarter of a CPU for the binaries of one user, in the long run.
class Inspector {
 public:
  /// Called on the inspecting thread for every OCaml binary it meets, with the binary's open file and the user whose
  /// process runs it. False: to be called again later.
  using Prepare = std::function<bool(int fd, const std::shared_ptr<const Binary>& binary, std::uint32_t user)>;

  /// Files that are being changed, as `check` says, are inspected later. It is called on the inspecting thread.
  Inspector(BinaryCache& cache, Prepare prepare, ChangeCheck check = {});
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;
  /// Finishes the job at hand, drops the others.
  ~Inspector();

  /// Requests the inspection of a file for a user; take_inspected() returns it when that is done. Users take turns; of
  /// one user `urgent` files (a ring waits for a name) go first. False, and nothing is done, if too many wait already.
  bool inspect(UniqueFd fd, const FileIdentity& identity, std::uint32_t user, bool urgent);
  /// Requests that a binary which is known already is prepared (again), unless that is requested for the user already.
  /// Users take turns, as with inspections. Dropped if too many files of the user wait.
  void prepare(UniqueFd fd, std::shared_ptr<const Binary> binary, std::uint32_t user);
  /// Requests that a part of a file is read into memory. Dropped if too many files of the user wait.
  void load(UniqueFd fd, std::uint64_t offset, std::size_t bytes, std::uint32_t user);
  /// Runs a task that would delay the reading of rings. Tasks go before everything else, in their order.
  void run_later(std::function<void()> task);
  /// The same for a task that returns false if it is to be run again: 16 ms later, for a second in all.
  void run_until_done(std::function<bool()> task);

  /// Readable (epoll) while inspected files wait to be taken.
  int event_fd() const { return event_.get(); }
  /// Files inspected since the last call; the cache holds what was found.
  std::vector<FileIdentity> take_inspected();
  /// True when no job waits or runs. For tests and for the end of the first scan.
  bool idle() const;

 private:
  struct File {
    UniqueFd fd;
    FileIdentity identity{};
    std::uint32_t user = 0;
    std::shared_ptr<const Binary> known{};  ///< to be prepared; else it is to be inspected, or loaded
    std::uint64_t load_offset = 0;
    std::size_t load_bytes = 0;  ///< 0: it is not to be loaded
    unsigned tries = 0;          ///< so far
    std::uint64_t not_before_ns = 0;
  };
  using Task = std::function<void()>;
  struct Retry {
    std::function<bool()> task;
    unsigned tries = 0;  ///< so far
    std::uint64_t not_before_ns = 0;
  };
  void run(Retry retry);
  Task next_task();
  Task next_inspection();
  void run();
  bool add(File file, bool urgent);
  void inspect(File& file);
  void prepare(File& file);
  void load(File& file);
  void prepare_later(File& file);
  bool postpone(File& file);

  BinaryCache& cache_;
  Prepare prepare_;
  ChangeCheck check_;
  EventFd event_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  std::deque<Retry> retries_;                                    ///< the next one first
  std::set<std::pair<std::uint32_t, std::uint32_t>> preparing_;  ///< users and binaries among the files
  std::map<std::uint32_t, std::deque<File>> files_;              ///< by user; no empty ones
  std::uint32_t last_user_ = 0;                                  ///< whose turn it was
  std::map<std::uint32_t, CpuShare> shares_;                     ///< by user; only the inspecting thread uses it
  std::vector<FileIdentity> inspected_;
  bool working_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace rtev
