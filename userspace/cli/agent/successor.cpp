// SPDX-License-Identifier: MIT
#include "cli/agent/successor.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace rtev::cli {
namespace {

AgentMessage failure(std::string why) {
  return {.word = "failed", .fields = {{"why", std::move(why)}}};
}

}  // namespace

Successor::Successor() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

std::string Successor::welcome(UniqueFd& connection, Offer offer) {
  const std::lock_guard lock(mutex_);
  if (connection_) return encoded(failure("another agent is about to replace it"));
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return {};
  if (!send(connection.get(), message_of(std::move(offer)))) return {};
  connection_ = std::move(connection);
  pid_ = peer.pid;
  epoll_event event{.events = EPOLLIN, .data = {.fd = connection_.get()}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection_.get(), &event);
  return {};
}

/// To be called with the lock. The connection leaves epoll with its last descriptor.
void Successor::dismiss() {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection_.get(), nullptr);
  connection_.reset();
}

std::optional<std::uint64_t> Successor::take() {
  const std::lock_guard lock(mutex_);
  if (!connection_) return std::nullopt;
  const auto message = receive(connection_.get());
  if (!message) {
    if (errno != EAGAIN) dismiss();
    return std::nullopt;
  }
  if (message->word != "take") return std::nullopt;
  enables_ = message->number("enable") != 0u;
  return message->number("at");
}

void Successor::refuse(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!connection_) return;
  send(connection_.get(), failure(why));
  dismiss();
}

bool Successor::is_there() {
  const std::lock_guard lock(mutex_);
  pollfd end{.fd = connection_.get(), .events = POLLRDHUP, .revents = 0};
  return connection_ && ::poll(&end, 1, 0) == 0;
}

bool Successor::give(const Figures& figures) {
  const std::lock_guard lock(mutex_);
  return connection_ && send(connection_.get(), message_of(figures));
}

}  // namespace rtev::cli
