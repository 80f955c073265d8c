// SPDX-License-Identifier: MIT
#include "inspect/inspector.hpp"

#include <sys/resource.h>

#include <chrono>
#include <utility>

#include "base/clock.hpp"

namespace rtev {
namespace {

/// Files of one user that wait for an inspection, and users with such files. Each file is an open descriptor. What is
/// refused is met again: at its next exec, or by the next scan.
constexpr std::size_t max_files = 256, max_users = 64;

/// CPU time for the inspections of a user: a quarter of a CPU, and at once as much as the programs of a large host take
/// when the tracer starts.
constexpr CpuShare usual_share(4, 4'000'000'000);
constexpr std::chrono::milliseconds share_check_interval{10};

/// Events wait for inspections: on a busy host, too, they should be done soon. Where that is not allowed nothing
/// changes.
void raise_thread_priority() {
  ::setpriority(PRIO_PROCESS, 0, -10);
}

}  // namespace

Inspector::Inspector(BinaryCache& cache, Prepare prepare) : cache_(cache), prepare_(std::move(prepare)) {
  thread_ = std::thread([this] { run(); });
}

Inspector::~Inspector() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    tasks_.clear();
    files_.clear();
  }
  wake_.notify_one();
  thread_.join();
}

bool Inspector::inspect(UniqueFd fd, const FileIdentity& identity, std::uint32_t user, bool urgent) {
  {
    const std::lock_guard lock(mutex_);
    if (!add({.fd = std::move(fd), .identity = identity, .user = user}, urgent)) return false;
  }
  wake_.notify_one();
  return true;
}

void Inspector::prepare(UniqueFd fd, std::shared_ptr<const Binary> binary, std::uint32_t user) {
  {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = preparing_.emplace(user, binary->id);
    if (!is_new) return;
    if (!add({.fd = std::move(fd), .user = user, .known = std::move(binary)}, true)) {
      preparing_.erase(entry);
      return;
    }
  }
  wake_.notify_one();
}

/// Under the lock.
bool Inspector::add(File file, bool urgent) {
  if (files_.size() >= max_users && !files_.contains(file.user)) return false;
  std::deque<File>& waiting = files_[file.user];
  if (waiting.size() >= max_files) return false;
  waiting.insert(urgent ? waiting.begin() : waiting.end(), std::move(file));
  return true;
}

void Inspector::run_later(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

std::vector<FileIdentity> Inspector::take_inspected() {
  event_.clear();
  const std::lock_guard lock(mutex_);
  return std::exchange(inspected_, {});
}

bool Inspector::idle() const {
  const std::lock_guard lock(mutex_);
  return tasks_.empty() && files_.empty() && !working_;
}

/// Under the lock.
Inspector::Task Inspector::next_task() {
  if (tasks_.empty()) return next_inspection();
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

/// Nothing if no user with waiting files has CPU time left.
Inspector::Task Inspector::next_inspection() {
  const std::uint64_t now = monotonic_ns();
  std::erase_if(shares_, [now](const auto& share) { return share.second.is_unused(now); });
  auto turn = files_.upper_bound(last_user_);
  const auto has_time = [&](std::uint32_t user) {
    const auto share = shares_.find(user);
    return share == shares_.end() || share->second.has_left(now);
  };
  for (std::size_t users = files_.size();; ++turn, --users) {
    if (users == 0) return {};
    if (turn == files_.end()) turn = files_.begin();
    if (has_time(turn->first)) break;
  }
  last_user_ = turn->first;
  auto file = std::make_shared<const File>(std::move(turn->second.front()));
  turn->second.pop_front();
  if (turn->second.empty()) files_.erase(turn);
  return [this, file] {
    const std::uint64_t begin_ns = thread_cpu_ns();
    file->known ? prepare(*file) : inspect(*file);
    shares_.try_emplace(file->user, usual_share).first->second.use(thread_cpu_ns() - begin_ns, monotonic_ns());
  };
}

void Inspector::run() {
  raise_thread_priority();
  std::unique_lock lock(mutex_);
  while (true) {
    working_ = false;
    wake_.wait(lock, [this] { return stop_ || !tasks_.empty() || !files_.empty(); });
    if (stop_) return;
    const Task task = next_task();
    if (!task) {
      wake_.wait_for(lock, share_check_interval);
      continue;
    }
    working_ = true;
    lock.unlock();
    task();
    lock.lock();
  }
}

void Inspector::inspect(const File& file) {
  const auto known = cache_.find(file.identity);
  // A file that cannot be read is remembered as no OCaml program: it would fail again at every exec.
  const auto binary =
      known ? *known : cache_.insert(file.identity, inspect_binary(file.fd.get()).value_or(std::nullopt));
  {
    const std::lock_guard lock(mutex_);
    inspected_.push_back(file.identity);
  }
  event_.signal();
  if (binary) prepare_(file.fd.get(), binary, file.user);
}

void Inspector::prepare(const File& file) {
  {
    const std::lock_guard lock(mutex_);
    preparing_.erase({file.user, file.known->id});
  }
  prepare_(file.fd.get(), file.known, file.user);
}

}  // namespace rtev
