// SPDX-License-Identifier: MIT
#include "inspect/inspector.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
constexpr std::chrono::milliseconds check_interval{1};

/// A file that is being changed, or that cannot be probed now, is tried again, for a second in all: soon at first,
/// since most changes are brief. So are tasks.
constexpr std::uint64_t min_retry_ns = 1'000'000, max_retry_ns = 16'000'000;
constexpr unsigned max_tries = 64;

/// Events wait for inspections: on a busy host, too, they should be done soon. Where that is not allowed nothing
/// changes.
void raise_thread_priority() {
  ::setpriority(PRIO_PROCESS, 0, -10);
}

}  // namespace

Inspector::Inspector(BinaryCache& cache, Prepare prepare, ChangeCheck check)
    : cache_(cache), prepare_(std::move(prepare)), check_(std::move(check)) {
  thread_ = std::thread([this] { run(); });
}

Inspector::~Inspector() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    tasks_.clear();
    retries_.clear();
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

void Inspector::load(UniqueFd fd, std::uint64_t offset, std::size_t bytes, std::uint32_t user) {
  {
    const std::lock_guard lock(mutex_);
    if (!add({.fd = std::move(fd), .user = user, .load_offset = offset, .load_bytes = bytes}, true)) return;
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

void Inspector::run_until_done(std::function<bool()> task) {
  run_later([this, task = std::move(task)] { run(Retry{.task = task}); });
}

void Inspector::run(Retry retry) {
  if (retry.task() || ++retry.tries > max_tries) return;
  retry.not_before_ns = monotonic_ns() + max_retry_ns;
  const std::lock_guard lock(mutex_);
  if (!stop_) retries_.push_back(std::move(retry));
}

std::vector<FileIdentity> Inspector::take_inspected() {
  event_.clear();
  const std::lock_guard lock(mutex_);
  return std::exchange(inspected_, {});
}

bool Inspector::idle() const {
  const std::lock_guard lock(mutex_);
  return tasks_.empty() && retries_.empty() && files_.empty() && !working_;
}

/// Under the lock.
Inspector::Task Inspector::next_task() {
  if (tasks_.empty() && !retries_.empty() && retries_.front().not_before_ns <= monotonic_ns()) {
    const auto retry = std::make_shared<Retry>(std::move(retries_.front()));
    retries_.pop_front();
    return [this, retry] { run(std::move(*retry)); };
  }
  if (tasks_.empty()) return next_inspection();
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

/// Nothing if no user with waiting files has CPU time left, or all files are to be tried later.
Inspector::Task Inspector::next_inspection() {
  const std::uint64_t now = monotonic_ns();
  std::erase_if(shares_, [now](const auto& share) { return share.second.is_unused(now); });
  auto next = files_.upper_bound(last_user_);
  const auto is_due = [&](const auto& entry) {
    const auto share = shares_.find(entry.first);
    return entry.second.front().not_before_ns <= now && (share == shares_.end() || share->second.has_left(now));
  };
  for (std::size_t users = files_.size();; ++next, --users) {
    if (users == 0) return {};
    if (next == files_.end()) next = files_.begin();
    if (is_due(*next)) break;
  }
  last_user_ = next->first;
  auto file = std::make_shared<File>(std::move(next->second.front()));
  next->second.pop_front();
  if (next->second.empty()) files_.erase(next);
  return [this, file] {
    const std::uint64_t begin_ns = thread_cpu_ns();
    if (file->load_bytes > 0)
      load(*file);
    else if (file->known)
      prepare(*file);
    else
      inspect(*file);
    shares_.try_emplace(file->user, usual_share).first->second.use(thread_cpu_ns() - begin_ns, monotonic_ns());
  };
}

void Inspector::run() {
  raise_thread_priority();
  std::unique_lock lock(mutex_);
  while (true) {
    working_ = false;
    wake_.wait(lock, [this] { return stop_ || !tasks_.empty() || !retries_.empty() || !files_.empty(); });
    if (stop_) return;
    const Task task = next_task();
    if (!task) {
      wake_.wait_for(lock, check_interval);
      continue;
    }
    working_ = true;
    lock.unlock();
    task();
    lock.lock();
  }
}

void Inspector::inspect(File& file) {
  const auto known = cache_.find(file.identity);
  auto found = known ? Result<std::optional<RuntimeBinary>>() : inspect_binary(file.fd.get(), check_);
  if (!found && found.error().code == EAGAIN && postpone(file)) return;
  // A file that cannot be read is remembered as no OCaml program: it would fail again at every exec.
  const auto binary = known ? *known : cache_.insert(file.identity, std::move(found).value_or(std::nullopt));
  {
    const std::lock_guard lock(mutex_);
    inspected_.push_back(file.identity);
  }
  event_.signal();
  if (!binary || prepare_(file.fd.get(), binary, file.user)) return;
  {
    const std::lock_guard lock(mutex_);
    if (!preparing_.emplace(file.user, binary->id).second) return;  // it waits already
  }
  file.known = binary;
  prepare_later(file);
}

void Inspector::prepare(File& file) {
  // To probe a file the kernel reads it.
  const bool is_being_changed = check_ && check_(file.fd.get(), FileUse::map);
  if (is_being_changed || !prepare_(file.fd.get(), file.known, file.user)) return prepare_later(file);
  const std::lock_guard lock(mutex_);
  preparing_.erase({file.user, file.known->id});
}

/// Or not at all, if the file was tried often enough.
void Inspector::prepare_later(File& file) {
  const std::pair entry(file.user, file.known->id);
  if (postpone(file)) return;
  const std::lock_guard lock(mutex_);
  preparing_.erase(entry);
}

void Inspector::load(File& file) {
  if (check_ && check_(file.fd.get(), FileUse::read) && postpone(file)) return;
  std::array<std::byte, std::size_t{1} << 16> read;
  for (std::size_t done = 0; done < file.load_bytes; done += read.size()) {
    const std::size_t size = std::min(file.load_bytes - done, read.size());
    if (::pread(file.fd.get(), read.data(), size, static_cast<off_t>(file.load_offset + done)) <= 0) return;
  }
}

/// False if the file was tried often enough, or there is no room for it.
bool Inspector::postpone(File& file) {
  if (++file.tries > max_tries) return false;
  file.not_before_ns = monotonic_ns() + std::min(min_retry_ns * file.tries, max_retry_ns);
  const std::lock_guard lock(mutex_);
  return add(std::move(file), false);
}

}  // namespace rtev
