// SPDX-License-Identifier: MIT
#include "formats/output/background_output.hpp"

#include <algorithm>
#include <utility>

namespace rtev {
namespace {

/// Memory that is not used costs nothing; many small blocks would be slow to choose from.
constexpr std::size_t least_block_bytes = std::size_t{64} << 10;

}  // namespace

BackgroundOutput::~BackgroundOutput() {
  {
    const std::lock_guard lock(mutex_);
    hand_on();
    ends_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool BackgroundOutput::write(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  if (filling_ && filling_->size() + bytes.size() > options_.together_bytes) hand_on();
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
  if (filling_->size() >= options_.together_bytes) hand_on();
  return true;
}

bool BackgroundOutput::sync() {
  const std::lock_guard lock(mutex_);
  hand_on();
  enqueue({.wish = Wish::sync});
  return !failed_;
}

bool BackgroundOutput::finish() {
  std::unique_lock lock(mutex_);
  hand_on();
  enqueue({.wish = Wish::finish});
  progress_.wait(lock, [this] { return idle_; });
  return !failed_;
}

/// A piece that is larger than the bound goes alone.
void BackgroundOutput::wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t bytes) {
  const auto has_room = [&] { return failed_ || waiting_bytes_ == 0 || waiting_bytes_ + bytes <= options_.max_bytes; };
  if (has_room()) return;
  hand_on();
  progress_.wait(lock, has_room);
}

void BackgroundOutput::hand_on() {
  if (filling_) enqueue({.wish = Wish::write, .block = std::exchange(filling_, std::nullopt)});
}

void BackgroundOutput::enqueue(Order order) {
  queue_.push_back(std::move(order));
  idle_ = false;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  work_.notify_one();
}

AlignedBuffer BackgroundOutput::take_block(std::size_t least_bytes) {
  const auto fits = [&](const AlignedBuffer& spare) { return spare.capacity() >= least_bytes; };
  const auto spare = std::ranges::find_if(spares_, fits);
  if (spare == spares_.end()) return AlignedBuffer(std::max({least_bytes, options_.together_bytes, least_block_bytes}));
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
    Order order = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    if (!failed_ && !carry_out(order)) failed_ = true;
    lock.lock();
    if (order.block) {
      waiting_bytes_ -= order.block->size();
      keep_spare(std::move(*order.block));
    }
    idle_ = queue_.empty();
    progress_.notify_one();
  }
}

bool BackgroundOutput::carry_out(const Order& order) {
  switch (order.wish) {
    case Wish::sync:
      return output_.sync();
    case Wish::finish:
      return output_.finish();
    case Wish::write:
      break;
  }
  return output_.write_pieces(order.block->bytes(), order.block->ends());
}

}  // namespace rtev
