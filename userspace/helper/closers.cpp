// SPDX-License-Identifier: MIT
#include "helper/closers.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/background_close.hpp"
#include "helper/channel.hpp"

namespace rtev::helper {
namespace {

/// How long files wait for a process that closes others.
constexpr int patience_ms = 20;

/// A file that takes long delays those of its message.
constexpr std::size_t max_files_of_message = 64;

}  // namespace

Closers::Closers(const HelperProcess& helper) : helper_(helper) {
  start_closer();
  thread_ = std::thread([this] { run(); });
  set_background_close([this](int fd) { add(fd); });
}

Closers::~Closers() {
  set_background_close(nullptr);
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.signal();
  thread_.join();
}

void Closers::add(int fd) {
  const std::lock_guard lock(mutex_);
  // Further signals would keep the thread from seeing that files wait for too long.
  if (files_.empty()) wake_.signal();
  files_.emplace_back(fd);
}

void Closers::run() {
  while (wait()) {
    for (Closer& closer : closers_)
      if (closer.is_idle) hand_over(closer);
  }
  // Each process gets more than it can close now: the kernel would close at our end what is still open here.
  std::ranges::partition(closers_, &Closer::is_idle);
  for (bool handed_over = true; handed_over;) {
    handed_over = false;
    for (Closer& closer : closers_) handed_over |= hand_over(closer);
  }
  // Those that have little to do end while their parent still takes note of it.
  for (const Closer& closer : closers_) ::shutdown(closer.channel.get(), SHUT_WR);
  for (const Closer& closer : closers_) {
    pollfd ended{.fd = closer.channel.get(), .events = 0, .revents = 0};
    if (::poll(&ended, 1, patience_ms) == 0) break;
  }
}

/// Waits until there is something to hand over, or a process is idle. Starts another process if none is in time. False
/// at the end.
bool Closers::wait() {
  std::vector<pollfd> polled{{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  for (const Closer& closer : closers_) polled.push_back({.fd = closer.channel.get(), .events = POLLIN, .revents = 0});
  const int ready = ::poll(polled.data(), polled.size(), has_files() ? patience_ms : -1);
  wake_.clear();
  std::erase_if(closers_, [](Closer& closer) {
    const auto done = receive(closer.channel.get(), true);
    if (done) closer.is_idle = true;
    return !done && errno != EAGAIN;
  });
  // Without a helper process the files are closed here.
  if (ready == 0 && !is_any_idle() && closers_.size() < max_processes && !start_closer() && closers_.empty())
    take(max_files_of_message);
  const std::lock_guard lock(mutex_);
  return !stop_;
}

bool Closers::start_closer() {
  auto channel = helper_.start_closer();
  if (channel) closers_.push_back({.channel = std::move(*channel)});
  return channel.has_value();
}

/// Sends files, and closes them here before the process does: the last one to close a file waits.
bool Closers::hand_over(Closer& closer) {
  Message message{.bytes = {std::byte{}}, .fds = take(max_files_of_message)};
  if (message.fds.empty()) return false;
  if (!send(closer.channel.get(), message, true)) {
    const std::lock_guard lock(mutex_);
    files_.insert(files_.begin(), std::move_iterator(message.fds.begin()), std::move_iterator(message.fds.end()));
    return false;
  }
  closer.is_idle = false;
  message.fds.clear();
  send(closer.channel.get(), message, true);
  return true;
}

std::vector<UniqueFd> Closers::take(std::size_t limit) {
  const std::lock_guard lock(mutex_);
  const auto end = files_.begin() + static_cast<std::ptrdiff_t>(std::min(limit, files_.size()));
  std::vector<UniqueFd> taken(std::move_iterator(files_.begin()), std::move_iterator(end));
  files_.erase(files_.begin(), end);
  return taken;
}

bool Closers::has_files() {
  const std::lock_guard lock(mutex_);
  return !files_.empty();
}

bool Closers::is_any_idle() const {
  return std::ranges::any_of(closers_, &Closer::is_idle);
}

}  // namespace rtev::helper
