// SPDX-License-Identifier: MIT
#pragma once

#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/file_links.hpp"
#include "helper/helper_process.hpp"

namespace rtev::helper {

/// Has processes close the files of close_in_background(), so that neither the tracer nor its end waits for that. One
/// process does, as long as its files are closed in time: for each that takes longer another one is started, up to a
/// limit. Then files wait. A further process closes the links of close_links_in_background(). Only one object at a
/// time. Create it before other threads close files, and destroy it after those threads have ended.
class Closers {
 public:
  static constexpr std::size_t max_processes = 8;

  /// Starts a thread and the first process. `helper` must outlive it.
  explicit Closers(const HelperProcess& helper);
  Closers(const Closers&) = delete;
  Closers& operator=(const Closers&) = delete;
  /// Hands over what waits. Waits for no file, unless there are more than the channels of all processes take.
  ~Closers();

 private:
  struct Closer {
    UniqueFd channel;
    bool is_idle = false;
  };

  void add(int fd);
  std::vector<FileLinks> add_links(int mappings, std::vector<FileLinks> files);
  void run();
  bool wait();
  bool start_closer();
  bool hand_over(Closer& closer);
  std::vector<UniqueFd> take(std::size_t limit);
  bool has_files();
  bool is_crowded();
  bool is_any_idle() const;

  const HelperProcess& helper_;
  EventFd wake_;
  std::vector<Closer> closers_;  ///< of the thread
  std::mutex mutex_;             ///< of what follows
  std::deque<UniqueFd> files_;
  bool stop_ = false;
  std::mutex links_mutex_;
  UniqueFd link_closer_;  ///< its channel, once there are links
  std::thread thread_;
};

}  // namespace rtev::helper
