// SPDX-License-Identifier: MIT
#include "sinks/background_output.hpp"

#include <utility>

namespace rtev {

BackgroundOutput::BackgroundOutput(Output& output, std::size_t most_bytes) : output_(output), most_bytes_(most_bytes) {}

BackgroundOutput::~BackgroundOutput() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool BackgroundOutput::write(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  // A piece that is larger than the bound goes alone.
  progress_.wait(lock, [&] { return failed_ || waiting_bytes_ == 0 || waiting_bytes_ + bytes.size() <= most_bytes_; });
  if (failed_) return false;
  std::vector<char> buffer = take_spare();
  lock.unlock();
  buffer.assign(bytes.begin(), bytes.end());
  lock.lock();
  enqueue({.wish = Wish::write, .bytes = std::move(buffer)});
  return true;
}

bool BackgroundOutput::sync() {
  const std::lock_guard lock(mutex_);
  enqueue({.wish = Wish::sync, .bytes = {}});
  return !failed_;
}

bool BackgroundOutput::finish() {
  std::unique_lock lock(mutex_);
  enqueue({.wish = Wish::finish, .bytes = {}});
  progress_.wait(lock, [this] { return idle_; });
  return !failed_;
}

void BackgroundOutput::enqueue(Piece piece) {
  waiting_bytes_ += piece.bytes.size();
  queue_.push_back(std::move(piece));
  idle_ = false;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  work_.notify_one();
}

std::vector<char> BackgroundOutput::take_spare() {
  if (spares_.empty()) return {};
  std::vector<char> buffer = std::move(spares_.back());
  spares_.pop_back();
  spare_bytes_ -= buffer.capacity();
  return buffer;
}

void BackgroundOutput::keep_spare(std::vector<char> buffer) {
  if (spare_bytes_ + buffer.capacity() > most_bytes_) return;
  spare_bytes_ += buffer.capacity();
  spares_.push_back(std::move(buffer));
}

void BackgroundOutput::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return ends_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Piece piece = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    if (!failed_ && !carry_out(piece)) failed_ = true;
    lock.lock();
    waiting_bytes_ -= piece.bytes.size();
    if (!piece.bytes.empty()) keep_spare(std::move(piece.bytes));
    idle_ = queue_.empty();
    progress_.notify_one();
  }
}

bool BackgroundOutput::carry_out(const Piece& piece) {
  switch (piece.wish) {
    case Wish::sync:
      return output_.sync();
    case Wish::finish:
      return output_.finish();
    case Wish::write:
      break;
  }
  return output_.write({piece.bytes.data(), piece.bytes.size()});
}

}  // namespace rtev
