// SPDX-License-Identifier: MIT
#include "helper/channel.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace rtev::helper {
namespace {

/// The kernel takes 253. A view has at most 66 descriptors. The largest have the code of a process, with 512 paths of
/// up to 1 KiB, or a query for it, with 8192 files that are known.
constexpr std::size_t max_fds = 250, max_message_bytes = 1u << 20;

}  // namespace

void Message::add(const void* data, std::size_t size) {
  const std::size_t before = bytes.size();
  bytes.resize(before + size);
  std::copy_n(static_cast<const std::byte*>(data), size, bytes.begin() + static_cast<std::ptrdiff_t>(before));
}

Result<std::pair<UniqueFd, UniqueFd>> make_channel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return errno_error(errno, "cannot create a socket for the helper process");
  std::pair<UniqueFd, UniqueFd> channel{UniqueFd(ends[0]), UniqueFd(ends[1])};
  return channel;
}

void allow_long_messages(int socket) {
  const int bytes = max_message_bytes;
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
}

bool send(int socket, const Message& message, bool dont_wait) {
  if (message.fds.size() > max_fds) return false;
  std::array<int, max_fds> fds{};
  for (std::size_t i = 0; i < message.fds.size(); ++i) fds.at(i) = message.fds[i].get();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(max_fds * sizeof(int))> control{};
  iovec data{.iov_base = const_cast<std::byte*>(message.bytes.data()), .iov_len = message.bytes.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (const std::size_t bytes = message.fds.size() * sizeof(int); bytes > 0) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(rights), fds.data(), bytes);
  }
  ssize_t sent = 0;
  while ((sent = ::sendmsg(socket, &header, MSG_NOSIGNAL | (dont_wait ? MSG_DONTWAIT : 0))) < 0 && errno == EINTR) {
  }
  return sent == static_cast<ssize_t>(message.bytes.size());
}

std::optional<Message> receive(int socket, bool dont_wait) {
  const int flags = dont_wait ? MSG_DONTWAIT : 0;
  ssize_t got = 0;
  while ((got = ::recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC | flags)) < 0 && errno == EINTR) {
  }
  if (got == 0) errno = 0;
  if (got <= 0) return std::nullopt;
  Message message;
  message.bytes.resize(static_cast<std::size_t>(got));
  alignas(cmsghdr) std::array<char, CMSG_SPACE(max_fds * sizeof(int))> control{};
  iovec data{.iov_base = message.bytes.data(), .iov_len = message.bytes.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  while ((got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | flags)) < 0 && errno == EINTR) {
  }
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); got >= 0 && part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
      message.fds.emplace_back(fd);
    }
  }
  if (got <= 0 || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return std::nullopt;
  return message;
}

}  // namespace rtev::helper
