// SPDX-License-Identifier: MIT
#include "agent/tracer_client.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "helper/channel.hpp"

namespace rtev::agent {
namespace {

std::string content_of(const UniqueFd& file) {
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) return {};
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t at = 0;
  while (at < content.size()) {
    const ssize_t got = ::pread(file.get(), content.data() + at, content.size() - at, static_cast<off_t>(at));
    if (got <= 0) break;
    at += static_cast<std::size_t>(got);
  }
  content.resize(at);
  return content;
}

}  // namespace

TracerClient::TracerClient(event_base* base, int channel, std::chrono::seconds timeout)
    : base_(base),
      channel_(channel),
      timeout_{.tv_sec = timeout.count(), .tv_usec = 0},
      readable_(::event_new(
          base, channel, EV_READ | EV_PERSIST,
          [](evutil_socket_t, short, void* self) { static_cast<TracerClient*>(self)->on_readable(); }, this)) {
  ::event_add(readable_.get(), nullptr);
  reserve();
  for (Pending& pending : pending_) {
    const auto on_timeout = [](evutil_socket_t, short, void* late) {
      static_cast<Pending*>(late)->settle(std::nullopt);
    };
    pending.timeout.reset(::event_new(base, -1, 0, on_timeout, &pending));
  }
}

void TracerClient::ask(Request request, Answer answer) {
  Pending& pending = pending_[static_cast<std::size_t>(request)];
  pending.answers.push_back(std::move(answer));
  if (pending.answers.size() > 1) return;
  ::event_add(pending.timeout.get(), &timeout_);
  helper::send(channel_, {.bytes = {static_cast<std::byte>(request)}, .fds = {}}, true);
}

/// Clients may take all descriptors, but an answer comes with one.
void TracerClient::reserve() {
  spare_ = UniqueFd(::fcntl(channel_, F_DUPFD_CLOEXEC, 0));
}

void TracerClient::on_readable() {
  spare_.reset();
  errno = 0;
  auto message = helper::receive(channel_, true);
  const int error = errno;
  if (!message) {
    reserve();
    if (error != EAGAIN) ::event_base_loopbreak(base_);
    return;
  }
  const bool is_answer = message->bytes.size() == 1 && message->fds.size() <= 1;
  const std::string content = is_answer && !message->fds.empty() ? content_of(message->fds[0]) : std::string();
  message->fds.clear();
  reserve();
  if (is_answer && message->bytes.front() == static_cast<std::byte>(Order::finish)) {
    if (finish_) finish_();
    return;
  }
  const auto kind = is_answer ? static_cast<std::size_t>(message->bytes.front()) : pending_.size();
  if (kind < pending_.size()) pending_[kind].settle(content);
}

void TracerClient::Pending::settle(const std::optional<std::string>& content) {
  ::event_del(timeout.get());
  for (const Answer& answer : std::exchange(answers, {})) answer(content);
}

}  // namespace rtev::agent
