// SPDX-License-Identifier: MIT
#include "inspect/inspector.hpp"

#include <utility>

namespace rtev {
namespace {

constexpr std::size_t max_jobs = 4096;

}  // namespace

Inspector::Inspector(BinaryCache& cache, Prepare prepare) : cache_(cache), prepare_(std::move(prepare)) {
  thread_ = std::thread([this] { run(); });
}

Inspector::~Inspector() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    jobs_.clear();
  }
  wake_.notify_one();
  thread_.join();
}

bool Inspector::inspect(UniqueFd fd, const FileIdentity& identity, bool urgent) {
  return add({.fd = std::move(fd), .identity = identity}, urgent);
}

void Inspector::prepare(UniqueFd fd, std::shared_ptr<const Binary> binary) {
  add({.fd = std::move(fd), .identity = std::nullopt, .binary = std::move(binary)}, false);
}

void Inspector::run_later(std::function<void()> task) {
  add({.fd = {}, .identity = std::nullopt, .task = std::move(task)}, false);
}

bool Inspector::add(Job job, bool urgent) {
  {
    const std::lock_guard lock(mutex_);
    // Each holds a descriptor. What is refused is met again: at its next exec, or by the next scan.
    if (jobs_.size() >= max_jobs) return false;
    if (urgent) {
      jobs_.push_front(std::move(job));
    } else {
      jobs_.push_back(std::move(job));
    }
  }
  wake_.notify_one();
  return true;
}

std::vector<FileIdentity> Inspector::take_inspected() {
  event_.clear();
  const std::lock_guard lock(mutex_);
  return std::exchange(inspected_, {});
}

bool Inspector::idle() const {
  const std::lock_guard lock(mutex_);
  return jobs_.empty() && !working_;
}

void Inspector::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    working_ = false;
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    working_ = true;
    lock.unlock();
    work(std::move(job));
    lock.lock();
  }
}

void Inspector::work(Job job) {
  if (job.task) return job.task();
  std::shared_ptr<const Binary> binary = std::move(job.binary);
  if (job.identity) {
    const auto known = cache_.find(*job.identity);
    // A file that cannot be read is remembered as no OCaml program: it would fail again at every exec.
    binary = known ? *known : cache_.insert(*job.identity, inspect_binary(job.fd.get()).value_or(std::nullopt));
    {
      const std::lock_guard lock(mutex_);
      inspected_.push_back(*job.identity);
    }
    event_.signal();
  }
  if (binary) prepare_(job.fd.get(), binary);
}

}  // namespace rtev
