// SPDX-License-Identifier: MIT
#include "formats/output/background_output.hpp"

#include <algorithm>
#include <utility>

namespace rtev {
namespace {

/// Unused memory costs nothing, and many small blocks would be slow to search.
constexpr std::size_t min_block_bytes = std::size_t{64} << 10;

}  // namespace

BackgroundOutput::~BackgroundOutput() {
  {
    const std::lock_guard lock(mutex_);
    enqueue_filling();
    ends_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool BackgroundOutput::write(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  if (filling_ && filling_->size() + bytes.size() > options_.together_bytes) enqueue_filling();
  wait_for_room(lock, bytes.size());
  if (failed_) return false;
  waiting_bytes_ += bytes.size();
  if (!filling_) {
    filling_ = take_block(bytes.size());
    filling_->begin_at(taken_bytes_);
  }
  lock.unlock();
  filling_->append(bytes);
  taken_bytes_ += bytes.size();
  lock.lock();
  if (filling_->size() >= options_.together_bytes) enqueue_filling();
  return true;
}

bool BackgroundOutput::sync() {
  const std::lock_guard lock(mutex_);
  enqueue_filling();
  enqueue({.action = Action::sync});
  return !failed_;
}

bool BackgroundOutput::finish() {
  begin_finish();
  return wait();
}

void BackgroundOutput::begin_finish() {
  const std::lock_guard lock(mutex_);
  enqueue_filling();
  enqueue({.action = Action::finish});
}

bool BackgroundOutput::wait() {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [this] { return idle_; });
  return !failed_;
}

/// A piece that is larger than the bound is queued alone.
void BackgroundOutput::wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t bytes) {
  const auto has_room = [&] { return failed_ || waiting_bytes_ == 0 || waiting_bytes_ + bytes <= options_.max_bytes; };
  if (has_room()) return;
  enqueue_filling();
  progress_.wait(lock, has_room);
}

void BackgroundOutput::enqueue_filling() {
  if (filling_) enqueue({.action = Action::write, .block = std::exchange(filling_, std::nullopt)});
}

void BackgroundOutput::enqueue(Request request) {
  queue_.push_back(std::move(request));
  idle_ = false;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  work_.notify_one();
}

AlignedBuffer BackgroundOutput::take_block(std::size_t min_bytes) {
  const auto fits = [&](const AlignedBuffer& spare) { return spare.capacity() >= min_bytes; };
  const auto spare = std::ranges::find_if(spares_, fits);
  if (spare == spares_.end()) return AlignedBuffer(std::max({min_bytes, options_.together_bytes, min_block_bytes}));
  std::swap(*spare, spares_.back());
  AlignedBuffer block = std::move(spares_.back());
  spares_.pop_back();
  spare_bytes_ -= block.capacity();
  return block;
}

void BackgroundOutput::keep_spare(AlignedBuffer block) {
  if (spare_bytes_ + block.capacity() > options_.max_bytes) return;
  spare_bytes_ += block.capacity();
  spares_.push_back(std::move(block));
}

void BackgroundOutput::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return ends_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Request request = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    if (!failed_ && !carry_out(request)) failed_ = true;
    lock.lock();
    if (request.block) {
      waiting_bytes_ -= request.block->size();
      keep_spare(std::move(*request.block));
    }
    idle_ = queue_.empty();
    progress_.notify_one();
  }
}

bool BackgroundOutput::carry_out(const Request& request) {
  switch (request.action) {
    case Action::sync:
      return output_.sync();
    case Action::finish:
      return output_.finish();
    case Action::write:
      break;
  }
  return output_.write_pieces(request.block->bytes(), request.block->ends());
}

}  // namespace rtev
