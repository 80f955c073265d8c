// SPDX-License-Identifier: MIT
#include "helper/closers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <utility>

#include "base/background_close.hpp"
#include "base/restarts.hpp"
#include "helper/channel.hpp"

namespace rtev::helper {
namespace {

/// How long files wait for a process that closes others.
constexpr int patience_ms = 20;

/// A file that takes long delays those of its message.
constexpr std::size_t max_files_of_message = 64;

/// Files that wait here for an idle process. Further ones wait in the channels of those at work, where they are none of
/// the tracer's descriptors.
constexpr std::size_t max_waiting = 256;

/// Of a file. A message has three other descriptors.
constexpr std::size_t links_of_message = 240;

/// Lets a process end that has little to do. False if it has more.
bool await_idle_end(const UniqueFd& channel) {
  ::shutdown(channel.get(), SHUT_WR);
  pollfd ended{.fd = channel.get(), .events = 0, .revents = 0};
  return ::poll(&ended, 1, patience_ms) != 0;
}

UniqueFd copy_of(int fd) {
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

/// Moves links into a message. What says that all are closed goes with the last of them.
LinksMessage take_links(int mappings, FileLinks& file) {
  LinksMessage message{.mappings = copy_of(mappings), .file = copy_of(file.file ? file.file->get() : -1)};
  for (; !file.links.empty() && message.links.size() < links_of_message; file.links.pop_back())
    message.links.push_back(std::move(file.links.back()));
  if (file.links.empty()) message.closed = std::move(file.closed);
  return message;
}

/// Takes the links out of a message that was not sent.
void take_back(Message& message, FileLinks& file) {
  LinksMessage links;
  Reader{message}(links);
  std::ranges::move(links.links, std::back_inserter(file.links));
  if (links.closed) file.closed = std::move(links.closed);
}

/// Waits for room, but not for long.
bool send_soon(const UniqueFd& channel, const Message& message) {
  if (send(channel.get(), message, true)) return true;
  if (errno != EAGAIN) return false;
  pollfd room{.fd = channel.get(), .events = POLLOUT, .revents = 0};
  ::poll(&room, 1, patience_ms);
  return send(channel.get(), message, true);
}

}  // namespace

Closers::Closers(const HelperProcess& helper) : helper_(helper) {
  start_closer();
  thread_ = std::thread([this] { run(); });
  set_background_close([this](int fd) { add(fd); });
  set_background_links(
      [this](int mappings, std::vector<FileLinks> files) { return add_links(mappings, std::move(files)); });
}

Closers::~Closers() {
  set_background_close(nullptr);
  set_background_links(nullptr);
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.signal();
  thread_.join();
  if (link_closer_) await_idle_end(link_closer_);
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
      if (closer.is_idle || is_crowded()) hand_over(closer);
  }
  // Each process gets more than it can close now: the kernel would close at our end what is still open here.
  std::ranges::partition(closers_, &Closer::is_idle);
  for (bool handed_over = true; handed_over;) {
    handed_over = false;
    for (Closer& closer : closers_) handed_over |= hand_over(closer);
  }
  // Those that have little to do end while their parent still takes note of it.
  for (const Closer& closer : closers_) ::shutdown(closer.channel.get(), SHUT_WR);
  for (const Closer& closer : closers_)
    if (!await_idle_end(closer.channel)) break;
}

std::vector<FileLinks> Closers::add_links(int mappings, std::vector<FileLinks> files) {
  const std::lock_guard lock(links_mutex_);
  if (!link_closer_) {
    auto channel = helper_.start_link_closer();
    if (!channel) return files;
    link_closer_ = std::move(*channel);
  }
  for (; !files.empty(); files.pop_back()) {
    FileLinks& file = files.back();
    while (!file.links.empty()) {
      LinksMessage links = take_links(mappings, file);
      Message message;
      Writer{message}(links);
      bool is_sent = send_soon(link_closer_, message);
      if (!is_sent) take_back(message, file);
      // The last one to close a link waits.
      message.fds.clear();
      is_sent = is_sent && send_soon(link_closer_, {.bytes = {std::byte{}}});
      if (is_sent) continue;
      // Another one takes the rest: this one is gone, or hangs.
      count_restart(Part::closer);
      link_closer_.reset();
      return files;
    }
  }
  return files;
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
    if (done || errno == EAGAIN) return false;
    count_restart(Part::closer);
    return true;
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

bool Closers::is_crowded() {
  const std::lock_guard lock(mutex_);
  return files_.size() > max_waiting;
}

bool Closers::is_any_idle() const {
  return std::ranges::any_of(closers_, &Closer::is_idle);
}

}  // namespace rtev::helper
